"""framejit makes PyTorch programs fast without changing them.

    import framejit

    @framejit.compile          # a function
    def f(x): ...

    framejit.compile(model)    # a module, in place

    print(framejit.report())   # what was captured, where graphs break, what recompiles, what it costs
"""
from . import versions
from .errors import FramejitError, GraphBreakError, RecompileError, UnsupportedVersionError

__version__ = "0.1.0"

_C = versions.extension()
versions.check_torch()

from .compiler import compile, disable, disabled, explain, mark_dynamic, report, wait  # noqa: E402
from .config import config  # noqa: E402
from .report import Report  # noqa: E402


def __getattr__(name):
    # The engine's own functions: a Python frame in between would be the one that a report names.
    if name in ("assume_pure", "graph_break", "is_compiling", "reset"):
        return getattr(_C, name)
    raise AttributeError(f"module 'framejit' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)


__all__ = ["FramejitError", "GraphBreakError", "RecompileError", "Report", "UnsupportedVersionError", "assume_pure", "compile", "config",
           "disable", "disabled", "explain", "graph_break", "is_compiling", "mark_dynamic", "report", "reset", "wait"]
