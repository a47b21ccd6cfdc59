// What the scheduler hands to code generation: kernels as explicit lists of expressions over loop variables, and the order of steps.
//
// A kernel iterates over a space: row variables 0..5, one sequential variable kSeq (column kernels) and the lane. An expression is a node
// of the graph *at coordinates*; coordinates are gone by then: a load has an element offset that is affine in the loop variables plus
// strides times run-time values. So the code generator knows nothing of views, broadcasts or gathers, and hoisting, recompute-or-keep,
// prefetch and the structural key are plain loops over the list. Invariants: operands of an expression come before it; `vars` is exactly
// the set of variables on which its value may depend.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "framejit/op.h"

namespace framejit {

inline constexpr int kSeq = 6;   // the sequential variable of a column kernel; row variables are 0..5
inline constexpr int kRows = 6;  // how many row variables there are
constexpr unsigned bit(int var) { return 1u << var; }

struct Term {  // a run-time integer (an expression) times a stride
    int expr;
    int64_t k;
    bool operator==(const Term&) const = default;
};
struct Affine {
    std::array<int64_t, kVars> k{};
    int64_t c = 0;
    std::vector<Term> terms;
    bool operator==(const Affine&) const = default;
};

struct Expr {
    enum Kind : uint8_t {
        Load,      // buffer[at]
        Constant,  // node's value
        Iota,      // start + step * at, start and step from node
        Index,     // the integer `at`
        Apply,     // node's pointwise body on args
        Reduced,   // the result of reductions[slot]
        Folded,    // node is a reduction over at most one element: args are that element, or nothing
        Div,       // args[0] / n, args[0] >= 0
        Mod,       // args[0] % n
        Clamped,   // args[0] forced into [0, n)
        Checked,   // args[0], negative ones wrapped; outside of [0, n) the kernel reports failure
    };
    Kind kind;
    Ref node = nullptr;
    std::vector<int> args;
    Affine at;
    int64_t n = 0;
    int buffer = -1;     // Load: position in Kernel::loads
    int slot = -1;       // Reduced
    int guard = -1;      // Load: an Index expression; where it is outside of [0, n) the element is not read and the value is unspecified
    unsigned vars = 0;   // bits of the variables that the value depends on
    uint64_t reads = 0;  // bits of the reductions that it depends on, directly or not
    DType dtype = DType::i64;
};

struct Reduction {
    Ref node;
    int input;      // the expression that is reduced
    int expr;       // the Reduced expression
    int stage = 0;  // 1 + the largest stage of the reductions below
};
struct Store {
    int expr;
    Affine at;      // element offset
    bool full;      // varies with the reduced variable (or there is no reduction); otherwise it is made once per row or column
    int stage = 0;  // full: the stage whose loop makes it
    DType dtype;
};

// A bounds check of an index into one repeated number: no element is read by it, but eager would raise.
struct Check {
    int expr;
    bool full;  // as a store's
    int stage = 0;
};

struct Source {  // the memory of a value; `own`: of an input itself, although a copy of it exists
    Ref value;
    bool own = false;
    bool operator==(const Source&) const = default;
};

struct Kernel {
    enum Kind : uint8_t {
        Linear,   // every access is the contiguous index or uniform: one lane loop over everything
        Rows,     // for each row { for each stage: lane loop; then row-level stores }
        Blocked,  // pointwise with a transposed operand: 64 rows at a time, rows innermost
        Column,   // for each row and block of lanes { for each stage: loop over kSeq; then lane-level stores }
        Split,    // few long rows: chunks of lanes leave partial accumulators, `finish` merges them in order and makes the row-level stores
    };
    Kind kind = Rows;
    std::array<int64_t, kVars> extent{};  // of each variable; 1 where unused
    std::vector<int> rows;                // row variables that are used, outermost first
    int red = -1;                         // kLane or kSeq: the variable that reductions run over; -1: none
    std::vector<Expr> exprs;
    std::vector<Reduction> reductions;  // by stage
    std::vector<Store> stores;
    std::vector<Check> checks;  // those that no other expression reads
    std::vector<int> keeps;     // lane values kept in a scratch row for later stages
    int stages = 1;
    std::vector<Source> loads;  // buffers of the function: loads, then one per store
    bool in_place = false;      // a store overwrites memory that the kernel reads at the same coordinates
    bool strided = false;       // some operand has unit stride along the last row variable, not along the lanes
    double ns = 0;              // compute per point of the space
    double depth = 0;           // ns along the longest dependent path
    int64_t rows_total() const {
        int64_t n = 1;
        for (int v : rows) n *= extent[v];
        return n;
    }
    int64_t points() const { return rows_total() * extent[kSeq] * extent[kLane]; }
};
inline constexpr int64_t kChunk = 16384;  // lanes per unit of a Split kernel: fixed, so that results do not depend on the number of threads

// Elements of memory, whoever owns it. Values are found by node: `memory_of`.
struct Buffer {
    enum Kind : uint8_t { Input, Output, Temp, Result } kind;
    int position = -1;  // Input, Output
    DType dtype = DType::f32;
    Shape shape;
    int64_t bytes = 0;
    bool external = false;  // an extern reads or writes it: not in the arena
    int64_t arena = -1;
};
struct Launch {  // kernels of equal structure that do not depend on each other
    const Kernel* kernel = nullptr;
    std::vector<std::vector<int>> items;  // buffers of the program, in the kernel's order
};
struct Call {
    int call = -1;
    std::vector<int> args, results;
};
struct Step {
    Launch launch;  // kernel == nullptr: an extern
    Call call;
};
struct Program {
    std::vector<Buffer> buffers;
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<std::string> keys;  // structural key of each kernel
    std::vector<Step> steps;
    std::vector<int> outputs;  // buffer of each graph output
    int64_t arena_bytes = 0;
    int fused_ops = 0;
};

struct ScheduleOptions {
    int lanes = 16;         // f32 lanes of a vector register
    double keep_ns = 0.18;  // recomputing a lane value above this costs more than a scratch row
    int max_nodes = 256;    // limits of one kernel: compile time
    int max_streams = 16;
    double byte_ns = 0.05;  // memory traffic, per byte
};
Program schedule(const Graph&, const ScheduleOptions& = {});
std::string print(const Program&, const Graph&);
std::string key_of(const Kernel&);  // equal keys: equal machine code
std::string print(const Kernel&);

}  // namespace framejit
