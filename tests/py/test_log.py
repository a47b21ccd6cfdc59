"""FRAMEJIT_LOG and FRAMEJIT_DUMP say what happens while it happens, and nothing when they are not set."""
import re

PROGRAM = """
import torch, framejit
@framejit.compile(wait=True)
def f(x, kind):
    y = x.tanh() if kind == "tanh" else x.sin()
    n = y.sum().item()
    return y + n
for kind in ("tanh", "tanh", "sin", "sin"):
    f(torch.ones(4), kind)
"""


def test_silent_by_default(python):
    result = python(PROGRAM)
    assert result.returncode == 0 and result.stderr == "" and result.stdout == ""


def test_log_topics(python):
    result = python(PROGRAM, FRAMEJIT_LOG="breaks,guards,recompiles")
    assert result.returncode == 0, result.stderr
    lines = result.stderr.splitlines()
    assert any(re.match(r"framejit breaks: .*:6 in f: Python reads the value of a tensor", line) for line in lines)
    assert any(re.match(r"framejit guards: f: \d+ guards", line) for line in lines)
    assert any(re.match(r"    Tensor  x  ", line) for line in lines)
    assert any(re.match(r"framejit recompiles: f: kind: expected str 'tanh', got 'sin'", line) for line in lines)


def test_one_topic_alone(python):
    result = python(PROGRAM, FRAMEJIT_LOG="recompiles")
    assert result.stderr and all(line.startswith("framejit recompiles: ") for line in result.stderr.splitlines())


def test_dumps_of_each_stage_as_files(python, tmp_path):
    result = python(PROGRAM, FRAMEJIT_DUMP="bytecode,graph,kernel,llvm,asm", FRAMEJIT_DUMP_DIR=str(tmp_path))
    assert result.returncode == 0 and result.stderr == ""
    texts = {}
    for path in sorted(tmp_path.iterdir()):
        texts[path.suffix[1:]] = texts.get(path.suffix[1:], "") + path.read_text()
    assert set(texts) == {"bytecode", "graph", "kernel", "llvm", "asm"}
    for stage, expected in (("bytecode", "LoadMethod"), ("graph", "tanh f32[4]"), ("kernel", "launch"), ("llvm", "define "), ("asm", "ret")):
        assert expected in texts[stage], (stage, texts[stage])


def test_dumps_go_to_stderr_without_a_folder(python):
    result = python(PROGRAM, FRAMEJIT_DUMP="graph")
    assert "---- framejit graph: f_" in result.stderr and "tanh f32[4]" in result.stderr
