// A plan: what a region does instead of its bytecode. Compiled graph, then the objects it makes, then the events, then the exit state.
// Immutable after construction; runs with the GIL (released around large kernels).
#pragma once
#include "framejit/api.h"
#include "plugin/record/lower.h"
#include "plugin/record/recorder.h"
#include <boost/container/small_vector.hpp>
#include <memory>
#include <string>
#include <vector>

namespace framejit {

using Objects = boost::container::small_vector<PyObject*, 16>;  // of one call: as a rule on the stack

// A compiled graph with what it takes to run it on torch tensors.
class TensorProgram {
public:
    static std::shared_ptr<const TensorProgram> build(CapturedGraph, std::string& error);
    // inputs: tensors in the order of `input_rows()`. results: one new reference per wanted tensor. 0, 1 (an operator raised, and nothing
    // outside has changed: eager raises it again, with the user's lines) or -1 with a Python error.
    int run(PyObject* const* inputs, Objects& results) const;
    const std::vector<int>& input_rows() const { return graph_.inputs; }
    const CapturedGraph& captured() const { return graph_; }
    const Executable* executable() const { return executable_.get(); }
    int traverse(visitproc, void*) const;

private:
    struct Memory;
    int prepare(Memory&, PyObject* const* inputs) const;
    int run_extern(const ExternStep&, Memory&) const;
    int run_step(size_t step, Memory&, int threads) const;
    enum Felt : char { Nothing, Draw, Change };
    Felt felt_outside(size_t step) const;
    void say_where(size_t step) const;
    PyObject* tensor_of(Memory&, int slot) const;
    CapturedGraph graph_;
    std::shared_ptr<const Executable> executable_;  // null: the graph computes nothing
    struct Fresh {
        Allocator allocate;
        int64_t bytes = 0;  // about: a hint for large ones
    };
    std::vector<Fresh> fresh_;                // by slot: outputs and temps that need a tensor
    std::vector<std::vector<Viewer>> views_;  // by extern call and argument
    std::vector<std::vector<char>> whole_;    // the argument is the slot's tensor itself
    std::vector<Viewer> result_views_;        // by wanted tensor
    std::vector<Felt> outside_;               // by step; Change: it writes to inputs, or may do anything (a custom operator)
};

// Where the frame stands after the region.
struct ExitState {
    bool returns = true;     // slots[0] is the result; otherwise the frame goes on
    int unit = 0;            // code unit of the next instruction
    std::vector<int> slots;  // recipes of the live slots
};

class RegionPlan {
public:
    // Takes the logs of a finished recording. Null with `error` when the region cannot be replayed.
    static std::unique_ptr<RegionPlan> build(Recorder&, ExitState, std::string& error);
    // Sources whose values run() gets, in order: `wanted` of the guard set.
    const std::vector<int>& sources() const { return sources_; }
    // Runs everything. slots: one new reference (or null) per exit slot. 0, 1 (nothing happened: run eagerly), kAnotherTruth (the same: a
    // deferred data guard does not hold) or -1 with a Python error.
    static constexpr int kAnotherTruth = 2;
    int run(PyObject* const* values, std::vector<PyObject*>& slots) const;
    // The same for a region that returns: its result.
    int run_returning(PyObject* const* values, PyObject** result) const;
    // The graph alone on the recording's own tensors, results compared with the recorded ones. Empty: equal; otherwise what differs.
    std::string self_check(Recorder&, std::string& unchecked) const;
    // Data guards: true when Python would see the same values again.
    bool data_holds(PyObject* const* values, int* failed) const;

    ExitState exit;
    const TensorProgram* tensors() const { return program_.get(); }
    bool has_data_guards() const { return data_ != nullptr; }
    const std::vector<DataGuard>& data_guards() const { return data_guards_; }
    const std::vector<DataGuard>& deferred() const { return deferred_; }
    int traverse(visitproc, void*) const;
    std::string note;  // what stays eager or was not checked, for the report

private:
    struct Made;
    PyObject* make(Made&, int recipe) const;
    PyObject* make_function(Made&, int recipe) const;
    PyObject* make_instance(Made&, int recipe) const;
    PyObject* make_reduced(Made&, int recipe) const;
    int perform(size_t event, Made&) const;
    std::shared_ptr<const TensorProgram> program_, data_;
    std::vector<DataGuard> data_guards_;  // before the region
    std::vector<DataGuard> deferred_;     // their rows are the last of `wanted_rows_`
    size_t extra_ = 0;                    // rows before those: only computed because that may raise
    bool deferred_hold(const Objects& tensors) const;
    std::vector<int> program_inputs_, data_inputs_;  // positions in `values`; negative: ~constant
    std::vector<PyRef> constants_;                   // tensors that the region made from Python data
    std::vector<int> sources_;
    std::vector<int> wanted_rows_;
    struct {
        std::vector<Recipe> rows;
    } recipes_;
    std::vector<Event> events_;
    bool simple_ = false;                          // the common region: one tensor out, nothing else
    std::vector<std::vector<int>> event_recipes_;  // per event: target, key, value, args...
    std::vector<int> result_recipes_;              // per event: what its result becomes; -1: nothing
};

}  // namespace framejit
