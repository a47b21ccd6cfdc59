"""Workloads on which framejit, eager and torch.compile are measured side by side.

Each is a function of `big` that returns (callable, arguments, trains): what is compiled, what it is called with, and whether a step also runs
backward. Nothing here imports framejit.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def frozen(module):
    return module.eval().requires_grad_(False)


# ---- kernels ----

def bias_gelu(big):
    rows, width = (16384, 4096) if big else (512, 768)
    return (lambda x, b: F.gelu(x + b)), (torch.randn(rows, width), torch.randn(width)), False


def chain20(big):
    n = 1 << 26 if big else 1 << 20

    def chain(x, y):
        z = x
        for _ in range(5):
            z = torch.sigmoid(z * y + 0.5)
            z = torch.where(z > 0.6, z - x, z + y)
        return z * torch.tanh(z)
    return chain, (torch.randn(n), torch.randn(n)), False


def layernorm_residual(big):
    rows, width = (32768, 4096) if big else (1024, 768)
    arguments = (torch.randn(rows, width), torch.randn(rows, width), torch.randn(width), torch.randn(width))
    return (lambda x, r, w, b: F.layer_norm(x + r, (x.shape[-1],), w, b)), arguments, False


def rmsnorm_bf16(big):
    rows, width = (32768, 8192) if big else (1024, 768)

    def rms_norm(x, w):
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (h * w.float()).to(torch.bfloat16)
    return rms_norm, (torch.randn(rows, width).bfloat16(), torch.randn(width).bfloat16()), False


def softmax(big):
    shape = (32768, 8192) if big else (1024, 1024)
    return (lambda x: torch.softmax(x * 0.125, dim=-1)), (torch.randn(shape),), False


def cross_entropy(big):
    rows, classes = (8192, 50304) if big else (256, 8192)
    return F.cross_entropy, (torch.randn(rows, classes), torch.randint(0, classes, (rows,))), False


def sum_reduce(big):
    return (lambda x: ((x * 2 + 1) ** 2).sum()), (torch.randn(1 << 28 if big else 1 << 22),), False


def item_break(big):
    def f(x):
        y = torch.sin(x) * 2 + 1
        total = y.sum().item()
        if total > 0:
            y = y * 2
        return torch.cos(y) + total
    return f, (torch.randn(1 << 24 if big else 1 << 16),), False


def adam_step(big):
    n, count = (1 << 22, 32) if big else (1 << 12, 8)

    def step(*tensors):
        out = []
        for p, g, m, v in zip(*[iter(tensors)] * 4):
            m = m.lerp(g, 0.1)
            v = v * 0.999 + g * g * 0.001
            out += [p - 1e-3 * m / (v.abs().sqrt() + 1e-8), m, v]
        return tuple(out)
    return step, tuple(torch.randn(n) for _ in range(4 * count)), False


# ---- models ----

class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.mlp = nn.Linear(width, 3 * width), nn.Linear(width, width), Mlp(width, 4 * width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (z.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for z in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


def tiny_mlp(big):
    return frozen(Mlp(16, 32)), (torch.randn(1, 16),), False


def mlp_infer(big):
    width, rows = (4096, 8192) if big else (256, 64)
    return frozen(Mlp(width, 4 * width)), (torch.randn(rows, width),), False


def mlp_train(big):
    width, rows = (2048, 8192) if big else (256, 64)
    return Mlp(width, 4 * width), (torch.randn(rows, width),), True


def _blocks(big):
    width, heads, length, batch, layers = (1024, 16, 1024, 16, 4) if big else (128, 4, 64, 2, 2)
    dtype = torch.bfloat16 if big else torch.float32
    model = nn.Sequential(*[Block(width, heads) for _ in range(layers)]).to(dtype)
    return model, (torch.randn(batch, length, width, dtype=dtype),)


def blocks_infer(big):
    model, arguments = _blocks(big)
    return frozen(model), arguments, False


def blocks_train(big):
    return (*_blocks(big), True)


def conv_bn_relu(big):
    channels, batch, side = (256, 32, 56) if big else (16, 2, 16)
    layers = [layer for _ in range(2) for layer in (nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())]
    return frozen(nn.Sequential(*layers)), (torch.randn(batch, channels, side, side),), False


WORKLOADS = {f.__name__: f for f in (
    bias_gelu, chain20, layernorm_residual, rmsnorm_bf16, softmax, cross_entropy, sum_reduce, item_break, adam_step,
    tiny_mlp, mlp_infer, mlp_train, blocks_infer, blocks_train, conv_bn_relu)}
