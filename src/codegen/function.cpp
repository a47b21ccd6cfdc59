#include "src/codegen/function.h"

namespace framejit {
using llvm::Value;

namespace {
constexpr int kLongBody = 80;       // ops: above, no copy of the body is worth its compile time
constexpr double kChain = 0.1;      // ns along one dependent path: above, one vector in flight leaves the ports idle
constexpr double kDeepChain = 0.5;  // and two of them as well
constexpr int kLongRow = 16;        // vectors: the last one of a row overlaps the one before it
int64_t scratch_row(const Kernel& k, int expr) { return (k.extent[kLane] * size_of(k.exprs[expr].dtype) + 127) / 64 * 64; }

int largest_power_within(int64_t n) {
    int w = 1;
    while (2 * w <= n) w *= 2;
    return w;
}
// A register's worth of what is moved, where little is computed.
int of_narrow_elements(const Kernel& k) {
    int64_t widest = 1;
    for (const Expr& e : k.exprs)
        if (e.kind == Expr::Load) widest = std::max<int64_t>(widest, size_of(e.dtype));
    for (const Store& s : k.stores) widest = std::max<int64_t>(widest, size_of(s.dtype));
    return int(std::max<int64_t>(1, 4 / widest));
}

// How many times the lanes of an f32 register each operation of a pointwise kernel works on.
int interleaved(const Kernel& k, int lanes, int ops) {
    const bool long_rows = k.kind == Kernel::Rows && k.red < 0 && k.extent[kLane] >= kLongRow * lanes;
    if ((k.kind != Kernel::Linear && !long_rows) || ops >= kLongBody) return 1;
    if (k.depth <= kChain) return of_narrow_elements(k);
    const bool wide = std::any_of(k.exprs.begin(), k.exprs.end(), [](const Expr& e) { return e.dtype == DType::f64; });
    return k.kind == Kernel::Linear && k.depth > kDeepChain && !wide ? 4 : 2;  // f64 takes two registers anyway
}
}  // namespace

VectorPlan vector_plan(const Kernel& k, const Features& features) {
    VectorPlan p;
    int ops = 0;
    double heaviest = 0;
    for (const Expr& e : k.exprs)
        if (e.kind == Expr::Apply) {
            ops++;
            heaviest = std::max(heaviest, e.node->op->as<Pointwise>()->ns);
        }
    p.lanes = features.avx512 ? 16 : 8;
    p.lanes *= interleaved(k, p.lanes, ops);
    const int64_t lanes = std::max<int64_t>(1, k.extent[kLane]);
    p.lanes = std::min(p.lanes, largest_power_within(lanes));
    if (k.in_place && k.kind != Kernel::Linear && k.kind != Kernel::Rows)  // these have no single-element tail
        while (lanes % p.lanes) p.lanes /= 2;
    p.unroll = k.reductions.empty() ? 1 : ops >= kLongBody ? 1 : heaviest > 0.15 ? 2 : 4;
    if (k.kind == Kernel::Column && ops < kLongBody) p.unroll = 4;  // wide pieces of every row, whatever they cost
    while (p.unroll > 1 && lanes < int64_t(p.unroll) * p.lanes) p.unroll /= 2;
    if (k.in_place && k.kind == Kernel::Column)
        while (lanes % (int64_t(p.unroll) * p.lanes)) p.unroll /= 2;
    return p;
}

int64_t units_of(const Kernel& k, const VectorPlan& p) {
    switch (k.kind) {
    case Kernel::Linear: return k.extent[kLane];
    case Kernel::Rows:
    case Kernel::Blocked: return k.rows_total();
    case Kernel::Column: return k.rows_total() * ((k.extent[kLane] + p.lanes * p.unroll - 1) / (p.lanes * p.unroll));
    case Kernel::Split: return k.rows_total() * ((k.extent[kLane] + kChunk - 1) / kChunk);
    }
    return 0;
}
int64_t scratch_bytes(const Kernel& k) {
    int64_t bytes = 0;
    for (int keep : k.keeps) bytes += scratch_row(k, keep);
    return bytes;
}
int64_t partial_slots(const Kernel& k) {
    int64_t n = 0;
    for (const Reduction& r : k.reductions) n += r.node->op->as<Reduce>()->accs;
    return n;
}

Function::Function(llvm::Module& m, const Kernel& k, const Features& features, ConstantTable& table)
    : m_(m), k_(k), features_(features), plan_(vector_plan(k, features)), b_(m.getContext()), wide_(b_, plan_.lanes, features, constants_),
      one_(b_, 1, features, constants_), vec_(&wide_), W_(plan_.lanes) {
    constants_.table = &table;
}

void Function::emit(const std::string& name) {
    start(name);
    switch (k_.kind) {
    case Kernel::Linear: linear(); break;
    case Kernel::Rows: rows(); break;
    case Kernel::Blocked: blocked(); break;
    case Kernel::Column: column(); break;
    case Kernel::Split: split(name); return;
    }
    finish();
}

void Function::start(const std::string& name) {
    llvm::Type *p = b_.getPtrTy(), *i = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {p, i, i, p}, false);
    f_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, m_);
    f_->addFnAttr(llvm::Attribute::NoUnwind);
    f_->addFnAttr("prefer-vector-width", features_.avx512 ? "512" : "256");
    constants_.made.clear();
    wide_.forget();
    one_.forget();
    constants_.entry = block("entry");
    b_.SetInsertPoint(constants_.entry);
    failed_ = nullptr;
    for (const Expr& e : k_.exprs)
        if (e.kind == Expr::Checked && !failed_) {
            failed_ = b_.CreateAlloca(b_.getInt32Ty());
            b_.CreateStore(b_.getInt32(0), failed_);
        }
    buffers_.clear();
    const size_t count = k_.loads.size() + k_.stores.size() + (k_.kind == Kernel::Split ? 1 : 0);
    for (size_t i = 0; i < count; i++) buffers_.push_back(b_.CreateLoad(p, b_.CreateConstGEP1_64(p, f_->getArg(0), i)));
    var_.fill(nullptr);
    scopes_.assign(1, {});
    kept_.clear();
    kept_ready_.clear();
    int64_t offset = 0;
    for (int keep : k_.keeps) {
        kept_[keep] = b_.CreateConstGEP1_64(b_.getInt8Ty(), f_->getArg(3), uint64_t(offset));
        offset += scratch_row(k_, keep);
    }
    Block* body = block("body");
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
}
void Function::finish() { b_.CreateRet(failed_ ? (Value*)b_.CreateLoad(b_.getInt32Ty(), failed_) : b_.getInt32(0)); }
Function::Block* Function::block(const char* name) { return Block::Create(m_.getContext(), name, f_); }

// from < to, and the loop runs over from, from + step, .. while below `to`. Carried values pass through phis; what the body makes is
// forgotten.
void Function::loop(Value* from, Value* to, int64_t step, Carry& carry, const std::function<void(Value*, Carry&)>& body) {
    Block *before = b_.GetInsertBlock(), *top = block("loop"), *done = block("done");
    b_.CreateBr(top);
    b_.SetInsertPoint(top);
    auto* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(from, before);
    std::vector<llvm::PHINode*> phis;
    Carry current;
    for (Value* v : carry) {
        phis.push_back(b_.CreatePHI(v->getType(), 2));
        phis.back()->addIncoming(v, before);
        current.push_back(phis.back());
    }
    scopes_.emplace_back();
    body(i, current);
    scopes_.pop_back();
    Value* next = b_.CreateAdd(i, i64(step), "", true, true);
    Block* end = b_.GetInsertBlock();
    i->addIncoming(next, end);
    for (size_t q = 0; q < phis.size(); q++) phis[q]->addIncoming(current[q], end);
    b_.CreateCondBr(b_.CreateICmpSLT(next, to), top, done);
    b_.SetInsertPoint(done);
    carry = current;
}
void Function::loop_if(Value* from, Value* to, int64_t step, Carry& carry, const std::function<void(Value*, Carry&)>& body) {
    Block *before = b_.GetInsertBlock(), *in = block("some"), *join = block("none");
    b_.CreateCondBr(b_.CreateICmpSLT(from, to), in, join);
    b_.SetInsertPoint(in);
    const Carry first = carry;
    loop(from, to, step, carry, body);
    Block* end = b_.GetInsertBlock();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
    for (size_t q = 0; q < carry.size(); q++) {
        auto* phi = b_.CreatePHI(carry[q]->getType(), 2);
        phi->addIncoming(first[q], before);
        phi->addIncoming(carry[q], end);
        carry[q] = phi;
    }
}

void Function::split_row(Value* row) {
    for (size_t x = k_.rows.size(); x-- > 0;) {
        const int v = k_.rows[x];
        if (x == 0) {
            var_[v] = row;
            break;
        }
        Value* extent = i64(k_.extent[v]);
        var_[v] = b_.CreateURem(row, extent);
        row = b_.CreateUDiv(row, extent);
    }
}

Function::Work Function::work_of(int stage) const {
    Work w;
    for (const Reduction& r : k_.reductions)
        if (r.stage == stage) w.reductions.push_back(&r);
    for (size_t s = 0; s < k_.stores.size(); s++)
        if (k_.stores[s].full && k_.stores[s].stage == stage) w.stores.push_back(int(s));
    for (const Check& c : k_.checks)
        if (c.full && c.stage == stage) w.checks.push_back(c.expr);
    const std::vector<int> uses = needed(w);
    for (int keep : k_.keeps)
        if (!kept_ready_.count(keep) && std::find(uses.begin(), uses.end(), keep) != uses.end()) w.keeps.push_back(keep);
    return w;
}

// One vector at lane `at`: reductions take their step, then values are kept and stored.
void Function::pass(const Work& w, Carry& acc, size_t first, Value* at, Value* mask) {
    var_[kLane] = at;
    scopes_.emplace_back();
    Value* index = k_.red == kSeq ? var_[kSeq] : at;
    step(w, acc, first, index, mask);
    for (int keep : w.keeps) {
        const DType d = k_.exprs[keep].dtype;
        Value* p = b_.CreateGEP(one_.memory_scalar(d), kept_.at(keep), at);
        b_.CreateAlignedStore(vec_->shrink(vector(keep), d), p, llvm::Align(uint64_t(size_of(d))));
    }
    if (k_.in_place)  // a buffer may be another's: all is read before any is written
        for (int s : w.stores) get(k_.stores[s].expr);
    for (int s : w.stores) store(k_.stores[s]);
    for (int id : w.checks) get(id);
    scopes_.pop_back();
}

}  // namespace framejit
