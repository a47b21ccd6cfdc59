"""Builds guard sets from Python: walks objects, makes sources and rows as a recording would, and resolves sources independently."""

import types

from framejit import _C

NULL = _C._GuardSet.NULL


class Builder:
    def __init__(self, names=("self", "x", "y", "z")):
        self.names = names
        self.sources = []  # (kind, parent, key, index), numbered from 1
        self.rows = []
        self.wanted = []

    def source(self, kind, parent=0, key=NULL, index=0):
        row = (kind, parent, key, index)
        self.sources.append(row)
        return len(self.sources)

    def slot(self, index):
        return self.source("Slot", index=index)

    def const(self, obj):
        return self.source("Const", key=obj)

    def attr(self, parent, name):
        """parent.__dict__[name]"""
        return self.source("Item", self.source("Dict", parent), name)

    def item(self, parent, key):
        return self.source("Item", parent, key)

    def at(self, parent, index):
        return self.source("Item", parent, NULL, index)

    def cell(self, function, index=0):
        """What the function's closure holds."""
        return self.source("CellValue", self.source("ClosureCell", function, NULL, index))

    def row(self, kind, source, expected=None, n=0):
        self.rows.append((kind, source, expected, n))

    def build(self):
        return _C._GuardSet(tuple(self.sources), tuple(self.rows), self.names, tuple(self.wanted))


def resolve(builder, source, slots):
    """What a source should resolve to, in plain Python; NULL for nothing."""
    kind, parent, key, index = builder.sources[source - 1]
    if kind == "Slot":
        return slots[index]
    if kind == "Const":
        return key
    p = resolve(builder, parent, slots)
    if p is NULL:
        return NULL
    if kind == "Dict":
        return getattr(p, "__dict__", NULL)
    if kind == "Item":
        if key is not NULL:
            return dict.get(p, key, NULL) if isinstance(p, dict) else NULL
        return p[index] if isinstance(p, (list, tuple)) and index < len(p) else NULL
    if kind == "TypeOf":
        return type(p)
    if kind == "TypeLookup":
        for base in (p if isinstance(p, type) else type(p)).__mro__:
            if key in base.__dict__:
                return base.__dict__[key]
        return NULL
    if kind == "Attr":
        return getattr(p, key, NULL)
    if kind == "ClosureCell":
        is_function = isinstance(p, types.FunctionType) and p.__closure__ and index < len(p.__closure__)
        return p.__closure__[index] if is_function else NULL
    if kind == "CellValue":
        return p.cell_contents if isinstance(p, types.CellType) else NULL
    if kind == "Default":
        is_function = isinstance(p, types.FunctionType) and p.__defaults__ and index < len(p.__defaults__)
        return p.__defaults__[index] if is_function else NULL
    if kind == "KwDefault":
        return p.__kwdefaults__.get(key, NULL) if isinstance(p, types.FunctionType) and p.__kwdefaults__ else NULL
    if kind == "MethodSelf":
        return getattr(p, "__self__", NULL)
    if kind == "MethodFunc":
        return getattr(p, "__func__", NULL)
    raise AssertionError(kind)


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def guard_module(b, source, module):
    """What calling a module and using its parameters, buffers and children leaves behind."""
    b.row("Type", source, type(module))
    found = b.source("TypeLookup", source, "forward")
    b.row("Function", found, type(module).forward)
    members = b.source("Dict", source)
    b.row("Value", b.item(members, "training"), module.training)
    for name in HOOKS:
        b.row("Length", b.item(members, name), None, 0)
    for kind in ("_parameters", "_buffers"):
        inside = b.item(members, kind)
        for name, tensor in getattr(module, kind).items():
            leaf = b.item(inside, name)
            if tensor is None:
                b.row("Value", leaf, None)
            else:
                b.row("Tensor", leaf, tensor)
                b.wanted.append(leaf)
    inside = b.item(members, "_modules")
    for name, child in module._modules.items():
        guard_module(b, b.item(inside, name), child)
