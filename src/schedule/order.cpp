// A kernel that reads only inputs runs right before the call that wants it (its result is still in the cache, and memory is held briefly);
// any other one as soon as it can (what it reads is still in the cache). Between two calls, kernels are ordered by level, and those of one
// level that are the same function are one launch.
#include "src/schedule/order.h"

#include <functional>
#include <map>

namespace framejit {
namespace {

class Ordering {
public:
    Ordering(const Plan& plan, const Times& times, const std::vector<KernelItem>& kernels, const std::vector<Call>& calls)
        : plan_(plan), times_(times), kernels_(kernels), calls_(calls), deps_(times, plan.cuts), count_(int(plan.groups.size())) {
        for (const Group& g : plan.groups) deps_.add_group(g);
    }

    std::vector<Step> run() {
        sort();
        find_latest();
        place();
        std::vector<Step> steps;
        for (int segment = 0; segment <= int(calls_.size()); segment++) {
            for (auto& [level_and_kernel, launch] : launches_of(segment)) {
                Step s;
                s.launch = std::move(launch);
                steps.push_back(std::move(s));
            }
            if (segment == int(calls_.size())) break;
            Step s;
            s.call = calls_[segment];
            steps.push_back(std::move(s));
        }
        return steps;
    }

private:
    // Groups such that what a group needs comes before it.
    void sort() {
        needs_.resize(count_);
        std::vector<char> state(count_);
        for (int g = 0; g < count_; g++) needs_[g] = deps_.needs_of_group(g);
        for (int first = 0; first < count_; first++) {
            std::vector<std::pair<int, size_t>> stack;
            auto enter = [&](int g) {
                if (state[g] == 1) throw GraphError("kernels depend on each other in a circle");
                if (state[g]) return;
                state[g] = 1;
                stack.push_back({g, 0});
            };
            enter(first);
            while (!stack.empty()) {
                auto& [g, next] = stack.back();
                if (next == needs_[g].size()) {
                    state[g] = 2;
                    order_.push_back(g);
                    stack.pop_back();
                    continue;
                }
                const int need = needs_[g][next++];
                if (need < Dependences::kCall) enter(need);
            }
        }
    }
    // The segment in which a group must have run at the latest: segment s is what runs before call s.
    void find_latest() {
        latest_.assign(count_, int(calls_.size()));
        auto before = [&](int g, int segment) { latest_[g] = std::min(latest_[g], segment); };
        for (int c = 0; c < int(calls_.size()); c++)
            for (int need : deps_.needs_of_call(c))
                if (need < Dependences::kCall) before(need, c);
        for (size_t i = order_.size(); i-- > 0;)
            for (int need : needs_[order_[i]])
                if (need < Dependences::kCall) before(need, latest_[order_[i]]);
    }
    void place() {
        segment_.assign(count_, 0);
        level_.assign(count_, 0);
        for (int g : order_) {
            int earliest = 0;
            bool only_inputs = true;
            for (int need : needs_[g]) {
                only_inputs = false;
                earliest = std::max(earliest, need >= Dependences::kCall ? need - Dependences::kCall + 1 : segment_[need]);
            }
            segment_[g] = only_inputs ? latest_[g] : earliest;
            if (segment_[g] > latest_[g]) throw GraphError("no place for a kernel between the extern calls");
            for (int need : needs_[g])
                if (need < Dependences::kCall && segment_[need] == segment_[g]) level_[g] = std::max(level_[g], level_[need] + 1);
        }
    }
    std::map<std::pair<int, int>, Launch> launches_of(int segment) const {
        std::map<std::pair<int, int>, Launch> launches;  // level, first group of that function
        std::map<std::pair<int, const Kernel*>, int> first;
        for (int g : order_) {
            const KernelItem& item = kernels_[g];
            if (segment_[g] != segment || !item.kernel) continue;
            const int leader = first.try_emplace({level_[g], item.kernel}, int(first.size())).first->second;
            Launch& l = launches[{level_[g], leader}];
            l.kernel = item.kernel;
            l.items.push_back(item.buffers);
        }
        return launches;
    }

    const Plan& plan_;
    const Times& times_;
    const std::vector<KernelItem>& kernels_;
    const std::vector<Call>& calls_;
    Dependences deps_;
    int count_;
    std::vector<std::vector<int>> needs_;
    std::vector<int> order_, latest_, segment_, level_;  // the last three by group
};

}  // namespace

std::vector<Step> order_steps(const Plan& plan, const Times& times, const std::vector<KernelItem>& kernels,
                              const std::vector<Call>& calls) {
    return Ordering(plan, times, kernels, calls).run();
}

}  // namespace framejit
