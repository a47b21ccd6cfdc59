"""Options: for the process through framejit.config (or the environment), for one function through options=."""
import torch

import framejit

print(framejit.config)                 # every option: value, meaning, environment variable

with framejit.config.patch(recompile_limit=2):
    print("limit for a while:", framejit.config.recompile_limit)

try:
    framejit.config.log = "brakes"
except ValueError as error:
    print("refused:", error)


@framejit.compile(wait=True, options={"exact_random": True})
def noisy(x):
    return torch.nn.functional.dropout(x * 2, 0.5)


x = torch.ones(8)
with torch.no_grad():
    for seed in range(3):              # the same random numbers as eager, from torch's own generator
        torch.manual_seed(seed)
        want = noisy.__wrapped__(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(noisy(x), want, rtol=0, atol=0)
