"""What framejit itself raises. Errors of the user's own code keep eager's type and message and never become one of these."""


class FramejitError(Exception):
    """Base of all errors that framejit raises."""


class GraphBreakError(FramejitError):
    """A function compiled with fullgraph=True met something that cannot be part of a graph."""


class RecompileError(FramejitError):
    """A function compiled with fullgraph=True needed more variants than recompile_limit allows."""


class UnsupportedVersionError(FramejitError, ImportError):
    """This CPython or this torch is not supported."""
