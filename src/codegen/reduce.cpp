// Reductions: accumulators are tuples per reduction, and `unroll` independent sets of them. Order in a Carry: set, reduction, tuple
// element.
#include "src/codegen/function.h"

namespace framejit {
using llvm::Value;

namespace {
constexpr int kMostAccs = 8;
const Reduce& body(const Reduction& r) { return *r.node->op->as<Reduce>(); }
}  // namespace

size_t Function::width_of(const Work& w) const {
    size_t n = 0;
    for (const Reduction* r : w.reductions) n += size_t(body(*r).accs);
    return n;
}

Function::Carry Function::initial(const Work& w, int unroll) {
    Carry acc;
    for (int u = 0; u < unroll; u++)
        for (const Reduction* r : w.reductions) {
            Val s[kMostAccs];
            body(*r).init(*vec_, reg(r->node->in[0]->dtype), s);
            for (int q = 0; q < body(*r).accs; q++) acc.push_back(Lanes::of(s[q]));
        }
    return acc;
}

// The types of a reduction's accumulators, in one lane.
static void types(Lanes& one, const Reduction& r, Val* s) { body(r).init(one, reg(r.node->in[0]->dtype), s); }

// `index`: along the reduced variable. Where the mask is off, the accumulators stay.
void Function::step(const Work& w, Carry& acc, size_t first, Value* index, Value* mask) {
    size_t at = first;
    for (const Reduction* r : w.reductions) {
        const Reduce& rd = body(*r);
        const Val x = vector(r->input);
        Val s[kMostAccs];
        types(one_, *r, s);
        for (int q = 0; q < rd.accs; q++) s[q].p = acc[at + size_t(q)];
        Val position = Lanes::val(nullptr, Ty::i64);
        if (rd.indexed) {
            Value* i = vec_->splat(index);
            if (k_.red == kLane && W_ > 1) {
                llvm::SmallVector<llvm::Constant*, 16> lanes;
                for (int q = 0; q < W_; q++) lanes.push_back(b_.getInt64(uint64_t(q)));
                i = b_.CreateAdd(i, llvm::ConstantVector::get(lanes));
            }
            position = Lanes::val(i, Ty::i64);
        }
        rd.step(*vec_, s, x, position);
        for (int q = 0; q < rd.accs; q++) {
            Value*& a = acc[at + size_t(q)];
            a = mask ? b_.CreateSelect(mask, Lanes::of(s[q]), a) : Lanes::of(s[q]);
        }
        at += size_t(rd.accs);
    }
}

// All sets and all lanes into one scalar per accumulator, in a fixed order: sets, then halves of the vector.
std::vector<std::vector<Val>> Function::merge_lanes(const Work& w, const Carry& acc, int unroll) {
    std::vector<std::vector<Val>> merged;
    const size_t per = width_of(w);
    size_t at = 0;
    for (const Reduction* r : w.reductions) {
        const Reduce& rd = body(*r);
        Val s[kMostAccs], t[kMostAccs];
        types(one_, *r, s);
        std::copy(s, s + rd.accs, t);
        for (int q = 0; q < rd.accs; q++) s[q].p = acc[at + size_t(q)];
        for (int u = 1; u < unroll; u++) {
            for (int q = 0; q < rd.accs; q++) t[q].p = acc[size_t(u) * per + at + size_t(q)];
            rd.merge(*vec_, s, t);
        }
        for (int half = W_ / 2; half >= 1; half /= 2) {
            llvm::SmallVector<int, 64> upper;
            for (int q = 0; q < W_; q++) upper.push_back(q < half ? q + half : -1);
            for (int q = 0; q < rd.accs; q++) t[q].p = b_.CreateShuffleVector(Lanes::of(s[q]), upper);
            rd.merge(*vec_, s, t);
        }
        std::vector<Val> scalars;
        for (int q = 0; q < rd.accs; q++)
            scalars.push_back(Lanes::val(W_ == 1 ? Lanes::of(s[q]) : b_.CreateExtractElement(Lanes::of(s[q]), uint64_t(0)), s[q].ty));
        merged.push_back(std::move(scalars));
        at += size_t(rd.accs);
    }
    return merged;
}

Val Function::result(const Reduction& r, const Val* acc) {
    Lanes& l = k_.red == kSeq ? *vec_ : one_;
    return l.narrow(body(r).result(l, acc, *r.node), r.node->dtype);
}

}  // namespace framejit
