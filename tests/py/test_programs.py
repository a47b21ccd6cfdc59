"""What torch does without an operator, and Python without a trace: whole programs that were once wrong."""

import copy
import operator
import os
import subprocess
import sys
import threading
import types

import pytest

torch = pytest.importorskip("torch")
import framejit  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence  # noqa: E402


def rounds(function, calls):
    """Every call as eager; the compiled function."""
    compiled = framejit.compile(lambda *a: function(*a), wait=True)
    with torch.no_grad():
        for make in calls:
            torch.testing.assert_close(compiled(*make()), function(*make()))
    return compiled


X = torch.arange(9.0).view(3, 3)
DATA = {
    "tensor": lambda x: torch.tensor([x.min(), x.max(), x.mean()]),
    "as_tensor": lambda x: torch.as_tensor([x.min(), x.max()]),
    "nested": lambda x: torch.tensor([[x.min(), 1.0], [x.max(), 2.0]], dtype=torch.float64),
    "FloatTensor": lambda x: torch.FloatTensor([x.max(), 1]),
    "new_tensor": lambda x: x.new_tensor([x.max(), 1]),
    "comprehension": lambda x: torch.tensor([v * 2 for v in x[0]]),
    "index": lambda x: X[[x.long().max() % 3, 0], [0, 1]],
    "index in a tuple": lambda x: X[:, [x.long().max() % 3]],
}


@pytest.mark.parametrize("name", DATA)
def test_tensors_in_lists(name):
    rounds(DATA[name], [lambda i=i: (torch.arange(6.0).view(2, 3) * i,) for i in (1, 1, 2, 3)])


def test_packed_sequences():
    torch.manual_seed(0)
    gru = torch.nn.GRU(2, 1)
    x = torch.randn(4, 3, 2)
    lengths = ([4, 2, 2], [4, 2, 2], [4, 3, 1], [4, 2, 2])
    rounds(lambda x, n: gru(pack_padded_sequence(x, n))[1].flatten(), [lambda n=n: (x, torch.tensor(n)) for n in lengths])
    rounds(lambda x, n: pad_packed_sequence(gru(pack_padded_sequence(x, n))[0])[0], [lambda n=n: (x, torch.tensor(n)) for n in lengths])


@pytest.mark.filterwarnings("ignore")
def test_the_fast_path_of_the_encoder():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1).eval()
    x, masks = torch.randn(2, 3, 8), ([[0, 0, 1], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    rounds(lambda x, m: encoder(x, src_key_padding_mask=m), [lambda m=m: (x, torch.tensor(m, dtype=torch.bool)) for m in masks])


def test_attention_does_not_see_the_recording():
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    rounds(lambda x: attention(x, x, x)[0], [lambda: (torch.ones(2, 3, 8),)] * 4)
    rounds(lambda x: copy.copy(x) * 2, [lambda: (torch.ones(2),)] * 3)
    rounds(lambda a, b: (torch.utils.swap_tensors(a, b), a + 1)[1], [lambda: (torch.ones(2), torch.zeros(2))] * 3)


def test_autocast_nesting_is_balanced():
    module, x = torch.nn.Linear(1, 1, bias=False), torch.ones(1, 1)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return module(x) + 1

    compiled = framejit.compile(f, wait=True)
    with torch.no_grad():
        module.weight.fill_(1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for _ in range(4):
                compiled(x)
        module.weight.fill_(100)
        assert compiled(x).item() == f(x).item() == 101


def test_threads_are_told_apart():
    seen = {}

    def f(x):
        seen.setdefault(threading.get_ident(), []).append(x.sum())
        return x * 2

    compiled = framejit.compile(f, wait=True)

    def work():
        with torch.no_grad():
            compiled(torch.ones(1))

    with torch.no_grad():
        compiled(torch.ones(1)), compiled(torch.ones(1))
    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert sorted(len(calls) for calls in seen.values()) in ([1, 1, 2], [2, 2])  # an identifier may be used again


CHECKS = {
    "index": lambda x, i: x[i],
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x.view(2, 1)),
    "gather": lambda x, i: x.gather(0, i),
}


@pytest.mark.parametrize("name", CHECKS)
def test_an_error_of_a_result_that_nobody_uses(name):
    def f(x, i):
        try:
            CHECKS[name](x, i)
        except (IndexError, RuntimeError):
            return x * 3
        return x * 2

    rounds(f, [lambda i=i: (torch.ones(2), torch.tensor([i])) for i in (0, 0, 9, 1)])


def test_an_array_changed_through_an_operator():
    def f(a):
        n = a.numpy()
        operator.iadd(n, 1)
        return a * 2

    rounds(f, [lambda: (torch.ones(2),)] * 3)


def test_import_inside():
    def whole(x):
        import framejit_imported

        return x * framejit_imported.V

    def part(x):
        from framejit_imported import V

        return x * V

    try:
        for function in (whole, part):
            compiled = framejit.compile(function, wait=True)
            for v in (1, 1, 7):
                module = types.ModuleType("framejit_imported")
                module.V = v
                sys.modules["framejit_imported"] = module
                with torch.no_grad():
                    assert compiled(torch.ones(1)).item() == v
    finally:
        sys.modules.pop("framejit_imported", None)


LAYOUTS = {
    "sparse": lambda x: (x.to_sparse() * 2).to_dense(),
    "sparse product": lambda x: x.to_sparse() @ x,
    "csr": lambda x: x.to_sparse_csr().to_dense(),
    "mkldnn": lambda x: x.to_mkldnn().relu().to_dense(),
    "nested": lambda x: (torch.nested.nested_tensor([x[0], x[1, :2]]) * 2).unbind()[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYOUTS)
def test_other_layouts(name):
    compiled = rounds(LAYOUTS[name], [lambda: (torch.eye(3),)] * 3)
    assert "layout" in {b["code"] for b in framejit.report(compiled).functions[0]["breaks"]}


@pytest.mark.parametrize("rows", [100, 257, 4096, 65536, 300000])
def test_long_sums_over_the_first_dimension(rows):
    """In blocks: one chain of float additions would lose digits that eager keeps."""
    torch.manual_seed(0)
    x = torch.rand(rows, 16)
    compiled = framejit.compile(lambda x: (x.sum(0), (x * x).mean(0), x.amax(0), x.argmin(0)), wait=True)
    with torch.no_grad():
        compiled(x)
        total, mean, largest, smallest_at = compiled(x)
    torch.testing.assert_close(total.double(), x.double().sum(0), rtol=1.5e-6, atol=0)
    torch.testing.assert_close(mean.double(), (x.double() * x.double()).mean(0), rtol=1.5e-6, atol=0)
    assert torch.equal(largest, x.amax(0)) and torch.equal(smallest_at, x.argmin(0))


def test_asking_about_the_recording():
    @framejit.compile(wait=True)
    def f(x):
        framejit.graph_break("for a reason")
        return x * (2 if framejit.is_compiling() else 3)

    with torch.no_grad():
        assert [f(torch.ones(1)).item() for _ in range(3)] == [2, 2, 2] and not framejit.is_compiling()
    (row,) = framejit.report(f).functions[0]["breaks"]
    assert row["code"] == "asked" and "for a reason" in row["reason"]


def test_a_declared_function_outlives_the_interpreter():
    code = "import torch, framejit, math; framejit.assume_pure(math.gamma)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_an_answer_of_the_process_is_asked_for_again():
    """A forked child has another pid; what was asked is no graph break."""
    here = os.getpid()

    @framejit.compile(wait=True)
    def f(x):
        return x + 1 if os.getpid() == here else x - 1

    x = torch.ones(3)
    with torch.no_grad():
        assert all(torch.equal(f(x), x + 1) for _ in range(3))
        (row,) = framejit.report(f).functions
        assert row["calls"]["compiled"] == 2 and not row["breaks"]
        child = os.fork()
        if child == 0:
            os._exit(0 if all(torch.equal(f(x), x - 1) for _ in range(3)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_asking_for_a_device_is_no_break():
    """On a build of torch with CUDA and without, on a machine with a device and without."""
    @framejit.compile(wait=True)
    def f(x):
        return x + (2 if torch.cuda.is_available() else 1)

    with torch.no_grad():
        assert len({f(torch.ones(1)).item() for _ in range(3)}) == 1
    assert not framejit.report(f).functions[0]["breaks"]
