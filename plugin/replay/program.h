// What is known about one compiled function: the points of its frames where a region may start, the entries there, and the counts for the
// report. Points are keyed by (code, unit): the function's own entry, and in functions that had a break inside the instruction after it.
#pragma once
#include "plugin/clock.h"
#include "plugin/replay/callable.h"
#include "plugin/replay/plan.h"
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace framejit {

struct Entry {  // guards + plan for one variant of a region
    GlobalState state;
    GuardSet guards;
    std::unique_ptr<RegionPlan> plan;
    long hits = 0;
    double record_ms = 0, compile_ms = 0;
    double eager_ms = 0;                              // what torch's operators took while it was recorded
    double compiled_ms = 0;                           // the fastest of the first runs; 0: none yet
    std::string unchecked = "the self-check is off";  // why; empty: compared with eager
    int line_from = 0, line_to = 0;
};
constexpr long kTimedRuns = 16;
// Runs the plan; the first runs are timed for the report.
template <class Run> int run_entry(Entry& e, Run run) {
    if (e.hits >= kTimedRuns) [[likely]]
        return run();
    const double start = now_ms();
    const int status = run();
    const double took = now_ms() - start;
    if (status == 0 && (!e.compiled_ms || took < e.compiled_ms)) e.compiled_ms = took;
    return status;
}
struct Miss {  // a guard that sent a call to another variant
    Failure failure;
    long count = 0;
};
struct EagerNote {  // why a stretch stays eager
    std::string why, file;
    int line = 0;
    long count = 0;
};
struct Point {
    PyCodeObject* code = nullptr;
    int unit = 0;
    std::vector<std::shared_ptr<Entry>> entries;  // whoever runs one holds it: another thread may drop it meanwhile
    int recordings = 0, failures = 0, empty = 0;
    int unsettled = 0;               // recordings that filled a cache
    long visits = 0, try_again = 0;  // visits before the next recording is tried
    long eager_operators = 0;        // of a recording that cannot be replayed
    bool eager = false;              // recompile limit reached, or recordings keep failing
    std::vector<Miss> misses;
};
struct BreakCount {
    Break where;
    long count = 0;
};
struct Options {
    bool fullgraph = false, exact_random = true, self_check = true;
    int recompile_limit = 8;
};

class FunctionProgram {
public:
    explicit FunctionProgram(CompiledFunction*);
    ~FunctionProgram();
    Point& point(PyCodeObject*, int unit);
    Point* entry_point() { return entry_; }
    // The entry that serves this state, or null. `stale` entries (objects died) are dropped on the way.
    // `not_these`: entries that ran already and met another truth.
    std::shared_ptr<Entry> find(Point&, PyObject* const* slots, const std::vector<const Entry*>* not_these = nullptr);
    // A deferred data guard of the entry did not hold: it is asked last from now on.
    void another_truth(Point&, const std::shared_ptr<Entry>&);
    // Whether a recording should be tried at this point now.
    bool worth_recording(Point&);
    // A site whose instruction calls C code that works on its own: frames below it are no roots.
    bool is_quiet(PyCodeObject* code, int unit) const { return quiet_.count(data_place(code, unit)) != 0; }
    bool is_site(PyCodeObject* code, int unit) const { return sites_.count(data_place(code, unit)) != 0; }
    void add_site(PyCodeObject*, int unit, bool quiet);
    // Breaks that set something up (a buffer made on first use, a message shown once) cut the function for good. So after a few compiled
    // calls one recording goes past all sites; true: now, from here.
    bool try_whole(const Point&);
    void breaks_are_over();  // that recording met none: the pieces go
    void note(const Break&);
    void stays_eager(Point&, const std::string& why);
    void note_miss(Point&, PyObject* const* slots);
    PyObject* report() const;  // the dictionary of one function
    int traverse(visitproc, void*) const;
    void forget();  // everything recorded; points stay, as calls may be under way
    void clear();   // for the cycle collector: nobody calls us any more

    CompiledFunction* owner;  // borrowed: the owner frees us
    Options options;
    struct {
        long total = 0, recorded = 0, eager = 0, compiled = 0;
    } calls;
    long operators_between = 0;  // that ran outside of regions in a call that recorded: the most of any
    std::unordered_set<uint64_t> no_data_guards;
    std::map<std::string, EagerNote> eager_notes;

private:
    bool data_holds(const Entry&);
    bool changes_too_often(const DataGuard&);
    std::map<std::pair<PyCodeObject*, int>, std::unique_ptr<Point>> points_;
    std::unordered_set<uint64_t> sites_, quiet_;
    std::vector<PyRef> codes_;  // of points and sites: their addresses are keys
    std::vector<BreakCount> breaks_;
    std::map<uint64_t, long> data_misses_;
    Point* entry_ = nullptr;
    bool tried_whole_ = false;
};

FunctionProgram* program_of(CompiledFunction*);        // made on first use
std::vector<CompiledFunction*>& compiled_functions();  // all that live
int add_replay(PyObject* module);                      // report, reset, wait, set_enabled, graph_break, ...
bool replay_enabled();                                 // false inside framejit.disabled()

}  // namespace framejit
