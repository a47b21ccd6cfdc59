"""The report as text, as a dictionary for tools, and as a page; why a function compiled again."""
import os
import tempfile

import torch

import framejit


class Style:
    smooth = True


def bend(x, style):
    return (x * 2 + 1).tanh() if style.smooth else (x * 2 + 1).relu()


fast, style = framejit.compile(bend, wait=True), Style()
with torch.no_grad():
    for smooth in (True, True, False, False):
        style.smooth = smooth          # a guard reads style.smooth: another value means another variant
        fast(torch.randn(64), style)

report = framejit.report(fast)
print(report)
assert [r["source"] for r in report.recompiles] == ["style.smooth"]

calls = report.to_dict()["functions"][0]["calls"]
print("calls:", calls)
assert calls["total"] == 4 and calls["compiled"] >= 1

page = os.path.join(tempfile.gettempdir(), "framejit_report.html")
report.to_html(page)
print("page:", page)

print(framejit.explain(bend)(torch.randn(8), style).totals)      # one call, without compiling `bend` for good
