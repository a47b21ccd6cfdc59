#include "tests/cpp/support/run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "framejit/options.h"
#include "src/ir/scalar_emitter.h"
#include "src/passes/passes.h"

namespace framejit::test {

Guarded::Guarded(size_t bytes, char fill) : size_(bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), used = (bytes + page - 1) / page * page;
    length_ = used + page;
    mapped_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(static_cast<char*>(mapped_) + used, page, PROT_NONE);
    data_ = static_cast<char*>(mapped_) + used - bytes;
    std::memset(data_, fill, bytes);
}
Guarded::Guarded(const Guarded& o) : Guarded(o.size_, 0) {
    if (size_) std::memcpy(data_, o.data_, size_);
}
Guarded::~Guarded() {
    if (mapped_) munmap(mapped_, length_);
}
bool Guarded::operator==(const Guarded& o) const { return size_ == o.size_ && (size_ == 0 || std::memcmp(data_, o.data_, size_) == 0); }

namespace {

int64_t reach(const Shape& shape, const Shape& strides) {  // elements from the first to behind the last
    int64_t n = 1;
    for (size_t d = 0; d < shape.size(); d++) {
        if (shape[d] == 0) return 0;
        n += (shape[d] - 1) * strides[d];
    }
    return n;
}
bool sums_floats(const Graph& g) {
    const Graph basic = decompose(g);
    for (const Node& n : basic.nodes)
        if (n.op->as<Reduce>() && is_float(n.dtype)) return true;
    return false;
}
bool same(Val a, Val b, DType d, bool loose) {
    if (!is_float(a.ty)) return a.i == b.i;
    if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
    if (a.f == b.f) return std::signbit(a.f) == std::signbit(b.f) || loose;
    if (!loose) return false;
    const double relative = d == DType::bf16 ? 1.0 / 64 : d == DType::f16 ? 1.0 / 512 : d == DType::f32 ? 1e-4 : 1e-10;
    return std::fabs(a.f - b.f) <= relative * std::max({std::fabs(a.f), std::fabs(b.f), 0.1});
}

}  // namespace

Memory random_memory(const Graph& g, uint64_t seed, double lo, double hi) {
    Memory m;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> real(lo, hi);
    for (const Node& n : g.nodes) {
        if (n.op != &op_input) continue;
        const int64_t count = reach(n.shape, Shape(n.at.i.begin() + 1, n.at.i.end()));
        Guarded buffer(size_t(count * size_of(n.dtype)), 0);
        for (int64_t i = 0; i < count; i++) {
            const double v = real(random);
            const Val x =
                is_float(n.dtype) ? ScalarEmitter::real(reg(n.dtype), v) : ScalarEmitter::whole(reg(n.dtype), int64_t(std::floor(v)));
            store_scalar(buffer.data(), n.dtype, i, x);
        }
        if (int64_t(m.buffers.size()) <= n.at.i[0]) m.buffers.resize(size_t(n.at.i[0]) + 1);
        m.buffers[size_t(n.at.i[0])] = std::move(buffer);
    }
    m.buffers.resize(size_t(g.inputs));
    for (const Output& o : g.outputs) {
        const int64_t bytes = numel(o.value->shape) * size_of(o.value->dtype);
        m.buffers.emplace_back(size_t(bytes), char(0x5a));
    }
    for (auto& b : m.buffers) m.pointers.push_back(b.data());
    for (size_t k = 0; k < g.outputs.size(); k++)
        if (g.outputs[k].into >= 0) m.pointers[size_t(g.inputs) + k] = m.pointers[size_t(g.outputs[k].into)];
    return m;
}

std::string compare(const Graph& g, const Memory& got, const Memory& want) {
    const bool loose = sums_floats(g);
    for (size_t k = 0; k < got.buffers.size(); k++) {
        const bool output = k >= size_t(g.inputs);
        if (!output || g.outputs[k - size_t(g.inputs)].into >= 0) {
            if (output) continue;
            DType d = DType::u8;
            for (const Node& n : g.nodes)
                if (n.op == &op_input && n.at.i[0] == int64_t(k)) d = n.dtype;
            for (size_t i = 0; i < got.buffers[k].size() / size_t(size_of(d)); i++)
                if (!same(load_scalar(got.buffers[k].data(), d, int64_t(i)), load_scalar(want.buffers[k].data(), d, int64_t(i)), d, loose))
                    return "input " + std::to_string(k) + " element " + std::to_string(i) + " differs";
            continue;
        }
        Ref value = g.outputs[k - size_t(g.inputs)].value;
        for (int64_t i = 0; i < numel(value->shape); i++) {
            const Val a = load_scalar(got.buffers[k].data(), value->dtype, i), b = load_scalar(want.buffers[k].data(), value->dtype, i);
            if (same(a, b, value->dtype, loose)) continue;
            auto text = [&](Val v) { return is_float(v.ty) ? std::to_string(v.f) : std::to_string(v.i); };
            return "output " + std::to_string(k - size_t(g.inputs)) + " element " + std::to_string(i) + ": " + text(a) + " instead of " +
                   text(b);
        }
    }
    return {};
}

int32_t run_in_pieces(int64_t begin, int64_t end, int64_t grain, void (*work)(int64_t, int64_t, void*), void* context) {
    for (int64_t at = begin; at < end; at += grain) work(at, std::min(end, at + grain), context);
    return 0;
}

std::string difference(const Graph& g, const Target& target, uint64_t seed, double lo, double hi) {
    Memory want = random_memory(g, seed, lo, hi);
    interpret(g, want.pointers);
    const auto executable = compile(g, target);
    for (int threads : {1, 3}) {
        Memory got = random_memory(g, seed, lo, hi);
        run_plain(*executable, got.pointers, threads > 1 ? run_in_pieces : nullptr, threads);
        if (std::string d = compare(g, got, want); !d.empty()) return d + " (threads " + std::to_string(threads) + ")\n" + executable->text;
    }
    return {};
}

std::vector<Target> targets() {
    std::vector<Target> all{host_target()};
    if (all[0].avx512) {
        set_option(Option::target, "avx2");
        all.push_back(host_target());
        set_option(Option::target, "host");
    }
    return all;
}

}  // namespace framejit::test
