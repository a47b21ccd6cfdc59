"""The report: what the engine counted, in one schema, with the answers to the four questions that users of a compiler have.

The schema (`to_dict`) is an interface for tools: FUNCTION, CALLS, REGION, BREAK and RECOMPILE name its keys, and a row of the engine that
lacks one is an error. Texts and pages are made from it in `render`.
"""
import inspect

from . import render

FUNCTION = ("name", "file", "line")
CALLS = ("total", "recorded", "eager", "compiled")
REGION = ("id", "line_from", "line_to", "ops", "fused_ops", "kernels", "externs", "entries", "record_ms", "compile_ms", "eager_ms",
          "compiled_ms", "break_even_calls", "checked")
BREAK = ("reason", "code", "file", "line", "count", "hint", "stack")
RECOMPILE = ("guard", "source", "expected", "got", "count")


def _pick(row, keys):
    return {key: row[key] for key in keys}


def _forward_of(target):
    """A module is shown by its class and its `forward`: what is compiled is torch's own `_call_impl`, the same for all modules."""
    module = getattr(target, "__self__", None)
    if module is None or getattr(target, "__name__", "") != "_call_impl":
        return {}
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    place = {"file": code.co_filename, "line": code.co_firstlineno} if code else {}
    return {"name": type(module).__qualname__, **place}


def _schema(row):
    return {
        **_pick(row, FUNCTION),
        "calls": _pick(row["calls"], CALLS),
        "regions": [_pick(r, REGION) for r in row["regions"]],
        "breaks": [_pick(b, BREAK) for b in row["breaks"]],
        "recompiles": [_pick(r, RECOMPILE) for r in row["recompiles"]],
    }


class Report:
    """Made by framejit.report(). `print(report)` shows it; `functions` are the engine's rows: the schema, and what texts use beyond it:
    `eager` (why a stretch stays eager), the function a region lies in, `ops_outside` (operators seen that no graph holds)."""

    def __init__(self, rows):
        self.functions = [{**row, **_forward_of(row.get("target"))} for row in rows]
        self._dictionary = [_schema(row) for row in self.functions]

    @classmethod
    def from_dict(cls, saved):
        """A report from what to_dict() gave."""
        rows = [dict(row) for row in saved["functions"]]
        if rows:
            rows[0]["ops_outside"] = saved["totals"]["ops_total"] - saved["totals"]["ops_captured"]
        return cls(rows)

    def _all(self, key):
        return [row for function in self.functions for row in function[key]]

    @property
    def graphs(self):
        """The regions of all functions."""
        return self._all("regions")

    @property
    def breaks(self):
        """One row per place where a graph breaks."""
        return self._all("breaks")

    @property
    def recompiles(self):
        """One row per guard that failed and made a region compile again."""
        return self._all("recompiles")

    @property
    def calls(self):
        """Calls of the compiled functions by what served them."""
        return {key: sum(f["calls"][key] for f in self.functions) for key in CALLS}

    @property
    def totals(self):
        """Sums: graphs and break places are counted, recompiles summed up."""
        captured = sum(region["ops"] for region in self.graphs)
        outside = sum(row.get("ops_outside", 0) for row in self.functions)
        return {"graphs": len(self.graphs), "breaks": len(self.breaks), "recompiles": sum(r["count"] for r in self.recompiles),
                "ops_captured": captured, "ops_total": captured + outside}

    def to_dict(self):
        return {"functions": self._dictionary, "totals": self.totals}

    def text(self, color=None):
        """The report as text. color: None means when stdout is a terminal and rich is installed."""
        return render.text(self, color)

    def to_html(self, path):
        """Writes the report as one page without outside references."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(render.html(self))

    def __str__(self):
        return render.text(self, color=False)

    def __repr__(self):
        totals = self.totals
        return (f"<framejit.Report: {len(self.functions)} functions, {totals['graphs']} graphs, {totals['breaks']} breaks, "
                f"{totals['recompiles']} recompiles>")
