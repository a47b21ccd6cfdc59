"""torch.compile(model, backend="framejit"): torch finds this function through the package's entry points.

Dynamo hands over a graph module; for framejit that is a callable like any other. Its `forward` may be a placeholder that writes the real one
when it is first called: that is asked for now.
"""
from . import _C
from .compiler import _check, _prepare_torch


def framejit(graph_module, example_inputs, *, mode=None, options=None):
    options = _check(False, None, False, mode, options, {})
    _prepare_torch()
    from torch.fx._lazy_graph_module import _LazyGraphModule
    _LazyGraphModule.force_recompile(graph_module)
    return _C.make_callable(graph_module.forward, options)
