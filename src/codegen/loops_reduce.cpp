// Kernels whose reduction is not one pass over a row of lanes: column (over the sequential variable) and split (long rows in chunks).
#include "src/codegen/function.h"

namespace framejit {
using llvm::Value;

// A unit is a row and a block of `unroll` vectors of lanes; every lane has its own accumulators.
void Function::column() {
    const int64_t lanes = k_.extent[kLane], block_lanes = int64_t(plan_.unroll) * W_;
    const int64_t blocks = (lanes + block_lanes - 1) / block_lanes;
    Carry none;
    loop_if(f_->getArg(1), f_->getArg(2), 1, none, [&](Value* unit, Carry&) {
        Value* base = b_.CreateMul(blocks == 1 ? i64(0) : b_.CreateURem(unit, i64(blocks)), i64(block_lanes));
        if (lanes % block_lanes) base = smaller(base, i64(lanes - block_lanes));
        split_row(blocks == 1 ? unit : b_.CreateUDiv(unit, i64(blocks)));
        column_unit(base);
    });
}

// Over the sequential variable, in blocks whose accumulators are merged.
void Function::column_loop(const Work& w, Carry& acc, const std::function<void(Value*, Carry&)>& element) {
    const int64_t extent = k_.extent[kSeq], block = reduction_block(extent);
    if (w.reductions.empty() || extent == block) return loop(i64(0), i64(extent), 1, acc, element);
    loop(i64(0), i64(extent), block, acc, [&](Value* first, Carry& total) {
        Carry some = initial(w, plan_.unroll);
        loop(first, smaller(b_.CreateAdd(first, i64(block)), i64(extent)), 1, some, element);
        size_t at = 0;
        for (int u = 0; u < plan_.unroll; u++)
            for (const Reduction* r : w.reductions) {
                const Reduce& rd = *r->node->op->as<Reduce>();
                std::vector<Val> s(size_t(rd.accs)), t(size_t(rd.accs));
                rd.init(one_, reg(r->node->in[0]->dtype), s.data());
                t = s;
                for (size_t q = 0; q < s.size(); q++) s[q].p = total[at + q], t[q].p = some[at + q];
                rd.merge(*vec_, s.data(), t.data());
                for (size_t q = 0; q < s.size(); q++) total[at + q] = Lanes::of(s[q]);
                at += s.size();
            }
    });
}

void Function::column_unit(Value* base) {
    // What each of the block's vectors knows: values that depend on its lanes, but not on the sequential variable.
    std::vector<Scope> own(size_t(plan_.unroll));
    auto at = [&](int u) { return u ? b_.CreateAdd(base, i64(u * W_), "", true, true) : base; };
    auto inside = [&](int u, const std::function<void()>& f) {
        var_[kLane] = at(u);
        scopes_.push_back(std::move(own[size_t(u)]));
        f();
        own[size_t(u)] = std::move(scopes_.back());
        scopes_.pop_back();
    };
    for (int stage = 0; stage < k_.stages; stage++) {
        const Work w = work_of(stage);
        if (w.nothing()) continue;
        hoist(w, bit(kSeq));
        const std::vector<int> list = needed(w);
        for (int u = 0; u < plan_.unroll; u++)
            inside(u, [&] {
                for (int id : list)
                    if (varies(id, bit(kLane)) && !varies(id, bit(kSeq))) get(id);
            });
        const size_t per = width_of(w);
        Carry acc = initial(w, plan_.unroll);
        auto element = [&](Value* seq, Carry& c) {
            var_[kSeq] = seq;
            for (int id : list)
                if (varies(id, bit(kSeq)) && !varies(id, bit(kLane))) get(id);
            hoist_addresses(w, list, bit(kLane));
            for (int u = 0; u < plan_.unroll; u++) {
                const Scope before = own[size_t(u)];
                inside(u, [&] { pass(w, c, size_t(u) * per, at(u), nullptr); });
                own[size_t(u)] = before;  // nothing made in the loop survives it
            }
        };
        column_loop(w, acc, element);
        var_[kSeq] = nullptr;
        for (int u = 0; u < plan_.unroll; u++)
            inside(u, [&] {
                size_t first = size_t(u) * per;
                for (const Reduction* r : w.reductions) {
                    const Reduce& rd = *r->node->op->as<Reduce>();
                    std::vector<Val> s(size_t(rd.accs));
                    rd.init(one_, reg(r->node->in[0]->dtype), s.data());
                    for (Val& v : s) v.p = acc[first++];
                    scopes_.back().values[r->expr] = {result(*r, s.data()), true};
                }
            });
    }
    for (int u = 0; u < plan_.unroll; u++) inside(u, [&] { after_reductions(); });
    var_[kLane] = nullptr;
}

// Chunk `unit % chunks` of row `unit / chunks` leaves its accumulators in the last buffer.
void Function::split(const std::string& name) {
    const int64_t lanes = k_.extent[kLane], chunks = (lanes + kChunk - 1) / kChunk;
    const Work w = work_of(0);
    const int64_t per = int64_t(width_of(w)), step = int64_t(plan_.unroll) * W_;
    Value* partials = buffers_.back();
    Carry none;
    loop_if(f_->getArg(1), f_->getArg(2), 1, none, [&](Value* unit, Carry&) {
        split_row(b_.CreateUDiv(unit, i64(chunks)));
        Value* from = b_.CreateMul(b_.CreateURem(unit, i64(chunks)), i64(kChunk));
        Value* to = smaller(b_.CreateAdd(from, i64(kChunk)), i64(lanes));
        hoist(w, bit(kLane));
        Carry acc = initial(w, plan_.unroll);
        Value* whole = b_.CreateAdd(from, b_.CreateAnd(b_.CreateSub(to, from), i64(-step)));
        loop_if(from, whole, step, acc, [&](Value* i, Carry& c) {
            for (int u = 0; u < plan_.unroll; u++)
                pass(w, c, size_t(u * per), u ? b_.CreateAdd(i, i64(u * W_), "", true, true) : i, nullptr);
        });
        if (lanes % step) {  // the last chunk is at least one vector long or overlaps the chunk before it
            Carry head(acc.begin(), acc.begin() + per);
            loop_if(whole, to, W_, head, [&](Value* i, Carry& c) {
                Value* at = smaller(i, b_.CreateSub(to, i64(W_)));
                llvm::SmallVector<llvm::Constant*, 16> steps;
                for (int q = 0; q < W_; q++) steps.push_back(b_.getInt32(uint32_t(q)));
                Value* repeated = b_.CreateTrunc(b_.CreateSub(i, at), b_.getInt32Ty());
                pass(w, c, 0, at, b_.CreateICmpSGE(llvm::ConstantVector::get(steps), vec_->splat(repeated)));
            });
            std::copy(head.begin(), head.end(), acc.begin());
        }
        int64_t slot = 0;
        for (const auto& accumulators : merge_lanes(w, acc, plan_.unroll))
            for (const Val& v : accumulators) {
                Value* at = b_.CreateAdd(b_.CreateMul(unit, i64(per)), i64(slot++));
                b_.CreateAlignedStore(Lanes::of(v), b_.CreateGEP(b_.getInt64Ty(), partials, at), llvm::Align(8));
            }
    });
    finish();
    split_finish(name + "_finish");
}

// Merges the chunks of every row in order, in blocks of 128: one long chain of float additions loses bits. Then the row-level stores.
void Function::split_finish(const std::string& name) {
    start(name);
    const int64_t chunks = (k_.extent[kLane] + kChunk - 1) / kChunk, per = partial_slots(k_);
    Value* partials = buffers_.back();
    std::vector<Val> types;
    for (const Reduction& r : k_.reductions) {
        const size_t at = types.size();
        types.resize(at + size_t(r.node->op->as<Reduce>()->accs));
        r.node->op->as<Reduce>()->init(one_, reg(r.node->in[0]->dtype), &types[at]);
    }
    auto merge = [&](Carry& into, const std::function<Value*(size_t)>& other) {
        size_t at = 0;
        for (const Reduction& r : k_.reductions) {
            const Reduce& rd = *r.node->op->as<Reduce>();
            std::vector<Val> s, t;
            for (size_t q = at; q < at + size_t(rd.accs); q++) {
                s.push_back(Lanes::val(into[q], types[q].ty));
                t.push_back(Lanes::val(other(q), types[q].ty));
            }
            rd.merge(one_, s.data(), t.data());
            for (size_t q = 0; q < s.size(); q++) into[at + q] = Lanes::of(s[q]);
            at += s.size();
        }
    };
    Carry none;
    loop(i64(0), i64(k_.rows_total()), 1, none, [&](Value* row, Carry&) {
        split_row(row);
        Carry all;
        for (const Val& v : types) all.push_back(Lanes::of(v));
        const Carry zero = all;
        constexpr int64_t kBlock = 128;
        loop(i64(0), i64(chunks), kBlock, all, [&](Value* first, Carry& total) {
            Carry some = zero;
            loop(first, smaller(b_.CreateAdd(first, i64(kBlock)), i64(chunks)), 1, some, [&](Value* chunk, Carry& c) {
                Value* base = b_.CreateMul(b_.CreateAdd(b_.CreateMul(row, i64(chunks)), chunk), i64(per));
                merge(c, [&](size_t q) {
                    Value* p = b_.CreateGEP(b_.getInt64Ty(), partials, b_.CreateAdd(base, i64(int64_t(q))));
                    return b_.CreateAlignedLoad(one_.scalar(types[q].ty), p, llvm::Align(8));
                });
            });
            merge(total, [&](size_t q) { return some[q]; });
        });
        size_t at = 0;
        for (const Reduction& r : k_.reductions) {
            std::vector<Val> s;
            for (int q = 0; q < r.node->op->as<Reduce>()->accs; q++, at++) s.push_back(Lanes::val(all[at], types[at].ty));
            scopes_.back().values[r.expr] = {result(r, s.data()), false};
        }
        after_reductions();
    });
    finish();
}

}  // namespace framejit
