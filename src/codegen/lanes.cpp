#include "src/codegen/lanes.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <cmath>

#include "framejit/op.h"

namespace framejit {
using llvm::Type;
using llvm::Value;

Lanes::Lanes(llvm::IRBuilder<>& b, int lanes, const Features& features, EntryConstants& constants)
    : b_(b), lanes_(lanes), features_(features), constants_(constants) {}

// ---- types ----
Type* Lanes::scalar(Ty t) const {
    switch (t) {
    case Ty::b1: return b_.getInt1Ty();
    case Ty::i32: return b_.getInt32Ty();
    case Ty::i64: return b_.getInt64Ty();
    case Ty::f32: return b_.getFloatTy();
    default: return b_.getDoubleTy();
    }
}
Type* Lanes::type(Ty t) const { return lanes_ == 1 ? scalar(t) : llvm::FixedVectorType::get(scalar(t), unsigned(lanes_)); }
Type* Lanes::memory_scalar(DType d) const {
    switch (d) {
    case DType::b1:
    case DType::u8:
    case DType::i8: return b_.getInt8Ty();
    case DType::i16:
    case DType::bf16: return b_.getInt16Ty();
    case DType::f16: return b_.getHalfTy();
    case DType::c64: return b_.getInt64Ty();  // complex numbers are only moved
    case DType::c128: return b_.getInt128Ty();
    default: return scalar(reg(d));
    }
}
Type* Lanes::memory(DType d) const {
    return lanes_ == 1 ? memory_scalar(d) : llvm::FixedVectorType::get(memory_scalar(d), unsigned(lanes_));
}
Value* Lanes::splat(Value* x) { return lanes_ == 1 ? x : b_.CreateVectorSplat(unsigned(lanes_), x); }
Value* Lanes::any(Value* mask) {
    return lanes_ == 1 ? mask : b_.CreateICmpNE(b_.CreateBitCast(mask, b_.getIntNTy(unsigned(lanes_))), b_.getIntN(unsigned(lanes_), 0));
}

// ---- memory and registers ----
Val Lanes::widen(Value* x, DType d) {
    auto of_form = [&](Value* wide) {
        stored_[wide] = {x, d};
        return val(wide, reg(d));
    };
    switch (d) {
    case DType::b1: return val(b_.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType())), Ty::b1);
    case DType::u8: return of_form(b_.CreateZExt(x, type(Ty::i32)));
    case DType::i8:
    case DType::i16: return of_form(b_.CreateSExt(x, type(Ty::i32)));
    case DType::bf16: return of_form(b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(x, type(Ty::i32)), 16), type(Ty::f32)));
    case DType::f16: return of_form(b_.CreateFPExt(x, type(Ty::f32)));
    default: return val(x, reg(d));
    }
}
Value* Lanes::shrink(Val x, DType d) {
    auto known = stored_.find(of(x));
    if (known != stored_.end() && known->second.form->getType() == memory(d)) return known->second.form;
    switch (d) {
    case DType::b1: return b_.CreateZExt(of(x), memory(d));
    case DType::u8:
    case DType::i8:
    case DType::i16: return b_.CreateTrunc(of(x), memory(d));
    case DType::f16: return b_.CreateFPTrunc(of(x), memory(d));
    case DType::bf16: return stored_.at(of(narrow(x, d))).form;
    default: return of(x);
    }
}

// To nearest even, denormals kept, NaN -> 0x7fc0: the upper half of the result.
Value* Lanes::bf16_by_integers(Value* x) {
    Value* u = b_.CreateBitCast(x, type(Ty::i32));
    Value* odd = b_.CreateAnd(b_.CreateLShr(u, 16), number(1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(u, number(0x7fff)), odd);
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), number(0x7fc00000), rounded);
}
// vcvtneps2bf16 takes denormals for zero: a cold block does those with integers.
Value* Lanes::bf16_native(Value* x) {
    Value* fast =
        b_.CreateBitCast(b_.CreateFPTrunc(x, llvm::FixedVectorType::get(b_.getBFloatTy(), unsigned(lanes_))), memory(DType::bf16));
    Value* u = b_.CreateBitCast(x, type(Ty::i32));
    Value* zero = llvm::Constant::getNullValue(u->getType());
    auto constant = [&](int32_t k) { return b_.CreateVectorSplat(unsigned(lanes_), b_.getInt32(uint32_t(k))); };  // vptestmd wants it so
    Value* no_exponent = b_.CreateICmpEQ(b_.CreateAnd(u, constant(0x7f800000)), zero);
    Value* denormal = b_.CreateAnd(no_exponent, b_.CreateICmpNE(b_.CreateAnd(u, constant(0x7fffffff)), zero));
    return rarely(any(denormal), "denormal", fast,
                  [&] { return b_.CreateTrunc(b_.CreateLShr(bf16_by_integers(x), 16), memory(DType::bf16)); });
}
Val Lanes::narrow(Val a, DType d) {
    if (auto known = stored_.find(of(a)); known != stored_.end() && known->second.dtype == d) return a;
    switch (d) {
    case DType::bf16: {
        Value* half = wide512() && features_.bf16 ? bf16_native(of(a)) : nullptr;
        Val r;
        if (half) {
            r = widen(half, DType::bf16);
        } else {
            Value* bits = bf16_by_integers(of(a));
            half = b_.CreateTrunc(b_.CreateLShr(bits, 16), memory(DType::bf16));
            r = val(b_.CreateBitCast(b_.CreateAnd(bits, number(int32_t(0xffff0000))), type(Ty::f32)), Ty::f32);
        }
        stored_[of(r)] = {half, d};
        return r;
    }
    case DType::f16: {
        Type* half = lanes_ == 1 ? b_.getHalfTy() : (Type*)llvm::FixedVectorType::get(b_.getHalfTy(), unsigned(lanes_));
        return val(b_.CreateFPExt(b_.CreateFPTrunc(of(a), half), type(Ty::f32)), Ty::f32);
    }
    case DType::u8: return val(b_.CreateAnd(of(a), number(0xff)), Ty::i32);
    case DType::i8: return val(b_.CreateAShr(b_.CreateShl(of(a), 24), 24), Ty::i32);
    case DType::i16: return val(b_.CreateAShr(b_.CreateShl(of(a), 16), 16), Ty::i32);
    default: return a;
    }
}

// ---- constants ----
Val Lanes::bits(Ty t, uint64_t bits) {
    if (t == Ty::b1) return val(splat(b_.getInt1(bits != 0)), t);
    if (bits == 0) return val(llvm::Constant::getNullValue(type(t)), t);
    if (lanes_ == 1) {
        if (!is_float(t)) return val(llvm::ConstantInt::get(scalar(t), bits), t);
        return val(t == Ty::f32 ? llvm::ConstantFP::get(scalar(t), double(std::bit_cast<float>(uint32_t(bits))))
                                : llvm::ConstantFP::get(scalar(t), std::bit_cast<double>(bits)),
                   t);
    }
    Value*& made = constants_.made[{bits, t, lanes_}];
    if (made) return val(made, t);
    std::vector<uint64_t>& table = constants_.table->bits;
    const size_t at = size_t(std::find(table.begin(), table.end(), bits) - table.begin());
    if (at == table.size()) table.push_back(bits);
    if (table.size() > ConstantTable::kMost) throw std::length_error("too many constants in one module");
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    if (llvm::Instruction* end = constants_.entry->getTerminator())
        b_.SetInsertPoint(end);
    else
        b_.SetInsertPoint(constants_.entry);
    Value* one = b_.CreateLoad(scalar(t), b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), constants_.table->global, at));
    made = splat(one);
    same_[made] = one;
    return val(made, t);
}
Val Lanes::constant(Ty t, double v) {
    if (t == Ty::f32) return bits(t, std::bit_cast<uint32_t>(float(v)));
    if (t == Ty::f64) return bits(t, std::bit_cast<uint64_t>(v));
    if (t == Ty::b1) return bits(t, v != 0);
    return integer(t, v >= 9.2233720368547758e18 || v < -9.2233720368547758e18 || v != v ? INT64_MIN : int64_t(v));
}
Val Lanes::integer(Ty t, int64_t v) {
    if (is_float(t)) return constant(t, double(v));
    return bits(t, t == Ty::i32 ? uint64_t(uint32_t(v)) : t == Ty::b1 ? uint64_t(v & 1) : uint64_t(v));
}
Value* Lanes::number(int32_t k) { return of(integer(Ty::i32, k)); }

// ---- arithmetic ----
Val Lanes::unary(llvm::Intrinsic::ID id, Val a) {
    if (!is_float(a.ty)) throw GraphError("a floating-point function of integers");
    return val(b_.CreateUnaryIntrinsic(id, of(a)), a.ty);
}
Val Lanes::add(Val a, Val c) { return val(is_float(a.ty) ? b_.CreateFAdd(of(a), of(c)) : b_.CreateAdd(of(a), of(c)), a.ty); }
Val Lanes::sub(Val a, Val c) { return val(is_float(a.ty) ? b_.CreateFSub(of(a), of(c)) : b_.CreateSub(of(a), of(c)), a.ty); }
Val Lanes::mul(Val a, Val c) { return val(is_float(a.ty) ? b_.CreateFMul(of(a), of(c)) : b_.CreateMul(of(a), of(c)), a.ty); }
Val Lanes::div(Val a, Val c) {
    if (!is_float(a.ty)) return divide_integers(a, c, false);
    if (wide512() && a.ty == Ty::f32 && uniform_.count(of(c)) && llvm::isa<llvm::Instruction>(of(c))) return divide_by_uniform(a, c);
    return val(b_.CreateFDiv(of(a), of(c)), a.ty);
}
Val Lanes::rem(Val a, Val c) {
    if (!is_float(a.ty)) return divide_integers(a, c, true);
    return libm(integer(Ty::b1, 1), a, c, a, [](double x, double y) { return std::fmod(x, y); });
}
// Division by 0 gives 0 and the lowest integer by -1 wraps: neither may trap, in whatever lane.
Val Lanes::divide_integers(Val a, Val c, bool remainder) {
    const Val zero = integer(a.ty, 0), one = integer(a.ty, 1), minus = integer(a.ty, -1);
    const Val by_zero = cmp(Cmp::eq, c, zero), by_minus = cmp(Cmp::eq, c, minus);
    const Val safe = select(bit_or(by_zero, by_minus), one, c);
    if (remainder) return val(b_.CreateSRem(of(a), of(safe)), a.ty);  // by 0 and by -1: 0
    Val q = val(b_.CreateSDiv(of(a), of(safe)), a.ty);
    return select(by_zero, zero, select(by_minus, neg(a), q));
}
// r = 1/d once per splat, then q = x r and one correction: correctly rounded (Markstein) unless q is tiny, huge or not a number.
Val Lanes::divide_by_uniform(Val x, Val d) {
    Value*& r = reciprocal_[of(d)];
    if (!r) {
        llvm::IRBuilder<>::InsertPointGuard guard(b_);
        auto* splatted = llvm::cast<llvm::Instruction>(of(d));
        if (llvm::Instruction* next = splatted->getNextNode())
            b_.SetInsertPoint(next);
        else
            b_.SetInsertPoint(splatted->getParent());
        r = splat(b_.CreateFDiv(llvm::ConstantFP::get(b_.getFloatTy(), 1), uniform_.at(of(d))));
    }
    const Val q = mul(x, val(r, Ty::f32));
    const Val fixed = fma(fma(neg(q), d, x), val(r, Ty::f32), q);
    const Val size = abs(q);
    const Val usual = bit_and(cmp(Cmp::gt, size, f(1e-30)), cmp(Cmp::lt, size, f(1e30)));
    const Val fine = bit_or(usual, bit_and(cmp(Cmp::eq, x, f(0)), cmp(Cmp::eq, q, f(0))));
    Value* odd = any(b_.CreateNot(of(fine)));
    return val(rarely(odd, "divide", of(fixed), [&] { return b_.CreateFDiv(of(x), of(d)); }), Ty::f32);
}
Val Lanes::fma(Val a, Val c, Val d) { return val(b_.CreateIntrinsic(llvm::Intrinsic::fma, {type(a.ty)}, {of(a), of(c), of(d)}), a.ty); }
Val Lanes::accumulate(Val sum, Val x) {
    auto* product = llvm::dyn_cast<llvm::BinaryOperator>(of(x));
    if (!product || product->getOpcode() != llvm::Instruction::FMul || product->getParent() != b_.GetInsertBlock()) return add(sum, x);
    return fma(val(product->getOperand(0), x.ty), val(product->getOperand(1), x.ty), sum);
}
Val Lanes::neg(Val a) { return val(is_float(a.ty) ? b_.CreateFNeg(of(a)) : b_.CreateNeg(of(a)), a.ty); }
Val Lanes::abs(Val a) {
    if (is_float(a.ty)) return unary(llvm::Intrinsic::fabs, a);
    return val(b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, of(a), b_.getFalse()), a.ty);
}
Val Lanes::copysign(Val a, Val c) { return val(b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, of(a), of(c)), a.ty); }
Val Lanes::sqrt(Val a) { return unary(llvm::Intrinsic::sqrt, a); }
Val Lanes::round(Val a) { return unary(llvm::Intrinsic::rint, a); }
Val Lanes::floor(Val a) { return unary(llvm::Intrinsic::floor, a); }
Val Lanes::ceil(Val a) { return unary(llvm::Intrinsic::ceil, a); }
Val Lanes::trunc(Val a) { return unary(llvm::Intrinsic::trunc, a); }

// first + lane against a number is the lane against their difference, which counts only from -1 to the number of lanes.
Val Lanes::compare_ramp(Cmp how, Value* first, Value* number) {
    Value* to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, number, first);
    to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, to, b_.getInt64(uint64_t(-1)));
    to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, to, b_.getInt64(uint64_t(lanes_)));
    llvm::SmallVector<llvm::Constant*, 64> lane;
    for (int q = 0; q < lanes_; q++) lane.push_back(b_.getInt8(uint8_t(q)));
    static constexpr llvm::CmpInst::Predicate kSigned[] = {llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_SGT,
                                                           llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_EQ,  llvm::CmpInst::ICMP_NE};
    return val(b_.CreateICmp(kSigned[int(how)], llvm::ConstantVector::get(lane), splat(b_.CreateTrunc(to, b_.getInt8Ty()))), Ty::b1);
}
Val Lanes::cmp(Cmp how, Val a, Val c) {
    using P = llvm::CmpInst::Predicate;
    constexpr int kFew = 16;  // lanes whose comparison costs no more than the scalars do
    Value *ramp = first_of_ramp(of(a)), *other = first_of_ramp(of(c));
    if (lanes_ > kFew && ramp && same_.count(of(c))) return compare_ramp(how, ramp, same_.at(of(c)));
    if (lanes_ > kFew && other && same_.count(of(a))) {
        static constexpr Cmp kSwapped[] = {Cmp::gt, Cmp::ge, Cmp::lt, Cmp::le, Cmp::eq, Cmp::ne};
        return compare_ramp(kSwapped[int(how)], other, same_.at(of(a)));
    }
    static constexpr P kFloat[] = {P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE, P::FCMP_OEQ, P::FCMP_UNE};
    static constexpr P kSigned[] = {P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE, P::ICMP_EQ, P::ICMP_NE};
    static constexpr P kBool[] = {P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE, P::ICMP_EQ, P::ICMP_NE};
    if (is_float(a.ty)) return val(b_.CreateFCmp(kFloat[int(how)], of(a), of(c)), Ty::b1);
    return val(b_.CreateICmp(a.ty == Ty::b1 ? kBool[int(how)] : kSigned[int(how)], of(a), of(c)), Ty::b1);
}
// What is chosen from two values of a narrow dtype is one itself; the form that nobody uses is never selected.
Val Lanes::select(Val m, Val a, Val c) {
    const Val r = val(b_.CreateSelect(of(m), of(a), of(c)), a.ty);
    auto is_zero = [](Value* v) { return llvm::isa<llvm::Constant>(v) && llvm::cast<llvm::Constant>(v)->isNullValue(); };
    auto first = stored_.find(of(a)), second = stored_.find(of(c));
    const auto known = first != stored_.end() ? first : second;
    if (known == stored_.end()) return r;
    const DType d = known->second.dtype;
    auto form = [&](std::map<Value*, Stored>::iterator it, Val v) -> Value* {
        if (it != stored_.end()) return it->second.dtype == d ? it->second.form : nullptr;
        return is_zero(of(v)) ? llvm::Constant::getNullValue(memory(d)) : nullptr;
    };
    Value *x = form(first, a), *y = form(second, c);
    if (x && y) stored_[of(r)] = {b_.CreateSelect(of(m), x, y), d};
    return r;
}
Val Lanes::bit_and(Val a, Val c) { return val(b_.CreateAnd(of(a), of(c)), a.ty); }
Val Lanes::bit_or(Val a, Val c) { return val(b_.CreateOr(of(a), of(c)), a.ty); }
Val Lanes::bit_xor(Val a, Val c) { return val(b_.CreateXor(of(a), of(c)), a.ty); }
Val Lanes::shl(Val a, Val c) { return val(b_.CreateShl(of(a), of(c)), a.ty); }
Val Lanes::shr(Val a, Val c) { return val(b_.CreateAShr(of(a), of(c)), a.ty); }

Val Lanes::cast(Val a, Ty t) {
    if (a.ty == t) return a;
    Type* to = type(t);
    if (t == Ty::b1) return cmp(Cmp::ne, a, integer(a.ty, 0));
    if (a.ty == Ty::b1) return val(is_float(t) ? b_.CreateUIToFP(of(a), to) : b_.CreateZExt(of(a), to), t);
    if (is_float(a.ty) && is_float(t)) return val(b_.CreateFPCast(of(a), to), t);
    if (is_float(a.ty)) return val(b_.CreateFPToSI(of(a), to), t);
    if (is_float(t)) return val(b_.CreateSIToFP(of(a), to), t);
    return val(b_.CreateSExtOrTrunc(of(a), to), t);
}
Val Lanes::bitcast(Val a, Ty t) { return val(b_.CreateBitCast(of(a), type(t)), t); }

// ---- cold blocks ----
Value* Lanes::rarely(Value* condition, const char* name, Value* otherwise, const std::function<Value*()>& then) {
    llvm::Function* f = b_.GetInsertBlock()->getParent();
    llvm::LLVMContext& c = b_.getContext();
    auto* from = b_.GetInsertBlock();
    auto* cold = llvm::BasicBlock::Create(c, name, f);
    auto* join = llvm::BasicBlock::Create(c, "join", f);
    b_.CreateCondBr(condition, cold, join, llvm::MDBuilder(c).createBranchWeights(1, 10000));
    b_.SetInsertPoint(cold);
    Value* slow = then();
    auto* end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    auto* phi = b_.CreatePHI(otherwise->getType(), 2);
    phi->addIncoming(otherwise, from);
    phi->addIncoming(slow, end);
    return phi;
}
// One call per lane of the mask. The function is an address, never a symbol: nothing is resolved when the code is loaded.
Val Lanes::libm(Val mask, Val x, Val z, Val y, double (*fn)(double, double)) {
    Type* real = b_.getDoubleTy();
    auto* signature = llvm::FunctionType::get(real, {real, real}, false);
    Value* address = b_.CreateIntToPtr(b_.getInt64(reinterpret_cast<uint64_t>(fn)), b_.getPtrTy());
    auto call = [&](Value* a, Value* c) {
        Value* r = b_.CreateCall(signature, address, {b_.CreateFPCast(a, real), b_.CreateFPCast(c, real)});
        return b_.CreateFPCast(r, scalar(y.ty));
    };
    if (lanes_ == 1) return val(rarely(of(mask), "call", of(y), [&] { return call(of(x), of(z)); }), y.ty);
    return val(rarely(any(of(mask)), "calls", of(y),
                      [&]() -> Value* {
                          llvm::Function* f = b_.GetInsertBlock()->getParent();
                          auto* before = b_.GetInsertBlock();
                          auto* lane = llvm::BasicBlock::Create(b_.getContext(), "lane", f);
                          auto* wanted = llvm::BasicBlock::Create(b_.getContext(), "wanted", f);
                          auto* next = llvm::BasicBlock::Create(b_.getContext(), "next", f);
                          auto* done = llvm::BasicBlock::Create(b_.getContext(), "lanes_end", f);
                          b_.CreateBr(lane);
                          b_.SetInsertPoint(lane);
                          auto* i = b_.CreatePHI(b_.getInt32Ty(), 2);
                          auto* all = b_.CreatePHI(of(y)->getType(), 2);
                          i->addIncoming(b_.getInt32(0), before);
                          all->addIncoming(of(y), before);
                          b_.CreateCondBr(b_.CreateExtractElement(of(mask), i), wanted, next);
                          b_.SetInsertPoint(wanted);
                          Value* one = call(b_.CreateExtractElement(of(x), i), b_.CreateExtractElement(of(z), i));
                          Value* with = b_.CreateInsertElement(all, one, i);
                          b_.CreateBr(next);
                          b_.SetInsertPoint(next);
                          auto* now = b_.CreatePHI(of(y)->getType(), 2);
                          now->addIncoming(all, lane);
                          now->addIncoming(with, wanted);
                          Value* following = b_.CreateAdd(i, b_.getInt32(1));
                          i->addIncoming(following, next);
                          all->addIncoming(now, next);
                          b_.CreateCondBr(b_.CreateICmpULT(following, b_.getInt32(uint32_t(lanes_))), lane, done);
                          b_.SetInsertPoint(done);
                          return now;
                      }),
               y.ty);
}

// ---- AVX-512 instructions, one register at a time ----
Value* Lanes::each512(Ty t, const Parts& in, const std::function<Value*(const Parts&)>& f) {
    const int width = t == Ty::f64 ? 8 : 16;
    if (lanes_ == width) return f(in);
    Parts parts;
    for (int k = 0; k < lanes_ / width; k++) {
        llvm::SmallVector<int, 16> pick;
        for (int q = 0; q < width; q++) pick.push_back(k * width + q);
        Parts args;
        for (Value* x : in) args.push_back(b_.CreateShuffleVector(x, pick));
        parts.push_back(f(args));
    }
    while (parts.size() > 1) {
        Parts joined;
        for (size_t i = 0; i < parts.size(); i += 2) {
            const int size = int(llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements());
            llvm::SmallVector<int, 64> all;
            for (int q = 0; q < 2 * size; q++) all.push_back(q);
            joined.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], all));
        }
        parts = std::move(joined);
    }
    return parts[0];
}
// A masked instruction on a whole register, in the current rounding mode.
Value* Lanes::whole512(llvm::Intrinsic::ID id, Ty t, Parts args) {
    const unsigned width = t == Ty::f64 ? 8 : 16;
    args.push_back(llvm::Constant::getNullValue(llvm::FixedVectorType::get(scalar(t), width)));
    args.push_back(b_.getIntN(width, (1u << width) - 1));
    args.push_back(b_.getInt32(4));
    return b_.CreateCall(llvm::Intrinsic::getDeclaration(b_.GetInsertBlock()->getModule(), id), args);
}
Val Lanes::scale2(Val x, Val n) {
    if (!wide512()) return Emitter::scale2(x, n);
    const auto id = x.ty == Ty::f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    return val(each512(x.ty, {of(x), of(n)}, [&](const Parts& a) { return whole512(id, x.ty, a); }), x.ty);
}
std::pair<Val, Val> Lanes::split2(Val x) {
    if (!wide512()) return Emitter::split2(x);
    const bool wide = x.ty == Ty::f64;
    const auto getexp = wide ? llvm::Intrinsic::x86_avx512_mask_getexp_pd_512 : llvm::Intrinsic::x86_avx512_mask_getexp_ps_512;
    const auto getmant = wide ? llvm::Intrinsic::x86_avx512_mask_getmant_pd_512 : llvm::Intrinsic::x86_avx512_mask_getmant_ps_512;
    auto exponent = [&](Value* v) { return each512(x.ty, {v}, [&](const Parts& a) { return whole512(getexp, x.ty, a); }); };
    Value* mantissa = each512(x.ty, {of(x)}, [&](const Parts& a) { return whole512(getmant, x.ty, {a[0], b_.getInt32(11)}); });
    return {val(mantissa, x.ty), val(b_.CreateFSub(exponent(of(x)), exponent(mantissa)), x.ty)};
}

}  // namespace framejit
