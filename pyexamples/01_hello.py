"""A function and a small transformer: the same results, faster, and what framejit did."""
import timeit
import torch
import torch.nn.functional as F
import framejit


def gelu_norm(x, w):
    h = F.gelu(x * w + 1)
    return h / h.norm(dim=-1, keepdim=True)


class Block(torch.nn.Module):
    def __init__(self, d=64, heads=4):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.mlp = torch.nn.Sequential(torch.nn.LayerNorm(d), torch.nn.Linear(d, 4 * d), torch.nn.GELU(), torch.nn.Linear(4 * d, d))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(F.layer_norm(x, x.shape[-1:])).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def compare(name, fn, *args):
    want = fn(*args)
    eager = min(timeit.repeat(lambda: fn(*args), number=10, repeat=20)) / 10
    compiled = framejit.compile(fn)                # of a module: in place
    torch.testing.assert_close(compiled(*args), want)      # the first call runs as eager does, and is recorded
    framejit.wait()                                # until nothing is compiling, for the benchmark's sake
    torch.testing.assert_close(compiled(*args), want)
    fast = min(timeit.repeat(lambda: compiled(*args), number=10, repeat=20)) / 10
    print(f"{name:12s} eager {eager * 1e3:7.3f} ms   framejit {fast * 1e3:7.3f} ms   {eager / fast:.1f}x")
    return compiled


with torch.no_grad():
    f = compare("gelu_norm", gelu_norm, torch.randn(256, 512), torch.randn(512))
    model = compare("transformer", torch.nn.Sequential(Block(), Block()).eval(), torch.randn(4, 32, 64))
print(f"\n{framejit.report()}")
