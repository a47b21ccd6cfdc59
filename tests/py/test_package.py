"""The public package: what it refuses and how, what it leaves alone, options, versions, the command line."""
import copy
import importlib.metadata
import json
import os
import pickle
import shutil

import pytest
import torch

import framejit
from conftest import ROOT


def double(x):
    return x * 2


# ---- bad input ----

@pytest.mark.parametrize("call, error, said", [
    (lambda: framejit.compile(3), TypeError, "not int"),
    (lambda: framejit.compile("f"), TypeError, "function"),
    (lambda: framejit.compile(torch.nn.Linear), TypeError, "instance of Linear"),
    (lambda: framejit.compile(double, nonsense=1), TypeError, "fullgraph, dynamic, wait, mode, options"),
    (lambda: framejit.compile(double, fullgraph="yes"), TypeError, "bool"),
    (lambda: framejit.compile(double, dynamic=1), TypeError, "bool or None"),
    (lambda: framejit.compile(double, wait=None), TypeError, "bool"),
    (lambda: framejit.compile(double, mode="fastest"), ValueError, "max-autotune"),
    (lambda: framejit.compile(double, options=[1]), TypeError, "dict"),
    (lambda: framejit.compile(double, options={"exact_randm": True}), ValueError, "exact_random"),
    (lambda: framejit.compile(double, options={"exact_random": "maybe"}), TypeError, "bool"),
    (lambda: framejit.compile(double, options={"numerics": "slow"}), ValueError, "eager, fast"),
    (lambda: framejit.compile(double, options={"log": "breaks"}), ValueError, "framejit.config"),
    (lambda: framejit.compile(nonsense=1), TypeError, "nonsense"),
    (lambda: framejit.disable(3), TypeError, "int"),
    (lambda: framejit.report(double), TypeError, "not compiled"),
    (lambda: framejit.report(torch.nn.Linear(2, 2)), TypeError, "not compiled"),
    (lambda: framejit.explain(3), TypeError, "int"),
    (lambda: framejit.explain(double, nonsense=1), TypeError, "nonsense"),
    (lambda: framejit.wait("soon"), TypeError, "str"),
    (lambda: framejit.mark_dynamic(torch.ones(2), 1), IndexError, "dim 1"),
    (lambda: framejit.mark_dynamic(torch.ones(2), 0, min=5, max=2), ValueError, "larger"),
    (lambda: framejit.nonsense, AttributeError, "nonsense"),
])
def test_bad_input_names_what_would_be_accepted(call, error, said):
    with pytest.raises(error) as caught:
        call()
    assert said in str(caught.value)


# ---- what can be compiled ----

def test_decorator_with_and_without_arguments():
    @framejit.compile
    def plain(x):
        """Adds one."""
        return x + 1

    @framejit.compile(wait=True)
    def with_arguments(x):
        return x + 2
    assert (plain(torch.ones(2)) == 2).all() and (with_arguments(torch.ones(2)) == 3).all()
    assert plain.__name__ == "plain" and plain.__doc__ == "Adds one." and plain.__wrapped__.__code__.co_name == "plain"


def test_methods_objects_classes_and_c_callables():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

        @framejit.compile
        def method(self, x):
            return x + self.by

        @framejit.compile
        @staticmethod
        def static(x):
            return x - 1

        @framejit.compile
        @classmethod
        def of_class(cls, x):
            return cls.__name__, x + 1
    x = torch.ones(3)
    for _ in range(3):
        assert (framejit.compile(Scale(3))(x) == 3).all()
        assert (Scale(4).method(x) == 5).all() and (Scale.static(x) == 0).all()
        name, y = Scale(1).of_class(x)
        assert name == "Scale" and (y == 2).all()
        assert (framejit.compile(torch.add)(x, x) == 2).all()
    assert framejit.compile(Scale) is Scale
    assert (Scale(7)(x) == 7).all()


def test_compiling_twice_compiles_the_function():
    once = framejit.compile(double)
    assert framejit.compile(once, wait=True).__wrapped__ is double


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


def test_module_is_compiled_in_place_and_stays_itself():
    net, x = Net(), torch.randn(2, 4)
    with torch.no_grad():
        want, keys = net(x), list(net.state_dict())
        assert framejit.compile(net, wait=True) is net
        for _ in range(3):
            torch.testing.assert_close(net(x), want)
        assert list(net.state_dict()) == keys and type(net) is Net
        for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            torch.testing.assert_close(twin(x), want)
        assert framejit.report(net).functions[0]["name"] == "Net"
        assert framejit.disable(net) is net
        torch.testing.assert_close(net(x), want)
    with pytest.raises(TypeError, match="not compiled"):
        framejit.report(net)


def test_disable_and_disabled_run_eager():
    f = framejit.compile(double, wait=True)
    x = torch.ones(3)
    for _ in range(3):
        f(x)
    before = framejit.report(f).calls["compiled"]
    with framejit.disabled():
        with framejit.disabled():
            assert (f(x) == 2).all()
        assert (f(x) == 2).all()
    assert framejit.report(f).calls["compiled"] == before
    f(x)
    assert framejit.report(f).calls["compiled"] == before + 1
    eager = framejit.disable(f)
    assert (eager(x) == 2).all() and eager.__name__ == "double"


def test_explain_runs_once_and_leaves_the_function_alone():
    calls = []

    def f(x):
        calls.append(1)
        return x.sum().item()
    report = framejit.explain(f)(torch.ones(3))
    assert calls == [1] and [b["code"] for b in report.breaks] == ["data"]


def test_mark_dynamic_remembers_each_dimension():
    x = torch.ones(2, 3)
    framejit.mark_dynamic(x, 0)
    framejit.mark_dynamic(x, -1, min=2, max=9)
    assert x._framejit_dynamic == {0: (None, None), 1: (2, 9)}


def test_report_remembers_functions_that_are_gone(python):
    code = """
import gc, sys, torch, framejit
def once(k):
    def local(x): return x + k
    f = framejit.compile(local, wait=True)
    for _ in range(3): f(torch.ones(2))
    net = framejit.compile(torch.nn.Linear(2, 2).requires_grad_(False), wait=True)
    for _ in range(2): net(torch.ones(1, 2))
for k in range(5): once(k)
gc.collect()
rows = {f["name"]: f for f in framejit.report().to_dict()["functions"]}
assert sorted(rows) == ["Linear", "once.<locals>.local"], rows
assert rows["once.<locals>.local"]["calls"]["total"] == 15 and rows["once.<locals>.local"]["regions"][0]["ops"] == 1
assert rows["Linear"]["calls"]["total"] == 10 and rows["Linear"]["calls"]["compiled"] >= 5
keep = [framejit.compile(lambda x: x * 2, wait=True) for _ in range(3)]
[f(torch.ones(2)) for f in keep]
framejit.reset()
assert all(not f["calls"]["total"] for f in framejit.report().to_dict()["functions"])
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


# ---- options ----

def test_config_reads_writes_and_patches():
    assert framejit.config.recompile_limit == 8 and framejit.config.numerics == "eager" and framejit.config.self_check is True
    with framejit.config.patch(recompile_limit=3, log="breaks,cache"):
        assert framejit.config.recompile_limit == 3 and framejit.config.log == "breaks,cache"
        framejit.config.recompile_limit = 4
    assert framejit.config.recompile_limit == 8 and framejit.config.log == ""
    text = repr(framejit.config)
    for row in framejit.config:
        assert row["name"] in text and row["variable"] in text and row["help"] in text


def test_config_refuses_and_keeps_the_old_value():
    with pytest.raises(ValueError, match="recompile_limit"):
        framejit.config.recompile_limt = 3
    with pytest.raises(AttributeError, match="recompile_limit"):
        framejit.config.recompile_limt
    with pytest.raises(TypeError, match="int"):
        framejit.config.recompile_limit = "3"
    with pytest.raises(ValueError, match="breaks, guards"):
        framejit.config.log = "brakes"
    with pytest.raises(ValueError):
        with framejit.config.patch(recompile_limit=3, numerics="slow"):
            pass
    assert framejit.config.recompile_limit == 8


@pytest.mark.parametrize("variable, value, said", [
    ("FRAMEJIT_LOG", "breaks,brakes", "breaks, guards, recompiles, passes, cache"),
    ("FRAMEJIT_DUMP", "grph", "bytecode, graph, joint, kernel, llvm, asm, ptx"),
    ("FRAMEJIT_INTERPRET", "some", "off, all"),
    ("FRAMEJIT_RECOMPILE_LIMIT", "many", "whole number"),
])
def test_bad_environment_is_an_error_at_import(python, variable, value, said):
    result = python("import framejit", **{variable: value})
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError") and variable in last and said in last


def test_disabled_by_the_environment_changes_nothing(python):
    code = ("import framejit, torch\n@framejit.compile\ndef f(x): return x + 1\nassert f(1) == 2 and f.__wrapped__(1) == 2\n"
            "m = torch.nn.ReLU()\nassert framejit.compile(m) is m and m(torch.ones(1)) == 1\nprint(framejit.report(m))")
    result = python(code, FRAMEJIT_DISABLE="1")
    assert result.returncode == 0 and "framejit is off" in result.stdout, result.stderr


# ---- versions ----

def test_old_torch_is_refused(python, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("from .version import __version__\n")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.9.1+cu130'\n")
    result = python("import framejit", path=[tmp_path])
    assert "UnsupportedVersionError" in result.stderr and "torch >= 2.10" in result.stderr and "2.9.1" in result.stderr


def test_missing_extension_is_refused(python, tmp_path):
    shutil.copytree(os.path.join(ROOT, "plugin", "framejit"), tmp_path / "framejit", ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "framejit" / "_C.cpython-399-x86_64-linux-gnu.so").write_bytes(b"")
    result = python("import framejit", path=[tmp_path])
    assert "UnsupportedVersionError" in result.stderr and "supports CPython 3.99; this is CPython 3." in result.stderr


def test_a_build_of_cpython_that_the_extension_refuses(python, tmp_path):
    shutil.copytree(os.path.join(ROOT, "plugin", "framejit"), tmp_path / "framejit", ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "framejit" / "_C.py").write_text("raise ImportError('this CPython 3.11 is laid out differently')")
    last = python("import framejit", path=[tmp_path]).stderr.strip().splitlines()[-1]
    assert last == "framejit.errors.UnsupportedVersionError: this CPython 3.11 is laid out differently"
    (tmp_path / "framejit" / "_C.py").write_text("import nowhere")
    assert "No module named 'nowhere'" in python("import framejit", path=[tmp_path]).stderr


def test_import_needs_no_torch(python):
    code = """
import sys
sys.modules["torch"] = None        # import torch fails from here on
import framejit
framejit.config.log
try: framejit.compile(lambda x: x)
except ImportError: print("refused")
"""
    result = python(code)
    assert result.stdout == "refused\n", result.stderr


def test_torch_is_not_loaded_by_the_import(python):
    result = python("import sys, framejit; print('torch' in sys.modules)")
    assert result.stdout == "False\n", result.stderr


def test_version_and_backend_are_registered():
    assert importlib.metadata.version("framejit") == framejit.__version__
    [backend] = importlib.metadata.entry_points(group="torch_dynamo_backends", name="framejit")
    assert callable(backend.load())


def test_behind_torch_compile(python):
    code = """
import torch, framejit
def f(x, w): return torch.nn.functional.gelu(x * w).softmax(-1)
x, w = torch.randn(4, 8), torch.randn(8)
fast = torch.compile(f, backend="framejit")
with torch.no_grad():
    for _ in range(3): torch.testing.assert_close(fast(x, w), f(x, w))
assert framejit.report().calls["compiled"] == 2, framejit.report().text()
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


# ---- command line ----

def test_command_line(python, tmp_path):
    info = python("", "-m", "framejit", "info")
    assert info.returncode == 0 and torch.__version__ in info.stdout and "FRAMEJIT_LOG" in info.stdout
    wrong = python("", "-m", "framejit", "explode")
    assert wrong.returncode == 2 and "run, report, info, cache" in wrong.stderr
    missing = python("", "-m", "framejit", "report", tmp_path / "none.json")
    assert missing.returncode == 2 and "none.json" in missing.stderr
    assert python("", "-m", "framejit", "cache").returncode == 0


def test_run_a_script_and_show_its_report_again(python, tmp_path):
    script, saved = tmp_path / "script.py", tmp_path / "saved.json"
    script.write_text("import sys, torch, framejit\n"
                      "@framejit.compile(wait=True)\n"
                      "def twice(x): return x * 2\n"
                      "for _ in range(3): twice(torch.ones(4))\n"
                      "assert __name__ == '__main__' and sys.argv[1:] == ['a', '--b'], sys.argv\n")
    result = python("", "-m", "framejit", "run", "--report", saved, script, "a", "--b")
    assert result.returncode == 0, result.stderr
    assert json.loads(saved.read_text())["functions"][0]["name"] == "twice"
    shown = python("", "-m", "framejit", "report", saved)
    assert shown.returncode == 0 and "twice" in shown.stdout and "3 calls" in shown.stdout
    failing = tmp_path / "failing.py"
    failing.write_text("raise SystemExit(7)")
    result = python("", "-m", "framejit", "run", failing)
    assert result.returncode == 7 and "framejit report" in result.stderr
