"""The report's texts and pages, from rows written by hand, so that every part of them shows."""
import html.parser
import json
import re

import pytest

from framejit.report import BREAK, CALLS, RECOMPILE, REGION, Report

HERE = __file__
LINE = 12
SOURCE = "the line of a break is quoted"
REGION_ROW = dict(id=0, line_from=10, line_to=14, ops=22, fused_ops=18, kernels=3, externs=4, entries=1, record_ms=12.13, compile_ms=30.2,
                  eager_ms=1.2, compiled_ms=0.4, break_even_calls=53, checked=True)
BREAK_ROW = dict(reason="Python reads the value of a tensor", code="data", file=HERE, line=LINE, count=4, hint="keep it a <tensor>",
                 stack=["model.py:3 in f", "model.py:9 in g"])
RECOMPILE_ROW = dict(guard="Value", source="self.scale", expected="int 2", got="3", count=2)


def row(name="f", **changes):
    base = dict(name=name, file=HERE, line=9, calls=dict(total=10, recorded=1, eager=2, compiled=7), regions=[REGION_ROW], breaks=[BREAK_ROW],
                recompiles=[RECOMPILE_ROW], ops_outside=2)
    return dict(base, **changes)


def test_dictionary_has_the_schema_and_nothing_else():
    d = Report([row(extra=1), row("g", breaks=[], recompiles=[])]).to_dict()
    assert set(d) == {"functions", "totals"}
    function = d["functions"][0]
    assert set(function) == {"name", "file", "line", "calls", "regions", "breaks", "recompiles"}
    assert tuple(function["calls"]) == CALLS and tuple(function["regions"][0]) == REGION
    assert tuple(function["breaks"][0]) == BREAK and tuple(function["recompiles"][0]) == RECOMPILE
    assert d["totals"] == {"graphs": 2, "breaks": 1, "recompiles": 2, "ops_captured": 44, "ops_total": 48}
    assert json.loads(json.dumps(d)) == d


def test_a_row_without_a_key_is_an_error():
    with pytest.raises(KeyError):
        Report([row(regions=[{k: v for k, v in REGION_ROW.items() if k != "checked"}])])


def test_saved_reports_come_back():
    report = Report([row(), row("g")])
    again = Report.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.to_dict() == report.to_dict() and str(again) == str(report)


def test_text_answers_the_four_questions():
    text = str(Report([row()]))
    assert "yes: 22 of 24 operators (92%) in 1 graph" in text
    assert "1 place: data at " in text
    assert "yes: 2 times, most often because of self.scale" in text
    assert "7 of 10 calls ran compiled code; recording and compiling took 42 ms" in text


def test_text_shows_each_part():
    text = str(Report([row()]))
    assert "10 calls: 7 compiled, 2 eager, 1 recorded" in text
    for cell in ("10-14", "22", "18", "12", "30", "1.2", "0.4", "3.0x", "53 calls", "yes"):
        assert re.search(rf"(?<![\w.]){re.escape(cell)}(?![\w.])", text), cell
    assert f"test_report.py:{LINE}  data  4 times" in text and 'SOURCE = "the line of a break is quoted"' in text
    assert "Python reads the value of a tensor" in text and "keep it a <tensor>" in text and "model.py:9 in g" in text
    assert "self.scale: expected int 2, got 3" in text


@pytest.mark.parametrize("changes, said", [
    (dict(regions=[dict(REGION_ROW, ops=2)], ops_outside=8), "no: 2 of 10 operators"),
    (dict(regions=[], ops_outside=0), "no tensor operator was seen yet"),
    (dict(breaks=[]), "no: there are none"),
    (dict(breaks=[dict(BREAK_ROW, count=1), dict(BREAK_ROW, line=30, count=9)]), "2 places, the most frequent: data at "),
    (dict(calls=dict(total=0, recorded=0, eager=0, compiled=0)), "nothing was called yet"),
    (dict(regions=[dict(REGION_ROW, unchecked="it draws random numbers", checked=False)]), "not compared with eager: it draws random numbers"),
])
def test_other_answers(changes, said):
    assert said in str(Report([row(**changes)]))


def test_columns_that_nobody_measured_are_left_out():
    unknown = dict(REGION_ROW, eager_ms=None, compiled_ms=None, break_even_calls=None)
    assert "eager ms" in str(Report([row()])) and "eager ms" not in str(Report([row(regions=[unknown])]))
    assert "eager ms" in str(Report([row(regions=[unknown, REGION_ROW])]))


def test_what_stays_eager_is_said_but_not_in_the_schema(tmp_path):
    note = dict(why="the recompile limit (8) is reached", file=HERE, line=LINE, count=3)
    report = Report([row(eager=[note], regions=[dict(REGION_ROW, function="inner")])])
    report.to_html(str(tmp_path / "page.html"))
    for text in (str(report), (tmp_path / "page.html").read_text()):
        assert "the recompile limit (8) is reached" in text and "inner:10-14" in text
    assert "no: it stays eager, for the reasons below" in str(Report([row(eager=[note], regions=[], ops_outside=0)]))
    assert "eager" not in report.to_dict()["functions"][0] and "function" not in report.to_dict()["functions"][0]["regions"][0]


def test_a_module_is_shown_by_its_forward():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def forward(self, x):
            return x
    [function] = Report([row(target=Net()._call_impl)]).to_dict()["functions"]
    assert function["name"].endswith("Net") and function["file"] == HERE
    assert function["line"] == Net.forward.__code__.co_firstlineno


def test_an_empty_report():
    assert "nothing was compiled" in str(Report([])) and "0 graphs" in repr(Report([]))


def test_colours_change_no_content():
    pytest.importorskip("rich")
    report = Report([row(), row("g", breaks=[])])
    coloured = report.text(color=True)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == report.text(color=False).splitlines()


def test_html_is_whole_and_escaped(tmp_path):
    pytest.importorskip("jinja2")
    path = tmp_path / "report.html"
    Report([row("<lambda>")]).to_html(str(path))
    page = path.read_text()
    open_tags, texts = [], []

    class Checker(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag != "meta":
                open_tags.append(tag)

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

        def handle_data(self, data):
            texts.append(data)
    Checker().feed(page)
    assert not open_tags
    content = " ".join("".join(texts).split())
    for piece in ("<lambda>", "keep it a <tensor>", "22 of 24 operators", "self.scale: expected int 2, got 3", "model.py:9 in g", "3.0x"):
        assert piece in content
    assert "http" not in page      # nothing is loaded from elsewhere


def test_what_is_measured():
    """The times of the operators as recorded, and of the fastest compiled run; when recording and compiling have paid."""
    torch = pytest.importorskip("torch")
    import framejit

    @framejit.compile(wait=True)
    def f(x):
        return (x.sin() + x.cos()).tanh().sum()

    with torch.no_grad():
        x = torch.rand(100_000)
        f(x)
        [region] = framejit.report(f).graphs
        assert region["eager_ms"] > 0 and region["compiled_ms"] is None and region["break_even_calls"] is None
        for _ in range(5):
            f(x)
    [region] = framejit.report(f).graphs
    assert 0 < region["compiled_ms"] < 1000 and region["eager_ms"] < region["record_ms"]
    gain = region["eager_ms"] - region["compiled_ms"]
    assert (region["break_even_calls"] is None) == (gain <= 0)
    if gain > 0:
        assert (region["break_even_calls"] - 1) * gain <= region["record_ms"] + region["compile_ms"] - region["eager_ms"] <= (
            region["break_even_calls"] * gain + 1e-6)
