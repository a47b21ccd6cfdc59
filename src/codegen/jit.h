// A compiled LLVM module in memory.
#pragma once
#include <memory>

#include "framejit/api.h"
#include "src/codegen/llvm.h"

namespace llvm::orc {
class JITDylib;
}

namespace framejit {

class LoadedModule {
public:
    // `cpu`: Target::cpu.
    static std::shared_ptr<LoadedModule> load(std::unique_ptr<llvm::Module>, std::unique_ptr<llvm::LLVMContext>, const std::string& cpu,
                                              std::string_view name);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;
    void* find(const std::string& function) const;

private:
    explicit LoadedModule(llvm::orc::JITDylib* l) : library_(l) {}
    llvm::orc::JITDylib* library_;
};

}  // namespace framejit
