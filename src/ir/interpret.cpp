// The oracle: every value gets memory of its own and is computed one scalar at a time, narrowing after every op as a kernel does.
// Slow on purpose. Throws std::out_of_range where a kernel would report an index out of range.
#include <algorithm>
#include <stdexcept>

#include "framejit/op.h"
#include "src/ir/number.h"
#include "src/ir/scalar_emitter.h"
#include "src/passes/passes.h"
#include "src/passes/rebuild.h"

namespace framejit {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Coordinates are plain numbers here: only Coord::c is used.
class Interpreter final : IndexEnv {
public:
    Interpreter(const Graph& g, std::span<void* const> bufs) : graph_(g), bufs_(bufs), values_(g.nodes.size()) {}

    void run() {
        const std::vector<char> live = live_nodes(graph_);
        for (const Node& n : graph_.nodes)
            if (live[n.id]) evaluate(n);
        for (size_t k = 0; k < graph_.outputs.size(); k++) write_output(k);
    }

private:
    struct Value {
        std::vector<char> own;
        void* memory = nullptr;
        Shape strides;
    };

    void evaluate(const Node& n) {
        Value& value = values_[n.id];
        if (n.op == &op_input) {
            value.memory = bufs_[n.at.i[0]];
            value.strides.assign(n.at.i.begin() + 1, n.at.i.end());
            return;
        }
        if (n.op == &op_extern || n.op == &op_result) throw GraphError("the interpreter has no extern calls");
        const int64_t count = numel(n.shape);
        value.own.resize(size_t(count) * size_of(n.dtype));
        value.memory = value.own.data();
        value.strides = contiguous_strides(n.shape);
        Coords at(n.shape.size());
        for (int64_t k = 0; k < count; k++) {
            unravel(k, n.shape, at);
            store_scalar(value.memory, n.dtype, k, emitter_.narrow(element(n, at), n.dtype));
        }
    }

    static void unravel(int64_t k, const Shape& shape, Coords& at) {
        for (size_t d = shape.size(); d-- > 0;) {
            at[d].c = k % shape[d];
            k /= shape[d];
        }
    }

    Val element(const Node& n, const Coords& at) {
        if (n.op == &op_constant)
            return is_float(n.dtype) ? emitter_.constant(reg(n.dtype), n.at.f[0]) : emitter_.integer(reg(n.dtype), n.at.i[0]);
        if (n.op == &op_iota) return iota(n, at[0].c);
        if (auto* p = n.op->as<Pointwise>()) {
            std::vector<Val> operands;
            for (Ref a : n.in) operands.push_back(read(a, at));
            return p->emit(emitter_, operands, n);
        }
        if (auto* x = n.op->as<Index>()) return read(n.in[0], x->map(n, at, *this));
        if (auto* r = n.op->as<Reduce>()) return reduce(n, *r, at);
        throw GraphError("the interpreter cannot evaluate " + std::string(n.op->name));
    }

    // start + step * k: integers wrap, floats as fma-free arithmetic in the accumulation type
    Val iota(const Node& n, int64_t k) {
        if (!is_float(n.dtype)) return ScalarEmitter::whole(reg(n.dtype), int64_t(uint64_t(n.at.i[0]) + uint64_t(n.at.i[1]) * uint64_t(k)));
        return ScalarEmitter::real(reg(n.dtype), n.at.f[0] + n.at.f[1] * double(k));
    }

    Val reduce(const Node& n, const Reduce& r, Coords at) {
        Ref x = n.in[0];
        std::vector<Val> acc(size_t(r.accs)), some(size_t(r.accs));
        r.init(emitter_, reg(x->dtype), acc.data());
        const int64_t extent = x->shape[n.at.i[0]], block = reduction_block(extent);
        for (int64_t first = 0; first < extent; first += block) {
            r.init(emitter_, reg(x->dtype), some.data());
            for (int64_t j = first; j < std::min(first + block, extent); j++) {
                at[n.at.i[0]].c = j;
                r.step(emitter_, some.data(), read(x, at), ScalarEmitter::whole(Ty::i64, j));
            }
            r.merge(emitter_, acc.data(), some.data());
        }
        return r.result(emitter_, acc.data(), n);
    }

    Val read(Ref n, const Coords& at) const {
        const Value& value = values_[n->id];
        int64_t offset = 0;
        for (size_t d = 0; d < at.size(); d++) {
            if (at[d].c < 0 || at[d].c >= n->shape[d])
                throw GraphError("coordinate " + std::to_string(at[d].c) + " outside of dimension " + std::to_string(d) + " of " +
                                 std::string(n->op->name));
            offset += at[d].c * value.strides[d];
        }
        return load_scalar(value.memory, n->dtype, offset);
    }

    void write_output(size_t k) {
        const Output& out = graph_.outputs[k];
        const Node& n = *out.value;
        void* memory = bufs_[out.into >= 0 ? out.into : graph_.inputs + int(k)];
        Shape strides = contiguous_strides(n.shape);
        if (out.into >= 0) strides = input_strides(out.into);
        Coords at(n.shape.size());
        for (int64_t i = 0; i < numel(n.shape); i++) {
            unravel(i, n.shape, at);
            int64_t offset = 0;
            for (size_t d = 0; d < at.size(); d++) offset += at[d].c * strides[d];
            store_scalar(memory, n.dtype, offset, read(&n, at));
        }
    }
    Shape input_strides(int position) const {
        for (const Node& n : graph_.nodes)
            if (n.op == &op_input && n.at.i[0] == position) return Shape(n.at.i.begin() + 1, n.at.i.end());
        throw GraphError("no input " + std::to_string(position));
    }

    static Coord number(int64_t v) {
        Coord c;
        c.c = v;
        return c;
    }
    Coord value(Ref n, const Coords& at) override { return number(read(n, at).i); }
    Coord divmod(const Coord& c, int64_t n, Coord* rem) override {
        const int64_t q = floor_div(c.c, n);
        *rem = number(c.c - q * n);
        return number(q);
    }
    Coord scaled(const Coord& c, int64_t factor) override { return number(c.c * factor); }
    Coord sum(const Coord& a, const Coord& b) override { return number(a.c + b.c); }
    Coord clamped(const Coord& c, int64_t extent) override { return number(std::min(std::max(c.c, int64_t(0)), extent - 1)); }
    Coord checked(const Coord& index, int64_t extent) override {
        const int64_t i = index.c < 0 ? index.c + extent : index.c;
        if (i < 0 || i >= extent)
            throw std::out_of_range("index " + std::to_string(index.c) + " is out of range for extent " + std::to_string(extent));
        return number(i);
    }

    const Graph& graph_;
    std::span<void* const> bufs_;
    std::vector<Value> values_;
    ScalarEmitter emitter_;
};

}  // namespace

void interpret(const Graph& g, std::span<void* const> bufs) {
    const Graph basic = decompose(g);
    Interpreter(basic, bufs).run();
}

}  // namespace framejit
