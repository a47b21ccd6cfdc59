// The Emitter on LLVM: every value is a vector of `lanes` elements (1: a scalar).
//
// No IR pass runs after this, so what is written here is what the instruction selector sees. Two consequences: constants of vectors come
// from one table per module, loaded and splatted once in the entry block (16 operands per use would dominate compile time), and 512-bit
// intrinsics are cut to 16 lanes by hand. `libm` and the bf16 rounding open basic blocks: take phi edges from GetInsertBlock().
#pragma once
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "framejit/api.h"
#include "framejit/emitter.h"
#include "src/codegen/llvm.h"

namespace framejit {

struct Features {  // of the target, as far as instructions are chosen by hand
    bool avx512 = false, bf16 = false;
};

// Bit patterns that a module's functions load; each function keeps what it has splatted.
struct ConstantTable {
    llvm::GlobalVariable* global = nullptr;
    std::vector<uint64_t> bits;
    static constexpr size_t kMost = 4096;
};
struct EntryConstants {
    ConstantTable* table = nullptr;
    llvm::BasicBlock* entry = nullptr;
    std::map<std::tuple<uint64_t, Ty, int>, llvm::Value*> made;
};

class Lanes final : public Emitter {
public:
    Lanes(llvm::IRBuilder<>& b, int lanes, const Features&, EntryConstants& constants);
    int count() const { return lanes_; }

    static llvm::Value* of(Val v) { return static_cast<llvm::Value*>(v.p); }
    static Val val(llvm::Value* v, Ty ty) {
        Val r{};
        r.p = v;
        r.ty = ty;
        return r;
    }
    llvm::Type* scalar(Ty) const;
    llvm::Type* type(Ty) const;
    llvm::Type* memory_scalar(DType) const;
    llvm::Type* memory(DType) const;
    llvm::Value* splat(llvm::Value* scalar);
    Val widen(llvm::Value*, DType);       // memory form -> register form
    llvm::Value* shrink(Val, DType);      // register form -> memory form
    llvm::Value* any(llvm::Value* mask);  // i1: some lane is set
    // `uniform`: a splat and the scalar that it was made of. Division by it costs one scalar division.
    void note_uniform(llvm::Value* splat, llvm::Value* scalar) { uniform_[splat] = same_[splat] = scalar; }
    // Integers first, first + 1, .. in the lanes
    void note_ramp(llvm::Value* lanes, llvm::Value* first) { ramp_[lanes] = first; }
    llvm::Value* first_of_ramp(llvm::Value* lanes) const {  // null: no ramp
        auto it = ramp_.find(lanes);
        return it == ramp_.end() ? nullptr : it->second;
    }
    void forget() { uniform_.clear(), reciprocal_.clear(), stored_.clear(), same_.clear(), ramp_.clear(); }  // at the start of a function

    Val constant(Ty, double) override;
    Val integer(Ty, int64_t) override;
    Val add(Val, Val) override;
    Val sub(Val, Val) override;
    Val mul(Val, Val) override;
    Val div(Val, Val) override;
    Val rem(Val, Val) override;
    Val fma(Val, Val, Val) override;
    Val accumulate(Val sum, Val x) override;
    Val neg(Val) override;
    Val abs(Val) override;
    Val copysign(Val, Val) override;
    Val sqrt(Val) override;
    Val round(Val) override;
    Val floor(Val) override;
    Val ceil(Val) override;
    Val trunc(Val) override;
    Val cmp(Cmp, Val, Val) override;
    Val select(Val mask, Val a, Val b) override;
    Val bit_and(Val, Val) override;
    Val bit_or(Val, Val) override;
    Val bit_xor(Val, Val) override;
    Val shl(Val, Val) override;
    Val shr(Val, Val) override;
    Val cast(Val, Ty) override;
    Val bitcast(Val, Ty) override;
    Val narrow(Val, DType) override;
    Val libm(Val mask, Val x, Val z, Val y, double (*fn)(double, double)) override;
    Val scale2(Val x, Val n) override;
    std::pair<Val, Val> split2(Val x) override;

private:
    using Parts = std::vector<llvm::Value*>;
    Val bits(Ty, uint64_t);
    Val unary(llvm::Intrinsic::ID, Val);
    Val divide_integers(Val, Val, bool remainder);
    Val divide_by_uniform(Val x, Val d);
    Val compare_ramp(Cmp, llvm::Value* first, llvm::Value* number);
    bool wide512() const { return features_.avx512 && lanes_ % 16 == 0; }
    llvm::Value* number(int32_t);
    llvm::Value* bf16_by_integers(llvm::Value*);
    llvm::Value* bf16_native(llvm::Value*);
    llvm::Value* each512(Ty, const Parts& in, const std::function<llvm::Value*(const Parts&)>&);
    llvm::Value* whole512(llvm::Intrinsic::ID, Ty, Parts args);
    // Runs `then` in a block of its own when the i1 holds; the result is its value there and `otherwise` elsewhere.
    llvm::Value* rarely(llvm::Value* condition, const char* name, llvm::Value* otherwise, const std::function<llvm::Value*()>& then);

    llvm::IRBuilder<>& b_;
    const int lanes_;
    const Features features_;
    EntryConstants& constants_;
    std::map<llvm::Value*, llvm::Value*> uniform_, reciprocal_, same_, ramp_;  // same: a splat -> its scalar, numbers included
    struct Stored {
        llvm::Value* form;
        DType dtype;
    };
    std::map<llvm::Value*, Stored>
        stored_;  // values that are exactly of a narrow dtype, and their form in memory: they are never rounded again
};

}  // namespace framejit
