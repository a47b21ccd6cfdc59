"""`./dev bench [WORD]`: the micro benchmarks whose name holds WORD, then the Python programs of bench/ (WORD picks workloads of compare.py)."""
import glob
import os
import subprocess
import sys

import environment
from environment import ROOT


def micro(python, words):
    if not glob.glob(os.path.join(ROOT, "bench", "micro", "*.cpp")):
        return 0
    environment.build(python, python.build, "framejit_bench")
    pattern = [f"--benchmark_filter={'|'.join(words)}"] if words else []
    return subprocess.run([os.path.join(python.build, "framejit_bench"), *pattern]).returncode


def workloads(python, words):
    listed = subprocess.run([python.executable, "-c", "import workloads; print(*workloads.WORKLOADS)"], cwd=os.path.join(ROOT, "bench"),
                            capture_output=True, text=True, check=True).stdout.split()
    chosen = [name for name in listed if not words or any(word in name for word in words)]
    if not chosen:
        return 0
    return subprocess.run([python.executable, os.path.join(ROOT, "bench", "compare.py"), *chosen], env=python.variables()).returncode


def main(words):
    python = environment.prepare()
    sys.stdout.flush()
    return micro(python, words) or workloads(python, words)
