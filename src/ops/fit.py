"""Fits every coefficient used by mathlib.cpp and writes coeffs.inc: python src/ops/fit.py (needs mpmath, 2 min).

Least squares on Chebyshev nodes, reweighted towards the largest error (Lawson), in 100-digit arithmetic: the normal equations of a polynomial
of degree 20 lose half of them. The weight makes the error relative to the function.
"""
import pathlib

import mpmath as mp

mp.mp.dps = 100


def chebyshev(a, b, count):
    return [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count) for i in range(count)]


def least_squares(rows, rhs, weights):
    n = len(rows[0])
    normal, target = mp.matrix(n, n), mp.matrix(n, 1)
    for row, value, weight in zip(rows, rhs, weights):
        for i in range(n):
            scaled = weight * row[i]
            target[i] += scaled * value
            for j in range(i + 1):
                normal[i, j] += scaled * row[j]
    for i in range(n):
        for j in range(i):
            normal[j, i] = normal[i, j]
    return mp.lu_solve(normal, target)


def reweigh(weights, errors):
    worst = max(errors)
    weights = [w * (e / worst + mp.mpf("1e-3")) for w, e in zip(weights, errors)]
    total = sum(weights)
    return [w * len(weights) / total for w in weights]


def evaluate(coefficients, x):
    return sum(c * x**k for k, c in enumerate(coefficients))


def polynomial(function, weight, a, b, degree, rounds=25, count=120):
    """function(x) ~ P(x) on [a, b]; the error is multiplied by weight(x)."""
    xs = chebyshev(mp.mpf(a), mp.mpf(b), count)
    values, scale, lawson = [function(x) for x in xs], [weight(x) for x in xs], [mp.mpf(1)] * count
    best = None
    for _ in range(rounds):
        c = least_squares([[s * x**k for k in range(degree + 1)] for x, s in zip(xs, scale)], [s * y for y, s in zip(values, scale)], lawson)
        errors = [abs((evaluate(list(c), x) - y) * s) for x, y, s in zip(xs, values, scale)]
        if best is None or max(errors) < best[0]:
            best = (max(errors), list(c))
        lawson = reweigh(lawson, errors)
    return best


def odd_tail(function, third):
    """(f(x) / x - 1) / x^2 as a function of s = x^2, for f(x) = x + third x^3 + ..."""
    return lambda s: (function(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s > 1e-60 else mp.mpf(third)


lines = ["// Written by fit.py. Do not edit. Highest power first; the error is the fit's, without that of evaluation. f64 has names that end in D."]


def emit(name, fitted):
    error, coefficients = fitted
    wide = name.endswith("D")
    lines.append(f"// {name}: {mp.nstr(error * 2 ** (53 if wide else 24), 3)} half-ulps")
    lines.append(f"inline constexpr double k{name}[] = {{{', '.join(mp.nstr(c, 20 if wide else 12) for c in reversed(coefficients))}}};")
    print(lines[-2], flush=True)


def both(name, function, weight, a, b, degree, degree_wide):
    emit(name, polynomial(function, weight, a, b, degree))
    emit(name + "D", polynomial(function, weight, a, b, degree_wide))


def relative_tail(function):
    """The weight of an odd tail: what an error of it is to the function."""
    return lambda s: s * mp.sqrt(s) / function(mp.sqrt(s)) if s > 1e-60 else mp.mpf(0)


def main():
    half, wider = mp.log(2) / 2 * mp.mpf("1.001"), mp.mpf("1.001")
    both("Exp", lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > 1e-40 else mp.mpf(1) / 2, lambda r: r**2 / mp.exp(r), -half, half, 4, 9)
    tail = lambda f: (mp.log1p(f) - f + f * f / 2) / f**3 if abs(f) > 1e-25 else mp.mpf(1) / 3
    emit("Log", polynomial(tail, lambda f: abs(f**3 / mp.log1p(f)) if abs(f) > 1e-25 else mp.mpf(0), "-0.25", "0.5", 8))
    # log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2) = 2 s + s^3 (2/3 + s^2 Q(s^2)); mantissas from 0.75 to 1.5 give s from -1/7 to 1/5
    two_atanh = lambda s: 2 * mp.atanh(mp.sqrt(s)) / mp.sqrt(s)
    span = mp.mpf("0.2") ** 2 * wider
    emit("LogD", polynomial(lambda s: (two_atanh(s) - 2) / s if s > 1e-40 else mp.mpf(2) / 3, lambda s: s / 2, 0, span, 7))
    emit("PowerD", polynomial(lambda s: (two_atanh(s) - 2 - 2 * s / 3) / s**2 if s > 1e-30 else mp.mpf(2) / 5, lambda s: s * s / 2, 0, span, 6))
    both("Sin", odd_tail(mp.sin, mp.mpf(-1) / 6), lambda s: s, 0, (mp.pi / 2) ** 2 * wider, 4, 8)
    both("Tan", odd_tail(mp.tan, mp.mpf(1) / 3), relative_tail(mp.tan), 0, (mp.pi / 4) ** 2 * wider, 6, 14)
    both("Atan", odd_tail(mp.atan, mp.mpf(-1) / 3), relative_tail(mp.atan), 0, 1, 8, 19)
    both("Asin", odd_tail(mp.asin, mp.mpf(1) / 6), relative_tail(mp.asin), 0, mp.mpf("0.25"), 5, 12)
    both("Sinh", odd_tail(mp.sinh, mp.mpf(1) / 6), relative_tail(mp.sinh), 0, 1, 3, 6)
    # erf(x) = x + x P(x^2) up to 0.85, and from there on 1 - 2^(t P(t)), where an error counts for little
    series = lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1 if s > 1e-60 else 2 / mp.sqrt(mp.pi) - 1
    near = lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s)) if s > 1e-60 else mp.sqrt(mp.pi) / 2
    both("ErfNear", series, near, 0, "0.7226", 5, 10)
    far = lambda t: mp.log(mp.erfc(t), 2) / t
    share = lambda t: mp.erfc(t) * t / mp.erf(t) * mp.log(2)
    emit("ErfFar", polynomial(far, share, "0.849", 4, 5))
    emit("ErfFarD", polynomial(far, share, "0.849", 6, 18))
    power = lambda r: mp.mpf(2) ** r
    both("Exp2", power, lambda r: 1 / power(r), "-0.5", "0.5", 5, 10)
    # erfc(a) e^(a^2) (1 + 2a) is smooth; q = (a - 4) / (a + 4) brings [0, 10.1] to [-1, 0.44], and [0, 27.3] to [-1, 0.745]
    scaled = lambda a: mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)
    at = lambda q: scaled(4 * (1 + q) / (1 - q))
    emit("Erfc", polynomial(at, lambda q: 1 / at(q), -1, "0.44", 11))
    emit("ErfcD", polynomial(at, lambda q: 1 / at(q), -1, "0.745", 23))
    pathlib.Path(__file__).with_name("coeffs.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
