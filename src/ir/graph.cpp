// Graph construction. A node is looked up by everything that it is made of before it is created, so equal nodes are one node.
// Invariants: operands come before their users in the arena; dtype and shape are what the op's own rules say, except for leaves.
// Floats in attributes are compared by their bits, so that -0 and 0 stay two constants.
#include <bit>
#include <cmath>
#include <cstring>

#include "framejit/op.h"
#include "src/ir/number.h"

namespace framejit {

Shape contiguous_strides(std::span<const int64_t> shape) {
    Shape strides(shape.size());
    int64_t step = 1;
    for (size_t d = shape.size(); d-- > 0;) {
        strides[d] = step;
        step *= shape[d];
    }
    return strides;
}

namespace {

struct Hash {
    size_t h;
    void mix(uint64_t v) { h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2); }
};

size_t hash_of(const OpDef& op, std::span<const Ref> in, const Attrs& at, DType dtype, const Shape& shape) {
    Hash hash{reinterpret_cast<size_t>(&op) * 31 + size_t(dtype)};
    for (Ref n : in) hash.mix(reinterpret_cast<uint64_t>(n));
    for (int64_t v : at.i) hash.mix(uint64_t(v));
    for (double v : at.f) hash.mix(std::bit_cast<uint64_t>(v));
    for (int64_t v : shape) hash.mix(uint64_t(v));
    return hash.h;
}

bool same_attrs(const Attrs& a, const Attrs& b) {
    if (a.i != b.i || a.f.size() != b.f.size()) return false;
    return a.f.empty() || std::memcmp(a.f.data(), b.f.data(), a.f.size() * sizeof(double)) == 0;
}

void check_operands(const OpDef& op, std::span<const Ref> in) {
    for (Ref n : in) {
        if (!n) throw GraphError(std::string(op.name) + ": operand is null");
        if (n->op == &op_extern && &op != &op_result)
            throw GraphError(std::string(op.name) + ": an extern call has no value, take a result of it");
    }
}

Shape broadcast_shape(std::string_view op, std::span<const Ref> in) {
    Shape out;
    for (Ref n : in) {
        if (n->shape.size() > out.size()) out.insert(out.begin(), n->shape.size() - out.size(), 1);
        const size_t lead = out.size() - n->shape.size();
        for (size_t d = 0; d < n->shape.size(); d++) {
            int64_t& have = out[lead + d];
            if (have != n->shape[d] && have != 1 && n->shape[d] != 1) throw GraphError(std::string(op) + ": shapes do not broadcast");
            if (have == 1) have = n->shape[d];
        }
    }
    return out;
}

struct Type {
    DType dtype;
    Shape shape;
};
Type type_of(const OpDef& op, std::span<const Ref> in, const Attrs& at, DType dtype, const Shape& shape) {
    try {
        return {op.dtype.fn(in, at, dtype), op.shape.fn(in, at, shape)};
    } catch (const GraphError& e) {
        throw GraphError(std::string(op.name) + ": " + e.what());
    } catch (const std::out_of_range&) {
        throw GraphError(std::string(op.name) + ": no such dimension");
    }
}

}  // namespace

Ref Graph::make(const OpDef& op, std::vector<Ref> in, Attrs at, DType dtype, Shape shape) {
    check_operands(op, in);
    auto [type, sizes] = type_of(op, in, at, dtype, shape);
    const size_t hash = hash_of(op, in, at, type, sizes);
    auto [first, last] = table_.equal_range(hash);
    for (; first != last; ++first) {
        Ref n = first->second;
        if (n->op == &op && n->dtype == type && n->in == in && n->shape == sizes && same_attrs(n->at, at)) return n;
    }
    nodes.push_back({&op, std::move(in), std::move(at), type, std::move(sizes), int(nodes.size())});
    table_.emplace(hash, &nodes.back());
    if (&op == &op_input) inputs++;
    return &nodes.back();
}

Ref Graph::input(DType dtype, Shape shape, Shape strides) {
    if (shape.size() != strides.size()) throw GraphError("input: one stride per dimension");
    Attrs at{{inputs}, {}};
    at.i.insert(at.i.end(), strides.begin(), strides.end());
    return make(op_input, {}, std::move(at), dtype, std::move(shape));
}

Ref Graph::scalar(double v, DType d) {
    if (is_float(d)) return make(op_constant, {}, {{}, {round_to(v, d)}}, d, {});
    return integer(d == DType::b1 ? v != 0 : int64_t(v), d);
}

Ref Graph::integer(int64_t v, DType d) {
    if (is_float(d)) return scalar(double(v), d);
    return make(op_constant, {}, {{wrap_to(v, d)}, {}}, d, {});
}

Ref Graph::op(std::string_view name, std::vector<Ref> in, Attrs at) {
    const OpDef* def = find_op(name);
    if (!def) throw GraphError("no op " + std::string(name));
    if (def->as<Pointwise>() && in.size() > 1) {
        check_operands(*def, in);
        const Shape shape = broadcast_shape(name, in);
        for (Ref& n : in)
            if (n->shape != shape) n = make(op_expand, {n}, {shape, {}});
    }
    return make(*def, std::move(in), std::move(at));
}

Ref Graph::extern_call(ExternCall call, std::vector<Ref> in) {
    if (call.args.size() != in.size()) throw GraphError("extern " + call.name + ": one window per tensor argument");
    if (call.results.size() != call.dtypes.size()) throw GraphError("extern " + call.name + ": one dtype per result");
    externs.push_back(std::move(call));
    return make(op_extern, std::move(in), {{int64_t(externs.size()) - 1}, {}}, DType::other, {});
}

Ref Graph::result(Ref call, int index) {
    if (!call || call->op != &op_extern) throw GraphError("result: the operand must be an extern call");
    const ExternCall& c = externs[call->at.i[0]];
    if (index < 0 || index >= int(c.results.size())) throw GraphError("result: " + c.name + " has no result " + std::to_string(index));
    Attrs at{{index}, {}};
    at.i.insert(at.i.end(), c.results[index].strides.begin(), c.results[index].strides.end());
    return make(op_result, {call}, std::move(at), c.dtypes[index], c.results[index].sizes);
}

}  // namespace framejit
