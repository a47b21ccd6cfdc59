// Reading recorded arguments, and the lookup of rules over all families.
#include "src/ops/aten.h"

#include <algorithm>
#include <unordered_map>

namespace framejit {
namespace aten {

void require(bool condition) {
    if (!condition) throw Uncovered{};
}

const Arg& Call::at(size_t i) const {
    require(i < args.size());
    return args[i];
}
Ref Call::tensor(size_t i) const {
    auto* t = at(i).as<Ref>();
    require(t && *t && computable((*t)->dtype));
    return *t;
}
std::vector<Ref> Call::tensors(size_t i) const {
    auto* list = at(i).as<std::vector<Ref>>();
    require(list && std::all_of(list->begin(), list->end(), [](Ref t) { return t && computable(t->dtype); }));
    return *list;
}
int64_t Call::integer(size_t i) const {
    if (auto* v = at(i).as<bool>()) return *v;
    auto* v = at(i).as<int64_t>();
    require(v);
    return *v;
}
double Call::real(size_t i) const {
    if (auto* v = at(i).as<double>()) return *v;
    return double(integer(i));
}
bool Call::flag(size_t i) const { return given(i) && integer(i) != 0; }
std::vector<int64_t> Call::integers(size_t i) const {
    if (auto* v = at(i).as<int64_t>()) return {*v};
    auto* list = at(i).as<std::vector<int64_t>>();
    if (list) return *list;
    auto* empty = at(i).as<std::vector<Ref>>();  // an empty Python list has no element type
    require(empty && empty->empty());
    return {};
}
DType Call::dtype_or(size_t i, DType otherwise) const {
    if (!given(i)) return otherwise;
    auto* d = at(i).as<DType>();
    require(d && computable(*d));
    return *d;
}
int64_t Call::wrap_dim(int64_t d, Ref of) {
    const int64_t rank = std::max<int64_t>(1, int64_t(of->shape.size()));
    require(d >= -rank && d < rank);
    return d < 0 ? d + rank : d;
}
std::vector<int64_t> Call::dims(size_t i, Ref of) const {
    std::vector<int64_t> list = given(i) ? integers(i) : std::vector<int64_t>{};
    if (list.empty())
        for (int64_t d = 0; d < int64_t(of->shape.size()); d++) list.push_back(d);
    for (int64_t& d : list) d = wrap_dim(d, of);
    std::sort(list.begin(), list.end());
    if (of->shape.empty()) list.clear();
    return list;
}

Ref Call::scalar_of(const Arg& arg, DType d) const {
    if (auto* v = arg.as<bool>()) return g.integer(*v, d);
    if (auto* v = arg.as<int64_t>()) return g.integer(*v, d);
    auto* v = arg.as<double>();
    require(v);
    return g.scalar(*v, d);
}
Ref Call::value(const Arg& arg, DType d) const {
    auto* t = arg.as<Ref>();
    if (!t) return scalar_of(arg, d);
    require(*t && computable((*t)->dtype));
    return (*t)->dtype == d ? *t : g.op("cast", {*t}, {{int64_t(d)}, {}});
}
// Python floats follow torch.get_default_dtype(), which shows only in a result.
DType Call::default_float() const { return !out.empty() && is_float(out[0].dtype) && size_of(out[0].dtype) == 8 ? DType::f64 : DType::f32; }
DType Call::common(std::initializer_list<size_t> which) const {
    std::vector<const Arg*> operands;
    for (size_t i : which) operands.push_back(&at(i));
    return result_type(operands, default_float());
}

}  // namespace aten

namespace {

const std::vector<aten::Row>& all_rows() {
    static const std::vector<aten::Row> all = [] {
        std::vector<aten::Row> list;
        for (auto family : {aten::arithmetic_rules, aten::function_rules, aten::logic_rules, aten::creation_rules, aten::view_rules,
                            aten::layout_rules, aten::index_rules, aten::reduction_rules, aten::norm_rules, aten::backward_rules})
            list.insert(list.end(), family().begin(), family().end());
        return list;
    }();
    return all;
}

// "aten::add.Tensor" -> "aten::add_.Tensor"
std::string in_place_name(std::string_view overload) {
    std::string name(overload);
    const size_t dot = name.find('.');
    return name.insert(dot == name.npos ? name.size() : dot, "_");
}

}  // namespace

std::span<const AtenRule> all_aten() {
    static const std::vector<AtenRule> all = [] {
        std::vector<AtenRule> list;
        for (const aten::Row& r : all_rows()) list.push_back({r.overload, r.lowering.functional, r.view});
        return list;
    }();
    return all;
}

const AtenRule* find_aten(std::string_view overload) {
    static const auto by_name = [] {
        std::unordered_map<std::string, AtenRule> map;
        for (const aten::Row& r : all_rows()) {
            map.emplace(r.overload, AtenRule{r.overload, r.lowering.functional, r.view});
            if (!r.view) map.emplace(in_place_name(r.overload), AtenRule{r.overload, r.lowering.in_place, false});
        }
        return map;
    }();
    auto it = by_name.find(std::string(overload));
    return it == by_name.end() ? nullptr : &it->second;
}

}  // namespace framejit
