// Expressions to values.
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>

#include "src/codegen/function.h"
#include "src/schedule/affine.h"

namespace framejit {
using llvm::Value;

// ---- on demand, per scope ----
Function::Got Function::get(int id) {
    for (size_t s = scopes_.size(); s-- > 0;)
        if (auto it = scopes_[s].values.find(id); it != scopes_[s].values.end()) return it->second;
    const Got g = make(id);
    scopes_.back().values[id] = g;
    return g;
}
Val Function::vector(int id) {
    const Expr& e = k_.exprs[id];
    if (e.kind == Expr::Constant) {
        const Ty t = reg(e.dtype);
        return is_float(e.dtype) ? vec_->constant(t, e.node->at.f[0]) : vec_->integer(t, e.node->at.i[0]);
    }
    const Got g = get(id);
    if (g.vec || W_ == 1) return g.v;
    for (size_t s = scopes_.size(); s-- > 0;)
        if (auto it = scopes_[s].splats.find(id); it != scopes_[s].splats.end()) return it->second;
    Value* x = vec_->splat(Lanes::of(g.v));
    vec_->note_uniform(x, Lanes::of(g.v));
    const Val v = Lanes::val(x, g.v.ty);
    scopes_.back().splats[id] = v;
    return v;
}

Function::Got Function::make(int id) {
    const Expr& e = k_.exprs[id];
    if (kept_ready_.count(id)) {
        Value* p = b_.CreateGEP(one_.memory_scalar(e.dtype), kept_.at(id), var_[kLane]);
        llvm::Type* t = vec_->memory(e.dtype);
        return {vec_->widen(b_.CreateAlignedLoad(t, p, llvm::Align(uint64_t(size_of(e.dtype)))), e.dtype), true};
    }
    switch (e.kind) {
    case Expr::Load: return load(id, e);
    case Expr::Constant:
        return {is_float(e.dtype) ? one_.constant(reg(e.dtype), e.node->at.f[0]) : one_.integer(reg(e.dtype), e.node->at.i[0]), false};
    case Expr::Iota: return make_iota(e);
    case Expr::Index: return integer(e.at);
    case Expr::Apply: return make_apply(e);
    case Expr::Folded: return make_folded(e);
    case Expr::Div:
    case Expr::Mod: return make_div(e);
    case Expr::Clamped: return make_integer(e);
    case Expr::Checked: return make_checked(e);
    case Expr::Reduced: throw GraphError("a reduction is used before it is finished");
    }
    throw GraphError("unknown expression");
}

Function::Got Function::make_apply(const Expr& e) {
    bool vec = false;
    std::vector<Got> args;
    for (int a : e.args) {
        args.push_back(get(a));
        vec |= args.back().vec;
    }
    std::vector<Val> v;
    for (size_t i = 0; i < args.size(); i++) v.push_back(vec ? vector(e.args[i]) : args[i].v);
    Emitter& emitter = vec ? *vec_ : one_;
    return {emitter.narrow(e.node->op->as<Pointwise>()->emit(emitter, v, *e.node), e.dtype), vec};
}
Function::Got Function::make_folded(const Expr& e) {
    const auto& r = *e.node->op->as<Reduce>();
    const bool vec = !e.args.empty() && get(e.args[0]).vec;
    Lanes& emitter = vec ? *vec_ : one_;
    std::vector<Val> acc(size_t(r.accs));
    r.init(emitter, reg(e.node->in[0]->dtype), acc.data());
    if (!e.args.empty()) r.step(emitter, acc.data(), vec ? vector(e.args[0]) : get(e.args[0]).v, emitter.integer(Ty::i64, 0));
    return {emitter.narrow(r.result(emitter, acc.data(), *e.node), e.dtype), vec};
}
// start + step * position is affine itself: no arithmetic per lane beyond that of the position.
Function::Got Function::make_iota(const Expr& e) {
    Affine at = scaled(e.at, e.node->at.i[1]);
    at.c += e.node->at.i[0];
    const Got x = integer(at);
    Lanes& l = x.vec ? *vec_ : one_;
    return {l.narrow(l.cast(x.v, reg(e.dtype)), e.dtype), x.vec};
}

// ---- integers ----
bool Function::per_lane(const Affine& a) const {
    if (a.k[kLane]) return true;
    for (const Term& t : a.terms)
        if (varies(t.expr, bit(kLane))) return true;
    return false;
}
Function::Got Function::as_i64(int id) {
    const Got g = get(id);
    return {(g.vec ? *vec_ : one_).cast(g.v, Ty::i64), g.vec};
}
Value* Function::scalar_part(const Affine& a) {
    Value* s = nullptr;
    auto plus = [&](Value* x) { s = s ? b_.CreateAdd(s, x) : x; };
    for (int v = 0; v < kLane; v++)
        if (a.k[v] && var_[v]) plus(a.k[v] == 1 ? var_[v] : b_.CreateMul(var_[v], i64(a.k[v])));
    for (const Term& t : a.terms)
        if (!varies(t.expr, bit(kLane))) {
            Value* x = Lanes::of(as_i64(t.expr).v);
            plus(t.k == 1 ? x : b_.CreateMul(x, i64(t.k)));
        }
    if (a.k[kLane]) plus(a.k[kLane] == 1 ? var_[kLane] : b_.CreateMul(var_[kLane], i64(a.k[kLane])));
    if (a.c || !s) plus(i64(a.c));
    return s;
}
Function::Got Function::integer(const Affine& a) {
    Value* base = scalar_part(a);
    if (!per_lane(a) || W_ == 1) {
        for (const Term& t : a.terms)
            if (varies(t.expr, bit(kLane))) base = b_.CreateAdd(base, b_.CreateMul(Lanes::of(as_i64(t.expr).v), i64(t.k)));
        return {Lanes::val(base, Ty::i64), per_lane(a)};
    }
    Value* x = vec_->splat(base);
    if (a.k[kLane]) {
        llvm::SmallVector<llvm::Constant*, 16> steps;
        for (int q = 0; q < W_; q++) steps.push_back(b_.getInt64(uint64_t(q * a.k[kLane])));
        x = b_.CreateAdd(x, llvm::ConstantVector::get(steps));
    }
    if (a.k[kLane] == 1) vec_->note_ramp(x, base);
    for (const Term& t : a.terms) {
        if (!varies(t.expr, bit(kLane))) continue;
        Value* y = Lanes::of(as_i64(t.expr).v);
        x = b_.CreateAdd(x, t.k == 1 ? y : b_.CreateMul(y, vec_->splat(i64(t.k))));
    }
    return {Lanes::val(x, Ty::i64), true};
}
Function::Got Function::make_integer(const Expr& e) {  // Clamped
    const Got x = as_i64(e.args[0]);
    Lanes& l = x.vec ? *vec_ : one_;
    const Val low = l.integer(Ty::i64, 0), high = l.integer(Ty::i64, e.n - 1);
    const Val up = l.select(l.cmp(Cmp::lt, x.v, low), low, x.v);
    return {l.select(l.cmp(Cmp::gt, up, high), high, up), x.vec};
}
// Division of lanes is done in 32 bits: LLVM turns a constant divisor into multiplications there, and into single divisions in 64.
Function::Got Function::make_div(const Expr& e) {
    const Got x = as_i64(e.args[0]);
    const bool power = std::has_single_bit(uint64_t(e.n));
    Value* v = Lanes::of(x.v);
    auto number = [&](int64_t n) { return llvm::ConstantInt::get(v->getType(), uint64_t(n)); };
    Value* r = nullptr;
    if (power) {
        r = e.kind == Expr::Div ? b_.CreateLShr(v, number(std::countr_zero(uint64_t(e.n)))) : b_.CreateAnd(v, number(e.n - 1));
    } else if (x.vec && k_.points() < (int64_t(1) << 31) && e.n < (int64_t(1) << 31)) {
        v = b_.CreateTrunc(v, vec_->type(Ty::i32));
        r = e.kind == Expr::Div ? b_.CreateUDiv(v, number(e.n)) : b_.CreateURem(v, number(e.n));
        r = b_.CreateZExt(r, vec_->type(Ty::i64));
    } else {
        r = e.kind == Expr::Div ? b_.CreateUDiv(v, number(e.n)) : b_.CreateURem(v, number(e.n));
    }
    return {Lanes::val(r, Ty::i64), x.vec};
}
Value* Function::inside(int id, int64_t n) {
    const Got x = as_i64(id);
    if (W_ > 1 && vec_->first_of_ramp(Lanes::of(x.v)))
        return Lanes::of(
            vec_->bit_and(vec_->cmp(Cmp::ge, x.v, vec_->integer(Ty::i64, 0)), vec_->cmp(Cmp::lt, x.v, vec_->integer(Ty::i64, n))));
    return b_.CreateICmpULT(Lanes::of(x.v), llvm::ConstantInt::get(Lanes::of(x.v)->getType(), uint64_t(n)));
}
Function::Got Function::make_checked(const Expr& e) {
    const Got x = as_i64(e.args[0]);
    Lanes& l = x.vec ? *vec_ : one_;
    const Val zero = l.integer(Ty::i64, 0);
    const Val wrapped = l.select(l.cmp(Cmp::lt, x.v, zero), l.add(x.v, l.integer(Ty::i64, e.n)), x.v);
    Value* good = b_.CreateICmpULT(Lanes::of(wrapped), llvm::ConstantInt::get(Lanes::of(wrapped)->getType(), uint64_t(e.n)));
    Block *bad = block("out_of_range"), *go_on = block("in_range");
    b_.CreateCondBr(l.any(b_.CreateNot(good)), bad, go_on, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 10000));
    b_.SetInsertPoint(bad);
    b_.CreateStore(b_.getInt32(1), failed_);
    b_.CreateBr(go_on);
    b_.SetInsertPoint(go_on);
    return {Lanes::val(b_.CreateSelect(good, Lanes::of(wrapped), Lanes::of(zero)), Ty::i64), x.vec};
}

// ---- memory ----
// The element of the first lane, without terms that vary with the lane. Starts from what was made outside of the loops.
Value* Function::address(int id, size_t buffer, DType d, const Affine& at) {
    for (size_t s = scopes_.size(); s-- > 0;) {
        auto it = scopes_[s].bases.find(id);
        if (it == scopes_[s].bases.end()) continue;
        Affine rest;
        for (int v = 0; v < kVars; v++)
            if (it->second.inner & bit(v)) rest.k[v] = at.k[v];
        return rest == Affine{} ? it->second.pointer : b_.CreateGEP(one_.memory_scalar(d), it->second.pointer, scalar_part(rest));
    }
    return b_.CreateGEP(one_.memory_scalar(d), buffers_[buffer], scalar_part(at));
}
Function::Got Function::load(int id, const Expr& e) {
    const DType d = e.dtype;
    const bool vector_terms = std::any_of(e.at.terms.begin(), e.at.terms.end(), [&](const Term& t) { return varies(t.expr, bit(kLane)); });
    const bool vec = per_lane(e.at) || (e.guard >= 0 && varies(e.guard, bit(kLane)));
    if (!vec || W_ == 1) {
        Value* p = nullptr;
        if (vector_terms || e.guard >= 0) {
            Value* offset = vector_terms ? Lanes::of(integer(e.at).v) : scalar_part(e.at);
            if (e.guard >= 0) offset = b_.CreateSelect(inside(e.guard, e.n), offset, i64(0));
            p = b_.CreateGEP(one_.memory_scalar(d), buffers_[size_t(e.buffer)], offset);
        } else {
            p = address(id, size_t(e.buffer), d, e.at);
        }
        return {one_.widen(b_.CreateAlignedLoad(one_.memory_scalar(d), p, llvm::Align(uint64_t(size_of(d)))), d), vec};
    }
    Value* p = address(id, size_t(e.buffer), d, e.at);
    if (vector_terms || std::abs(e.at.k[kLane]) != 1) return gather(e, p);
    return load_lanes(e, e.at.k[kLane] == 1 ? p : b_.CreateGEP(one_.memory_scalar(d), p, i64(1 - W_)));
}
Value* Function::reversed(Value* lanes) {
    llvm::SmallVector<int, 64> order;
    for (int q = W_; q-- > 0;) order.push_back(q);
    return b_.CreateShuffleVector(lanes, order);
}
// Consecutive elements, ascending or descending from the last lane's on. With a guard: most vectors are inside as a whole, and those are
// loaded without a mask.
Function::Got Function::load_lanes(const Expr& e, Value* p) {
    llvm::Type* t = vec_->memory(e.dtype);
    const llvm::Align align(uint64_t(size_of(e.dtype)));
    const bool descending = e.at.k[kLane] < 0;
    auto in_order = [&](Value* lanes) { return descending ? reversed(lanes) : lanes; };
    if (e.guard < 0) return {vec_->widen(in_order(b_.CreateAlignedLoad(t, p, align)), e.dtype), true};
    Block *before = b_.GetInsertBlock(), *whole = block("whole"), *part = block("part"), *join = block("join");
    Value *mask = nullptr, *first = vec_->first_of_ramp(Lanes::of(as_i64(e.guard).v));
    if (first && e.n >= W_) {  // where the vector is tells whether it is inside, or outside
        Block* cut = block("not_whole");
        b_.CreateCondBr(b_.CreateICmpULE(first, i64(e.n - W_)), whole, cut);
        b_.SetInsertPoint(before = cut);
        b_.CreateCondBr(b_.CreateICmpULT(b_.CreateAdd(first, i64(W_ - 1)), i64(e.n + W_ - 1)), part, join);
        b_.SetInsertPoint(part);
        mask = inside(e.guard, e.n);
    } else {
        mask = inside(e.guard, e.n);
        if (!mask->getType()->isVectorTy()) mask = vec_->splat(mask);
        b_.CreateCondBr(vec_->any(b_.CreateNot(mask)), part, whole);
        before = nullptr;
    }
    b_.SetInsertPoint(whole);
    Value* all = b_.CreateAlignedLoad(t, p, align);
    b_.CreateBr(join);
    b_.SetInsertPoint(part);
    Value* some = b_.CreateMaskedLoad(t, p, align, in_order(mask), llvm::Constant::getNullValue(t));
    Block* part_end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    auto* phi = b_.CreatePHI(t, 3);
    phi->addIncoming(all, whole);
    phi->addIncoming(some, part_end);
    if (before) phi->addIncoming(llvm::Constant::getNullValue(t), before);
    return {vec_->widen(in_order(phi), e.dtype), true};
}
Function::Got Function::gather(const Expr& e, Value* base) {
    llvm::SmallVector<llvm::Constant*, 16> steps;
    for (int q = 0; q < W_; q++) steps.push_back(b_.getInt64(uint64_t(q * e.at.k[kLane])));
    Value* index = llvm::ConstantVector::get(steps);
    for (const Term& t : e.at.terms) {
        if (!varies(t.expr, bit(kLane))) continue;
        Value* x = Lanes::of(as_i64(t.expr).v);
        index = b_.CreateAdd(index, t.k == 1 ? x : b_.CreateMul(x, vec_->splat(i64(t.k))));
    }
    Value* pointers = b_.CreateGEP(one_.memory_scalar(e.dtype), base, index);
    llvm::Type* t = vec_->memory(e.dtype);
    Value* mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), unsigned(W_)));
    if (e.guard >= 0) {
        mask = inside(e.guard, e.n);
        if (!mask->getType()->isVectorTy()) mask = vec_->splat(mask);
    }
    const llvm::Align align(uint64_t(size_of(e.dtype)));
    return {vec_->widen(b_.CreateMaskedGather(t, pointers, align, mask, llvm::Constant::getNullValue(t)), e.dtype), true};
}

void Function::store(const Store& s) {
    const int number = int(&s - k_.stores.data());
    Value* p = address(-1 - number, k_.loads.size() + size_t(number), s.dtype, s.at);
    const llvm::Align align(uint64_t(size_of(s.dtype)));
    if (!s.at.k[kLane] || W_ == 1) {
        const Got g = get(s.expr);
        b_.CreateAlignedStore(one_.shrink(g.v, s.dtype), p, align);
        return;
    }
    Value* lanes = vec_->shrink(vector(s.expr), s.dtype);
    if (s.at.k[kLane] == 1) {
        auto* written = b_.CreateAlignedStore(lanes, p, streaming_ ? llvm::Align(uint64_t(W_ * size_of(s.dtype))) : align);
        if (streaming_)
            written->setMetadata("nontemporal", llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
        return;
    }
    for (int q = 0; q < W_; q++) {  // strided: one element at a time
        Value* at = b_.CreateGEP(one_.memory_scalar(s.dtype), p, i64(q * s.at.k[kLane]));
        b_.CreateAlignedStore(b_.CreateExtractElement(lanes, uint64_t(q)), at, align);
    }
}

void Function::after_reductions() {
    for (const Store& s : k_.stores)
        if (!s.full) store(s);
    for (const Check& c : k_.checks)
        if (!c.full) get(c.expr);
}

// ---- what a pass needs ----
std::vector<int> Function::needed(const Work& w) const {
    std::vector<char> mark(k_.exprs.size());
    std::vector<int> work;
    auto want = [&](int id) {
        if (!mark[id]) mark[id] = 1, work.push_back(id);
    };
    for (const Reduction* r : w.reductions) want(r->input);
    for (int s : w.stores) want(k_.stores[s].expr);
    for (int check : w.checks) want(check);
    for (int keep : w.keeps) want(keep);
    while (!work.empty()) {
        const Expr& e = k_.exprs[work.back()];
        const bool done = e.kind == Expr::Reduced || kept_ready_.count(work.back());
        work.pop_back();
        if (done) continue;
        for (int a : e.args) want(a);
        for (const Term& t : e.at.terms) want(t.expr);
        if (e.guard >= 0) want(e.guard);
    }
    std::vector<int> list;
    for (size_t i = 0; i < mark.size(); i++)
        if (mark[i]) list.push_back(int(i));
    return list;
}
void Function::hoist(const Work& w, unsigned inner) {
    const std::vector<int> list = needed(w);
    for (int id : list)
        if (!varies(id, inner) && !varies(id, bit(kLane))) get(id);
    for (int id : list) {  // splats of what lane values are made of
        const Expr& e = k_.exprs[id];
        if (e.kind != Expr::Apply || !varies(id, bit(kLane)) || kept_ready_.count(id)) continue;
        for (int a : e.args)
            if (!varies(a, inner | bit(kLane))) vector(a);
    }
    for (int s : w.stores)
        if (k_.stores[s].at.k[kLane] && !varies(k_.stores[s].expr, inner | bit(kLane))) vector(k_.stores[s].expr);
    for (const Reduction* r : w.reductions)
        if (!varies(r->input, inner | bit(kLane))) vector(r->input);
    hoist_addresses(w, list, inner | bit(kLane));
}
void Function::hoist_addresses(const Work& w, const std::vector<int>& list, unsigned inner) {
    auto keep = [&](int id, size_t buffer, DType d, const Affine& at) {
        if (std::any_of(at.terms.begin(), at.terms.end(), [&](const Term& t) { return varies(t.expr, inner & ~bit(kLane)); })) return;
        Affine outer = at;
        for (int v = 0; v < kVars; v++)
            if (inner & bit(v)) outer.k[v] = 0;
        std::erase_if(outer.terms, [&](const Term& t) { return varies(t.expr, bit(kLane)); });  // those are added lane by lane
        scopes_.back().bases[id] = {b_.CreateGEP(one_.memory_scalar(d), buffers_[buffer], scalar_part(outer)), inner};
    };
    for (int id : list) {
        const Expr& e = k_.exprs[id];
        if (e.kind == Expr::Load && varies(id, inner)) keep(id, size_t(e.buffer), e.dtype, e.at);
    }
    for (int s : w.stores) keep(-1 - s, k_.loads.size() + size_t(s), k_.stores[s].dtype, k_.stores[s].at);
}

}  // namespace framejit
