// Runs a compiled graph on torch tensors. Memory of a slot: an input's, a fresh tensor's, an extern's result, or a piece of the arena.
// Only what torch or the caller sees is a tensor; temporaries of kernels are plain memory.
#include "plugin/replay/plan.h"
#include "plugin/torch/internals.h"
#include <cstdlib>
#include <unordered_map>

namespace framejit {
namespace {

constexpr double kReleaseGilUs = 30;  // releasing and retaking the GIL costs 0.04 us; other threads profit from more

// One block per thread, reused: fresh pages cost more than most kernels. A nested run (an extern that calls Python) gets its own block.
struct Arena {
    char* block = nullptr;
    int64_t size = 0;
    bool busy = false;
    ~Arena() { std::free(block); }
};
thread_local Arena arena;

struct ArenaLease {
    char* memory = nullptr;
    bool shared = false;
    explicit ArenaLease(int64_t bytes) {
        if (!bytes) return;
        if (arena.busy) {
            memory = static_cast<char*>(std::aligned_alloc(64, size_t(bytes + 63) / 64 * 64));
            return;
        }
        if (arena.size < bytes) {
            std::free(arena.block);
            arena.size = (bytes + 4095) / 4096 * 4096;
            arena.block = static_cast<char*>(std::aligned_alloc(4096, size_t(arena.size)));
            if (!arena.block) arena.size = 0;
            prepare_fresh(arena.block, arena.size);
        }
        memory = arena.block;
        arena.busy = shared = true;
    }
    ~ArenaLease() {
        if (shared)
            arena.busy = false;
        else
            std::free(memory);
    }
};

struct SlotLayout {
    Shape sizes, strides;
};
bool same_layout(const Window& w, const SlotLayout& l) {
    if (w.offset != 0 || w.sizes.size() != l.sizes.size()) return false;
    for (size_t d = 0; d < l.sizes.size(); ++d)
        if (w.sizes[d] != l.sizes[d] || (l.sizes[d] != 1 && w.strides[d] != l.strides[d])) return false;
    return true;
}
// The layout of each slot's tensor.
std::vector<SlotLayout> layouts_of(const CapturedGraph& g, const Executable& exe) {
    std::vector<SlotLayout> layouts(exe.slots.size());
    std::unordered_map<int, size_t> input_at;  // position -> slot
    for (size_t s = 0; s < exe.slots.size(); ++s) {
        const Slot& slot = exe.slots[s];
        const int64_t item = size_of(slot.dtype);
        layouts[s] = {slot.shape, contiguous_strides(slot.shape)};
        if (slot.kind == Slot::Temp && slot.bytes > numel(slot.shape) * item)  // memory with gaps: arguments are views of it
            layouts[s] = {{(slot.bytes + item - 1) / item}, {1}};
        if (slot.kind == Slot::Input) input_at[slot.position] = s;
    }
    for (const CapturedTensor& t : g.tensors)  // the tensor that owns an output's storage gives it its layout
        if (t.kind == CapturedTensor::Output && t.whole && exe.slots[exe.outputs[t.index]].kind == Slot::Output)
            layouts[exe.outputs[t.index]] = {t.window.sizes, t.window.strides};
    for (const Node& n : g.graph.nodes)
        if (auto at = n.op == &op_input ? input_at.find(int(n.at.i[0])) : input_at.end(); at != input_at.end())
            layouts[at->second] = {n.shape, Shape(n.at.i.begin() + 1, n.at.i.end())};
    for (const auto& step : exe.steps)
        if (const auto* e = std::get_if<ExternStep>(&step))
            for (size_t k = exe.externs[e->call].mutates ? 1 : 0; k < e->results.size(); ++k)
                if (int s = e->results[k]; s >= 0)
                    layouts[s] = {exe.externs[e->call].results[k].sizes, exe.externs[e->call].results[k].strides};
    return layouts;
}
bool same_shapes(const ExternCall& call, const std::vector<PyObject*>& results) {
    if (results.size() != call.results.size()) return false;
    for (size_t k = 0; k < results.size(); ++k) {
        TensorView v = results[k] ? view_of(results[k]) : TensorView{};
        if (results[k] && !std::equal(v.sizes, v.sizes + v.ndim, call.results[k].sizes.begin(), call.results[k].sizes.end())) return false;
    }
    return true;
}
double work_us(const KernelStep& k) { return std::max(double(k.bytes) / 20e3, k.ns / 1e3); }

}  // namespace

struct TensorProgram::Memory {
    boost::container::small_vector<void*, 32> at;  // by slot
    Objects tensor;                                // by slot: owned, or null
    std::vector<PyObject*> results;                // of one extern call
    union Number {
        double f;
        int64_t i;
    };
    std::vector<Number> numbers;  // inputs that are Python numbers, by slot
    ~Memory() {
        for (PyObject* t : tensor) Py_XDECREF(t);
    }
};

std::shared_ptr<const TensorProgram> TensorProgram::build(CapturedGraph captured, std::string& error) {
    auto p = std::make_shared<TensorProgram>();
    p->graph_ = std::move(captured);
    const CapturedGraph& g = p->graph_;
    if (!g.graph.outputs.empty() || !g.externs.empty()) {
        try {
            static const Target target = host_target();
            p->executable_ = compile(g.graph, target);
        } catch (const std::exception& e) {
            error = std::string("the compiler failed: ") + e.what();
            PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "framejit: a bug in framejit: %s. What it was to compile stays eager.",
                             error.c_str());
            PyErr_Clear();  // of a filter that makes warnings errors
            return nullptr;
        }
    }
    for (const CapturedTensor& t : g.tensors)
        p->result_views_.push_back(t.whole ? Viewer() : Viewer(t.window.sizes, t.window.strides, t.window.offset));
    if (!p->executable_) return p;
    const Executable& exe = *p->executable_;
    const std::vector<SlotLayout> layouts = layouts_of(g, exe);
    p->fresh_.resize(exe.slots.size());
    for (size_t s = 0; s < exe.slots.size(); ++s) {
        const Slot& slot = exe.slots[s];
        p->fresh_[s].bytes = numel(layouts[s].sizes) * size_of(slot.dtype);
        if (slot.kind == Slot::Output || (slot.kind == Slot::Temp && slot.arena < 0))
            p->fresh_[s].allocate = Allocator(layouts[s].sizes, layouts[s].strides, row(slot.dtype).torch_code);
    }
    for (size_t i = 0; i < exe.steps.size(); ++i) p->outside_.push_back(p->felt_outside(i));
    p->views_.resize(exe.externs.size());
    p->whole_.resize(exe.externs.size());
    for (const auto& step : exe.steps)
        if (const auto* e = std::get_if<ExternStep>(&step))
            for (size_t i = 0; i < e->args.size(); ++i) {
                const Window& w = exe.externs[e->call].args[i];
                p->views_[e->call].emplace_back(w.sizes, w.strides, w.offset);
                p->whole_[e->call].push_back(same_layout(w, layouts[e->args[i]]));
            }
    return p;
}

PyObject* TensorProgram::tensor_of(Memory& m, int slot) const {
    if (m.tensor[slot]) return m.tensor[slot];
    PyObject* t = fresh_[slot].allocate();
    m.tensor[slot] = t;
    if (t) {
        m.at[slot] = data_of(t);
        prepare_fresh(m.at[slot], fresh_[slot].bytes);
    }
    return t;
}

int TensorProgram::prepare(Memory& m, PyObject* const* inputs) const {
    const Executable& exe = *executable_;
    m.at.assign(exe.slots.size(), nullptr);
    m.tensor.assign(exe.slots.size(), nullptr);
    for (size_t s = 0; s < exe.slots.size(); ++s) {
        const Slot& slot = exe.slots[s];
        if (slot.kind == Slot::Input) {
            PyObject* t = inputs[slot.position];
            if (graph_.inputs[slot.position] < 0) {
                if (m.numbers.empty()) m.numbers.resize(exe.slots.size());
                if (PyFloat_Check(t))
                    m.numbers[s].f = PyFloat_AS_DOUBLE(t);
                else
                    m.numbers[s].i = PyLong_AsLongLong(t);
                if (PyErr_Occurred()) return -1;
                m.at[s] = &m.numbers[s];
                continue;
            }
            m.tensor[s] = Py_NewRef(t);
            m.at[s] = data_of(t);
        } else if (slot.kind == Slot::Output) {
            int into = graph_.graph.outputs[slot.position].into;
            if (into >= 0) {
                m.tensor[s] = Py_NewRef(inputs[into]);
                m.at[s] = data_for_write(inputs[into]);
            } else if (!tensor_of(m, int(s)))
                return -1;
        } else if (slot.kind == Slot::Temp && slot.arena < 0 && !tensor_of(m, int(s)))
            return -1;
    }
    return 0;
}

int TensorProgram::run_extern(const ExternStep& step, Memory& m) const {
    const ExternCall& call = executable_->externs[step.call];
    PyObject* args[64];
    PyObject* made[64];
    size_t n = step.args.size(), views = 0;
    std::vector<PyObject*> many;
    PyObject** list = args;
    if (n > 64) {
        many.resize(2 * n);
        list = many.data();
    }
    PyObject** temporary = n > 64 ? many.data() + n : made;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; ++i) {
        PyObject* base = m.tensor[step.args[i]];
        if (whole_[step.call][i])
            list[i] = base;
        else {
            list[i] = views_[step.call][i].relative(base);
            if (!list[i])
                status = -1;
            else
                temporary[views++] = list[i];
        }
    }
    if (status == 0) status = graph_.externs[call.id].call(list, m.results);
    for (size_t i = 0; i < views; ++i) Py_DECREF(temporary[i]);
    if (status != 0) return -1;
    if (graph_.externs[call.id].schema().data_dependent && !same_shapes(call, m.results)) {  // only before its data guard has held
        for (PyObject* r : m.results) Py_XDECREF(r);
        m.results.clear();
        return 1;
    }
    size_t first = 0;  // of a mutating call, result 0 is its first argument
    if (call.mutates) first = 1;
    std::vector<PyObject*> fresh;
    for (PyObject* r : m.results) {
        bool is_target = call.mutates && r && n && (r == list[0] || view_of(r).storage == view_of(list[0]).storage);
        if (is_target)
            Py_DECREF(r);
        else
            fresh.push_back(r);
    }
    m.results.clear();
    for (size_t k = 0; k < fresh.size(); ++k) {
        if (first + k < step.results.size() && step.results[first + k] >= 0 && fresh[k]) {
            int slot = step.results[first + k];
            Py_XSETREF(m.tensor[slot], fresh[k]);
            m.at[slot] = data_of(fresh[k]);
        } else
            Py_XDECREF(fresh[k]);
    }
    return 0;
}

// Does eager raise the same when it runs again? Not an interrupt, and not what a caller must see at once. The error goes.
static bool again_eagerly() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Clear();
    return true;
}

TensorProgram::Felt TensorProgram::felt_outside(size_t i) const {
    auto of_input = [&](int s) {
        const Slot& slot = executable_->slots[size_t(s)];
        return slot.kind == Slot::Input || (slot.kind == Slot::Output && graph_.graph.outputs[size_t(slot.position)].into >= 0);
    };
    if (const auto* e = std::get_if<ExternStep>(&executable_->steps[i])) {
        const size_t id = size_t(executable_->externs[size_t(e->call)].id);
        const OpSchema& schema = graph_.externs[id].schema();
        const ExternUse& use = graph_.extern_uses[id];
        if (use.own_generator || !schema.name.starts_with("aten::") || (schema.mutates && of_input(e->args[0]))) return Change;
        return use.random ? Draw : Nothing;
    }
    for (const auto& item : std::get<KernelStep>(executable_->steps[i]).items)
        for (int s : item)
            if (s >= 0 && executable_->slots[size_t(s)].kind == Slot::Output && of_input(s)) return Change;
    return Nothing;
}

// 0; otherwise the step failed: with a Python error, or without one where an index is out of range.
int TensorProgram::run_step(size_t i, Memory& m, int threads) const {
    const auto& step = executable_->steps[i];
    if (const auto* e = std::get_if<ExternStep>(&step)) return run_extern(*e, m);
    const auto& k = std::get<KernelStep>(step);
    int32_t bad;
    if (work_us(k) > kReleaseGilUs) {
        Py_BEGIN_ALLOW_THREADS bad = launch(k, m.at.data(), parallel_for(), threads);
        Py_END_ALLOW_THREADS
    } else
        bad = launch(k, m.at.data(), parallel_for(), threads);
    return bad;
}

// Something outside has changed already: the error stands, and its traceback names the line of the operator.
void TensorProgram::say_where(size_t i) const {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "index out of range in self");
    const ExternUse* at = graph_.checked_uses.empty() ? nullptr : &graph_.checked_uses[0];
    if (const auto* e = std::get_if<ExternStep>(&executable_->steps[i]))
        at = &graph_.extern_uses[size_t(executable_->externs[size_t(e->call)].id)];
    if (at && at->line) _PyTraceback_Add(at->function.c_str(), at->file.c_str(), at->line);
}

int TensorProgram::run(PyObject* const* inputs, Objects& results) const {
    Memory m;
    if (executable_) {
        const Executable& exe = *executable_;
        if (prepare(m, inputs) < 0) return -1;
        ArenaLease lease(exe.arena_bytes);
        if (exe.arena_bytes && !lease.memory) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t s = 0; s < exe.slots.size(); ++s)
            if (exe.slots[s].kind == Slot::Temp && exe.slots[s].arena >= 0) m.at[s] = lease.memory + exe.slots[s].arena;
        int threads = num_threads();
        Felt felt = Nothing;
        PyRef generator = PyRef::steal(graph_.random ? call_generator("get_state", nullptr) : nullptr);
        if (graph_.random && !generator) PyErr_Clear();  // then an error after a draw stands
        for (size_t i = 0; i < exe.steps.size(); ++i) {
            felt = std::max(felt, outside_[i]);
            const int failed = run_step(i, m, threads);
            if (!failed) continue;
            if (felt == Change || (felt == Draw && !generator) || !again_eagerly()) return say_where(i), -1;
            if (felt == Draw) PyRef::steal(call_generator("set_state", generator.get()));
            return 1;
        }
    }
    for (int i : graph_.written)
        if (bump_version(inputs[i]) < 0) return -1;
    results.clear();
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
        const CapturedTensor& t = graph_.tensors[i];
        PyObject* base = t.kind == CapturedTensor::Input ? inputs[t.index] : m.tensor[executable_->outputs[t.index]];
        PyRef detached = PyRef::steal(t.detached ? PyObject_CallMethod(base, "detach", nullptr) : nullptr);
        PyObject* out = t.whole                   ? Py_NewRef(base)
                        : t.detached && !detached ? nullptr
                                                  : result_views_[i].relative(detached ? detached.get() : base);
        if (!out) {
            for (PyObject* r : results) Py_DECREF(r);
            results.clear();
            return -1;
        }
        results.push_back(out);
    }
    return 0;
}

int TensorProgram::traverse(visitproc visit, void* arg) const {
    for (const Extern& e : graph_.externs)
        if (int r = e.traverse(visit, arg)) return r;
    return 0;
}

}  // namespace framejit
