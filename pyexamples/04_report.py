"""The report as text, as a dictionary for tools, and as a page; why a function compiled again."""
import os
import tempfile

import torch

import framejit


class Scaler:
    scale = 2


def shift(x, scaler):
    return (x * scaler.scale + 1).relu()


fast, scaler = framejit.compile(shift, wait=True), Scaler()
with torch.no_grad():
    for scale in (2, 2, 3, 3):
        scaler.scale = scale           # a guard reads scaler.scale: another value means another variant
        fast(torch.randn(64), scaler)

report = framejit.report(fast)
print(report)
assert [r["source"] for r in report.recompiles] == ["scaler.scale"]

calls = report.to_dict()["functions"][0]["calls"]
print("calls:", calls)
assert calls["total"] == 4 and calls["compiled"] >= 1

page = os.path.join(tempfile.gettempdir(), "framejit_report.html")
report.to_html(page)
print("page:", page)

print(framejit.explain(shift)(torch.randn(8), scaler).totals)      # one call, without compiling `shift` for good
