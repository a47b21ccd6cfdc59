"""Fits every coefficient used by mathlib.cpp and writes coeffs.inc: python src/ops/fit.py (needs mpmath, 20 s).

Least squares on Chebyshev nodes, reweighted towards the largest error (Lawson), in 40-digit arithmetic. The weight makes the error
relative to the function, so rational fits weigh it by 1 / (f Q) with the denominator Q of the last round, and Q(0) = 1.
"""
import pathlib

import mpmath as mp

mp.mp.dps = 40


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


def odd_rational(function, b, above, below, rounds=30, count=160):
    """function(x) ~ x P(x^2) / Q(x^2) on (0, b]"""
    xs = [x for x in chebyshev(mp.mpf(0), mp.mpf(b), count) if x > 0]
    values, lawson, q_of, best = [function(x) for x in xs], [mp.mpf(1)] * len(xs), [mp.mpf(1)] * len(xs), None
    span = mp.mpf(b) ** 2
    for _ in range(rounds):
        rows, rhs = [], []
        for x, y, q in zip(xs, values, q_of):
            s, w = x * x / span, 1 / (q * y)
            rows.append([w * x * s**k for k in range(above + 1)] + [-w * y * s**k for k in range(1, below + 1)])
            rhs.append(w * y)
        c = list(least_squares(rows, rhs, lawson))
        p, q = c[: above + 1], [mp.mpf(1)] + c[above + 1 :]
        q_of = [evaluate(q, x * x / span) for x in xs]
        errors = [abs(x * evaluate(p, x * x / span) / d / y - 1) for x, y, d in zip(xs, values, q_of)]
        if best is None or max(errors) < best[0]:
            best = (max(errors), [v / span**k for k, v in enumerate(p)], [v / span**k for k, v in enumerate(q)])
        lawson = reweigh(lawson, errors)
    return best


def odd_tail(function, third):
    """(f(x) / x - 1) / x^2 as a function of s = x^2, for f(x) = x + third x^3 + ..."""
    return lambda s: (function(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s > 1e-20 else mp.mpf(third)


lines = ["// Written by fit.py. Do not edit. Highest power first; the error is the fit's, without that of float evaluation."]


def emit(name, coefficients, error):
    lines.append(f"// {name}: {mp.nstr(error * 2 ** 24, 3)} half-ulps")
    lines.append(f"inline constexpr double k{name}[] = {{{', '.join(mp.nstr(c, 12) for c in reversed(coefficients))}}};")
    print(lines[-2], flush=True)


def main():
    half = mp.log(2) / 2 * mp.mpf("1.001")
    error, c = polynomial(lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > 1e-12 else mp.mpf(1) / 2, lambda r: r**2 / mp.exp(r), -half, half, 4)
    emit("Exp", c, error)
    tail = lambda f: (mp.log1p(f) - f + f * f / 2) / f**3 if abs(f) > 1e-9 else mp.mpf(1) / 3
    error, c = polynomial(tail, lambda f: abs(f**3 / mp.log1p(f)) if abs(f) > 1e-15 else mp.mpf(0), "-0.25", "0.5", 8)
    emit("Log", c, error)
    error, c = polynomial(odd_tail(mp.sin, mp.mpf(-1) / 6), lambda s: s, 0, (mp.pi / 2) ** 2 * mp.mpf("1.001"), 4)
    emit("Sin", c, error)
    error, c = polynomial(odd_tail(mp.atan, mp.mpf(-1) / 3), lambda s: s, 0, mp.tan(mp.pi / 8) ** 2 * mp.mpf("1.001"), 4)
    emit("Atan", c, error)
    # erfc(a) e^(a^2) (1 + 2a) is smooth; q = (a - 4) / (a + 4) brings [0, 10.1] to [-1, 0.44]
    scaled = lambda a: mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)
    error, c = polynomial(lambda q: scaled(4 * (1 + q) / (1 - q)), lambda q: 1 / scaled(4 * (1 + q) / (1 - q)), -1, "0.44", 10)
    emit("Erfc", c, error)
    for name, function, bound, above, below in (("Tanh", mp.tanh, 9.02, 6, 3), ("Erf", mp.erf, 3.95, 4, 6)):
        error, p, q = odd_rational(function, bound, above, below)
        emit(name + "P", p, error)
        emit(name + "Q", q, error)
    pathlib.Path(__file__).with_name("coeffs.inc").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
