// How the lowerings of ATen operators are written. A lowering is `Results name(Call&)`; `rule<name>` makes it an AtenRule's function.
// Reading an argument that is not what the lowering expects throws `Uncovered`, which means: the caller makes an extern. So a lowering
// reads as if every argument were as it wants it, and whatever eager would reject or torch does better stays with torch.
#pragma once
#include "src/ops/promote.h"
#include "src/ops/rules.h"

namespace framejit::aten {

using Results = std::vector<Ref>;
struct Uncovered {};

struct Call : rules::Build {
    std::span<const Arg> args;
    std::span<const Meta> out;

    const Arg& at(size_t i) const;
    bool given(size_t i) const { return i < args.size() && !args[i].none(); }
    bool is_tensor(size_t i) const { return i < args.size() && args[i].as<Ref>(); }
    Ref tensor(size_t i) const;
    Ref tensor_or_null(size_t i) const { return given(i) ? tensor(i) : nullptr; }
    std::vector<Ref> tensors(size_t i) const;
    int64_t integer(size_t i) const;
    double real(size_t i) const;  // any Python number
    bool flag(size_t i) const;
    std::string text(size_t i) const { return given(i) && at(i).as<std::string>() ? *at(i).as<std::string>() : std::string(); }
    std::vector<int64_t> integers(size_t i) const;  // one integer is a list of one
    DType dtype_or(size_t i, DType otherwise) const;
    int64_t dim(size_t i, Ref of) const { return wrap_dim(integer(i), of); }
    static int64_t wrap_dim(int64_t d, Ref of);         // negative from the end; 0-dim tensors have one dimension
    std::vector<int64_t> dims(size_t i, Ref of) const;  // ascending; none or empty: all

    // A Python number or tensor as a value of this dtype.
    Ref value(const Arg&, DType) const;
    Ref value(size_t i, DType d) const { return value(at(i), d); }
    DType default_float() const;
    DType common(std::initializer_list<size_t>) const;  // result_type of these arguments
    // Each result in the dtype that was recorded.
    Ref as_recorded(Ref r, size_t k = 0) { return cast(r, out[k].dtype); }
    Ref scalar_of(const Arg&, DType) const;
};
void require(bool condition);  // Uncovered otherwise

template <Results (*lower)(Call&)> std::optional<Results> functional(Graph& g, std::span<const Arg> args, std::span<const Meta> out) {
    try {
        for (const Meta& m : out) require(computable(m.dtype));
        Call call{{g}, args, out};
        return lower(call);
    } catch (const Uncovered&) {
        return std::nullopt;
    }
}
// The same for "aten::add_.Tensor": what is written back has the dtype of the tensor that is written.
template <Results (*lower)(Call&)> std::optional<Results> in_place(Graph& g, std::span<const Arg> args, std::span<const Meta> out) {
    auto results = functional<lower>(g, args, out);
    if (results) (*results)[0] = rules::Build{g}.cast((*results)[0], out[0].dtype);
    return results;
}
struct Lowering {
    decltype(AtenRule::lower) functional, in_place;
};
template <Results (*lower)(Call&)> inline constexpr Lowering rule = {functional<lower>, in_place<lower>};
struct Row {
    std::string_view overload;
    Lowering lowering;
    bool view = false;  // the result is a view of argument 0
};

// The families, each a table in a file of its own.
std::span<const Row> arithmetic_rules();
std::span<const Row> function_rules();
std::span<const Row> logic_rules();
std::span<const Row> creation_rules();
std::span<const Row> view_rules();
std::span<const Row> layout_rules();
std::span<const Row> index_rules();
std::span<const Row> reduction_rules();
std::span<const Row> norm_rules();
std::span<const Row> backward_rules();

}  // namespace framejit::aten
