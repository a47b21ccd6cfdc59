"""framejit.config: every option of the process, read from the engine's one table.

    framejit.config.recompile_limit            read
    framejit.config.recompile_limit = 4        write; a bad name or value raises and names the valid ones
    with framejit.config.patch(numerics="fast"): ...
    print(framejit.config)                     all of them, with environment variables, defaults and help
"""
import contextlib

from . import _C


class Config:
    __slots__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)      # protocols that probe (copy, pickle) expect this
        try:
            return _C.get_option(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name, value):
        _C.set_option(name, value)

    def __dir__(self):
        return [row["name"] for row in self] + ["patch", "to_dict"]

    def __iter__(self):
        """The rows of the table: name, variable, type, default, choices, scope, help."""
        return iter(_C.options())

    def to_dict(self):
        return {row["name"]: _C.get_option(row["name"]) for row in self}

    @contextlib.contextmanager
    def patch(self, **values):
        """Other values for a while; all are checked before the first is set."""
        before = {name: _C.get_option(name) for name in values}
        try:
            for name, value in values.items():
                _C.set_option(name, value)
            yield self
        finally:
            for name, value in before.items():
                _C.set_option(name, value)

    def __repr__(self):
        rows = []
        for row in self:
            value, default = _C.get_option(row["name"]), row["default"]
            choices = f" [{', '.join(row['choices'])}]" if row["choices"] else ""
            changed = "" if value == default else f" (default {default!r})"
            rows.append(f"{row['name']:16s} = {value!r:10}{changed}  {row['help']}{choices}; {row['variable']}")
        return "\n".join(rows)


config = Config()
