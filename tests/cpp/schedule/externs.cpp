// Extern calls: arguments are in memory, order is kept, and what a call overwrites was read before.
// The test executes the calls itself: `twice` returns 2 x, `add_one_` adds 1 to its argument's memory. The oracle is the same program
// written with ordinary ops.
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <random>

#include "tests/cpp/support/run.h"

using namespace framejit;

namespace {

// Runs every step; the memory of temporaries, results and inputs is ours.
class Runner {
public:
    Runner(const Executable& x, test::Memory& m, int inputs) : x_(x) {
        arena_.resize(size_t(x.arena_bytes) + 64);
        char* arena = arena_.data() + (64 - reinterpret_cast<uintptr_t>(arena_.data()) % 64) % 64;
        for (const Slot& s : x.slots) {
            if (s.kind == Slot::Input) {
                table_.push_back(m.pointers[size_t(s.position)]);
            } else if (s.kind == Slot::Output) {
                table_.push_back(m.pointers[size_t(inputs + s.position)]);
            } else if (s.arena >= 0) {
                table_.push_back(arena + s.arena);
            } else {
                own_.emplace_back(size_t(s.bytes) + 64, char(0x77));
                table_.push_back(own_.back().data());
            }
        }
    }
    void run() {
        for (const auto& step : x_.steps) {
            if (const auto* k = std::get_if<KernelStep>(&step))
                BOOST_TEST(launch(*k, table_.data(), nullptr, 1) == 0);
            else
                call(std::get<ExternStep>(step));
        }
    }

private:
    template <class F> static void each(const Window& w, const F& f) {
        Shape at(w.sizes.size());
        for (int64_t i = 0; i < numel(w.sizes); i++) {
            int64_t offset = w.offset, rest = i;
            for (size_t d = at.size(); d-- > 0;) {
                offset += rest % w.sizes[d] * w.strides[d];
                rest /= w.sizes[d];
            }
            f(i, offset);
        }
    }
    void call(const ExternStep& s) {
        const ExternCall& c = x_.externs[size_t(s.call)];
        float* x = static_cast<float*>(table_[size_t(s.args[0])]);
        std::vector<float> values;
        each(c.args[0], [&](int64_t, int64_t at) {
            if (c.name == "add_one_")
                x[at] += 1;
            else
                values.push_back(2 * x[at]);
        });
        if (c.name == "twice" && s.results[0] >= 0) {
            float* y = static_cast<float*>(table_[size_t(s.results[0])]);
            each(c.results[0], [&](int64_t i, int64_t at) { y[at] = values[size_t(i)]; });
        }
    }

    const Executable& x_;
    std::vector<char> arena_;
    std::deque<std::vector<char>> own_;
    std::vector<void*> table_;
};

// The same program twice: with extern calls, and with ops only.
struct Twin {
    Ref call, pure;
};
class Program2 {
public:
    explicit Program2(uint64_t seed) : random_(seed) {
        const Shape shape{int64_t(2 + pick(5)), int64_t(3 + pick(20))};
        for (int i = 0; i < 2; i++) {
            const Shape strides = pick(3) ? contiguous_strides(shape) : Shape{1, shape[0]};
            inputs_.push_back({calls.input(DType::f32, shape, strides), pure.input(DType::f32, shape, strides)});
            now_.push_back(inputs_.back());
        }
        values_ = inputs_;
    }
    void grow(int ops) {
        for (int i = 0; i < ops; i++) add();
        for (int i = 0; i < 3; i++) output(any(), -1);
        output(values_.back(), -1);
        for (size_t i = 0; i < inputs_.size(); i++) {  // what mutation left in the inputs
            if (now_[i].call == inputs_[i].call) continue;
            pure.outputs.push_back({now_[i].pure, int(i)});
            calls.outputs.push_back({now_[i].call, int(i)});
        }
    }
    Graph calls, pure;

private:
    int pick(int n) { return int(random_() % uint64_t(n)); }
    Twin any() { return values_[values_.size() - 1 - size_t(pick(std::min(8, int(values_.size()))))]; }
    void output(Twin t, int into) {
        calls.outputs.push_back({t.call, into});
        pure.outputs.push_back({t.pure, into});
    }
    void both(std::string_view op, std::vector<Twin> in, Attrs at = {}) {
        std::vector<Ref> a, b;
        for (Twin t : in) a.push_back(t.call), b.push_back(t.pure);
        values_.push_back({calls.op(op, a, at), pure.op(op, b, at)});
    }
    Twin one() { return {calls.scalar(1, DType::f32), pure.scalar(1, DType::f32)}; }

    void add() {
        Twin x = any();
        switch (pick(8)) {
        case 0: return both("neg", {x});
        case 1:
        case 2: return both("add", {x, any()});
        case 3: return both("amax", {x}, {{1}, {}}), both("sub", {x, values_.back()});
        case 4:
        case 5: return twice(x);
        default: return add_one(pick(2) ? now_[size_t(pick(2))] : x);
        }
    }
    static Window all_of(Ref n) {
        const bool memory = n->op == &op_input || n->op == &op_result;
        return {n->shape, memory ? Shape(n->at.i.begin() + 1, n->at.i.end()) : contiguous_strides(n->shape), 0};
    }
    void twice(Twin x) {
        const Shape& s = x.call->shape;
        ExternCall c{.id = 0, .name = "twice", .args = {all_of(x.call)}};
        c.results = {{s, pick(2) ? contiguous_strides(s) : Shape{1, s[0]}, 0}};
        c.dtypes = {DType::f32};
        values_.push_back({calls.result(calls.extern_call(c, {x.call}), 0), pure.op("mul", {x.pure, pure.scalar(2, DType::f32)})});
    }
    void add_one(Twin x) {
        if (stale(x)) return;  // the memory of an old version is gone: no program can name it
        ExternCall c{
            .id = 1, .name = "add_one_", .args = {all_of(x.call)}, .results = {all_of(x.call)}, .dtypes = {DType::f32}, .mutates = true};
        Twin next{calls.result(calls.extern_call(c, {x.call}), 0), pure.op("add", {x.pure, pure.scalar(1, DType::f32)})};
        overwritten_.push_back(x.call);
        for (Twin& now : now_)
            if (now.call == x.call) now = next;
        values_.push_back(next);
    }
    bool stale(Twin x) const { return std::find(overwritten_.begin(), overwritten_.end(), x.call) != overwritten_.end(); }

    std::mt19937_64 random_;
    std::vector<Twin> inputs_, now_, values_;
    std::vector<Ref> overwritten_;
};

std::string difference(uint64_t seed, int ops) {
    Program2 p(seed);
    p.grow(ops);
    test::Memory want = test::random_memory(p.pure, seed), got = test::random_memory(p.pure, seed);
    interpret(p.pure, want.pointers);
    const auto x = compile(p.calls, host_target());
    Runner(*x, got, p.calls.inputs).run();
    std::string d = test::compare(p.pure, got, want);
    return d.empty() ? d : d + "\n" + print(p.calls) + x->text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(externs)

BOOST_AUTO_TEST_CASE(random_programs) {
    const char* more = std::getenv("FRAMEJIT_TEST_SEEDS");
    const uint64_t count = more ? std::strtoull(more, nullptr, 10) : 60;
    for (uint64_t seed = 1; seed <= count; seed++) {
        std::string d;
        try {
            d = difference(seed, 2 + int(seed % 12));
        } catch (const std::exception& e) {
            d = e.what();
        }
        BOOST_TEST(d == "", "seed " << seed << ": " << d);
    }
}

BOOST_AUTO_TEST_SUITE_END()
