// Open addressing from 64-bit keys (never 0) to ints. The tables of a recording are most of the cost of noting reads, so their blocks are
// kept for the next one: a fresh block costs page faults.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace framejit {

inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {  // a key of three
    uint64_t h = a * 0x9E3779B97F4A7C15ull + b;
    h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9ull + c;
    return (h ^ (h >> 32)) * 0x94D049BB133111EBull;
}

class FlatMap {
public:
    static constexpr int kDead = -9;  // the value of a key that was taken out again
    FlatMap() {
        if (pool().empty()) {
            cells_.resize(4096);
            return;
        }
        cells_ = std::move(pool().back());
        pool().pop_back();
    }
    ~FlatMap() {
        std::fill(cells_.begin(), cells_.end(), Cell{});
        if (pool().size() < 16) pool().push_back(std::move(cells_));
    }
    FlatMap(const FlatMap&) = delete;
    FlatMap& operator=(const FlatMap&) = delete;

    int* find(uint64_t k) {
        for (size_t i = spread(k);; ++i) {
            Cell& c = cells_[i & (cells_.size() - 1)];
            if (c.first == k) return c.second == kDead ? nullptr : &c.second;
            if (!c.first) return nullptr;
        }
    }
    int* find(const void* p) { return find(uint64_t(p)); }
    // Inserts unless there; {value, whether it is new}.
    std::pair<int*, bool> emplace(uint64_t k, int v) {
        if (2 * ++used_ > cells_.size()) grow();
        for (size_t i = spread(k);; ++i) {
            Cell& c = cells_[i & (cells_.size() - 1)];
            if (c.first == k) {
                --used_;
                if (c.second != kDead) return {&c.second, false};
                c.second = v;
                return {&c.second, true};
            }
            if (!c.first) {
                c = {k, v};
                return {&c.second, true};
            }
        }
    }
    std::pair<int*, bool> emplace(const void* p, int v) { return emplace(uint64_t(p), v); }
    void put(const void* p, int v) { *emplace(p, v).first = v; }

private:
    using Cell = std::pair<uint64_t, int>;
    static std::vector<std::vector<Cell>>& pool() {
        static std::vector<std::vector<Cell>> p;  // used with the GIL only
        return p;
    }
    static size_t spread(uint64_t k) { return size_t(((k ^ (k >> 4) ^ (k >> 33)) * 0x9E3779B97F4A7C15ull) >> 40); }
    void grow() {
        std::vector<Cell> old = std::move(cells_);
        cells_.assign(old.size() * 4, {});
        used_ = 1;
        for (Cell& c : old)
            if (c.first) emplace(c.first, c.second);
    }
    std::vector<Cell> cells_;
    size_t used_ = 0;
};

}  // namespace framejit
