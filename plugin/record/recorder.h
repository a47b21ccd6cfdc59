// One recording: watches the interpreter run the frames of a region and notes what it does.
//   reads.cpp         where values come from: sources, shadows, identity table, guards
//   instructions.cpp  before/after each instruction: moves shadows, notes reads and writes
//   calls.cpp         calls of C callables: the call policy
//   caches.cpp        weak references and caches, which hand out what is there already
//   identity.cpp      objects that C code compares, hashes or prints by their address
//   warnings.cpp      warnings.warn, which looks at the frames
//   dispatch.cpp      the operator log (a torch dispatch mode)
//   recipe.cpp        how to build the exit state and the arguments of events again
// A recording is rooted at one frame; sources are relative to that frame's slots at entry (slot -1 is its function).
// Shadows: beside every slot of every frame on the stack stands where its value came from (a source, Internal = made inside or constant,
// Unknown = from outside, origin unknown). Heap objects carry their source in an identity table; immutable values have no identity, so one
// that leaves the slots is value-guarded at that moment.
#pragma once
#include "plugin/flat_map.h"
#include "plugin/frame/frame.h"
#include "plugin/record/entry_state.h"
#include "plugin/record/log.h"
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace framejit {

struct CallRow;  // call_policy.h

// Builds a Python object again at replay. Children come before parents except through `fill`, so that shared and cyclic objects work:
// first every object is created empty, then filled.
struct Recipe {
    enum Kind : uint8_t {
        Null,
        Const,
        Src,
        Tensor,
        Tuple,
        List,
        Dict,
        Set,
        FrozenSet,
        Cell,
        Function,
        Method,
        BoundBuiltin,
        Instance,
        Reduced,
        Slice,
        TypeCall,
        EventResult
    } kind = Null;
    int id = 0;              // Src: source; Tensor: tensor row
    PyRef object;            // Const: the object; Instance, TypeCall: the type; Function: the recorded function; BoundBuiltin: the name
    std::vector<int> parts;  // items; Dict: key, value, ...; Instance: see recipe.cpp
    int dict = -1;           // Instance, Function: recipe of its __dict__ (a Dict)
};
struct Recipes {
    std::vector<Recipe> rows;
    std::unordered_map<PyObject*, int> memo;  // heap objects by address (held by `held`)
    std::vector<PyRef> held;
};

extern thread_local class Recorder* active_recorder;  // null: what runs is no part of a recording

class Recorder {
public:
    struct Shadow {
        Frame* frame = nullptr;
        std::vector<int> s;
        int result = kOpen, self = kOpen;  // what the current instruction pushes
        int function = Internal;           // source of the frame's function
        int unit = 0;                      // start of the current instruction
        size_t keep_mark = 0;
        size_t event_mark = 0, own_events = 0;  // noted before the current instruction ran
        long entered_mark = 0;
        PyObject* kept_names = nullptr;  // keyword names of a call with unpacked arguments, until it has ended
        bool in_root = false;
        bool direct = false;  // an interpreted CALL started the frame, and gets its result
        // What the last frame below the current instruction returned or yielded (strong; never a tensor: those have rows). It is the
        // instruction's result, or C code has looked at it.
        PyObject* returned = nullptr;
        int returned_shadow = Internal;
        bool returned_direct = false;
    };
    static constexpr int kOpen = -2;     // not decided before the instruction ran
    static constexpr int kWritten = -3;  // the value was written in the region: `written_shadow_` for immutable ones, else by identity

    static constexpr int kInside = -4;  // C code took it out of an object made in the region: known by identity, or new as well

    explicit Recorder(Frame* root);  // rooted at the current state of the frame; GC is off until the recording ends
    ~Recorder();
    Recorder(const Recorder&) = delete;

    Shadow* enter_root(Frame*, int depth);
    Shadow* enter(Frame*);
    void before(Shadow&, Frame*, const Ins&, PyObject** sp);
    bool moves(Shadow&, Frame*, const Ins&, PyObject** sp);  // instead of both, before; false: they are needed
    void after(Shadow&, Frame*, const Ins&, PyObject** sp);
    void unwound(Shadow&, Frame*, int depth);
    void leave(Shadow*, Frame*, PyObject* result, int depth, bool suspends);

    // The region cannot go on past the current instruction of the innermost frame. The first one wins; nothing is noted afterwards. The
    // recording itself is then given up: its frames' current instructions are cut points, and the next recording ends *before* such an
    // instruction, where the state of the frame can be copied. `subject` and `callee` go into the message.
    void note_break(const BreakReason&, PyObject* subject = nullptr, PyObject* callee = nullptr);
    bool broken() const { return broken_; }
    void note_op(PyObject* overload, PyObject* args, PyObject* kwargs, PyObject* result);
    void fail(std::string why) {
        if (failure.empty()) failure = std::move(why);
    }  // the region cannot be replayed at all

    // It made something that a functools.lru_cache keeps from now on: a replay would not, and the next recording finds it there.
    bool fills_a_cache() const;

    // The exit state: recipes of the live slots of the root, or of its result. Valid as long as the objects do not change.
    int recipe_of(PyObject* value, int shadow);
    int recipe_of(const Operand&);

    Frame* root;
    PyCodeObject* root_code;
    int entry_unit, entry_depth;
    Sources sources;
    std::vector<Guard> guards;
    std::vector<TensorSpec> specs;
    std::vector<OpRow> ops;
    std::vector<TensorRow> tensors;
    std::vector<Event> events;
    std::vector<DataGuard> data_guards;
    const std::unordered_set<uint64_t>* no_data_guards = nullptr;  // places (data_place) where the value kept changing
    Recipes recipes;
    GlobalState state;
    EntryState entry;  // for the self-check
    bool keeps_entry = false;
    int autocast_nesting = 0;                // entered and not left
    std::unordered_map<int, PyRef> numbers;  // by source: Python numbers that are inputs of the graph, as recorded
    Break found;                             // valid when broken()
    bool strict = false;                     // a break is an error: what comes after it must not run
    std::string failure;
    std::vector<std::pair<PyCodeObject*, int>> chain;  // of the break: code and unit of every frame from the root inwards
    Frame* now = nullptr;                              // the frame whose instruction runs
    bool leaves_generators() const;                    // one that was started waits in a try or with
    double record_ms = 0;
    double operators_ms = 0;  // of it, in torch's operators

    // dispatch.cpp
    bool made_inside(const void* storage);
    bool guard_data(PyObject* tensor);  // false: a break is needed
    bool follows_from_integers(int row);
    bool may_defer(int row) const;
    bool guard_shape(const OpRow&);
    bool data_inside(PyObject* value, bool integers);  // C++ reads tensors in lists, or integer ones: false: a break is needed
    TensorRow* tensor_row(PyObject*);
    int tensor_number(PyObject*);  // -1: not known
    int note_tensor(PyObject*, bool result);

private:
    friend struct CallPolicy;
    // reads.cpp
    bool guard(GuardKind, int source, PyObject* expected = nullptr, int64_t n = 0);
    void guard_tensor(PyObject* t, int source);
    int child(SourceKind, int parent, PyObject* key, PyObject* value, int index = 0);
    int known_source(int source, PyObject* value);  // enters a value just read into the identity table
    int lookup(PyObject* value, bool report);
    bool passes(const Shadow&, Op, PyObject* result) const;
    void consumed(Shadow&);  // C code has looked at what a frame returned
    void use(PyObject* value, int shadow);
    void use_type(PyObject* value, int shadow);
    void use_value(PyObject* value, int shadow) {
        if (shadow > 0) guard(GuardKind::Value, shadow, value);
    }
    void contents(PyObject* value, int shadow);  // one level: what is read of the elements shows later
    void inside(PyObject* container, int depth);
    void stored(int into, PyObject* value, int shadow);
    void read_stored(int container);
    void length(PyObject* value, int shadow);
    void keys(PyObject* dict, int shadow);
    int type_lookup(PyTypeObject*, PyObject* name, PyObject* found);
    int guard_look_up(PyTypeObject*, PyObject* name, PyObject* found);
    int attribute(PyObject* o, int shadow, PyObject* name, bool generic = false);
    PyObject* guard_getattribute(PyTypeObject*, bool generic);
    void guard_operator(PyObject* tensor, int op, bool reflected);
    int tensor_attribute(PyObject* o, int shadow, PyObject* name, PyObject* in_type);
    int known_attribute(uint64_t key, PyObject* o, PyObject* name);
    int dict_attribute(uint64_t key, PyObject* dict, int shadow, PyObject* name, int absent);
    int member_attribute(PyObject* o, int shadow, PyObject* name);
    int described(PyObject* o, int shadow, PyObject* name, PyObject* descriptor);
    int class_attribute(PyObject* type, int shadow, PyObject* name);
    int global(PyObject* globals, PyObject* builtins, PyObject* name);
    bool in_python(PyObject* o, const char* method);  // the class of a builtin's subclass overrides it
    int item(PyObject* o, int shadow, PyObject* key, int key_shadow);
    void guard_outcome(int result, int op, PyObject* a, PyObject* b);
    int arithmetic(SourceKind, int op, PyObject* a, int sa, PyObject* b, int sb);
    void make_internal(PyObject*);
    void enter_fresh(PyObject* container, int depth);
    void enter_yielded(PyObject* tuple);
    void hole(PyObject* value, PyObject* callee = nullptr);
    void guard_function(PyObject* fn, int shadow);
    bool mutating(PyObject* target, int shadow, bool append_only);  // before a sourced container changes
    void release(size_t mark);
    void let_go(PyObject* generator);
    void ended(PyObject* generator);
    void suspended(Frame*, const std::vector<int>& shadows);
    void bind_pending(Shadow&, Frame*, int args, int all);
    void guard_special(PyObject* self, PyObject* function);
    void called_by_c(Shadow&, Frame*, int all);
    int default_source(int function, PyCodeObject*, int parameter, PyObject* value);
    // instructions.cpp, calls.cpp
    friend struct Instructions;
    void expect_frame(PyObject* function, PyObject* const* args, const int* shadows, int total);
    int call(Shadow&, PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, int positional, PyObject* kwnames);
    int c_call(Shadow&, PyObject* fn, PyObject** args, const int* shadows, int total, int positional, PyObject* kwnames);
    void base_setitem(PyObject* self, int shadow, PyObject** key_value, const int* shadows);
    int kept_result(PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, PyObject* kwnames);
    struct AskedCache {  // a functools.lru_cache, as it was when the region first asked it
        PyRef cache;
        long misses;
        PyRef only_key;         // of a cache of one
        bool bounded;           // it throws out what was not used for the longest time, so that being asked changes it
        long in_vain = 0;       // asked for what no cache can have
        bool thrashes = false;  // a cache of one is asked for more than one thing in each call: it keeps nothing from call to call
    };
    AskedCache* asked_cache(PyObject* lru_cache);  // null: it keeps nothing
    void compared(PyObject* a, int sa, PyObject* b, int sb, int depth = 0);
    void sought(PyObject* a, int sa, PyObject* in);
    void told(PyObject* value, int shadow, const char* method, int depth = 0);
    void pinned(PyObject* value, int shadow, int depth = 0);
    void hashed(PyObject** sp, const int* s, int count, int step);
    void address_of_slot(PyObject* self, int shadow, PyObject* slot, PyObject** args, const int* shadows, int total);
    void slot_event(PyObject* self, int shadow, PyObject* name, PyObject** args, const int* shadows, int total, PyObject* kw);
    void handed_to_c(PyObject* callable);
    int slot_wrapper(PyObject* fn, PyObject** args, const int* shadows, int total, PyObject* kw);
    bool foreign(int source) const;                 // it came out of an earlier break
    int call_target(PyObject* method, int shadow);  // a bound method is about to run through C: where its self came from
    // A number from outside that meets a tensor in this instruction: the operator that takes it gets it as an input, or it is guarded.
    bool defer_scalar(PyObject* value, int shadow);
    void settle_scalar();
    Operand operand(PyObject* value, int shadow);
    void set_attribute(PyObject* o, int shadow, PyObject* name, PyObject* value, int value_shadow);
    void delete_attribute(PyObject* o, int shadow, PyObject* name);
    void set_item(PyObject* o, int shadow, PyObject* key, PyObject* value, int value_shadow);
    void event(EventKind, PyObject* target, int target_shadow, PyObject* key, int key_shadow, PyObject* value, int value_shadow);
    void call_event(PyObject* fn, int fn_shadow, PyObject** args, const int* shadows, int total, PyObject* kwnames);
    void raised(Shadow&);
    void show_mode();
    void unwatch() { unwatched_ = std::exchange(active_recorder, nullptr) == this; }
    void warns(PyObject* fn, PyObject** args, const int* shadows, int total, int positional, PyObject* kw);
    Frame* warned_frame(long level, PyObject* frames);
    bool warnings_changed();
    uint64_t location(int source, PyObject* key);
    void wrote(int source, PyObject* key, int shadow);
    bool written(int source, PyObject* key);                 // and what was written into written_shadow_
    void adding(PyObject* dict, int source, PyObject* key);  // d[key] = ...: the dict may grow
    int64_t entry_length(PyObject* container, int source);
    // recipe.cpp
    int build(PyObject* value);
    bool holds_source(PyObject* tuple);
    int build_container(PyObject* value);
    int build_instance(PyObject* value);
    int build_function(PyObject* value);
    int build_reduced(PyObject* value);
    int add_recipe(PyObject* value, Recipe);
    // dispatch.cpp
    int storage_number(const void* address, const std::vector<int>* among);
    PyRef with_placeholders(PyObject* value, std::vector<int>& rows);
    void take_scalar(OpRow&);
    void flatten_results(PyObject* value, std::vector<int>& rows);

    long entered_ = 0;                              // frames below the root
    std::vector<std::unique_ptr<Shadow>> shadows_;  // all that were ever made
    std::vector<Shadow*> free_, active_;            // unused ones; those of the frames that run now, root first
    FlatMap identity_;                              // heap objects -> source, or Internal when created inside the region
    FlatMap guarded_;
    FlatMap seen_inside_;  // sources of containers that inside() has been through
    FlatMap reads_;        // (class, name), (source, name, class), (globals, name) -> source of the value: what is guarded already
    FlatMap tensor_at_;    // address -> row, valid while the weak reference agrees
    FlatMap cell_shadow_;  // cells made inside: shadow of the content
    FlatMap storage_at_;   // address of a StorageImpl -> number, for those alive
    std::vector<int> storage_owner_;  // by number: the row that was seen first
    std::vector<PyObject*> keep_;     // everything whose address is a key above stays alive until the end
    struct Suspended {
        std::vector<int> s;
        PyRef waits;  // weak: the generator, where its end runs a handler
    };
    std::unordered_map<Frame*, Suspended> suspended_;      // generators; some have ended unseen, and their frame's address may come back
    FlatMap written_;                                      // (source of the object, key) -> shadow of the value
    bool any_written_ = false, constant_written_ = false;  // globals, context variables
    int written_shadow_ = Internal;
    struct ContextSet {  // var.set(...) that no reset has taken back
        int variable;
        int before;  // shadow of what the region had set before; kDead: nothing
        PyRef token;
    };
    std::vector<ContextSet> context_sets_;
    std::vector<AskedCache> caches_;
    std::unordered_set<int> filled_;  // sources (Cached) that were missing
    bool result_of_event_ = false;    // the call in progress is the last event, and somebody may use its result
    std::unordered_map<int, std::vector<std::pair<PyRef, bool>>> set_keys_;  // by dict: keys that were set, and whether they were there
    std::unordered_set<int> shrunk_;                                         // dicts that lost attributes
    std::unordered_map<int, int64_t> grown_;                                 // containers that were only appended to: their length at entry
    std::unordered_map<int, std::vector<std::pair<PyRef, int>>> stored_;     // by container: values put in, not guarded yet
    std::unordered_set<int> mutated_;  // containers that changed otherwise; their entry contents are guarded
    struct Pending {
        PyObject* function = nullptr;
        std::vector<std::pair<PyObject*, int>> args;
        PyObject* kwnames = nullptr;
        int positional = 0;
    } pending_;
    std::vector<PyObject*> unpacked_;  // of the call in hand: f(*args, **kwargs)
    std::vector<int> unpacked_shadows_;
    PyObject* kwnames_ = nullptr;
    PyRef scalar_;  // deferred, and its shadow
    int scalar_shadow_ = Internal;
    PyObject* constructing_ = nullptr;       // the type whose call is in progress
    bool broken_ = false, lifting_ = false;  // lifting_: the argument of lift_fresh, data that Python made
    bool gc_was_on_ = false;
    bool hidden_mode_ = false;  // for the call in progress
    bool unwatched_ = false;    // the same: an event does it again, with all that it calls
    bool inference_ = false;    // at entry: what the graph makes is of this mode
};

inline uint64_t data_place(const void* code, int unit) { return uint64_t(code) * 31 + uint64_t(unit); }

// The operator log. The mode is on torch's stack while a recording runs; `active_recorder` says whose.
extern thread_local long idle_operators;  // seen by the mode while nothing was recorded
int init_dispatch();                      // after init_torch(); -1 with a Python error
int push_mode();
int pop_mode();                               // leaves it when another mode lies above; an idle mode passes everything through
bool is_dispatch_rule_lookup(PyCodeObject*);  // torch's Python function that looks for a rule of (operator, mode): answered without running

}  // namespace framejit
