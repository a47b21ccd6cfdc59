// From LLVM modules to addresses.
//
// A batch of kernels is one module, compiled in its own context by a target machine that nobody else uses meanwhile; the object goes to one
// process-wide LLJIT, whose only job is linking. Its own JITDylib frees a batch when the last kernel of it is dropped. Nothing is resolved
// by name: kernels call nothing but addresses.
#include "src/codegen/jit.h"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <atomic>
#include <mutex>

#include "framejit/dump.h"
#include "framejit/op.h"

namespace framejit {
namespace {

[[noreturn]] void fail(const char* what, llvm::Error e) { throw GraphError(std::string(what) + ": " + llvm::toString(std::move(e))); }

void initialize() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::InitializeNativeTarget();
        // LLVM ends the process where it cannot go on; here that is one graph which stays eager.
        llvm::install_fatal_error_handler([](void*, const char* reason, bool) { throw GraphError("LLVM: " + std::string(reason)); });
        llvm::InitializeNativeTargetAsmPrinter();
        // Loop strength reduction finds nothing to do (addresses are made outside of the loops) and takes a fifth of the time.
        auto* off = static_cast<llvm::cl::opt<bool>*>(llvm::cl::getRegisteredOptions().lookup("disable-lsr"));
        if (off) off->setValue(true);
    });
}

// Never destroyed: machine code may run until the very end of the process.
llvm::orc::LLJIT& linker() {
    static llvm::orc::LLJIT* jit = [] {
        initialize();
        auto made =
            llvm::orc::LLJITBuilder().setPlatformSetUp(llvm::orc::setUpInactivePlatform).setLinkProcessSymbolsByDefault(false).create();
        if (!made) fail("no JIT", made.takeError());
        return made->release();
    }();
    return *jit;
}

// Target machines are expensive to make (0.2 ms) and serve one compilation at a time.
class Machines {
public:
    std::unique_ptr<llvm::TargetMachine> take(const std::string& cpu) {
        {
            std::lock_guard lock(mutex_);
            auto& idle = idle_[cpu];
            if (!idle.empty()) {
                auto machine = std::move(idle.back());
                idle.pop_back();
                return machine;
            }
        }
        return make(cpu);
    }
    void give_back(const std::string& cpu, std::unique_ptr<llvm::TargetMachine> machine) {
        std::lock_guard lock(mutex_);
        idle_[cpu].push_back(std::move(machine));
    }

private:
    static std::unique_ptr<llvm::TargetMachine> make(const std::string& cpu) {
        initialize();
        const size_t bar = cpu.find('|');
        const std::string triple = llvm::sys::getProcessTriple();
        std::string error;
        const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
        if (!target) throw GraphError(error);
        llvm::TargetOptions options;
        options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // mul + add is never contracted
        return std::unique_ptr<llvm::TargetMachine>(
            target->createTargetMachine(triple, cpu.substr(0, bar), bar == std::string::npos ? "" : cpu.substr(bar + 1), options,
                                        llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, /*JIT=*/true));
    }
    std::mutex mutex_;
    std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> idle_;
};
Machines& machines() {
    static auto* all = new Machines;
    return *all;
}

// After a fatal error nothing of LLVM's half-done work may be touched: it is leaked, module and machine included.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> emit(std::unique_ptr<llvm::Module>& m, std::unique_ptr<llvm::LLVMContext>& context,
                                                         std::unique_ptr<llvm::TargetMachine>& machine) {
    try {
        return llvm::orc::SimpleCompiler(*machine)(*m);
    } catch (...) {
        m.release();
        context.release();
        machine.release();
        throw;
    }
}

void dump_assembly(llvm::Module& m, llvm::TargetMachine& machine, std::string_view name) {
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream out(text);
    auto copy = llvm::CloneModule(m);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) return;
    passes.run(*copy);
    dump(DumpStage::assembly, name, std::string_view(text.data(), text.size()));
}

}  // namespace

LoadedModule::~LoadedModule() {
    if (library_) llvm::consumeError(linker().getExecutionSession().removeJITDylib(*library_));
}

std::shared_ptr<LoadedModule> LoadedModule::load(std::unique_ptr<llvm::Module> module, std::unique_ptr<llvm::LLVMContext> context,
                                                 const std::string& cpu, std::string_view name) {
    auto machine = machines().take(cpu);
    module->setDataLayout(machine->createDataLayout());
    module->setTargetTriple(machine->getTargetTriple().str());
    if (dump_on(DumpStage::llvm)) {
        std::string text;
        llvm::raw_string_ostream out(text);
        module->print(out, nullptr);
        dump(DumpStage::llvm, name, text);
    }
    if (option_on(Option::verify)) {
        std::string problem;
        llvm::raw_string_ostream out(problem);
        if (llvm::verifyModule(*module, &out)) throw GraphError("invalid LLVM IR: " + problem);
    }
    if (dump_on(DumpStage::assembly)) dump_assembly(*module, *machine, name);
    auto object = emit(module, context, machine);
    if (!object) fail("code generation", object.takeError());
    module.reset();
    machines().give_back(cpu, std::move(machine));

    static std::atomic<int> serial{0};
    auto library = linker().createJITDylib("framejit." + std::to_string(serial++));
    if (!library) fail("no library", library.takeError());
    std::shared_ptr<LoadedModule> loaded(new LoadedModule(&*library));
    if (auto error = linker().addObjectFile(*library, std::move(*object))) fail("loading", std::move(error));
    return loaded;
}

void* LoadedModule::find(const std::string& function) const {
    auto address = linker().lookup(*library_, function);
    if (!address) fail("no function", address.takeError());
    return address->toPtr<void*>();
}

Target host_target() {
    Target t;
    std::string features;
    llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    const bool avx512 = host.lookup("avx512f") && host.lookup("avx512bw") && host.lookup("avx512dq") && host.lookup("avx512vl");
    const std::string wanted = option_word(Option::target);
    t.avx512 = avx512 && wanted != "avx2";
    t.width = t.avx512 ? 16 : 8;
    if (!t.avx512 && avx512) {
        t.cpu = "haswell|";
        return t;
    }
    if (!host.lookup("avx2") || !host.lookup("fma") || !host.lookup("f16c"))
        throw GraphError("framejit needs a CPU with AVX2, FMA and F16C");
    std::vector<std::string> list;
    for (const auto& f : host) list.push_back((f.second ? "+" : "-") + f.first().str());
    std::sort(list.begin(), list.end());
    for (const std::string& f : list) features += (features.empty() ? "" : ",") + f;
    t.cpu = llvm::sys::getHostCPUName().str() + "|" + features;
    return t;
}

}  // namespace framejit
