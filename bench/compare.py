"""Every workload under eager, torch.compile and framejit, each in its own process, one after the other; a table of ratios.

  ./dev run bench/compare.py [--big] [--compilers eager,inductor,framejit] [workload ...]

Believe the ratios: times differ from machine to machine and from minute to minute. `first` is the wall time of the first call, with all it compiles.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import time

import torch
from workloads import WORKLOADS

COMPILERS = ("eager", "inductor", "framejit")


def compiled(fn, compiler):
    if compiler == "eager":
        return fn
    if compiler == "inductor":
        return torch.compile(fn)
    import framejit
    return framejit.compile(fn, wait=True)


def tensors(out):
    return [t.detach().double() for t in (out if isinstance(out, tuple) else (out,))]


def share_off(want, got):
    """The largest share of elements that are off by more than 2 %: a threshold in a workload may flip single elements by rounding."""
    shares = []
    for a, b in zip(want, got):
        scale = a.abs().max().item() + 1e-30
        shares.append(((a - b).abs() > 0.02 * scale).double().mean().item())
    return max(shares)


def per_call(step, seconds=1.5):
    """Median seconds of a call."""
    for _ in range(5):
        step()
    start = time.perf_counter()
    step()
    inner = max(1, min(2000, int(0.02 / max(time.perf_counter() - start, 1e-7))))
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        for _ in range(inner):
            step()
        times.append((time.perf_counter() - start) / inner)
    return statistics.median(times)


def measure(workload, compiler, big):
    torch.manual_seed(0)
    fn, arguments, trains = WORKLOADS[workload](big)

    def step(f):
        out = f(*arguments)
        if trains:
            out.float().pow(2).mean().backward()
            fn.zero_grad()
        return out
    with torch.set_grad_enabled(trains):
        want = tensors(step(fn))             # also warms up libraries; before compiling, which may work in place
        start = time.perf_counter()
        f = compiled(fn, compiler)
        step(f)
        first = time.perf_counter() - start
        off = share_off(want, tensors(step(f)))
        del want
        return {"first_s": first, "ms": per_call(lambda: step(f)) * 1e3, "off": off}


def in_own_process(workload, compiler, big):
    command = [sys.executable, __file__, "--measure", compiler, *(["--big"] if big else []), workload]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if result.returncode != 0:
        return {"error": (result.stderr.strip().splitlines() or [f"exit {result.returncode}"])[-1]}
    return json.loads(result.stdout.splitlines()[-1])


def table(options):
    ratios, width = [], max(map(len, options.workloads))
    print(f"{'workload':{width}s}" + "".join(f"{c + ' ms':>15s}{'first s':>9s}" for c in options.compilers) + "   framejit / best other")
    for workload in options.workloads:
        rows = {c: in_own_process(workload, c, options.big) for c in options.compilers}
        cells = [f"{r['ms']:15.4f}{r['first_s']:9.2f}" if "ms" in r else f"{r['error'][:23]:>24s}" for r in rows.values()]
        ours, others = rows.get("framejit", {}), [r["ms"] for c, r in rows.items() if c != "framejit" and "ms" in r]
        verdict = ""
        if "ms" in ours and others:
            ratios.append(ours["ms"] / min(others))
            verdict = f"   {ratios[-1]:.2f}" + ("" if ours["off"] < 1e-3 else "  WRONG")
        print(f"{workload:{width}s}" + "".join(cells) + verdict, flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.3f}, worst {max(ratios):.2f} (below 1: framejit is faster than the best other)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="workload", help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--compilers", type=lambda text: text.split(","), default=COMPILERS)
    parser.add_argument("--measure", choices=COMPILERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.workloads = options.workloads or list(WORKLOADS)
    for unknown in set(options.workloads) - set(WORKLOADS):
        parser.error(f"unknown workload '{unknown}'; valid: {', '.join(WORKLOADS)}")
    if options.measure:
        print(json.dumps(measure(options.workloads[0], options.measure, options.big)))
    else:
        table(options)


if __name__ == "__main__":
    main()
