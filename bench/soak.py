"""Hours in minutes: threads call compiled functions while models are made and dropped, switched between train() and eval(), and hooked.

  ./dev run bench/soak.py [--minutes 10] [--threads 3]
Every result is compared with eager's. Prints a line every ten seconds; at the end: calls, wrong results, and how the resident memory grew
after the first fifth of the run. Exit 1 when a result was wrong or the memory grew by more than 10 %.
"""
import argparse
import gc
import os
import random
import threading
import time

import torch
from torch import nn

import framejit


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.lin, self.drop = nn.LayerNorm(width), nn.Linear(width, width), nn.Dropout(0.5)
        self.scale, self.calls = 1.5, 0

    def forward(self, x):
        self.calls += 1
        y = torch.nn.functional.gelu(self.lin(self.norm(x))) * self.scale
        return x + (y * 0 if self.training else self.drop(y))


@framejit.compile(wait=True)
def shared(x, n):
    return torch.softmax(x * n, -1).sum(-1) + x.shape[0]


def resident_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def worker(stop, counts, seed):
    rng = random.Random(seed)
    while not stop.is_set():
        width = rng.choice([8, 16, 32])
        plain, ours = Net(width), Net(width)
        ours.load_state_dict(plain.state_dict())
        framejit.compile(ours, wait=True)
        with torch.no_grad():
            for step in range(rng.randint(3, 12)):
                what = rng.random()
                if what < 0.2:
                    for m in (plain, ours): m.train(step % 2 == 0)
                elif what < 0.3:
                    for m in (plain, ours): m.lin.register_forward_hook(lambda mod, args, out: out + 1)
                elif what < 0.4:
                    plain.scale = ours.scale = rng.random()
                x = torch.randn(rng.choice([1, 3]), width)
                counts["calls"] += 2
                good = torch.allclose(plain(x), ours(x), atol=1e-5) and plain.calls == ours.calls
                good &= torch.allclose(shared(x, 2.0), torch.softmax(x * 2.0, -1).sum(-1) + x.shape[0], atol=1e-5)
                counts["wrong"] += not good


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--threads", type=int, default=3)
    o = p.parse_args()
    stop, counts, start, early = threading.Event(), {"calls": 0, "wrong": 0}, time.time(), None
    threads = [threading.Thread(target=worker, args=(stop, counts, i), daemon=True) for i in range(o.threads)]
    for t in threads: t.start()
    while time.time() - start < o.minutes * 60:
        time.sleep(min(10, o.minutes * 6))
        gc.collect()
        if early is None and time.time() - start > o.minutes * 12:
            early = resident_mb()
        print(f"{time.time() - start:6.0f} s  {counts['calls']:8d} calls  {counts['wrong']} wrong  {resident_mb():7.0f} MiB", flush=True)
    stop.set()
    for t in threads: t.join()
    growth = resident_mb() / (early or resident_mb()) - 1
    print(f"{counts['calls']} calls, {counts['wrong']} wrong, memory {growth:+.1%} since the first fifth")
    return counts["wrong"] > 0 or growth > 0.1


if __name__ == "__main__":
    raise SystemExit(main())
