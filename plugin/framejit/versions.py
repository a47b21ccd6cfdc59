"""Which CPython and torch this framejit runs on; asked at import, so that a wrong one is a clear error and never a crash.

Everything here runs on any Python 3, since refusing politely is its job. torch is not imported for the check: that takes a second, and
framejit's interpreter is useful without torch.
"""
import importlib
import importlib.util
import os
import re
import sys

from .errors import UnsupportedVersionError

MINIMUM_TORCH = (2, 10)


def extension():
    """framejit._C for this interpreter."""
    try:
        return importlib.import_module("framejit._C")
    except ModuleNotFoundError as error:
        if error.name != "framejit._C":
            raise
    except ImportError as error:
        if error.name is not None:      # the loader's; the extension's own refusal carries nothing but its reason
            raise
        raise UnsupportedVersionError(str(error)) from None
    folder = os.path.dirname(os.path.abspath(__file__))
    built = sorted({"%s.%s" % m.groups() for m in (re.match(r"_C\.cpython-(\d)(\d+)-", name) for name in os.listdir(folder)) if m})
    raise UnsupportedVersionError("this installation of framejit supports %s; this is %s %d.%d.%d" % (
        " and ".join("CPython " + version for version in built) or "no CPython (its extension is not built)",
        {"cpython": "CPython"}.get(sys.implementation.name, sys.implementation.name), *sys.version_info[:3]))


def torch_version():
    """The version of the torch that `import torch` finds, as text, or None without torch."""
    loaded = sys.modules.get("torch")
    if loaded is not None:
        return getattr(loaded, "__version__", None)
    try:
        found = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None:
        return None
    try:
        with open(os.path.join(os.path.dirname(found.origin), "version.py")) as file:
            return re.search(r"^__version__ *= *['\"]([^'\"]+)", file.read(), re.M).group(1)
    except (OSError, AttributeError):
        return getattr(importlib.import_module("torch"), "__version__", None)


def check_torch():
    version = torch_version()
    digits = re.match(r"(\d+)\.(\d+)", str(version or ""))
    if digits and tuple(map(int, digits.groups())) < MINIMUM_TORCH:
        raise UnsupportedVersionError("framejit supports torch >= %d.%d; this is torch %s" % (*MINIMUM_TORCH, version))
    return version
