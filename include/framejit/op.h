// The op table. One OpDef literal per op holds everything the compiler knows about it; the body is one of five kinds, and the kind is
// the only thing that anybody switches over. A word in ops.def without an OpDef does not link; a Required facet left out does not compile.
#pragma once
#include "framejit/emitter.h"
#include "framejit/ir.h"
#include <array>
#include <optional>
#include <stdexcept>
#include <variant>

namespace framejit {

struct GraphError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- coordinates: affine in the loop variables, plus an optional value computed at run time ----
inline constexpr int kVars = 8, kLane = 7;  // 0..6: row variables, 7: the lane
struct Coord {
    std::array<int64_t, kVars> k{};
    int64_t c = 0;
    bool dyn = false, dyn_lane = false;
    Val v{};
    bool lane() const { return k[kLane] || dyn_lane; }
    bool affine() const { return !dyn; }
};
using Coords = std::vector<Coord>;
struct IndexEnv {  // what an index op may ask while mapping coordinates
    virtual ~IndexEnv() = default;
    virtual Coord value(Ref, const Coords&) = 0;  // the integer held by a node at these coordinates
    virtual Coord divmod(const Coord&, int64_t n, Coord* rem) = 0;
    virtual Coord scaled(const Coord&, int64_t factor) = 0;
    virtual Coord sum(const Coord&, const Coord&) = 0;
    // The coordinate itself where it is inside [0, extent), any valid one elsewhere: for reads whose value is then selected away (cat,
    // pad).
    virtual Coord clamped(const Coord&, int64_t extent) = 0;
    // Wraps a negative run-time index and notes "out of range" (reported after the kernel, as eager's error).
    virtual Coord checked(const Coord& index, int64_t extent) = 0;
};

template <class F> struct Required {
    F fn;
    template <class G> constexpr Required(G g) : fn(g) {}
};
using TypeRule = DType (*)(std::span<const Ref>, const Attrs&, DType hint);
using ShapeRule = Shape (*)(std::span<const Ref>, const Attrs&, const Shape& hint);
struct Sample {
    std::vector<std::pair<DType, Shape>> in;
    Attrs at;
    double lo = -3, hi = 3;
};
struct Leaf {};  // input, constant, iota, extern, result
struct Pointwise {
    Val (*emit)(Emitter&, std::span<const Val>, const Node&);
    double ns;
};  // ns per f32 element: recompute or keep
struct Index {
    Coords (*map)(const Node&, const Coords& out, IndexEnv&);
};  // output coordinates -> coordinates of in[0]
struct Reduce {  // over dimension at.i[0], kept with extent 1
    int accs;    // accumulators are tuples (argmax: value, index)
    void (*init)(Emitter&, Ty, Val* acc);
    void (*step)(Emitter&, Val* acc, Val x, Val index);   // one element (or one lane each)
    void (*merge)(Emitter&, Val* acc, const Val* other);  // lanes, accumulators, chunks, threads
    Val (*result)(Emitter&, const Val* acc, const Node&);
    bool indexed = false;  // step wants the index
};
// A long reduction goes in blocks of about sqrt(extent) whose accumulators are merged: one chain of float additions loses bits (a sum of
// 10^6 numbers: relative error 3e-5 in one chain, 8e-7 so). Short ones are one block.
inline int64_t reduction_block(int64_t extent) {
    int64_t block = 32;
    while (block * block < extent) block *= 2;
    return extent <= 2 * block ? extent : block;
}
struct Composite {
    Ref (*expand)(Graph&, const Node&, std::span<const Ref>);
};
using Body = std::variant<Leaf, Pointwise, Index, Reduce, Composite>;
using Vjp = std::vector<Ref> (*)(Graph&, const Node& n, std::span<const Ref> in, Ref out, Ref grad);
struct OpDef {
    std::string_view name, doc;
    Required<TypeRule> dtype;
    Required<ShapeRule> shape;
    Required<Body> body;
    Required<std::vector<Sample> (*)()> samples;
    Vjp vjp = nullptr;  // null: not differentiable (yet)
    template <class T> const T* as() const { return std::get_if<T>(&body.fn); }
};
#define OP(n) extern const OpDef op_##n;
#include "framejit/ops.def"
#undef OP
const OpDef* find_op(std::string_view);
std::span<const OpDef* const> all_ops();

// ---- from ATen: how a recorded operator becomes nodes ----
// An argument as the dispatcher delivered it. Tensors are already values of the graph; 0-dim CPU tensors that were Python numbers keep
// `wrapped`.
struct Arg {
    std::variant<std::monostate, Ref, int64_t, double, bool, std::vector<int64_t>, std::vector<double>, std::vector<Ref>, DType,
                 std::string>
        v;
    template <class T> const T* as() const { return std::get_if<T>(&v); }
    bool none() const { return v.index() == 0; }
};
struct Meta {
    DType dtype;
    Shape shape;
};  // of a recorded result
struct AtenRule {
    std::string_view overload;  // "aten::add.Tensor"; an in-place overload "aten::add_.Tensor" uses the rule of its functional form
    // Positional arguments (defaults filled in by the caller, keyword-only ones last, in schema order) -> results, or nothing when these
    // arguments are not covered (the caller then makes an extern). The caller compares dtype and shape with `out`; a mismatch is our bug.
    std::optional<std::vector<Ref>> (*lower)(Graph&, std::span<const Arg>, std::span<const Meta> out);
    bool view = false;  // the result is a view of argument 0
};
// A write through a view: the value of `base` (contiguous in its own shape) after the elements in a window of its memory became `value`,
// whose shape is the window's. Nothing when the window overlaps itself or is no box of any shape of the base.
std::optional<Ref> put_window(Graph&, Ref base, const Window&, Ref value);

const AtenRule* find_aten(std::string_view overload);
std::span<const AtenRule> all_aten();

}  // namespace framejit
