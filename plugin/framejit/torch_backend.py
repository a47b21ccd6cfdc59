"""torch.compile(model, backend="framejit"): torch finds this function through the package's entry points.

Dynamo hands over a graph module; for framejit that is a callable like any other.
"""
from .compiler import _check, _prepare_torch
from . import _C


def framejit(graph_module, example_inputs, *, mode=None, options=None):
    options = _check(False, None, False, mode, options, {})
    _prepare_torch()
    return _C.make_callable(graph_module.forward, options)
