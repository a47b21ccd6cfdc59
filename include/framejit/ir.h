// The graph: immutable, hash-consed nodes in an arena. Two equal nodes are one node, so equality is pointer identity and CSE is no pass.
// Values are logical tensors (dtype + shape); memory layout exists only at the edges:
//   * `input`   at.i = {position, stride...}: memory that somebody else owns (a region input), strides in elements
//   * `result`  at.i = {index, stride...}, in = {extern node}: what an extern returned
//   * every value that is materialised by a kernel is contiguous in its own shape. A channels-last tensor is a `transpose` of one.
// An extern node has no value itself (dtype other, shape {}); Graph::externs[at.i[0]] describes the call.
// Order: externs run in node order. A *mutating* extern changes the memory of its argument 0's base; `result` 0 of it is the new value of
// that base, in the same memory. Whatever was computed from the old value and is needed later is materialised before it (the scheduler sees
// to it).
#pragma once
#include "framejit/dtype.h"
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framejit {

struct OpDef;
using Shape = std::vector<int64_t>;
struct Attrs {
    std::vector<int64_t> i;
    std::vector<double> f;
    bool operator==(const Attrs&) const = default;
};
struct Node {
    const OpDef* op;
    std::vector<const Node*> in;
    Attrs at;
    DType dtype;
    Shape shape;
    int id;  // position in the arena: operands come first
};
using Ref = const Node*;
inline int64_t numel(std::span<const int64_t> s) {
    int64_t n = 1;
    for (auto d : s) n *= d;
    return n;
}
Shape contiguous_strides(std::span<const int64_t> shape);

// A strided window on the memory of a materialised value: what an extern gets as argument or what a caller gets as output.
struct Window {
    Shape sizes, strides;
    int64_t offset = 0;  // elements from the base's first element
    bool operator==(const Window&) const = default;
};
struct ExternCall {
    int id;                       // the caller's number for the call (which operator, which plain arguments)
    std::string name;             // for dumps: aten::addmm
    std::vector<Window> args;     // one per tensor argument, on the memory of in[k]
    std::vector<Window> results;  // recorded layout of each result; sizes/strides only
    std::vector<DType> dtypes;    // of the results
    bool mutates = false;         // writes the memory of in[0] through args[0]; result 0 is then in[0]'s new value
    bool raises = false;          // whether it raises depends on data: inputs are overwritten only after it
    bool operator==(const ExternCall&) const = default;
};
// Values that must be in memory when the graph has run, each in a buffer of its own even if two are the same node.
struct Output {
    Ref value;
    int into = -1;       // >= 0: write into this input's memory (value has the input's shape), otherwise a new contiguous buffer
    bool as_is = false;  // value is a `result`: hand out that memory itself instead of a copy
};
struct Graph {
    Graph() = default;
    Graph(Graph&&) = default;
    Graph& operator=(Graph&&) = default;
    std::string name;
    std::deque<Node> nodes;
    std::vector<ExternCall> externs;
    std::vector<Output> outputs;
    int inputs = 0;

    // The one constructor. Applies the op's dtype and shape rules (`dtype`/`shape` are hints for leaves). Throws GraphError on bad
    // operands.
    Ref make(const OpDef&, std::vector<Ref> in, Attrs at = {}, DType dtype = DType::f32, Shape shape = {});
    Ref input(DType, Shape shape, Shape strides);
    Ref scalar(double v, DType d);                                      // 0-dim constant (exact for |int| < 2^53)
    Ref integer(int64_t v, DType d);                                    // 0-dim integer constant, exact
    Ref op(std::string_view name, std::vector<Ref> in, Attrs at = {});  // broadcasts operands of pointwise ops; no promotion
    Ref extern_call(ExternCall, std::vector<Ref> in);
    Ref result(Ref call, int index);

private:
    std::unordered_multimap<size_t, Ref> table_;
};
std::string print(const Graph&);
Graph parse(std::string_view text);  // parse(print(g)) prints the same text; throws GraphError with the line number
enum class Stage { Captured, Decomposed };
// Checks what must hold at a stage; returns the first problem or an empty string.
std::string verify(const Graph&, Stage);
// The oracle: evaluates with one scalar at a time. bufs: inputs (with their strides), then outputs. No externs.
void interpret(const Graph&, std::span<void* const> bufs);

}  // namespace framejit
