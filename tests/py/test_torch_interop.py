"""Reading, making and guarding tensors: every tier against torch's own answers, on ordinary and on odd tensors."""
import gc
import os
import subprocess
import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")
from framejit import _C  # noqa: E402

TIER_NAMES = ["probed", "c_abi", "dlpack", "python"]
FORCED = os.environ.get("FRAMEJIT_TENSOR_TIER")


@pytest.fixture(autouse=True, scope="module")
def ready():
    warnings.simplefilter("ignore")
    _C._init_torch()


class Sub(torch.Tensor):
    pass


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


def view_taken_before_inplace():
    base = torch.zeros(3)
    tail = base[1:]
    base.mul_(leaf(3))
    return tail


def no_grad_view():
    with torch.no_grad():
        return leaf(3)[1:]


def inference():
    with torch.inference_mode():
        return torch.ones(3, 2)


def copy_on_write():
    return torch._lazy_clone(torch.randn(5))


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3)


def jagged():
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


KINDS = {
    "plain": lambda: torch.randn(3, 4),
    "zero_dim": lambda: torch.tensor(3.5),
    "six_dim": lambda: torch.empty(2, 1, 3, 1, 2, 2),
    "eight_dim": lambda: torch.empty([1] * 6 + [2, 3]).permute(7, 0, 1, 2, 3, 4, 5, 6),
    "empty": lambda: torch.empty(0, 4),
    "empty_view": lambda: torch.randn(5)[5:],
    "strided_view": lambda: torch.randn(50)[7:20:2],
    "expanded": lambda: torch.ones(1).expand(4),
    "transposed": lambda: torch.randn(3, 4).t(),
    "channels_last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "requires_grad": lambda: leaf(3),
    "computed": lambda: leaf(3) * 2,
    "toggled": lambda: torch.ones(2).requires_grad_().requires_grad_(False),
    "detached": lambda: (leaf(3) * 2).detach(),
    "parameter": lambda: torch.nn.Parameter(torch.randn(2, 2)),
    "frozen_parameter": lambda: torch.nn.Parameter(torch.randn(2), requires_grad=False),
    "view_of_leaf": lambda: leaf(3)[1:],
    "no_grad_view": no_grad_view,
    "view_taken_before_inplace": view_taken_before_inplace,
    "inference": inference,
    "conj": lambda: torch.randn(4, dtype=torch.complex64).conj(),
    "neg": lambda: torch._neg_view(torch.randn(5)),
    "subclass": lambda: torch.randn(3).as_subclass(Sub),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "meta": lambda: torch.empty(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": jagged,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "mkldnn": lambda: torch.ones(3).to_mkldnn(),
    "copy_on_write": copy_on_write,
    "resized": lambda: torch.empty(2).resize_(3, 3),
    "borrowed": lambda: torch.frombuffer(bytearray(16), dtype=torch.float32),
    "fake": fake,
    "float8": lambda: torch.empty(3, dtype=torch.float8_e4m3fn),
}
for _dtype in "bool uint8 int8 int16 int32 int64 bfloat16 float16 float64 complex64 complex128".split():
    KINDS[_dtype] = lambda d=getattr(torch, _dtype): torch.zeros(3, 2).to(d)

NOT_STRIDED = {"sparse", "csr", "nested", "jagged", "quantized", "mkldnn"}
WITHOUT_MEMORY = NOT_STRIDED | {"meta", "fake", "empty", "empty_view"}


def truth(tensor):
    """What torch says about a strided tensor."""
    return dict(
        sizes=tuple(tensor.shape),
        strides=tensor.stride(),
        offset=tensor.storage_offset(),
        numel=tensor.numel(),
        storage=tensor.untyped_storage()._cdata,
        storage_bytes=tensor.untyped_storage().nbytes(),
    )


@pytest.mark.parametrize("tier", range(4), ids=TIER_NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_view_says_what_torch_says(kind, tier):
    tensor = KINDS[kind]()
    view = _C._tensor_view(tensor, tier)
    assert view["key_set"] == torch._C._dispatch_keys(tensor).raw_repr()
    assert view["requires_grad"] == tensor.requires_grad
    assert view["device_index"] == (-1 if tensor.device.index is None else tensor.device.index)
    assert view["tangent"] is False
    if kind in NOT_STRIDED:
        assert view["storage"] == 0 and view["sizes"] == ()
    else:
        assert {k: view[k] for k in truth(tensor)} == truth(tensor)
    if kind in WITHOUT_MEMORY:
        assert view["data"] == 0
    else:
        assert view["data"] == tensor.untyped_storage().data_ptr() + tensor.storage_offset() * tensor.element_size()


# A fake tensor claims one device and is of another: the tiers may tell either.
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"fake"}))
def test_tiers_agree(kind):
    tensor = KINDS[kind]()
    views = [_C._tensor_view(tensor, tier) for tier in (3, 2, 1, 0)]
    assert all(view == views[0] for view in views)


@pytest.mark.parametrize("kind", KINDS)
def test_spec_matches_its_own_tensor(kind):
    tensor = KINDS[kind]()
    spec = _C._tensor_spec(tensor)
    assert _C._matches(tensor, spec)
    assert _C._difference(tensor, spec) == ""


def test_spec_tells_kinds_apart():
    made = {kind: make() for kind, make in KINDS.items()}
    specs = {kind: _C._tensor_spec(tensor) for kind, tensor in made.items()}

    def alike(a, b):
        s, t = made[a], made[b]
        if type(s) is not type(t) or s.dtype != t.dtype or s.requires_grad != t.requires_grad:
            return False
        if torch._C._dispatch_keys(s).raw_repr() != torch._C._dispatch_keys(t).raw_repr():
            return False
        return a == b or a not in NOT_STRIDED and truth(s)["sizes"] == truth(t)["sizes"] and truth(s)["strides"] == truth(t)["strides"] and truth(s)["offset"] == truth(t)["offset"]

    for a in KINDS:
        for b in KINDS:
            assert _C._matches(made[a], specs[b]) == alike(a, b), (a, b)
            assert (_C._difference(made[a], specs[b]) == "") == alike(a, b), (a, b)


@pytest.mark.parametrize("value", [3, 2.5, None, "x", [], object(), torch.float32, torch.nn.Linear(1, 1)])
def test_no_tensor_matches_nothing(value):
    assert not _C._matches(value, _C._tensor_spec(torch.randn(2)))
    assert _C._tensor_kind(value) == (False, False)


def test_kinds_of_type():
    assert _C._tensor_kind(torch.randn(2)) == (True, True)
    assert _C._tensor_kind(torch.nn.Parameter(torch.randn(2))) == (True, True)
    assert _C._tensor_kind(torch.randn(2).as_subclass(Sub)) == (True, False)


@pytest.mark.parametrize(
    "other, words",
    [
        (lambda: torch.randn(3, 5), "size at dimension 1: 5, expected 4"),
        (lambda: torch.randn(4, 3).t(), "stride at dimension 0: 1, expected 4"),
        (lambda: torch.randn(3), "rank 1, expected 2"),
        (lambda: torch.randn(3, 4, dtype=torch.float64), "dtype f64, expected f32"),
        (lambda: torch.empty(3, 4, device="meta"), "device meta, expected cpu"),
        (lambda: leaf(3, 4), "requires_grad is on, expected off"),
        (lambda: torch.randn(30)[5:17].view(3, 4), "storage offset 5, expected 0"),
    ],
)
def test_difference_explains(other, words):
    assert _C._difference(other(), _C._tensor_spec(torch.randn(3, 4))) == words
    assert _C._describe(_C._tensor_spec(torch.randn(3, 4))) == "f32[3,4] cpu"


def test_requires_grad_changes_are_noticed():
    tensor = torch.randn(3)
    spec = _C._tensor_spec(tensor)
    tensor.requires_grad_()
    assert not _C._matches(tensor, spec)
    tensor.requires_grad_(False)
    assert _C._matches(tensor, spec)
    base = torch.zeros(3)
    tail = base[1:]
    spec = _C._tensor_spec(tail)
    assert _C._matches(tail, spec)
    base.mul_(leaf(3))   # turns requires_grad of the view on, without touching the view
    assert tail.requires_grad and not _C._matches(tail, spec)


def test_data_pointer_may_change_but_metadata_not():
    parameter = torch.nn.Parameter(torch.randn(4))
    spec = _C._tensor_spec(parameter)
    parameter.data = torch.randn(4)
    assert _C._matches(parameter, spec)
    parameter.data = torch.randn(5)
    assert not _C._matches(parameter, spec)


def test_dual_tensors_match_nothing():
    import torch.autograd.forward_ad as forward_ad

    spec = _C._tensor_spec(torch.randn(3))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.randn(3), torch.randn(3))
        assert _C._tensor_view(dual)["tangent"]
        assert not _C._matches(dual, spec)
        assert not _C._matches(dual, _C._tensor_spec(dual))
        assert "forward-mode" in _C._difference(dual, spec)
        requires = leaf(3)
        both = forward_ad.make_dual(requires, torch.randn(3))
        assert not _C._matches(both, _C._tensor_spec(requires * 2))


def test_write_materialises_copy_on_write():
    source = torch.arange(4.0)
    clone = torch._lazy_clone(source)
    shared = _C._tensor_view(clone)["data"]
    assert _C._tensor_tier() > 0 or shared == _C._tensor_view(source)["data"]   # the other tiers materialise when they look
    address = _C._data_for_write(clone)
    assert address not in (0, _C._tensor_view(source)["data"]) and address == _C._tensor_view(clone)["data"]
    clone.add_(1)
    assert source.tolist() == [0, 1, 2, 3]


def test_write_address_has_the_offset():
    tensor = torch.arange(10.0)[3:]
    assert _C._data_for_write(tensor) == tensor.data_ptr()
    assert _C._data_for_write(torch.empty(3, device="meta")) == 0


def test_version_bumps():
    base = torch.randn(4)
    tail = base[1:]
    before = base._version
    _C._bump_version(tail)
    assert base._version == before + 1 and tail._version == before + 1
    saved = leaf(3)
    square = saved * saved.detach().clone().requires_grad_()
    with torch.no_grad():
        _C._bump_version(saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()
    with torch.inference_mode():
        _C._bump_version(torch.ones(2))   # has no version, and needs none


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.bfloat16, torch.complex128, torch.int64])
@pytest.mark.parametrize("sizes, strides", [((), ()), ((3,), (1,)), ((2, 3), (1, 2)), ((0, 4), (4, 1)), ((2, 1, 3, 1, 2, 2), (12, 12, 4, 4, 2, 1))])
def test_allocator_makes_eager_tensors(sizes, strides, dtype):
    got, want = _C._empty(sizes, strides, dtype), torch.empty_strided(sizes, strides, dtype=dtype)
    assert type(got) is torch.Tensor and got.shape == want.shape and got.stride() == want.stride() and got.dtype == dtype
    assert torch._C._dispatch_keys(got).raw_repr() == torch._C._dispatch_keys(want).raw_repr()
    assert got._version == 0 and not got.requires_grad and got.untyped_storage().resizable()
    assert got.untyped_storage().nbytes() == want.untyped_storage().nbytes()
    with torch.inference_mode():
        assert _C._empty(sizes, strides, dtype).is_inference()


def test_allocator_refuses_what_it_cannot_make():
    with pytest.raises(SystemError):
        _C._empty((2,), (1,), "float32")
    with pytest.raises(RuntimeError):
        _C._empty((1 << 60,), (1,), torch.float64)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("make", [lambda: torch.arange(12.0), inference, lambda: leaf(12), lambda: torch.nn.Parameter(torch.randn(12))])
def test_as_strided_is_a_real_view(mode, make):
    base = make()
    if mode is torch.enable_grad and base.is_inference():
        pytest.skip("eager refuses it too")
    with mode():
        view = _C._as_strided(base, (2, 2), (2, 1), 1)
        assert torch.equal(view, base.detach().as_strided((2, 2), (2, 1), 1))
        assert view.untyped_storage()._cdata == base.untyped_storage()._cdata
        assert not view.requires_grad or base.requires_grad and view.grad_fn is None
        assert view.is_inference() == base.is_inference() or mode is torch.inference_mode
        if not base.requires_grad and not base.is_inference():
            before = base._version
            view.add_(1)
            assert base._version == before + 1
    assert torch.is_grad_enabled()


def test_view_stays_writable_with_grad_as_eager():
    base = torch.zeros(4)
    view = _C._as_strided(base, (2,), (1,), 1)
    weight = leaf(2)
    view.mul_(weight)   # a view made under no_grad would raise here
    assert base.requires_grad


def test_as_strided_error_is_torchs():
    with pytest.raises(RuntimeError, match="out of bounds"):
        _C._as_strided(torch.zeros(3), (5,), (1,), 0)


# ---- global state ----
def toggled(get, put, value):
    import contextlib

    @contextlib.contextmanager
    def context():
        old = get()
        put(value)
        try:
            yield
        finally:
            put(old)

    return context


def function_mode():
    from torch.overrides import TorchFunctionMode

    return TorchFunctionMode()


def dispatch_mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    return TorchDispatchMode()


SEEN = {
    "no_grad": (torch.no_grad, "grad mode is off, recorded with it on"),
    "inference": (torch.inference_mode, "inference mode is on, recorded with it off"),
    "autocast": (lambda: torch.autocast("cpu"), "autocast"),
    "default_dtype": (toggled(torch.get_default_dtype, torch.set_default_dtype, torch.float64), "default dtype"),
    "default_device": (lambda: torch.device("meta"), "torch function modes"),
    "function_mode": (function_mode, "torch function modes"),
    "dispatch_mode": (dispatch_mode, "a mode"),
    "disabled": (torch._C.DisableTorchFunction, "torch functions disabled"),
    "disabled_subclass": (torch._C.DisableTorchFunctionSubclass, "torch functions disabled"),
    "below_autograd": (torch._C._AutoDispatchBelowAutograd, "excluded"),
    "view_replay": (lambda: torch.autograd._force_original_view_tracking(True), "autograd mode"),
}


ONLY_BY_SYMBOLS = {"below_autograd", "view_replay"}


@pytest.mark.parametrize("change", SEEN)
def test_state_changes_are_noticed(change):
    if change in ONLY_BY_SYMBOLS and _C._tensor_tier() > 1:
        pytest.skip("torch has no cheap question for it")
    context, words = SEEN[change]
    plain = _C._global_state(False)
    assert _C._state_look(plain) == (True, "")
    with context():
        matched, why = _C._state_look(plain)
        assert not matched and words in why
        inside = _C._global_state(False)
        assert _C._state_look(inside) == (True, "")
    assert _C._state_look(plain) == (True, "")
    assert not _C._state_look(inside)[0]


def test_state_inside_functorch():
    plain, seen = _C._global_state(False), []
    torch.vmap(lambda x: (seen.append(_C._state_look(plain)[0]), x)[1])(torch.ones(2))
    torch.func.grad(lambda x: (seen.append(_C._state_look(plain)[0]), x.sum())[1])(torch.ones(2))
    assert seen == [False, False]


def test_autocast_details_are_noticed():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        recorded = _C._global_state(False)
        assert _C._state_look(recorded)[0]
        with torch.autocast("cpu", dtype=torch.float16):
            assert not _C._state_look(recorded)[0]
    assert not _C._state_look(recorded)[0]


def test_full_state_sees_determinism():
    some, full = _C._global_state(False), _C._global_state(True)
    torch.use_deterministic_algorithms(True)
    try:
        assert _C._state_look(some)[0] == (_C._tensor_tier() <= 1)   # the fallback always asks torch's guard
        assert not _C._state_look(full)[0]
    finally:
        torch.use_deterministic_algorithms(False)
    assert _C._state_look(full)[0]


def test_state_belongs_to_the_thread():
    plain, seen = _C._global_state(False), []

    def other():
        seen.append(_C._state_look(plain)[0])
        with torch.no_grad():
            seen.append(_C._state_look(plain)[0])
            seen.append(_C._modes()[:2])

    with torch.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert not _C._state_look(plain)[0]
    assert seen == [True, False, (False, False)]


@pytest.mark.parametrize("mode, grad, inference_on", [(torch.enable_grad, True, False), (torch.no_grad, False, False), (torch.inference_mode, False, True)])
def test_modes(mode, grad, inference_on):
    with mode():
        assert _C._modes()[:2] == (grad, inference_on)


# ---- threads ----
def test_parallel_for_visits_everything_once():
    for n, grain in [(0, 1), (1, 1), (1000, 1), (100_000, 1000), (1000, 10_000)]:
        pieces, once = _C._parallel_for(n, grain)
        assert once and pieces <= max(1, _C._modes()[2])
    assert _C._modes()[2] == torch.get_num_threads()


def test_forked_child_runs_inline():
    torch.randn(400, 400) @ torch.randn(400, 400)
    _C._parallel_for(100_000, 1)   # the pool is in use now
    child = os.fork()
    if child == 0:
        pieces, once = _C._parallel_for(100_000, 1)
        os._exit(0 if once and pieces == 1 and _C._modes()[2] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _C._parallel_for(100_000, 1)[1]


def test_nothing_leaks():
    tensor, parameter = torch.randn(3, 4)[1:], torch.nn.Parameter(torch.randn(2))
    spec, state = _C._tensor_spec(tensor), _C._global_state(True)
    dtype = torch.float32

    def once():
        for t in (tensor, parameter):
            _C._tensor_view(t)
            _C._matches(t, spec)
            _C._difference(t, spec)
            _C._bump_version(t)
            _C._data_for_write(t)
        _C._empty((2, 3), (3, 1), dtype)
        _C._as_strided(tensor, (2,), (1,), 0)
        _C._as_strided(parameter, (2,), (1,), 0)
        _C._state_look(state)
        _C._global_state(True)

    def tensors():
        gc.collect()
        return sum(isinstance(o, torch.Tensor) for o in gc.get_objects())

    for _ in range(10):
        once()
    alive = tensors()
    counts = [sys.getrefcount(o) for o in (tensor, parameter, dtype)]
    for _ in range(1000):
        once()
    assert [sys.getrefcount(o) for o in (tensor, parameter, dtype)] == counts
    assert tensors() == alive


# ---- start-up ----
def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


@pytest.mark.skipif(FORCED is not None, reason="runs inside the other tiers")
@pytest.mark.parametrize("tier", [1, 2, 3])
def test_everything_on_a_forced_tier(tier):
    environment = {**os.environ, "FRAMEJIT_TENSOR_TIER": str(tier)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-W", "ignore", __file__], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_forced_tier_serves():
    assert _C._tensor_tier() == int(FORCED or 0)


@pytest.mark.skipif(FORCED is not None, reason="forces its own tier")
def test_a_wrong_tier_is_refused():
    done = run_python("from framejit import _C; _C._tensor_tier()", FRAMEJIT_TENSOR_TIER="7")
    assert done.returncode == 1 and "FRAMEJIT_TENSOR_TIER" in done.stderr


@pytest.mark.skipif(FORCED is not None, reason="once is enough")
@pytest.mark.parametrize(
    "ambient",
    ["torch.set_default_dtype(torch.float64)", "torch.set_default_device('meta')", "torch.inference_mode().__enter__()", "torch.set_grad_enabled(False)",
     "torch.autocast('cpu').__enter__()"],
)
def test_the_probe_works_in_any_state(ambient):
    done = run_python(f"import torch; {ambient}; from framejit import _C; assert _C._tensor_tier() == 0; assert _C._state_look(_C._global_state(False))[0]")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(FORCED is not None, reason="once is enough")
def test_old_torch_is_refused():
    done = run_python("from framejit import _C; import torch; torch.__version__ = '2.9.1'; _C._init_torch()")
    assert "framejit needs torch 2.10 or later, found 2.9.1" in done.stderr and done.returncode == 1
