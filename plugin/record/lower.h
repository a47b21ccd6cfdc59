// The operator log as a graph. Each storage of the recording is one value that changes over time: reading a tensor means looking at its
// storage's current value through the tensor's view; an in-place operator gives the storage a new value (functionalization with the real
// aliasing). What has no rule, or writes through a view, becomes an extern in program order.
#pragma once
#include "framejit/op.h"
#include "plugin/record/recorder.h"
#include <string>
#include <vector>

namespace framejit {

struct CapturedTensor {  // how the caller gets a tensor of the log after the graph has run
    enum Kind : uint8_t { Input, Output } kind = Output;
    int index = -1;      // Input: position of the input; Output: position in Graph::outputs
    Window window;       // on that memory, from its first element
    bool whole = false;  // the window is all of the memory: the tensor itself
    int torch_dtype = -1;
    bool detached = false;  // of an input that requires grad, without it
};
struct ExternUse {
    std::string file, function;
    int line = 0;  // 0: not known
    bool random = false;
    bool own_generator = false;  // not torch's default one
};
ExternUse use_of(const OpRow&);
struct CapturedGraph {
    Graph graph;
    std::vector<int> inputs;      // tensor rows; negative: ~source of a Python number (0-dim float64 or int64)
    std::vector<Extern> externs;  // by ExternCall::id
    std::vector<ExternUse> extern_uses;
    std::vector<ExternUse> checked_uses;  // operators in kernels that raise where an index is out of range
    std::vector<CapturedTensor> tensors;  // one per wanted row
    std::vector<int> written;             // positions of inputs whose memory the graph changes
    std::vector<std::string> mistakes;    // rules that disagreed with the real result: our bugs, reported
    int ops = 0;                          // operators of the log that take part
    int fused = 0;                        // of them: computed by kernels (the others are views, or run by torch)
    int random = 0;                       // of them: draw random numbers
    std::string failure;                  // not empty: the log cannot be replayed
};
// wanted: rows whose value must exist afterwards. only_needed: leave out operators that nothing wanted depends on (data guards).
CapturedGraph lower(const Recorder&, const std::vector<int>& wanted, bool only_needed);

}  // namespace framejit
