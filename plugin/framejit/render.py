"""How a report looks: as text (plain, or coloured by rich on a terminal) and as a page.

A line is a list of (text, style) pieces, so that plain and coloured output cannot differ in content.
"""
import io
import linecache
import os
import shutil
import sys

from . import _C

STYLES = {"title": "bold", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "code": "cyan", "": ""}


# ---- the four questions ----

def plural(count, word):
    return f"{count} {word}" + ("" if count == 1 else "s")


def answers(report):
    """(question, answer, style) for each of the four questions."""
    return [("Did it capture enough of my program?", *_captured(report)), ("Do graph breaks limit it?", *_broken(report)),
            ("Do changing inputs make it recompile?", *_recompiled(report)), ("Compile time, or steady state?", *_steady(report))]


def _captured(report):
    totals = report.totals
    captured, total = totals["ops_captured"], totals["ops_total"]
    if not report.functions:
        return "nothing was compiled", "warn"
    if _C.get_option("disable"):
        return "framejit is off (option disable)", "warn"
    if not total and any(function.get("eager") for function in report.functions):
        return "no: it stays eager, for the reasons below", "bad"
    if not total:
        return "no tensor operator was seen yet", "warn"
    share = captured / total
    word, style = ("yes", "good") if share > 0.9 else ("partly", "warn") if share > 0.5 else ("no", "bad")
    return f"{word}: {captured} of {plural(total, 'operator')} ({share:.0%}) in {plural(totals['graphs'], 'graph')}", style


def _broken(report):
    if not report.breaks:
        return "no: there are none", "good"
    worst = max(report.breaks, key=lambda b: b["count"])
    more = "" if len(report.breaks) == 1 else ", the most frequent"
    return f"{plural(len(report.breaks), 'place')}{more}: {worst['code']} at {place(worst)}", "warn"


def _recompiled(report):
    if not report.recompiles:
        return "no", "good"
    worst = max(report.recompiles, key=lambda r: r["count"])
    return f"yes: {plural(report.totals['recompiles'], 'time')}, most often because of {worst['source']}", "warn"


def _steady(report):
    calls = report.calls
    spent = sum((r["record_ms"] or 0) + (r["compile_ms"] or 0) for r in report.graphs)
    if not calls["total"]:
        return "nothing was called yet", "warn"
    style = "good" if calls["compiled"] * 2 > calls["total"] else "warn"
    return f"{calls['compiled']} of {plural(calls['total'], 'call')} ran compiled code; recording and compiling took {spent:.0f} ms", style


# ---- lines ----

def short_path(path):
    near = os.path.relpath(path) if os.path.isabs(path) else path
    return path if near.startswith("..") else near


def place(row):
    return f"{short_path(row['file'])}:{row['line']}"


def source_line(row):
    return linecache.getline(row["file"], row["line"]).strip()


def milliseconds(value):
    return "-" if value is None else f"{value:.3g}" if value < 10 else f"{value:.0f}"


def region_place(region, function):
    """Lines; before them the name of the function when the graph lies in one that the compiled function calls."""
    inner = region.get("function", function["name"])
    if inner.endswith("._call_impl"):
        return "call"       # of a module, with its hooks: lines in torch's own source say nothing
    return ("" if inner == function["name"] else inner + ":") + f"{region['line_from']}-{region['line_to']}"


def region_cells(region, function):
    """One row of the table of graphs: header -> text. The page and the text show the same columns."""
    eager, compiled = region["eager_ms"], region["compiled_ms"]
    calls = region["break_even_calls"]
    return {
        "graph": str(region["id"]), "lines": region_place(region, function), "operators": str(region["ops"]),
        "fused": str(region["fused_ops"]), "kernels": str(region["kernels"]), "by torch": str(region["externs"]),
        "variants": str(region["entries"]), "record ms": milliseconds(region["record_ms"]), "compile ms": milliseconds(region["compile_ms"]),
        "eager ms": milliseconds(eager), "compiled ms": milliseconds(compiled),
        "speed": f"{eager / compiled:.1f}x" if eager and compiled else "-",
        "pays after": "-" if calls is None else plural(int(calls), "call"), "checked": _checked(region["checked"]),
    }


def _checked(value):
    return {True: "yes", False: "no", None: "-"}.get(value, str(value))


def _table(rows):
    known = [key for key in rows[0] if any(row[key] != "-" for row in rows)]     # not: what nobody has measured
    widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in known}
    yield [("  " + "  ".join(key.rjust(width) for key, width in widths.items()), "dim")]
    for row in rows:
        yield [("  " + "  ".join(row[key].rjust(width) for key, width in widths.items()), "")]


def _break_lines(row):
    yield [("  break ", "warn"), (place(row), "title"), (f"  {row['code']}", "warn"), (f"  {plural(row['count'], 'time')}", "dim")]
    line = source_line(row)
    if line:
        yield [("      " + line, "code")]
    yield [("      why   ", "dim"), (row["reason"], "")]
    yield [("      hint  ", "dim"), (row["hint"], "good")]
    for number, frame in enumerate(row["stack"]):
        yield [("      from  " if number == 0 else "            ", "dim"), (str(frame), "dim")]


def _recompile_line(row):
    return [("  recompile ", "warn"), (f"{row['source']}: expected {row['expected']}, got {row['got']}", ""),
            (f"  ({row['guard']}, {plural(row['count'], 'time')})", "dim")]


def _function_lines(function):
    calls = function["calls"]
    yield []
    yield [(function["name"], "title"), (f"  {place(function)}", "dim")]
    kinds = ", ".join(f"{calls[kind]} {kind}" for kind in ("compiled", "eager", "recorded") if calls[kind])
    yield [(f"  {plural(calls['total'], 'call')}" + (f": {kinds}" if kinds else ""), "")]
    if function["regions"]:
        yield from _table([region_cells(region, function) for region in function["regions"]])
    for region in function["regions"]:
        if region.get("unchecked"):
            yield [(f"  graph {region['id']} was not compared with eager: {region['unchecked']}", "dim")]
    for row in function["breaks"]:
        yield from _break_lines(row)
    for row in function["recompiles"]:
        yield _recompile_line(row)
    for row in function.get("eager", ()):
        yield [("  eager ", "bad"), (place(row), "title"), (f"  {row['why']}", ""), (f"  ({plural(row['count'], 'time')})", "dim")]


def lines(report):
    yield [("framejit report", "title")]
    rows = answers(report)
    width = max(len(question) for question, _, _ in rows)
    for question, answer, style in rows:
        yield [(f"  {question:{width}s}  ", ""), (answer, style)]
    for function in report.functions:
        yield from _function_lines(function)


# ---- output ----

def text(report, color=None):
    if color is None:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    rich = _rich() if color else None
    if rich is None:
        return "\n".join("".join(piece for piece, _ in line).rstrip() for line in lines(report))
    console_type, text_type = rich
    out = io.StringIO()
    console = console_type(file=out, force_terminal=True, width=max(shutil.get_terminal_size().columns, 40), highlight=False)
    for line in lines(report):
        console.print(text_type.assemble(*((piece, STYLES[style]) for piece, style in line)), soft_wrap=True)
    return out.getvalue().rstrip("\n")


def _rich():
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return None
    return Console, Text


def html(report):
    try:
        import jinja2
    except ImportError:
        raise ImportError("Report.to_html() needs jinja2: pip install jinja2") from None
    with open(os.path.join(os.path.dirname(__file__), "report.html.j2"), encoding="utf-8") as file:
        template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(file.read())
    return template.render(report=report, answers=answers(report), place=place, source_line=source_line, region_cells=region_cells,
                           plural=plural)
