// Arithmetic on affine expressions of the loop variables, and the division that decides whether a view is affine.
#pragma once
#include <cstdlib>

#include "src/schedule/kernel.h"

namespace framejit {

inline Affine scaled(Affine a, int64_t f) {
    for (int64_t& k : a.k) k *= f;
    a.c *= f;
    for (Term& t : a.terms) t.k *= f;
    if (f == 0) a.terms.clear();
    return a;
}
inline Affine sum(Affine a, const Affine& b) {
    for (int v = 0; v < kVars; v++) a.k[v] += b.k[v];
    a.c += b.c;
    for (const Term& t : b.terms) {
        auto same = std::find_if(a.terms.begin(), a.terms.end(), [&](const Term& x) { return x.expr == t.expr; });
        if (same == a.terms.end())
            a.terms.push_back(t);
        else
            same->k += t.k;
    }
    std::erase_if(a.terms, [](const Term& t) { return t.k == 0; });
    return a;
}
inline size_t hash_of(const Affine& a, size_t seed) {
    size_t h = seed;
    auto mix = [&](int64_t v) { h ^= size_t(v) + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2); };
    for (int64_t k : a.k) mix(k);
    mix(a.c);
    for (const Term& t : a.terms) mix(t.expr), mix(t.k);
    return h;
}

// a = n * quotient + remainder with both affine: every coefficient is split, and then the remainder must stay inside [0, n).
class Splitter {
public:
    Splitter(const Affine& a, int64_t n) : n_(n) {
        remainder_.c = ((a.c % n) + n) % n;
        quotient_.c = (a.c - remainder_.c) / n;
        low_ = high_ = remainder_.c;
    }
    void variable(int v, int64_t k, int64_t extent) {
        const int64_t rest = rest_of(k, extent);
        quotient_.k[v] = (k - rest) / n_;
        remainder_.k[v] = rest;
        reach(rest, extent);
        if (rest && (widest_ < 0 || std::llabs(rest) * (extent - 1) > width_)) {
            widest_ = v;
            width_ = std::llabs(rest) * (extent - 1);
        }
    }
    void term(const Term& t, int64_t bound) {
        const int64_t rest = bound ? rest_of(t.k, bound) : ((t.k % n_) + n_) % n_;
        if (t.k != rest) quotient_.terms.push_back({t.expr, (t.k - rest) / n_});
        if (!rest) return;
        remainder_.terms.push_back({t.expr, rest});
        if (bound)
            reach(rest, bound);
        else
            unbounded_ = true;
    }
    bool finish(Affine* quotient, Affine* remainder) {
        if (unbounded_) return false;
        if (low_ < 0) {  // the constant may have been rounded the wrong way
            low_ += n_, high_ += n_;
            remainder_.c += n_;
            quotient_.c -= 1;
        }
        if (low_ < 0 || high_ >= n_) return false;
        *quotient = quotient_;
        *remainder = remainder_;
        return true;
    }
    // As far as it goes: what is left may be n or more, but is not negative, and below `end`.
    bool partly(Affine* quotient, Affine* rest, int64_t* end) {
        if (unbounded_) return false;
        const int64_t steps = low_ < 0 ? (-low_ + n_ - 1) / n_ : 0;
        *quotient = quotient_, *rest = remainder_;
        quotient->c -= steps;
        rest->c += steps * n_;
        *end = high_ + steps * n_ + 1;
        return true;
    }
    int widest() const { return widest_; }  // the variable that contributes most to the remainder
    const Affine& remainder() const { return remainder_; }

private:
    // k = n * q + rest with the rest of smaller reach: positive, unless a step backwards reaches less
    int64_t rest_of(int64_t k, int64_t extent) const {
        const int64_t up = ((k % n_) + n_) % n_;
        if (up == 0 || up * (extent - 1) < n_) return up;
        const int64_t down = up - n_;
        return -down * (extent - 1) < n_ ? down : up;
    }
    void reach(int64_t rest, int64_t extent) { (rest < 0 ? low_ : high_) += rest * (extent - 1); }

    int64_t n_, low_, high_, width_ = 0;
    int widest_ = -1;
    bool unbounded_ = false;
    Affine quotient_, remainder_;
};

}  // namespace framejit
