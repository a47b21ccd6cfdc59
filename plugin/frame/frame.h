// What the rest of the plugin may know about a running Python frame and its code: accessors, no layout.
// The layout, opcode numbers and version checks live in cpython_3_NN.* of this folder only.
#pragma once
#include "plugin/py.h"
#include <cstdint>
#include <string>
#include <vector>

struct _PyInterpreterFrame;

namespace framejit {

using Frame = ::_PyInterpreterFrame;

PyCodeObject* code_of(const Frame*);       // borrowed
PyObject* function_of(const Frame*);       // borrowed
PyObject* globals_of(const Frame*);        // borrowed
PyObject* builtins_of(const Frame*);       // borrowed
PyObject** slots_of(Frame*);               // locals, cells, free variables, then the value stack
int locals_count(const PyCodeObject*);     // number of slots before the value stack
int free_vars_count(const PyCodeObject*);  // the last ones of the locals
int stack_size(const PyCodeObject*);
PyObject* local_names(const PyCodeObject*);  // borrowed tuple, one name per slot before the stack
Frame* caller_of(const Frame*);
Frame* current_frame();                  // of the calling thread, may be null
bool is_generator(const Frame*);         // owned by a generator, coroutine or async generator
PyObject* generator_of(Frame*);          // that object, borrowed; only if is_generator
bool has_handlers(const PyCodeObject*);  // try, with
bool has_started(const Frame*);          // false: at its very first instruction
int unit_of(const Frame*);               // code unit of the current instruction, -1 before the first
int line_of(const Frame*);               // source line of the current instruction
int line_at(PyCodeObject*, int unit);
std::string where(const Frame*);        // file:line in qualname
uint64_t dict_version(PyObject* dict);  // changes whenever the dict changes; never 0
const uint64_t*
dict_version_word(PyObject* dict);       // a word that changes whenever dict_version does and is never equal for two dicts; null: none
uint32_t type_version(PyTypeObject*);    // changes whenever a class or its bases change; 0: has none, compare by look-up
PyObject** dict_slot(PyObject* object);  // where the object keeps its __dict__ (may hold null), or null. Makes no dict.
PyObject* exception_in_flight(PyThreadState*);  // exc_info's value (borrowed, may be null)
PyObject* proxied_mapping(PyObject*);           // of a mappingproxy, borrowed; null for anything else
struct BoundSlot {                              // o.__getattribute__ of a C type: borrowed
    PyObject *name, *self;
};
BoundSlot bound_slot(PyObject* method_wrapper);
void init_lru_cache();         // once, at import: runs Python code
bool is_lru_cache(PyObject*);  // a functools.lru_cache wrapper written in C
// The key of a call of an untyped cache, new, or null without an error; keywords: names of the last arguments, or null.
PyObject* lru_key(PyObject* const* args, Py_ssize_t total, PyObject* keywords);
// What it keeps for a key, borrowed, or null. It is not called, and its counters and order stay.
PyObject* lru_cached(PyObject* wrapper, PyObject* key, Py_hash_t hash);
PyObject* lru_entries(PyObject* wrapper);  // its dict by key, borrowed, or null
size_t c_stack_left();                     // bytes; under the hook every Python call uses the C stack

// ---- neutral instructions ----
// Named after CPython 3.11's opcodes; caches dropped, EXTENDED_ARG folded, specialised forms undone, superinstructions split, jumps
// absolute.
enum class Op : uint8_t {
#define INSTRUCTION(name) name,
#include "plugin/interpret/instruction.def"
#undef INSTRUCTION
};
const char* name_of(Op);
struct Ins {
    Op op;
    int arg;
    int unit;    // code unit of the opcode itself (after any EXTENDED_ARG)
    int start;   // code unit of the first EXTENDED_ARG, or `unit`: where a frame may be handed over
    int target;  // index in Code::ins of the jump target, or -1
};
struct Handler {
    int target = -1, depth = 0;
    bool lasti = false;
};
struct Code {
    std::vector<Ins> ins;
    std::vector<int> at;           // code unit -> index of the first instruction at or after it
    std::vector<Handler> handler;  // code unit -> handler, target -1 when none
    bool native = false;           // a thunk: never interpreted
};
const Code* decode(PyCodeObject*);  // cached for the life of the code object; null when it cannot be decoded
size_t decoded_count();             // code objects in the cache

// ---- PEP 523 ----
using EvalHook = PyObject* (*)(PyThreadState*, Frame*, int throwflag);
void set_eval_hook(EvalHook);  // null: CPython's own evaluation
PyObject* eval_default(PyThreadState*, Frame*, int throwflag);
bool traced(PyThreadState*);                // settrace/setprofile is active
void finish_frame_without_running(Frame*);  // the hook answers for the frame: leave it as CPython expects after a return
const char* unsupported_version();          // null, or why this CPython is not supported

}  // namespace framejit
