// Kernels without a sequential variable: linear, rows, blocked.
#include <llvm/IR/IntrinsicsX86.h>

#include "src/codegen/function.h"

namespace framejit {
using llvm::Value;

namespace {
// Non-temporal stores are right for memory that is mapped already. Outputs up to 32 MB come from a heap that stays mapped, larger ones are
// fresh pages, where such stores cost a third; below 16 MB the next reader wants the values in the cache.
constexpr int64_t kStreamingFrom = int64_t(16) << 20, kStreamingTo = int64_t(32) << 20;
constexpr int64_t kBlockRows = 64;
}  // namespace

// Emits with single elements instead of vectors while it lives.
struct Function::WithWidth {
    Function& f;
    Lanes* const vec = f.vec_;
    const int width = f.W_;
    explicit WithWidth(Function& g) : f(g) {
        f.vec_ = &f.one_;
        f.W_ = 1;
    }
    ~WithWidth() {
        f.vec_ = vec;
        f.W_ = width;
    }
};

bool Function::streaming_stores() const {
    if (!features_.avx512 || k_.in_place || (k_.kind == Kernel::Linear ? k_.extent[kLane] % 64 : k_.extent[kLane] % W_)) return false;
    for (const Store& s : k_.stores) {
        if (!s.full) continue;
        const int64_t bytes = k_.points() * size_of(s.dtype);
        const bool aligned = k_.kind == Kernel::Linear || k_.extent[kLane] * size_of(s.dtype) % 64 == 0;
        if (bytes >= kStreamingFrom && bytes <= kStreamingTo && aligned && s.at.k[kLane] == 1) return true;
    }
    return false;
}

// One body over [begin, end); the last vector overlaps the one before it.
void Function::linear() {
    Value *begin = f_->getArg(1), *end = f_->getArg(2);
    Work w = work_of(0);
    hoist(w, bit(kLane));
    Block *some = block("some"), *out = block("out");
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), some, out);
    b_.SetInsertPoint(some);
    Carry none;
    if (k_.in_place && k_.extent[kLane] % W_) {
        Value* whole = b_.CreateAdd(begin, b_.CreateAnd(b_.CreateSub(end, begin), i64(-W_)));
        loop_if(begin, whole, W_, none, [&](Value* i, Carry& c) { pass(w, c, 0, i, nullptr); });
        WithWidth single(*this);
        loop_if(whole, end, 1, none, [&](Value* i, Carry& c) { pass(w, c, 0, i, nullptr); });
    } else {
        streaming_ = streaming_stores();
        Value* last = b_.CreateSub(end, i64(W_));
        loop(begin, end, W_, none, [&](Value* i, Carry& c) { pass(w, c, 0, smaller(i, last), nullptr); });
        if (streaming_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
        streaming_ = false;
    }
    b_.CreateBr(out);
    b_.SetInsertPoint(out);
}

void Function::rows() {
    const bool streaming = streaming_stores();
    Carry none;
    loop_if(f_->getArg(1), f_->getArg(2), 1, none, [&](Value* row, Carry&) {
        split_row(row);
        kept_ready_.clear();
        for (int stage = 0; stage < k_.stages; stage++) row_stage(stage, streaming);
        after_reductions();
    });
    if (streaming) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

void Function::row_stage(int stage, bool streaming) {
    const Work w = work_of(stage);
    if (w.nothing()) return;
    stage_ = stage;
    hoist(w, bit(kLane));
    row_lanes(w, w.reductions.empty() ? 1 : plan_.unroll, streaming);
    for (int keep : w.keeps) kept_ready_.insert(keep);
}

void Function::row_lanes(const Work& w, int unroll, bool streaming) {
    const int64_t lanes = k_.extent[kLane], step = int64_t(unroll) * W_, whole = lanes / step * step;
    const size_t per = width_of(w);
    Carry acc = initial(w, unroll);
    if (whole) {
        streaming_ = streaming && !w.stores.empty();
        loop(i64(0), i64(whole), step, acc, [&](Value* i, Carry& c) {
            for (int u = 0; u < unroll; u++) pass(w, c, size_t(u) * per, u ? b_.CreateAdd(i, i64(u * W_), "", true, true) : i, nullptr);
            var_[kLane] = i;
            row_prefetch(stage_, streaming);
        });
        streaming_ = false;
    }
    if (whole < lanes) {
        Carry head(acc.begin(), acc.begin() + int64_t(per));
        const int64_t rest = (lanes - whole) / W_ * W_;
        const bool ragged = whole + rest < lanes;
        if (k_.in_place && !w.stores.empty() && ragged) {
            if (rest) loop(i64(whole), i64(whole + rest), W_, head, [&](Value* i, Carry& c) { pass(w, c, 0, i, nullptr); });
            if (!w.reductions.empty()) throw GraphError("a kernel reduces and overwrites in one stage");
            WithWidth single(*this);
            loop(i64(whole + rest), i64(lanes), 1, head, [&](Value* i, Carry& c) { pass(w, c, 0, i, nullptr); });
        } else {
            loop(i64(whole), i64(lanes), W_, head, [&](Value* i, Carry& c) {
                if (!ragged) return pass(w, c, 0, i, nullptr);
                Value* at = smaller(i, i64(lanes - W_));
                Value* fresh = nullptr;  // lanes that no vector before has seen
                if (!w.reductions.empty()) {
                    llvm::SmallVector<llvm::Constant*, 16> steps;
                    for (int q = 0; q < W_; q++) steps.push_back(b_.getInt32(uint32_t(q)));
                    Value* repeated = b_.CreateTrunc(b_.CreateSub(i, at), b_.getInt32Ty());
                    fresh = W_ == 1 ? nullptr : b_.CreateICmpSGE(llvm::ConstantVector::get(steps), vec_->splat(repeated));
                }
                pass(w, c, 0, at, fresh);
            });
        }
        std::copy(head.begin(), head.end(), acc.begin());
    }
    var_[kLane] = nullptr;
    const auto merged = merge_lanes(w, acc, unroll);
    for (size_t r = 0; r < w.reductions.size(); r++)
        scopes_.back().values[w.reductions[r]->expr] = {result(*w.reductions[r], merged[r].data()), false};
}

// A row kernel alternates between waiting for memory and computing: while it computes on this row, fetch what later passes will miss on.
// The next row of every operand in the second and in the last stage; this row's outputs in the last but one.
void Function::row_prefetch(int stage, bool streaming) {
    if (k_.stages < 2 || k_.rows.empty()) return;
    auto fetch = [&](DType d, Value* buffer, const Affine& at, bool write) {
        Value* p = b_.CreateGEP(one_.memory_scalar(d), buffer, scalar_part(at));
        b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, {p, b_.getInt32(write), b_.getInt32(write ? 3 : 2), b_.getInt32(1)});
    };
    const bool inputs = stage == k_.stages - 1 || (k_.stages > 2 && stage == 1);
    if (inputs) {
        std::unordered_set<int> seen;
        for (const Expr& e : k_.exprs) {
            if (e.kind != Expr::Load || e.guard >= 0 || !e.at.terms.empty() || e.at.k[kLane] != 1) continue;
            const int64_t next = e.at.k[k_.rows.back()];
            if (next <= 0 || !seen.insert(e.buffer).second) continue;
            Affine at = e.at;
            at.c += next;
            fetch(e.dtype, buffers_[e.buffer], at, false);
        }
    }
    if (stage == k_.stages - 2 && !streaming)
        for (size_t s = 0; s < k_.stores.size(); s++)
            if (k_.stores[s].full && k_.stores[s].at.k[kLane] == 1)
                fetch(k_.stores[s].dtype, buffers_[k_.loads.size() + s], k_.stores[s].at, true);
}

// Pointwise with an operand that is strided along the lanes: 64 rows at a time, rows innermost, so that the cache lines that a gather
// touches serve the next rows.
void Function::blocked() {
    const Work w = work_of(0);
    const int64_t lanes = k_.extent[kLane];
    Carry none;
    loop_if(f_->getArg(1), f_->getArg(2), kBlockRows, none, [&](Value* first, Carry&) {
        Value* end = smaller(b_.CreateAdd(first, i64(kBlockRows)), f_->getArg(2));
        Carry inner;
        loop(i64(0), i64(lanes), W_, inner, [&](Value* i, Carry&) {
            Value* at = lanes % W_ ? smaller(i, i64(lanes - W_)) : i;
            Carry rows;
            loop(first, end, 1, rows, [&](Value* row, Carry& c) {
                split_row(row);
                pass(w, c, 0, at, nullptr);
            });
        });
    });
}

}  // namespace framejit
