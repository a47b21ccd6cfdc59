// Reads at computed positions. An index out of range is noticed by the kernel; the region then runs eagerly and raises eager's error.
#include <limits>

#include "src/ops/aten.h"

namespace framejit::aten {
namespace {

// Kernels wrap negative indices, as x[-1] does; operators that do not allow them must see them out of range.
Ref no_negatives(Call& c, Ref index) {
    index = c.cast(index, DType::i64);
    return c.where(c("lt", {index, c.g.integer(0, DType::i64)}), c.g.integer(std::numeric_limits<int64_t>::max(), DType::i64), index);
}
Ref indices(Call& c, size_t i) {
    require(c.tensor(i)->dtype == DType::i64 || c.tensor(i)->dtype == DType::i32);
    return c.tensor(i);
}

Results gather(Call& c) {
    Ref x = c.tensor(0), index = indices(c, 2);
    const int64_t d = c.dim(1, x);
    require(x->shape.size() == index->shape.size() && !x->shape.empty());
    for (size_t k = 0; k < x->shape.size(); k++)
        if (int64_t(k) != d) x = c.slice(x, int64_t(k), 0, index->shape[k]);
    return {c("gather", {x, no_negatives(c, index)}, {{d}, {}})};
}
Results index_select(Call& c) {
    Ref x = c.tensor(0), index = indices(c, 2);
    require(!x->shape.empty());
    if (index->shape.empty()) index = c.view(index, {1});
    return {c("index", {x, no_negatives(c, index)}, {{c.dim(1, x)}, {}})};
}
Results embedding(Call& c) { return {c("index", {c.tensor(0), no_negatives(c, indices(c, 1))}, {{0}, {}})}; }

// x[i, j] with tensors at the first dimensions, or x[:, i, j]: they are broadcast against each other. Gaps and masks are left to torch.
Results index(Call& c) {
    Ref x = c.tensor(0);
    auto* list = c.at(1).as<std::vector<Ref>>();
    require(list);
    size_t first = 0;
    while (first < list->size() && !(*list)[first]) first++;
    size_t end = first;
    while (end < list->size() && (*list)[end]) end++;
    for (size_t k = end; k < list->size(); k++) require(!(*list)[k]);
    require(first < end && numel(x->shape) > 0);
    std::vector<Ref> operands{x};
    Ref together = nullptr;  // for its shape
    for (size_t k = first; k < end; k++) {
        Ref i = (*list)[k];
        require(i->dtype == DType::i64 || i->dtype == DType::i32);
        i = c.cast(i, DType::i64);
        together = together ? c.add(together, i) : i;
        operands.push_back(i);
    }
    for (size_t k = 1; k < operands.size(); k++) operands[k] = c.expand(operands[k], together->shape);
    return {c("index", operands, {{int64_t(first)}, {}})};
}

// Writes at few indices: each element asks whether it is meant. Reading a range at the indices keeps eager's error for one out of range.
struct Scattered {
    Ref x, hit;  // hit: [.., extent, k, ..]
    int64_t dim;
};
Scattered scattered(Call& c) {
    Ref x = c.tensor(0), index = indices(c, 2);
    const int64_t d = c.dim(1, x);
    require(!x->shape.empty() && x->shape.size() == index->shape.size() && numel(index->shape) > 0);
    Shape expected = x->shape;
    expected[d] = index->shape[d];
    require(index->shape == expected && numel(x->shape) * index->shape[d] <= 1 << 18);
    Ref range = c.positions({x->shape[d]}, 0);
    Ref checked = c("index", {range, no_negatives(c, index)}, {{0}, {}});
    return {x, c.places(checked, d, x->shape[d]), d};
}
Results scatter_value(Call& c) {
    auto [x, hit, d] = scattered(c);
    Ref any = c.view(c.reduce("any", hit, d + 1), x->shape);
    return {c.where(any, c.value(3, x->dtype), x)};
}
Results scatter_one(Call& c) {  // with several indices the order of writes would show
    auto [x, hit, d] = scattered(c);
    Ref source = c.tensor(3);
    require(hit->shape[d + 1] == 1 && source->dtype == x->dtype && source->shape == c.tensor(2)->shape);
    return {c.where(c.view(hit, x->shape), c.expand(source, x->shape), x)};
}

// The loss of each row is -x[row, target]; rows whose target is ignore_index do not count.
Results nll_loss(Call& c) {
    Ref x = c.up(c.tensor(0)), target = c.tensor(1);
    const int64_t reduction = c.integer(3), ignored = c.integer(4);
    require(x->shape.size() == 2 && target->shape.size() == 1 && target->dtype == DType::i64 && (reduction == 1 || reduction == 2));
    Ref counts = c("ne", {target, c.g.integer(ignored, DType::i64)});
    Ref safe = no_negatives(c, c.where(counts, target, c.g.integer(0, DType::i64)));
    const int64_t rows = x->shape[0];
    Ref picked = c.view(c("gather", {x, c.view(safe, {rows, 1})}, {{1}, {}}), {rows});
    Ref weight = c.given(2) ? c("index", {c.up(c.tensor(2)), safe}, {{0}, {}}) : c.expand(c.number(1, x), {rows});
    weight = c.where(counts, weight, c.number(0, weight));
    Ref loss = c.where(counts, c.mul(c.neg(picked), weight), c.number(0, x));  // not 0 * inf
    Ref total = c.view(c.sum(weight, 0), {});
    Ref sum = c.view(c.sum(loss, 0), {});
    return {c.as_recorded(reduction == 1 ? c.div(sum, total) : sum, 0), c.as_recorded(total, 1)};
}

constexpr Row kRules[] = {
    {"aten::gather", rule<gather>},
    {"aten::index_select", rule<index_select>},
    {"aten::embedding", rule<embedding>},
    {"aten::index.Tensor", rule<index>},
    {"aten::scatter.value", rule<scatter_value>},
    {"aten::scatter.src", rule<scatter_one>},
    {"aten::nll_loss_forward", rule<nll_loss>},
};

}  // namespace

std::span<const Row> index_rules() { return kRules; }

}  // namespace framejit::aten
