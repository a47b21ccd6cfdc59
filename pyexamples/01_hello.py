"""A function and a small transformer: the same results, faster, and what framejit did."""
import time

import torch
import torch.nn.functional as F

import framejit


@framejit.compile
def gelu_norm(x, w):
    h = F.gelu(x * w + 1)
    return h / h.norm(dim=-1, keepdim=True)


def seconds(fn, *args):
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        fn(*args)
        best = min(best, time.perf_counter() - start)
    return best


def compare(name, eager, compiled, *args):
    torch.testing.assert_close(compiled(*args), eager(*args))      # the first call records; it runs as eager does
    framejit.wait()                                                # compiling goes on in the background: only a benchmark waits for it
    torch.testing.assert_close(compiled(*args), eager(*args))
    slow, fast = seconds(eager, *args), seconds(compiled, *args)
    print(f"{name:12s} eager {slow * 1e3:7.3f} ms   framejit {fast * 1e3:7.3f} ms   {slow / fast:.1f}x")


with torch.no_grad():
    compare("gelu_norm", gelu_norm.__wrapped__, gelu_norm, torch.randn(256, 512), torch.randn(512))

    layer = torch.nn.TransformerEncoderLayer(d_model=64, nhead=4, dim_feedforward=256, batch_first=True, norm_first=True)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), layer, torch.nn.Linear(64, 16)).train(False)
    compiled = framejit.compile(torch.nn.Sequential(*model))       # its own Sequential, so that `model` stays eager
    compare("transformer", model, compiled, torch.randn(4, 32, 16))

print(f"\n{framejit.report()}")
