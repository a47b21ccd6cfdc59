// Best fit over a list of free ranges, in order of execution. Everything is aligned to a cache line.
#include "src/schedule/memory.h"

#include <map>

namespace framejit {
namespace {

constexpr int64_t kLine = 64;

class FreeRanges {
public:
    int64_t take(int64_t bytes) {
        auto best = ranges_.end();
        for (auto it = ranges_.begin(); it != ranges_.end(); ++it)
            if (it->second >= bytes && (best == ranges_.end() || it->second < best->second)) best = it;
        if (best == ranges_.end()) return grow(bytes);
        const int64_t at = best->first, rest = best->second - bytes;
        ranges_.erase(best);
        if (rest > 0) ranges_[at + bytes] = rest;
        return at;
    }
    void give_back(int64_t at, int64_t bytes) {
        auto next = ranges_.emplace(at, bytes).first;
        if (auto after = std::next(next); after != ranges_.end() && next->first + next->second == after->first) {
            next->second += after->second;
            ranges_.erase(after);
        }
        if (next == ranges_.begin()) return;
        auto before = std::prev(next);
        if (before->first + before->second != next->first) return;
        before->second += next->second;
        ranges_.erase(next);
    }
    int64_t end() const { return end_; }

private:
    int64_t grow(int64_t bytes) {
        int64_t at = end_;
        if (!ranges_.empty() && ranges_.rbegin()->first + ranges_.rbegin()->second == end_) {  // the last range is free: extend it
            at = ranges_.rbegin()->first;
            ranges_.erase(std::prev(ranges_.end()));
        }
        end_ = at + bytes;
        return at;
    }
    std::map<int64_t, int64_t> ranges_;  // start -> bytes
    int64_t end_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes(const Program& p) {
    std::vector<Lifetime> life(p.buffers.size());
    auto touch = [&](int buffer, int step) {
        Lifetime& l = life[buffer];
        if (l.first < 0) l.first = step;
        l.last = step;
    };
    for (size_t s = 0; s < p.steps.size(); s++) {
        for (const auto& item : p.steps[s].launch.items)
            for (int b : item) touch(b, int(s));
        for (int b : p.steps[s].call.args) touch(b, int(s));
        for (int b : p.steps[s].call.results)
            if (b >= 0) touch(b, int(s));
    }
    return life;
}

void plan_memory(Program& p) {
    const std::vector<Lifetime> life = lifetimes(p);
    FreeRanges free;
    auto planned = [&](size_t b) { return p.buffers[b].kind == Buffer::Temp && !p.buffers[b].external && life[b].first >= 0; };
    auto size = [&](size_t b) { return std::max(kLine, (p.buffers[b].bytes + kLine - 1) / kLine * kLine); };
    for (int s = 0; s < int(p.steps.size()); s++) {
        for (size_t b = 0; b < p.buffers.size(); b++)
            if (planned(b) && life[b].first == s) p.buffers[b].arena = free.take(size(b));
        for (size_t b = 0; b < p.buffers.size(); b++)
            if (planned(b) && life[b].last == s) free.give_back(p.buffers[b].arena, size(b));
    }
    p.arena_bytes = free.end();
}

}  // namespace framejit
