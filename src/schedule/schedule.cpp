// A decomposed graph to a program: kernels and extern calls in an order that respects who reads and overwrites what, and where values live.
// A value that kernels make is stored once into its own buffer (an output's, where it is one) and additionally into every further output
// that it is, and into a private copy for an extern call that overwrites it.
#include "src/schedule/finish.h"
#include "src/schedule/memory.h"
#include "src/schedule/order.h"
#include "src/schedule/plan.h"

namespace framejit {
namespace {

class Builder {
public:
    Builder(const Graph& g, const ScheduleOptions& o) : graph_(g), options_(o), times_(times_of(g)), plan_(make_plan(g, times_, o)) {}

    Program run() {
        for (const Group& g : plan_.groups)
            for (const Expr& e : g.lowered.kernel.exprs) may_fail_ |= e.kind == Expr::Checked;
        for (const ExternCall& call : graph_.externs) may_fail_ |= call.raises;
        make_memory_buffers();
        make_output_buffers();
        make_call_buffers();
        for (const Group& g : plan_.groups)
            for (const Source& s : g.lowered.kernel.loads) load_buffer(s);
        finish_outputs();
        for (Group& g : plan_.groups) add_kernel(g);
        program_.steps = order_steps(plan_, times_, kernels_, calls_);
        for (const LateCopy& c : late_copies_) add_late_copy(c);
        plan_memory(program_);
        return std::move(program_);
    }

private:
    int add_buffer(Buffer::Kind kind, Ref n, int position = -1) {
        Buffer b{.kind = kind, .position = position, .dtype = n->dtype, .shape = n->shape};
        b.bytes = numel(n->shape) * size_of(n->dtype);
        program_.buffers.push_back(std::move(b));
        return int(program_.buffers.size()) - 1;
    }

    // ---- where values live ----
    void make_memory_buffers() {
        for (const Node& n : graph_.nodes) {
            if (!times_.live[n.id] && n.op != &op_input) continue;
            if (n.op == &op_input) {
                memory_[&n] = add_buffer(Buffer::Input, &n, int(n.at.i[0]));
                input_[int(n.at.i[0])] = &n;
            }
        }
    }
    void make_output_buffers() {
        for (size_t k = 0; k < graph_.outputs.size(); k++) {
            const Output& o = graph_.outputs[k];
            if (o.into >= 0 || o.as_is) continue;
            const int b = add_buffer(Buffer::Output, o.value, int(k));
            outputs_of_[o.value].push_back(b);
            output_buffer_[k] = b;
        }
    }
    // Calls in order: what they read, and where their results are.
    void make_call_buffers() {
        for (Ref call : times_.calls) {
            const ExternCall& x = graph_.externs[call->at.i[0]];
            Call c{.call = int(call->at.i[0])};
            for (size_t a = 0; a < call->in.size(); a++) {
                const bool overwritten = a == 0 && x.mutates;
                const int b = overwritten ? overwritten_buffer(call->in[a]) : buffer_of(call->in[a]);
                program_.buffers[b].external = true;
                c.args.push_back(b);
            }
            for (size_t r = 0; r < x.results.size(); r++) c.results.push_back(-1);
            for (Ref user : times_.users[call->id]) {
                if (user->op != &op_result) continue;
                const int64_t index = user->at.i[0];
                const bool renamed = index == 0 && x.mutates;
                memory_[user] = renamed ? c.args[0] : add_buffer(Buffer::Result, user);
                c.results[index] = memory_[user];
            }
            calls_.push_back(std::move(c));
        }
    }
    int overwritten_buffer(Ref n) {
        if (is_memory(n)) return memory_.at(n);
        const int b = add_buffer(Buffer::Temp, n);
        extra_[n].push_back(b);
        return b;
    }
    // The buffer that readers of a value use.
    int buffer_of(Ref n) {
        if (is_memory(n) && !plan_.cuts.contains(n)) return memory_.at(n);
        auto [it, fresh] = own_.try_emplace(n, -1);
        if (!fresh) return it->second;
        if (is_memory(n)) return it->second = add_copy_buffer(n);
        auto out = outputs_of_.find(n);
        return it->second = out != outputs_of_.end() ? out->second[0] : add_buffer(Buffer::Temp, n);
    }
    int add_copy_buffer(Ref memory) {
        const int b = add_buffer(Buffer::Temp, memory);
        int64_t reach = 1;
        for (size_t d = 0; d < memory->shape.size(); d++) reach += (memory->shape[d] - 1) * memory->at.i[1 + d];
        program_.buffers[size_t(b)].bytes = reach * size_of(memory->dtype);
        return b;
    }
    int load_buffer(const Source& s) { return s.own ? memory_.at(s.value) : buffer_of(s.value); }

    // ---- outputs that go into an input's memory ----
    struct LateCopy {
        Ref value;
        int from, output, input;
    };
    void finish_outputs() {
        for (size_t k = 0; k < graph_.outputs.size(); k++) {
            const Output& o = graph_.outputs[k];
            if (o.as_is)
                program_.outputs.push_back(memory_.at(o.value));
            else
                program_.outputs.push_back(o.into < 0 ? output_buffer_.at(k) : into_input(o, int(k)));
        }
    }
    int into_input(const Output& o, int k) {
        Ref input = input_.at(o.into);
        if (is_memory(o.value) && memory_.at(o.value) == memory_.at(input)) return memory_.at(input);  // it is there already
        const int b = add_buffer(Buffer::Output, o.value, k);
        if (numel(o.value->shape) == 0) return b;
        if (may_fail_ || !store_in_place(o.value, input, b)) {
            const bool original = is_memory(o.value) && times_.mutated[o.value->id] == Times::kNever && !plan_.cuts.contains(o.value);
            late_copies_.push_back({o.value, original ? memory_.at(o.value) : buffer_of(o.value), b, o.into});
        }
        return b;
    }
    Group* group_of(Ref value) {
        for (Group& g : plan_.groups)
            if (std::find(g.roots.begin(), g.roots.end(), value) != g.roots.end()) return &g;
        return nullptr;
    }
    // Safe when nobody but the making kernel reads the input, and that one only where it writes, once: a kernel with reductions has several
    // stages, of which a later one may load the input again.
    bool store_in_place(Ref value, Ref input, int buffer) {
        Group* g = group_of(value);
        if (!g || is_argument(input)) return false;
        for (const Group& other : plan_.groups)
            for (const Source& s : other.lowered.kernel.loads)
                if (s.value == input && &other != g) return false;
        const bool stored_elsewhere = own_.count(value) || outputs_of_.count(value) || extra_.count(value) || in_place_.count(value);
        const Shape strides = strides_of(input);
        if (stored_elsewhere && strides != contiguous_strides(input->shape)) return false;
        std::vector<Shape> all = strides_[g];
        all.resize(g->roots.size());
        const size_t root = size_t(std::find(g->roots.begin(), g->roots.end(), value) - g->roots.begin());
        all[root] = strides;
        Lowered l = lower(g->roots, g->lowered.space, plan_.cuts, options_, all);
        if (l.request.kind != Request::None || l.kernel.kind != g->lowered.kernel.kind || !l.kernel.reductions.empty()) return false;
        const Store& store = l.kernel.stores[root];
        for (const Expr& e : l.kernel.exprs) {
            if (e.kind != Expr::Load || e.node != input) continue;
            if (!(e.at == store.at) || !store.full || e.guard >= 0) return false;
        }
        g->lowered = std::move(l);
        strides_[g] = std::move(all);
        in_place_[value].push_back(buffer);
        return true;
    }
    bool is_argument(Ref n) const {
        for (Ref call : times_.calls)
            for (Ref a : call->in)
                if (a == n) return true;
        return false;
    }
    void add_late_copy(const LateCopy& c) {
        Lowered l = lower_copy(c.value, strides_of(input_.at(c.input)), plan_.cuts, options_);
        Step step;
        step.launch = {add_function(std::move(l.kernel)), {{c.from, c.output}}};
        program_.steps.push_back(std::move(step));
    }

    // ---- kernels ----
    // Stores of the kernel: its roots' own buffers, then what else holds the same value. A value that nobody came to need has none.
    void add_kernel(const Group& g) {
        Kernel k = g.lowered.kernel;
        KernelItem item;
        for (const Source& s : k.loads) item.buffers.push_back(load_buffer(s));
        std::vector<Store> stores;
        for (size_t i = 0; i < g.roots.size(); i++)
            for (int b : buffers_of_root(g.roots[i])) {
                const int copy = g.lowered.copy_store[i];
                const auto own = own_.find(g.roots[i]);
                const bool stands_in = copy >= 0 && own != own_.end() && own->second == b;
                stores.push_back(k.stores[stands_in ? size_t(copy) : i]);
                item.buffers.push_back(b);
            }
        for (Ref root : g.roots) k.in_place |= in_place_.count(root) > 0;
        k.stores = std::move(stores);
        choose_keeps(k, options_.keep_ns);
        if (!k.stores.empty()) {
            if (k.kind == Kernel::Split) item.buffers.push_back(add_partials(k));
            program_.fused_ops += ops_in(k);
            item.kernel = add_function(std::move(k));
        }
        kernels_.push_back(std::move(item));
    }
    int add_partials(const Kernel& k) {
        int64_t slots = 0;
        for (const Reduction& r : k.reductions) slots += r.node->op->as<Reduce>()->accs;
        const int64_t chunks = (k.extent[kLane] + kChunk - 1) / kChunk;
        Buffer b{.kind = Buffer::Temp, .dtype = DType::i64, .shape = {k.rows_total(), chunks, slots}};
        b.bytes = numel(b.shape) * size_of(b.dtype);
        program_.buffers.push_back(std::move(b));
        return int(program_.buffers.size()) - 1;
    }
    std::vector<int> buffers_of_root(Ref root) const {
        std::vector<int> buffers;
        auto add = [&](int b) {
            if (std::find(buffers.begin(), buffers.end(), b) == buffers.end()) buffers.push_back(b);
        };
        if (auto it = own_.find(root); it != own_.end()) add(it->second);
        for (const auto* more : {&outputs_of_, &extra_, &in_place_})
            if (auto it = more->find(root); it != more->end())
                for (int b : it->second) add(b);
        return buffers;
    }
    // Kernels of equal structure are one function.
    const Kernel* add_function(Kernel k) {
        auto [it, fresh] = functions_.try_emplace(key_of(k), program_.kernels.size());
        if (fresh) {
            program_.kernels.push_back(std::make_unique<Kernel>(std::move(k)));
            program_.keys.push_back(it->first);
        }
        return program_.kernels[it->second].get();
    }
    static int ops_in(const Kernel& k) {
        std::unordered_set<Ref> ops;
        for (const Expr& e : k.exprs)
            if (e.kind == Expr::Apply || e.kind == Expr::Reduced) ops.insert(e.node);
        return int(ops.size());
    }

    const Graph& graph_;
    const ScheduleOptions& options_;
    Times times_;
    Plan plan_;
    Program program_;
    bool may_fail_ = false;  // an index check, or a call that raises: then inputs are overwritten only after everything that may fail
    std::unordered_map<Ref, int> memory_, own_;
    std::unordered_map<int, Ref> input_;
    std::unordered_map<Ref, std::vector<int>> outputs_of_, extra_, in_place_;
    std::unordered_map<size_t, int> output_buffer_;
    std::unordered_map<const Group*, std::vector<Shape>> strides_;  // by root, of in-place stores
    std::unordered_map<std::string, size_t> functions_;
    std::vector<LateCopy> late_copies_;
    std::vector<Call> calls_;
    std::vector<KernelItem> kernels_;  // by group
};

}  // namespace

Program schedule(const Graph& g, const ScheduleOptions& o) { return Builder(g, o).run(); }

}  // namespace framejit
