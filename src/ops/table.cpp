// The list of all ops, from the words in ops.def.
#include <unordered_map>

#include "framejit/op.h"

namespace framejit {

static const OpDef* const kOps[] = {
#define OP(n) &op_##n,
#include "framejit/ops.def"
#undef OP
};

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
    static const auto by_name = [] {
        std::unordered_map<std::string_view, const OpDef*> map;
        for (const OpDef* op : kOps) map.emplace(op->name, op);
        return map;
    }();
    auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : it->second;
}

}  // namespace framejit
