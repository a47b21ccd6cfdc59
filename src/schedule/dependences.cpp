// The order between kernels and calls, recomputed from what each group loads: groups change while they are being merged.
#include "src/schedule/plan.h"

namespace framejit {

Dependences::Dependences(const Times& times, const Cuts& cuts) : times_(times), cuts_(cuts) {
    for (int m : times.mutated) mutation_ |= m != Times::kNever;
}
void Dependences::claim(int number) {
    for (Ref r : groups_[number]->roots)
        if (!is_memory(r) || cuts_.contains(r)) owner_[r] = number;  // a copy for an output is nobody's source
}
void Dependences::add_group(const Group& g) {
    groups_.push_back(&g);
    claim(int(groups_.size()) - 1);
}
void Dependences::replace_group(int number, const Group& g) {
    groups_[number] = &g;
    claim(number);
}
void Dependences::drop_group(int number) { groups_[number] = nullptr; }

int Dependences::owner(Ref value) const {
    auto it = owner_.find(value);
    return it == owner_.end() ? -1 : it->second;
}

std::vector<int> Dependences::needs_of_group(int number) const {
    std::vector<int> needs;
    for (const Source& s : groups_[number]->lowered.kernel.loads) {
        const int maker = s.own ? -1 : owner(s.value);
        if (maker >= 0 && maker != number) needs.push_back(maker);
        if (maker < 0 && s.value->op == &op_result) needs.push_back(kCall + times_.ready[s.value->id]);
    }
    return needs;
}

std::vector<int> Dependences::needs_of_call(int call) const {
    std::vector<int> needs;
    Ref node = times_.calls[call];
    if (call > 0) needs.push_back(kCall + call - 1);
    for (Ref a : node->in) {
        if (const int maker = owner(a); maker >= 0) needs.push_back(maker);
        if (!mutation_ || times_.mutated[a->id] != call || !is_memory(a)) continue;
        for (size_t g = 0; g < groups_.size(); g++) {  // readers of the old value come first
            if (!groups_[g]) continue;
            for (const Source& s : groups_[g]->lowered.kernel.loads)
                if (s.value == a && (s.own || owner(a) < 0)) needs.push_back(int(g));
        }
    }
    return needs;
}

// Operands have lower ids. So nothing needs an actor all of whose values come before its first one; except that a call waits for the
// readers of what it overwrites, whatever their ids.
bool Dependences::may_need(int actor, int to) const { return mutation_ || last_id(actor) > first_id(to); }
int Dependences::first_id(int actor) const {
    if (actor >= kCall) return times_.calls[size_t(actor - kCall)]->id;
    int id = Times::kNever;
    for (Ref r : groups_[size_t(actor)]->roots) id = std::min(id, r->id);
    return id;
}
int Dependences::last_id(int actor) const {
    if (actor >= kCall) return times_.calls[size_t(actor - kCall)]->id;
    int id = -1;
    for (Ref r : groups_[size_t(actor)]->roots) id = std::max(id, r->id);
    return id;
}

bool Dependences::path_through_another(int from, int to) const {
    std::unordered_set<int> seen{from};
    std::vector<int> work;
    auto visit = [&](int actor) {
        for (int need : actor >= kCall ? needs_of_call(actor - kCall) : needs_of_group(actor)) {
            if (actor == from && need == to) continue;
            if (need == to) return true;
            if (may_need(need, to) && seen.insert(need).second) work.push_back(need);
        }
        return false;
    };
    if (!may_need(from, to)) return false;
    if (visit(from)) return true;
    while (!work.empty()) {
        const int actor = work.back();
        work.pop_back();
        if (visit(actor)) return true;
    }
    return false;
}

}  // namespace framejit
