// One kernel as one LLVM function (two for a Split kernel): evaluation of its expressions, and the loops around them.
//
// Values are made on demand, where the builder stands, and remembered per scope: leaving a loop forgets what was made inside. Before a loop
// everything that does not depend on its variable is made by `hoist`: nobody moves code later.
// Lane loops have no masked tails. The last vector overlaps its neighbour (values are stored twice, reductions ignore the repeated lanes);
// only kernels that work in place, where computing twice would be wrong, finish with single elements.
#pragma once
#include <unordered_set>

#include "src/codegen/lanes.h"
#include "src/schedule/kernel.h"

namespace framejit {

struct VectorPlan {  // what the target and the kernel's shape suggest
    int lanes = 8;
    int unroll = 4;  // accumulators per reduction; vectors per block of a column kernel
};
VectorPlan vector_plan(const Kernel&, const Features&);
int64_t units_of(const Kernel&, const VectorPlan&);  // KernelStep::units
int64_t scratch_bytes(const Kernel&);
int64_t partial_slots(const Kernel&);  // accumulators per chunk of a Split kernel, 8 bytes each

class Function {
public:
    Function(llvm::Module&, const Kernel&, const Features&, ConstantTable&);
    void emit(const std::string& name);  // and name_finish for a Split kernel

private:
    using Value = llvm::Value;
    using Block = llvm::BasicBlock;
    using Carry = std::vector<Value*>;
    struct Got {
        Val v;
        bool vec;
    };
    struct Base {  // an address without the part that varies with `inner`
        Value* pointer;
        unsigned inner;
    };
    struct Scope {
        std::unordered_map<int, Got> values;
        std::unordered_map<int, Val> splats;
        std::unordered_map<int, Base> bases;  // of load expressions, and of store s under -1 - s
    };
    struct Work {  // what one pass over the lanes (or kSeq) makes
        std::vector<const Reduction*> reductions;
        std::vector<int> stores;  // positions in Kernel::stores
        std::vector<int> checks;  // expressions
        std::vector<int> keeps;   // expressions
        bool nothing() const { return reductions.empty() && stores.empty() && checks.empty(); }
    };
    struct WithWidth;  // switches to another vector width for a while

    // function.cpp: the frame of a function and its loops
    void start(const std::string& name);
    void finish();
    Block* block(const char* name);
    Value* i64(int64_t v) { return b_.getInt64(uint64_t(v)); }
    Value* smaller(Value* a, Value* b) { return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b); }
    void loop(Value* from, Value* to, int64_t step, Carry&, const std::function<void(Value* i, Carry&)>& body);  // runs at least once
    void loop_if(Value* from, Value* to, int64_t step, Carry&, const std::function<void(Value* i, Carry&)>& body);
    void split_row(Value* row);  // sets the row variables
    // evaluate.cpp
    Got get(int expr);
    Got make(int expr);
    Got make_apply(const Expr&);
    Got make_integer(const Expr&);
    Got make_div(const Expr&);
    Got make_checked(const Expr&);
    Got make_iota(const Expr&);
    Got make_folded(const Expr&);
    Val vector(int expr);  // in all lanes
    Got load(int id, const Expr&);
    Got load_lanes(const Expr&, Value* address);
    Value* reversed(Value* lanes);
    Got gather(const Expr&, Value* base);
    Got integer(const Affine&);         // as an i64
    Value* scalar_part(const Affine&);  // without the lane and without vector terms
    Got as_i64(int expr);
    bool per_lane(const Affine&) const;
    bool varies(int expr, unsigned vars) const { return k_.exprs[expr].vars & vars; }
    Value* inside(int expr, int64_t n);  // mask: 0 <= value < n
    void store(const Store&);
    void after_reductions();  // stores and checks that do not vary with the reduced variable
    void store_lanes(const Store&, Value* offset, Value* lanes);
    std::vector<int> needed(const Work&) const;  // expressions that must be evaluated, operands first
    void hoist(const Work&, unsigned inner);     // what does not depend on the inner variables
    void hoist_addresses(const Work&, const std::vector<int>& needed, unsigned inner);
    Value* address(int id, size_t buffer, DType, const Affine&);  // of the element at lane 0
    // reduce.cpp
    Carry initial(const Work&, int unroll);
    size_t width_of(const Work&) const;  // accumulators per vector
    void step(const Work&, Carry&, size_t first, Value* index, Value* mask);
    std::vector<std::vector<Val>> merge_lanes(const Work&, const Carry&, int unroll);
    Val result(const Reduction&, const Val* acc);
    // loops_*.cpp
    void linear();
    void rows();
    void row_stage(int stage, bool streaming);
    void row_lanes(const Work&, int unroll, bool streaming);
    void row_prefetch(int stage, bool streaming);
    void blocked();
    void column();
    void column_loop(const Work&, Carry&, const std::function<void(Value* seq, Carry&)>& element);
    void column_unit(Value* base);
    void split(const std::string& name);
    void split_finish(const std::string& name);
    Work work_of(int stage) const;
    void pass(const Work&, Carry&, size_t first, Value* at, Value* mask);  // one vector
    bool streaming_stores() const;

    llvm::Module& m_;
    const Kernel& k_;
    Features features_;
    VectorPlan plan_;
    llvm::IRBuilder<> b_;
    EntryConstants constants_;
    Lanes wide_, one_;
    Lanes* vec_;  // wide_, or one_ while single elements are done
    int W_;
    llvm::Function* f_ = nullptr;
    Value* failed_ = nullptr;  // i32 on the stack
    std::vector<Value*> buffers_;
    std::array<Value*, kVars> var_{};
    std::vector<Scope> scopes_;
    std::map<int, Value*> kept_;  // expression -> scratch row
    std::unordered_set<int> kept_ready_;
    int stage_ = 0;
    bool streaming_ = false;
};

}  // namespace framejit
