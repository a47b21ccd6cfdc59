// The whole back half: graph -> passes -> program -> machine code -> executable. Every pass is a pure function, and this list is the order.
#include <chrono>

#include "framejit/api.h"
#include "framejit/dump.h"
#include "framejit/log.h"
#include "framejit/op.h"
#include "src/codegen/codegen.h"
#include "src/passes/passes.h"
#include "src/schedule/kernel.h"

namespace framejit {
namespace {

struct Pass {
    std::string_view name;
    Graph (*run)(const Graph&);
    Stage after;  // what must hold then
};
constexpr Pass kPasses[] = {
    {"decompose", decompose, Stage::Decomposed},
    {"simplify", simplify, Stage::Decomposed},
    {"dead code", dead_code, Stage::Decomposed},
};

#ifdef NDEBUG
constexpr bool kAlwaysVerify = false;
#else
constexpr bool kAlwaysVerify = true;
#endif

double now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

void check(const Graph& g, Stage stage, std::string_view after) {
    if (!kAlwaysVerify && !option_on(Option::verify)) return;
    if (const std::string problem = verify(g, stage); !problem.empty()) throw GraphError("after " + std::string(after) + ": " + problem);
}

Graph run_passes(const Graph& captured) {
    check(captured, Stage::Captured, "capture");
    if (dump_on(DumpStage::graph)) dump(DumpStage::graph, captured.name, print(captured));
    Graph g;
    const Graph* current = &captured;
    for (const Pass& pass : kPasses) {
        const double start = now_ms();
        g = pass.run(*current);
        current = &g;
        check(g, pass.after, pass.name);
        if (log_on(LogTopic::passes))
            log_line(LogTopic::passes, g.name + " " + std::string(pass.name) + ": " + std::to_string(g.nodes.size()) + " nodes, " +
                                           std::to_string(now_ms() - start) + " ms");
    }
    return g;
}

Slot slot_of(const Buffer& b) {
    constexpr Slot::Kind kinds[] = {Slot::Input, Slot::Output, Slot::Temp, Slot::Result};
    return {.kind = kinds[b.kind], .position = b.position, .dtype = b.dtype, .shape = b.shape, .bytes = b.bytes, .arena = b.arena};
}

// fused_add_gelu: the first and the last ops, so that profiles can be read.
std::string name_of(const Kernel& k) {
    std::vector<std::string_view> ops;
    for (const Expr& e : k.exprs)
        if ((e.kind == Expr::Apply || e.kind == Expr::Reduced) && (ops.empty() || ops.back() != e.node->op->name))
            ops.push_back(e.node->op->name);
    std::string name = ops.empty() ? "copy" : "fused";
    for (size_t i = 0; i < ops.size(); i++)
        if (ops.size() <= 6 || i < 3 || i + 3 >= ops.size()) name += "_" + std::string(ops[i]);
    return name;
}

KernelStep step_of(const Launch& launch, const MachineCode& code, const Program& p) {
    const Kernel& k = *launch.kernel;
    KernelStep s{.fn = code.fn, .finish = code.finish, .units = code.units, .grain = code.grain, .scratch = code.scratch};
    s.items = launch.items;
    s.name = name_of(k);
    for (const auto& item : launch.items)
        for (int b : item) s.bytes += p.buffers[b].bytes;
    s.ns = k.ns * double(k.points()) * double(launch.items.size());
    return s;
}

}  // namespace

std::shared_ptr<const Executable> compile(const Graph& captured, const Target& target) {
    const double start = now_ms();
    const Graph g = run_passes(captured);
    const Program program = schedule(g, {.lanes = target.width});
    const double scheduled = now_ms();
    auto x = std::make_shared<Executable>();
    x->text = print(program, g);
    dump(DumpStage::kernel, g.name, x->text);

    std::vector<const Kernel*> kernels;
    for (const auto& k : program.kernels) kernels.push_back(k.get());
    const auto codes = generate(kernels, program.keys, target, g.name);
    std::unordered_map<const Kernel*, const MachineCode*> code_of;
    for (size_t i = 0; i < kernels.size(); i++) code_of[kernels[i]] = codes[i].get();

    for (const Buffer& b : program.buffers) x->slots.push_back(slot_of(b));
    for (const Step& s : program.steps) {
        if (s.launch.kernel)
            x->steps.emplace_back(step_of(s.launch, *code_of.at(s.launch.kernel), program));
        else
            x->steps.emplace_back(ExternStep{.call = s.call.call, .args = s.call.args, .results = s.call.results});
        x->kernels += s.launch.kernel != nullptr;
    }
    x->externs = g.externs;
    x->outputs = program.outputs;
    x->arena_bytes = program.arena_bytes;
    x->fused_ops = program.fused_ops;
    x->schedule_ms = scheduled - start;
    x->codegen_ms = now_ms() - scheduled;
    x->code = std::make_shared<std::vector<std::shared_ptr<const MachineCode>>>(codes);
    return x;
}

}  // namespace framejit
