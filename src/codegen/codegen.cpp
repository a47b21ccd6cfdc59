// Batches of kernels into modules, and the cache: kernels of equal structure share machine code as long as somebody uses it.
#include "src/codegen/codegen.h"

#include <mutex>

#include "framejit/log.h"
#include "src/codegen/function.h"
#include "src/codegen/jit.h"

namespace framejit {
namespace {

constexpr size_t kBatch = 16;  // kernels per module: what is fixed per module costs as much as a small kernel

class Cache {
public:
    std::shared_ptr<const MachineCode> find(const std::string& key) {
        std::lock_guard lock(mutex_);
        auto it = known_.find(key);
        return it == known_.end() ? nullptr : it->second.lock();
    }
    void insert(const std::string& key, const std::shared_ptr<const MachineCode>& code) {
        std::lock_guard lock(mutex_);
        known_[key] = code;
        if (known_.size() < limit_) return;
        std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
        limit_ = 2 * known_.size() + 1024;
    }

private:
    std::mutex mutex_;
    std::unordered_map<std::string, std::weak_ptr<const MachineCode>> known_;
    size_t limit_ = 1024;
};
Cache& cache() {
    static auto* all = new Cache;
    return *all;
}

Features features_of(const Target& t) { return {t.avx512, t.avx512 && t.cpu.find("+avx512bf16") != std::string::npos}; }

void fill_constants(ConstantTable& table, llvm::LLVMContext& c) {
    auto* word = llvm::Type::getInt64Ty(c);
    std::vector<llvm::Constant*> words;
    for (size_t i = 0; i < ConstantTable::kMost && (i < table.bits.size() || i == 0); i++)
        words.push_back(llvm::ConstantInt::get(word, i < table.bits.size() ? table.bits[i] : 0));
    auto* type = llvm::ArrayType::get(word, words.size());
    auto* filled = new llvm::GlobalVariable(*table.global->getParent(), type, true, llvm::GlobalValue::PrivateLinkage,
                                            llvm::ConstantArray::get(type, words), "constants");
    filled->setAlignment(llvm::Align(64));
    table.global->replaceAllUsesWith(filled);
    table.global->eraseFromParent();
}

std::vector<std::shared_ptr<MachineCode>> compile_batch(std::span<const Kernel* const> kernels, const Target& target,
                                                        std::string_view name) {
    auto owner = std::make_unique<llvm::LLVMContext>();
    llvm::LLVMContext& context = *owner;
    auto module = std::make_unique<llvm::Module>("framejit", context);
    ConstantTable table;
    table.global = new llvm::GlobalVariable(*module, llvm::ArrayType::get(llvm::Type::getInt64Ty(context), ConstantTable::kMost), true,
                                            llvm::GlobalValue::ExternalLinkage, nullptr, "constants_to_come");
    const Features features = features_of(target);
    for (size_t i = 0; i < kernels.size(); i++) Function(*module, *kernels[i], features, table).emit("k" + std::to_string(i));
    fill_constants(table, context);
    const auto loaded = LoadedModule::load(std::move(module), std::move(owner), target.cpu, name);
    std::vector<std::shared_ptr<MachineCode>> codes;
    for (size_t i = 0; i < kernels.size(); i++) {
        auto code = std::make_shared<MachineCode>();
        const std::string function = "k" + std::to_string(i);
        code->fn = reinterpret_cast<KernelFn>(loaded->find(function));
        if (kernels[i]->kind == Kernel::Split) code->finish = reinterpret_cast<KernelFn>(loaded->find(function + "_finish"));
        code->units = units_of(*kernels[i], vector_plan(*kernels[i], features));
        code->grain = kernels[i]->kind == Kernel::Linear ? 64 : 1;
        code->scratch = scratch_bytes(*kernels[i]);
        code->memory = loaded;
        codes.push_back(std::move(code));
    }
    return codes;
}

}  // namespace

std::vector<std::shared_ptr<const MachineCode>> generate(std::span<const Kernel* const> kernels, std::span<const std::string> keys,
                                                         const Target& target, std::string_view name) {
    std::vector<std::shared_ptr<const MachineCode>> codes(kernels.size());
    std::vector<size_t> missing;
    for (size_t i = 0; i < kernels.size(); i++) {
        codes[i] = cache().find(target.cpu + keys[i]);
        if (!codes[i]) missing.push_back(i);
    }
    if (log_on(LogTopic::cache))
        log_line(LogTopic::cache, std::string(name) + ": " + std::to_string(kernels.size() - missing.size()) + " of " +
                                      std::to_string(kernels.size()) + " kernels known");
    for (size_t first = 0; first < missing.size(); first += kBatch) {
        std::vector<const Kernel*> batch;
        for (size_t m = first; m < std::min(first + kBatch, missing.size()); m++) batch.push_back(kernels[missing[m]]);
        const auto made = compile_batch(batch, target, name);
        for (size_t i = 0; i < batch.size(); i++) {
            const size_t k = missing[first + i];
            codes[k] = made[i];
            cache().insert(target.cpu + keys[k], codes[k]);
        }
    }
    return codes;
}

}  // namespace framejit
