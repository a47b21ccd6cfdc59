"""A module is compiled in place: it stays the same object, with its type, its state_dict, its hooks and train()/eval()."""
import copy

import torch

import framejit

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)).eval()
x = torch.randn(16, 32)

with torch.no_grad():
    want = model(x)
    keys = list(model.state_dict())
    assert framejit.compile(model, wait=True) is model
    for _ in range(3):
        torch.testing.assert_close(model(x), want)
    assert list(model.state_dict()) == keys

    model[0].bias.data += 1            # new values are simply used: nothing is copied into the graph
    torch.testing.assert_close(model(x), copy.deepcopy(model)(x))

    seen = []
    hook = model[1].register_forward_hook(lambda module, args, out: seen.append(out.shape))
    model(x)                           # a hook added later runs as well
    hook.remove()
    assert seen == [(16, 64)]

    with framejit.disabled():          # eager for a while
        model(x)
    print(framejit.report(model))
    assert framejit.disable(model) is model      # and back for good
