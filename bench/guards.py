"""Cost of a guard check: a module tree as a recording sees it, and a function of three tensors. Prints ns per check.

    ./dev run bench/guards.py [modules]
"""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "py"))
from guard_builder import Builder, guard_module  # noqa: E402

def best(guards, slots, count):
    assert guards.check(slots), guards.explain(slots)
    return min(guards.time(slots, count) for _ in range(200))


def tree(modules):
    """Like ResNet-18: blocks of two convolutions and two norms."""
    block = lambda: nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
    return nn.Sequential(*[block() for _ in range(max(1, modules // 6))])


def main():
    modules = int(sys.argv[1]) if len(sys.argv) > 1 else 61
    net, other = tree(modules), tree(modules)
    b = Builder()
    guard_module(b, b.slot(0), net)
    guards = b.build()
    count = len(list(net.modules()))
    print(f"{count} modules, {len(b.rows)} rows, {len(b.wanted)} tensors")
    print(f"  armed                     {best(guards, (net,), 200):8.0f}")
    assert guards.check((other,))
    print(f"  another instance          {best(guards, (other,), 200):8.0f}")
    print(f"  in turn                   {best_in_turn(guards, net, other):8.0f}")
    net.counter = 0

    def dirty():
        net.counter += 1
        return guards.time((net,), 1)

    print(f"  one dict dirty            {min(dirty() for _ in range(200)):8.0f}")
    print(f"  in full                   {min((guards.disarm(), guards.time((net,), 1))[1] for _ in range(50)):8.0f}")

    b = Builder()
    x = torch.ones(4, 4)
    for i in range(3):
        s = b.slot(i)
        b.row("Tensor", s, x)
        b.wanted.append(s)
    guards = b.build()
    print(f"3 tensors                   {best(guards, (x, x, x), 2000):8.1f}")
    b.row("Identity", b.item(b.const(globals()), "torch"), torch)
    b.row("Function", b.item(b.const(torch.__dict__), "einsum"), torch.einsum)
    guards = b.build()
    print(f"3 tensors, 2 globals        {best(guards, (x, x, x), 2000):8.1f}")


def best_in_turn(guards, net, other):
    a, b = (net,), (other,)
    return min((guards.time(a, 1) + guards.time(b, 1)) / 2 for _ in range(500))


main()
