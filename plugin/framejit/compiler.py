"""compile() and what surrounds it: which kind of object was given, are the options good, and back again.

What a call costs lies in the engine (`_C`): this module only decides what to hand to `_C.make_callable`, a function or a bound method.

    function, method        a C callable that behaves like the function
    nn.Module               in place, through torch's own hook `_compiled_call_impl`; the module itself is returned
    class with __call__     in place: its __call__ is compiled
    object with __call__    a C callable for its bound __call__
    partial, C callable     the function inside; a small Python function around it
"""
import contextlib
import functools
import sys
import threading
import types

from . import _C, versions
from .report import Report

KEYWORDS = ("fullgraph", "dynamic", "wait", "mode", "options")
# torch.compile's modes are accepted, so that a call can be moved over as it is. framejit has one mode: nothing depends on this word.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

_first_compile = threading.Lock()
_torch_is_ready = False


def compile(model=None, *, fullgraph=False, dynamic=None, wait=False, mode=None, options=None, **unknown):
    """Makes a function, method, module or callable object fast. Also a decorator, with and without arguments.

    fullgraph   raise GraphBreakError instead of running anything after a graph break
    dynamic     None, True or False: a hint about sizes that will change. In this version new sizes always make a new variant
    wait        calls wait for the compiler (in this version they always do: the call that recorded compiles)
    mode        accepted for torch.compile's sake
    options     a dict of options for this function (see framejit.config; those of scope "function")

    A module is compiled in place and returned: `framejit.compile(m) is m`.
    """
    checked = _check(fullgraph, dynamic, wait, mode, options, unknown)
    if model is None:
        return lambda target: _compile(target, checked)
    return _compile(model, checked)


def _check(fullgraph, dynamic, wait, mode, options, unknown):
    if unknown:
        raise TypeError(f"compile() got an unknown argument '{next(iter(unknown))}'; valid arguments: {', '.join(KEYWORDS)}")
    for name, value, types_ok in (("fullgraph", fullgraph, (bool,)), ("wait", wait, (bool,)), ("dynamic", dynamic, (bool, type(None)))):
        if not isinstance(value, types_ok):
            raise TypeError(f"{name} must be {' or '.join('None' if t is type(None) else t.__name__ for t in types_ok)}, "
                            f"not {type(value).__name__}")
    if mode is not None and mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; valid modes: {', '.join(MODES)}")
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"options must be a dict, not {type(options).__name__}")
    _C.check_function_options(options or {})
    return {"fullgraph": fullgraph, "dynamic": dynamic, "wait": wait, **(options or {})}


def _compile(target, options):
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_compile(target.__func__, options))
    if not callable(target):
        raise TypeError(f"framejit.compile() takes a function, a method, a module or another callable, not {type(target).__name__}")
    _prepare_torch()
    if _is_module(target):
        target._compiled_call_impl = _C.make_callable(target._call_impl, options)
        return target
    if isinstance(target, type):
        return _compile_class(target, options)
    return _C.make_callable(_python_function(target), options)


def _prepare_torch():
    """Once, at the first compile: importing framejit alone neither needs nor loads torch."""
    global _torch_is_ready
    if _torch_is_ready:
        return
    with _first_compile:
        if not _torch_is_ready:
            import torch  # noqa: F401  (the engine finds it in sys.modules)
            versions.check_torch()
            _C.init_torch()
            _torch_is_ready = True


def _reduced(compiled, target, options):
    """For pickle: the name that leads to `compiled`, as with functions; where it leads to something else, compile() of the original."""
    found = sys.modules.get(compiled.__module__)
    for name in compiled.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is compiled:
        return compiled.__qualname__
    own = {name: value for name, value in options.items() if name in KEYWORDS}
    own["options"] = {name: value for name, value in options.items() if name not in KEYWORDS} or None
    return functools.partial(compile, **own), (target,)


def _is_compiled(target):
    """What make_callable returned, for a function or for a bound method."""
    return isinstance(target, (_C.CompiledFunction, _C.CompiledMethod))


def _is_module(target):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(target, torch.nn.Module)


def _compile_class(target, options):
    own = next((c.__dict__["__call__"] for c in target.__mro__ if "__call__" in c.__dict__), None)
    if not isinstance(own, types.FunctionType) or issubclass(target, sys.modules["torch"].nn.Module):
        raise TypeError(f"framejit.compile() takes a class only for a __call__ written in Python; compile an instance of {target.__name__}")
    target.__call__ = _C.make_callable(own, options)
    return target


def _python_function(target):
    """A Python function or bound method that does what calling `target` does."""
    if _is_compiled(target):
        return target.__wrapped__
    if isinstance(target, types.FunctionType):
        return target
    if isinstance(target, types.MethodType):
        if isinstance(target.__func__, types.FunctionType):
            return target
        return types.MethodType(_python_function(target.__func__), target.__self__)
    call = getattr(type(target), "__call__", None)
    if isinstance(call, types.FunctionType):
        return types.MethodType(call, target)

    def call_native(*args, **kwargs):
        return target(*args, **kwargs)
    with contextlib.suppress(AttributeError, TypeError):
        functools.update_wrapper(call_native, target)
    return call_native


def compiled_callables(target):
    """The engine's callables behind what compile() returned: one, or those of the compiled parts of a module."""
    if _is_compiled(target):
        return [target]
    if isinstance(target, types.MethodType):
        return compiled_callables(target.__func__)
    if isinstance(target, type):
        return compiled_callables(target.__dict__.get("__call__"))
    if _is_module(target):
        found = [m.__dict__.get("_compiled_call_impl") for m in target.modules()]
        return [c for c in found if _is_compiled(c)]
    return []


def report(compiled=None):
    """What framejit did: for everything compiled so far, or for one compiled function or module."""
    if compiled is None:
        return Report(_C.report(None))
    found = compiled_callables(compiled)
    if not found:
        raise TypeError(f"framejit.report() takes what framejit.compile() returned; this {type(compiled).__name__} is not compiled")
    return Report([row for callable_ in found for row in _C.report(callable_)])


def explain(fn, **arguments):
    """`explain(fn)(*args)` runs fn once, as compile(fn) would, leaves fn as it is, and returns the report."""
    checked = _check(**{"fullgraph": False, "dynamic": None, "wait": True, "mode": None, "options": None,
                        **{k: v for k, v in arguments.items() if k in KEYWORDS}},
                     unknown={k: v for k, v in arguments.items() if k not in KEYWORDS})
    if not callable(fn):
        raise TypeError(f"framejit.explain() takes a callable, not {type(fn).__name__}")

    @functools.wraps(fn, updated=())
    def run_once(*args, **kwargs):
        _prepare_torch()
        compiled = _C.make_callable(fn._call_impl if _is_module(fn) else _python_function(fn), checked)
        compiled(*args, **kwargs)
        return Report(_C.report(compiled))
    return run_once


class disabled(contextlib.ContextDecorator):
    """`with framejit.disabled():` runs compiled functions of this thread eager."""

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(_C.set_enabled(False))
        return self

    def __exit__(self, *_):
        _C.set_enabled(self._before.pop())


def disable(target):
    """A module: takes compile() back. A function: a version that always runs eager, and ends the graph of a compiled caller."""
    if _is_module(target):
        if _is_compiled(target.__dict__.get("_compiled_call_impl")):
            del target._compiled_call_impl
        return target
    if not callable(target):
        raise TypeError(f"framejit.disable() takes a function or a module, not {type(target).__name__}")
    function = target.__wrapped__ if _is_compiled(target) else target

    @functools.wraps(function, updated=())
    def eager(*args, **kwargs):
        with disabled():
            return function(*args, **kwargs)
    eager._framejit_disable = True   # the recorder breaks where it is called
    return eager


def wait(timeout=None):
    """Until nothing is compiling, at most `timeout` seconds. True when everything is compiled."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise TypeError(f"timeout must be a number of seconds or None, not {type(timeout).__name__}")
    return _C.wait(timeout)


def mark_dynamic(tensor, dim, min=None, max=None):
    """Says that a dimension of an input will vary, within [min, max] when given: a hint, kept on the tensor."""
    rank = tensor.dim()
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"dim must be int, not {type(dim).__name__}")
    if not -rank <= dim < rank:
        raise IndexError(f"dim {dim} is out of range for a tensor of {rank} dimensions")
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int) or bound < 0):
            raise ValueError(f"{name} must be None or a size, not {bound!r}")
    if min is not None and max is not None and min > max:
        raise ValueError(f"min {min} is larger than max {max}")
    marks = dict(getattr(tensor, "_framejit_dynamic", {}))
    marks[dim % rank] = (min, max)
    tensor._framejit_dynamic = marks
