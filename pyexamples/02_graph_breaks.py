"""Where Python must see data, a graph ends and the next one begins on the next line. The report says where, and what would help."""
import torch

import framejit


@framejit.compile(wait=True)
def scaled(x):
    y = torch.tanh(x) * 2
    if y.sum().item() > 0:             # Python looks at a value: a break
        return y + 1
    return y - 1


@framejit.compile(wait=True)
def scaled_in_one_graph(x):
    y = torch.tanh(x) * 2
    return torch.where(y.sum() > 0, y + 1, y - 1)


with torch.no_grad():
    for sign in (1, -1, 1, -1):
        x = sign * torch.rand(1000)
        torch.testing.assert_close(scaled(x), scaled.__wrapped__(x))
        torch.testing.assert_close(scaled_in_one_graph(x), scaled(x))

print(framejit.report(scaled))
assert framejit.report(scaled).breaks and not framejit.report(scaled_in_one_graph).breaks

try:                                   # fullgraph=True makes a break an error, before anything after it has run
    framejit.compile(scaled.__wrapped__, fullgraph=True, wait=True)(torch.ones(3))
except framejit.GraphBreakError as error:
    print(f"fullgraph: {error}")
