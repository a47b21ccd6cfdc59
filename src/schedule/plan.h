// Which values get memory, and which of them are made by one kernel.
#pragma once
#include "src/schedule/lower.h"

namespace framejit {

// When values exist, with respect to the extern calls (in node order: 0, 1, ..): mutation makes an old value unreadable.
struct Times {
    static constexpr int kNever = 1 << 30;
    std::vector<Ref> calls;               // the extern nodes
    std::vector<int> ready;               // by node: the last call that it depends on, or -1
    std::vector<int> mutated;             // by node: the first call that overwrites its memory, or kNever
    std::vector<Ref> barriers;            // values that must be in memory before a mutation makes them unobtainable
    std::vector<std::vector<Ref>> users;  // by node: who reads it (live nodes only)
    std::vector<char> live;
};
Times times_of(const Graph&);

struct Group {               // one kernel
    std::vector<Ref> roots;  // stores[i] of the kernel is roots[i]
    Lowered lowered;
};
struct Plan {
    std::vector<Group> groups;
    Cuts cuts;
};
// The values that outputs, extern calls and barriers need, each computed once; values of which many kernels would compute much get memory
// too.
Plan make_plan(const Graph&, const Times&, const ScheduleOptions&);

// Actors are groups (0..groups-1) and then calls. Who must have run before: `needs`.
class Dependences {
public:
    Dependences(const Times&, const Cuts&);
    void add_group(const Group&);  // its number is the count of groups so far
    void replace_group(int number, const Group&);
    void drop_group(int number);
    bool dropped(int number) const { return groups_[number] == nullptr; }
    int owner(Ref value) const;                         // the group that makes it, or -1
    std::vector<int> needs_of_group(int number) const;  // actors: group g is g, call c is kCall + c
    std::vector<int> needs_of_call(int call) const;
    bool path_through_another(int from, int to) const;  // from needs .. needs x needs .. to
    static constexpr int kCall = 1 << 24;

private:
    void claim(int number);
    bool may_need(int actor, int to) const;
    int first_id(int actor) const;
    int last_id(int actor) const;
    const Times& times_;
    const Cuts& cuts_;
    std::vector<const Group*> groups_;
    std::unordered_map<Ref, int> owner_;
    bool mutation_ = false;
};

}  // namespace framejit
