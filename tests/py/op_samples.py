"""Arguments with which every ATen rule is tried. An overload with a rule but without samples fails test_ops.py.

`T` stands for a tensor; test_ops.py makes it in every dtype and layout. Everything else is passed as it is, in schema order.
"""
from dataclasses import dataclass
from typing import Optional

import torch


@dataclass(frozen=True)
class T:
    shape: tuple = (4, 6)
    dtype: Optional[torch.dtype] = None  # None: the dtype under test
    lo: float = -3.0
    hi: float = 3.0
    special: bool = True  # sprinkle NaN, infinities and zeros over floats


class Tested:
    """Stands for the dtype under test."""


def index(shape, below):
    return T(shape, torch.int64, 0, below - 0.01)


mask = T(dtype=torch.bool, lo=-1, hi=1)
plain = T(special=False)  # for sums, where an infinity would hide everything else
vector = T((2, 64))  # what eager's vector loop takes whole
positive = T(lo=0.1, hi=4)
fill = (None, None, None, None)  # dtype, layout, device, pin_memory

unary = [(T(),)]
binary = [(T(), T()), (T(), T((6,))), (T(), T(())), (T((4, 1)), T((6,)))]
with_number = [(T(), 2), (T(), -3), (T(), 0.3), (T(), 2.5), (T(), True)]
divisors = [(T(), T(lo=1, hi=5)), (T(), T((6,), lo=-5, hi=-1)), (T(), 3), (T(), -3), (T(), 0.7)]
comparison = binary + with_number + [(T(lo=-1, hi=2), T(lo=-1, hi=2))]
bits = [(T(lo=-9, hi=9), T(lo=-9, hi=9)), (T(lo=-9, hi=9), T((6,), lo=-9, hi=9))]
bits_number = [(T(lo=-9, hi=9), 5), (T(), True)]
shifts = [(T(lo=-9, hi=90), T(lo=-1, hi=9)), (T(lo=-9, hi=90), T(lo=0, hi=70))]
shift_number = [(T(lo=-9, hi=90), 2), (T(lo=-9, hi=90), 40)]
reduction = [(plain,), (T((5, 33), special=False),)]
dims = [(plain, [1], False), (plain, [0], True), (T((2, 3, 5), special=False), [0, 2], False), (T((2, 3, 5), special=False), [-1, -2], True), (plain, None, False)]
extremum_dims = [(T(), [1], False), (T(), [0], True), (T((2, 3, 5)), [0, 2], False), (T(lo=-1, hi=1.9), [], False)]
one_dim = [(T(), 1, False), (T(), 0, True), (T((2, 3, 5), lo=-1, hi=1.9), 1, False)]
truth_dims = [(T(lo=-0.9, hi=0.9), 1, False), (T(lo=-0.9, hi=0.9), 0, True)]
moments = [(plain, [1], None, False), (plain, [0], 0, True), (T((2, 3, 5), special=False), [0, 2], 2, False), (plain, None, 1, False), (T((2, 3, 5), special=False), [1, 2], 1, True)]
softmax = [(T(special=False), 1, False), (T(special=False), 0, False), (T((2, 3, 5), special=False), 1, False), (T(lo=-60, hi=60), -1, False)]

SAMPLES = {
    # arithmetic
    "add.Tensor": [(*a, 1) for a in binary] + [(T(), T(), 2), (T(), T(), -1), (T(), 2, 1), (T(), 0.3, 1), (T(), True, 1)] + [(vector, vector, 0.7)],
    "add.Scalar": [(T(), 2, 1), (T(), 0.3, 1), (T(), 2, 3)],
    "sub.Tensor": [(*a, 1) for a in binary] + [(T(), T(), 2), (T(), 2, 1), (T(), 0.3, 1), (vector, vector, 0.7)],
    "sub.Scalar": [(T(), 2, 1), (T(), 0.3, 1), (T(), 2, 3)],
    "rsub.Tensor": [(T(), T(), 1), (T(), T((6,)), 2)],
    "rsub.Scalar": [(T(), 2, 1), (T(), 0.3, 1), (T(), 1, 2)],
    "mul.Tensor": binary + with_number + [(T(), T((1,))), (T(()), T()), (T(), T((), torch.float32)), (T((), torch.float32), T())],
    "mul.Scalar": with_number,
    "div.Tensor": binary + with_number + [(T(()), T()), (T(), T((), torch.float32))],
    "div.Scalar": with_number,
    "div.Tensor_mode": [(*a, m) for a in divisors for m in ("floor", "trunc", None)] + [(T(), 0.0, "floor"), (T(), 0.0, "trunc")],
    "div.Scalar_mode": [(T(), v, m) for v in (3, -3, 0.7) for m in ("floor", "trunc", None)],
    "floor_divide": divisors,
    "floor_divide.Scalar": [(T(), 3), (T(), -3), (T(), 0.7)],
    "remainder.Tensor": divisors,
    "remainder.Scalar": [(T(), 3), (T(), -3), (T(), 0.7)],
    "fmod.Tensor": divisors,
    "fmod.Scalar": [(T(), 3), (T(), -3), (T(), 0.7)],
    "maximum": binary,
    "minimum": binary,
    "atan2": binary,
    "copysign.Tensor": binary,
    "copysign.Scalar": [(T(), -2.0), (T(), 3)],
    "pow.Tensor_Scalar": [(vector, p) for p in (0, 1, 2, 3, 4, 5, -1, -2, 0.5, -0.5, 1.7, 2.0, 3.0)] + [(positive, -3.3), (T(), 3), (T(), -2)],
    "pow.Tensor_Tensor": [(positive, T()), (T(), T(lo=-3, hi=4)), (positive, T((6,)))],
    "pow.Scalar": [(2, T()), (0.5, T()), (10.0, T())],
    "addcmul": [(T(), T(), T(), 1), (T(), T((6,)), T(), 0.3), (T(), T(), T(), 2)],
    "addcdiv": [(T(), T(), positive, 1), (T(), T((6,)), positive, 0.3)],
    "lerp.Scalar": [(T(), T(), 0.1), (T(), T(), 0.7), (T(), T((6,)), 0.5)],
    "lerp.Tensor": [(T(), T(), T(lo=-1, hi=2))],
    # functions
    **{name: unary for name in "exp exp2 expm1 sin cos tan sinh cosh tanh asinh erf erfc sigmoid floor ceil trunc round frac neg abs sign relu atan reciprocal".split()},
    **{name: [(T(lo=-0.5, hi=9),)] for name in "log log2 log10 log1p sqrt acosh".split()},
    "rsqrt": [(T((2, 64), lo=-0.5, hi=9),), (T(lo=-0.5, hi=9),)],
    **{name: [(T(lo=-1.1, hi=1.1),)] for name in "asin acos atanh".split()},
    "gelu": [(T(special=False), "none"), (T(special=False), "tanh")],
    **{name: [(T(lo=-6, hi=6),)] for name in "silu mish hardswish hardsigmoid log_sigmoid_forward selu".split()},
    "leaky_relu": [(T(), 0.01), (T(), 2)],
    "elu": [(T(), 1, 1, 1), (T(), 0.5, 2.0, 1.5)],
    "celu": [(T(), 1.0), (T(), 0.5)],
    "softplus": [(T(), 1, 20), (T(), 2.0, 1.5)],
    "threshold": [(T(), 0.5, -1.0), (T(), 1, 2)],
    "_prelu_kernel": [(T(), T((6,)))],
    "glu": [(T(), 1), (T(), 0), (T(), -1)],
    "clamp": [(T(), -1, 1), (T(), None, 0.5), (T(), 1, None), (T(), 2, -2)],
    "clamp.Tensor": [(T(), T(), None), (T(), T((6,)), T(())), (T(), None, T())],
    "clamp_min": [(T(), 0), (T(), 0.5)],
    "clamp_min.Tensor": [(T(), T((6,)))],
    "clamp_max": [(T(), 0), (T(), 0.5)],
    "clamp_max.Tensor": [(T(), T((6,)))],
    "hardtanh": [(T(), -1, 1), (T(), 0.0, 2.5)],
    "nan_to_num": [(T(), None, None, None), (T(), 1.5, 2.0, -3.0)],
    # comparisons, logic, bits, selection
    **{f"{name}.Tensor": comparison for name in "eq ne lt le gt ge".split()},
    **{f"{name}.Scalar": with_number for name in "eq ne lt le gt ge".split()},
    **{f"bitwise_{name}.Tensor": bits for name in "and or xor".split()},
    **{f"bitwise_{name}.Scalar": bits_number for name in "and or xor".split()},
    "bitwise_not": [(T(lo=-9, hi=9),)],
    **{f"bitwise_{side}_shift.Tensor": shifts for side in ("left", "right")},
    **{f"bitwise_{side}_shift.Tensor_Scalar": shift_number for side in ("left", "right")},
    **{f"__{side}shift__.Tensor": shifts for side in "lr"},
    **{f"__{side}shift__.Scalar": shift_number for side in "lr"},
    **{f"logical_{name}": [(T(lo=-1, hi=1), T(lo=-1, hi=1)), (T(), mask)] for name in "and or xor".split()},
    **{name: unary for name in "logical_not isnan isinf isfinite isposinf isneginf".split()},
    "where.self": [(mask, T(), T()), (T((4, 1), torch.bool, -1, 1), T((6,)), T(())), (mask, T(), T((), torch.float32)), (mask, T(dtype=torch.int32), T())],
    "where.ScalarSelf": [(mask, 2, T()), (mask, 0.5, T())],
    "where.ScalarOther": [(mask, T(), 2), (mask, T(), 0.5)],
    "where.Scalar": [(mask, 1, 2), (mask, 0.5, 2.0)],
    "masked_fill.Scalar": [(T(), mask, 2), (T(), T((6,), torch.bool, -1, 1), 0.3)],
    "masked_fill.Tensor": [(T(), mask, T(()))],
    "_to_copy": [(T(lo=-spread, hi=spread), d, None, None, None, False, None) for d in (None, torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool) for spread in (300, 4e9)],
    "copy": [(T(), T(dtype=torch.float32), False), (T(), T((6,)), False), (T(dtype=torch.float32), T(), False)],
    "fill.Scalar": [(T(), 2), (T(), 0.5)],
    "fill.Tensor": [(T(), T(()))],
    "zero": unary,
    # creation
    "zeros": [([3, 5], torch.float32, *fill[1:]), ([], *fill), ([2, 0], torch.int64, *fill[1:])],
    "ones": [([3, 5], torch.bfloat16, *fill[1:]), ([4], torch.bool, *fill[1:])],
    "empty.memory_format": [([3, 5], *fill, None)],
    "empty_strided": [([3, 5], [5, 1], *fill)],
    "zeros_like": [(T(), *fill, None), (T(), torch.int64, *fill[1:], None)],
    "ones_like": [(T(), *fill, None)],
    "empty_like": [(T(), *fill, None)],
    "full_like": [(T(), 3, *fill, None), (T(), 0.3, *fill, None)],
    "new_zeros": [(T(), [2, 3], *fill)],
    "new_ones": [(T(), [2, 3], torch.bool, *fill[1:])],
    "new_empty": [(T(), [2, 3], *fill)],
    "new_empty_strided": [(T(), [2, 3], [3, 1], *fill)],
    "new_full": [(T(), [2, 3], 2, *fill), (T(), [2], 0.3, *fill)],
    "full": [([2, 3], 7, *fill), ([2], 0.3, *fill), ([2], True, *fill), ([3], 0.1, torch.float16, *fill[1:]), ([2], float("inf"), *fill)],
    "scalar_tensor": [(3, *fill), (0.3, torch.bfloat16, *fill[1:]), (True, torch.bool, *fill[1:]), (-1e30, torch.float32, *fill[1:])],
    "arange": [(7, *fill), (5.5, *fill), (40, torch.float32, *fill[1:]), (9, torch.int32, *fill[1:]), (40, torch.bfloat16, *fill[1:])],
    "arange.start": [(2, 9, *fill), (-3, 4.5, *fill), (2, 30, torch.float32, *fill[1:])],
    "arange.start_step": [(0, 40, 3, *fill), (9, -4, -2, *fill), (0.0, 1.0, 0.1, *fill), (0, 64, 2, torch.float32, *fill[1:]), (0, 3, 0.25, torch.float64, *fill[1:])],
    "eye": [(4, *fill), (3, torch.int64, *fill[1:])],
    "eye.m": [(4, 6, *fill)],
    "linspace": [(0, 1, 7, *fill), (-2.5, 3, 10, torch.float32, *fill[1:]), (0.0, 1.0, 64, torch.float64, *fill[1:])],
    # views
    **{name: unary for name in "alias detach lift_fresh squeeze".split()},
    "view": [(T(), [24]), (T(), [2, 2, 6]), (T(), [3, 8]), (T((2, 3, 4)), [6, 4]), (T((1, 6)), [6, 1])],
    "_reshape_alias": [(T(), [24], [1]), (T((2, 3, 4)), [6, 4], [4, 1])],
    "unsqueeze": [(T(), 0), (T(), -1), (T(), 1)],
    "squeeze.dim": [(T((4, 1, 6)), 1), (T(), 0)],
    "squeeze.dims": [(T((1, 6, 1)), [0, 2])],
    "expand": [(T((4, 1)), [4, 6], False), (T((6,)), [2, 4, 6], False), (T((1, 6)), [-1, 6], False)],
    "transpose.int": [(T(), 0, 1), (T((2, 3, 5)), -1, 0)],
    "t": [(T(),), (T((6,)),)],
    "permute": [(T((2, 3, 5)), [2, 0, 1]), (T((2, 3, 5)), [0, -1, 1])],
    "select.int": [(T(), 0, 2), (T(), -1, -2)],
    "slice.Tensor": [(T(), 0, 1, 3, 1), (T(), 1, None, None, 2), (T(), 1, -3, 100, 1), (T(), 1, 4, 2, 1), (T(), 1, 1, 6, 3)],
    "split.Tensor": [(T(), 4, 1), (T(), 2, 0)],
    "split_with_sizes": [(T(), [1, 2, 3], 1), (T(), [4, 0], 0)],
    "unbind.int": [(T(), 0), (T(), 1)],
    "diagonal": [(T(), 0, 0, 1), (T(), 1, 0, 1), (T((2, 3, 5)), -1, 1, 2)],
    "unfold": [(T(), 1, 3, 2), (T(), 0, 2, 1)],
    "clone": [(T(), None)],
    "_unsafe_view": [(T(), [24]), (T(), [8, 3])],
    "unsafe_split.Tensor": [(T(), 4, 1)],
    "split_with_sizes_copy": [(T(), [1, 2, 3], 1)],
    "slice_scatter": [(T(), T((2, 6)), 0, 1, 3, 1), (T(), T((4, 3)), 1, 0, 6, 2), (T(), T((4, 2)), 1, -2, None, 1), (T(), T((4, 2)), 1, 1, 6, 3)],
    "select_scatter": [(T(), T((6,)), 0, 1), (T(), T((4,)), 1, -1)],
    # layout
    "cat": [([T(), T((4, 3))], 1), ([T(), T((1, 6)), T((3, 6))], 0), ([T(dtype=torch.float32), T()], 0), ([T((0,)), T()], 0), ([T((3,)), T((0,))], -1), ([T()], 1)],
    "stack": [([T(), T()], 0), ([T(), T(), T()], -1), ([T(()), T(())], 0)],
    "constant_pad_nd": [(T(), [1, 2], 0), (T(), [0, 1, 2, 0], 1.5), (T(), [-1, 2], 0), (T((2, 3, 5)), [1, 1, -1, 0, 0, 2], 3)],
    **{f"{name}_pad1d": [(T((2, 3, 5)), [2, 1]), (T((3, 5)), [0, 4])] for name in ("reflection", "replication")},
    **{f"{name}_pad2d": [(T((2, 3, 5)), [2, 1, 1, 2]), (T((2, 2, 3, 5)), [0, 4, 2, 0])] for name in ("reflection", "replication")},
    "flip": [(T(), [0]), (T(), [0, -1]), (T(), [])],
    "roll": [(T(), [2], [1]), (T(), [-1, 3], [0, 1]), (T(), [5], [])],
    "repeat": [(T(), [2, 3]), (T(), [2, 1, 3]), (T((1, 3)), [4, 1]), (T(()), [3])],
    "tril": [(T(), 0), (T(), -1), (T((2, 3, 5)), 2)],
    "triu": [(T(), 0), (T(), 1), (T((2, 3, 5)), -2)],
    "upsample_nearest2d": [(T((2, 3, 4, 5)), [8, 10], None, None), (T((1, 2, 3, 3)), [12, 6], 4.0, 2.0)],
    # indexing
    "gather": [(T(), 1, index((4, 3), 6), False), (T(), 0, index((2, 6), 4), False), (T(), -1, index((2, 9), 6), False)],
    "index_select": [(T(), 0, index((5,), 4)), (T(), 1, index((3,), 6)), (T(), 1, index((), 6))],
    "embedding": [(T((9, 5)), index((2, 3), 9), -1, False, False), (T((9, 5)), index((), 9), 2, False, False)],
    "index.Tensor": [(T(), [index((3,), 4)]), (T(), [None, index((3, 2), 6)]), (T(), [index((3,), 4), index((3,), 6)]), (T((3, 4, 5)), [None, index((2, 1), 4), index((3,), 5)]),
                     (T(), [T((3,), torch.int64, -4, 3.9)]), (T((3, 4, 5)), [index((2,), 3), None, index((2,), 5)])],
    "scatter.value": [(T(), 1, index((4, 2), 6), 1), (T(), 0, index((3, 6), 4), 0.5), (T((3, 4, 5)), -1, index((3, 4, 1), 5), 7)],
    "scatter.src": [(T(), 1, index((4, 1), 6), T((4, 1))), (T(), 0, index((1, 6), 4), T((1, 6)))],
    "nll_loss_forward": [(T((5, 7), special=False), index((5,), 7), None, 1, -100), (T((5, 7), special=False), index((5,), 7), T((7,), special=False), 2, 3), (T((5, 7), special=False), index((5,), 7), None, 1, 2)],
    # reductions
    "sum": [(*a, None) for a in reduction] + [(plain, torch.float64), (plain, torch.bool)],
    "sum.dim_IntList": [(*a, None) for a in dims] + [(plain, [1], False, torch.float32), (T(lo=-0.9, hi=1.9), [1], True, torch.bool)],
    "prod": [(T((2, 3), special=False, lo=0.5, hi=2), None), (T(), torch.bool)],
    "prod.dim_int": [(T(special=False, lo=-2, hi=2), 1, False, None), (T(special=False, lo=0.5, hi=2), 0, True, None), (T(lo=-0.9, hi=1.9), 1, False, torch.bool)],
    "mean": [(*a, None) for a in reduction] + [(plain, torch.float32)],
    "mean.dim": [(*a, None) for a in dims] + [(plain, [1], False, torch.float32)],
    "amax": extremum_dims,
    "amin": extremum_dims,
    "max": unary + [(plain,)],
    "min": unary + [(plain,)],
    "argmax": one_dim + [(T(), None, False), (T(), None, True)],
    "argmin": one_dim + [(T(), None, False), (T(), None, True)],
    "max.dim": one_dim,
    "min.dim": one_dim,
    "aminmax": [(T(), None, False), (plain, 1, False), (T(), 0, True)],
    "any": [(T(lo=-0.9, hi=0.9),), (T(lo=0, hi=0, special=False),)],
    "any.dim": truth_dims,
    "any.dims": [(T(lo=-0.9, hi=0.9), [0, 1], False), (T(lo=-0.9, hi=0.9), None, True)],
    "all": [(T(lo=0.9, hi=2),), (T(),)],
    "all.dim": truth_dims,
    "all.dims": [(T(lo=-0.9, hi=0.9), [0, 1], False), (T(lo=-0.9, hi=0.9), [1], True)],
    "_is_all_true": [(mask,), (T(dtype=torch.bool, lo=1, hi=2),)],
    "_is_any_true": [(mask,), (T(dtype=torch.bool, lo=0, hi=0),)],
    "var.correction": moments,
    "std.correction": moments,
    "var_mean.correction": moments,
    "std_mean.correction": moments,
    "logsumexp": [(plain, [1], False), (T(), [0], True), (T((2, 3, 5), special=False), [0, 2], False)],
    "linalg_vector_norm": [(plain, 2, [1], False, None), (plain, 1, None, False, None), (plain, float("inf"), [0], True, None), (plain, 2, [1], True, torch.float32)],
    "norm.ScalarOpt_dim": [(plain, 2, [1], False), (plain, None, [0], True)],
    "norm.Scalar": [(plain, 2)],
    "mse_loss": [(plain, plain, 0), (plain, plain, 1), (plain, plain, 2)],
    "cumsum": [(T(), 1, None), (T(), 0, None), (mask, -1, None), (T(), 1, torch.int32)],
    # softmax and normalisation
    "_softmax": softmax,
    "_log_softmax": softmax,
    "_safe_softmax": [(plain, 1, None), (T(lo=-60, hi=60), -1, None), (T(lo=float("-inf"), hi=float("-inf"), special=False), 1, None), (plain, 0, torch.float32)],
    "native_layer_norm": [(plain, [6], T((6,), special=False), T((6,), special=False), 1e-5), (plain, [6], None, None, 1e-5), (plain, [6], T((6,), special=False), None, 1e-6),
                          (T((2, 3, 5), special=False), [3, 5], T((3, 5), special=False), T((3, 5), special=False), 1e-5)],
    "_fused_rms_norm": [(plain, [6], T((6,), special=False), 1e-5), (T((2, 3, 5), special=False), [3, 5], None, 1e-6)],
    "native_group_norm": [(T((2, 6, 5), special=False), T((6,), special=False), T((6,), special=False), 2, 6, 5, 3, 1e-5), (T((2, 6, 2, 3), special=False), None, None, 2, 6, 6, 2, 1e-5)],
    "native_batch_norm": [(T((2, 6, 5), special=False), T((6,), special=False), T((6,), special=False), T((6,), special=False), T((6,), lo=0.1, hi=2, special=False), False, 0.1, 1e-5),
                          (T((2, 6, 2, 3), special=False), None, None, T((6,), special=False), T((6,), lo=0.1, hi=2, special=False), False, 0.1, 1e-3)],
    "_native_batch_norm_legit_no_training": [(T((2, 6, 5), special=False), T((6,), special=False), T((6,), special=False), T((6,), special=False), T((6,), lo=0.1, hi=2, special=False), 0.1, 1e-5)],
    # backward: gradient and what was saved
    "sigmoid_backward": [(T(), T(lo=0, hi=1))],
    "tanh_backward": [(T(), T(lo=-1, hi=1))],
    "gelu_backward": [(plain, plain, "none"), (plain, plain, "tanh")],
    **{f"{name}_backward": [(T(special=False), T(lo=-6, hi=6, special=False))] for name in "silu mish hardswish hardsigmoid".split()},
    "log_sigmoid_backward": [(plain, plain, T(lo=0.1, hi=1, special=False))],
    "softplus_backward": [(plain, T(lo=-6, hi=6, special=False), 1, 20), (plain, plain, 2.0, 1.5)],
    "leaky_relu_backward": [(T(), T(), 0.01, False)],
    "elu_backward": [(plain, 1, 1, 1, False, plain), (plain, 0.5, 2.0, 1.5, False, plain)],
    "threshold_backward": [(T(), T(), 0), (T(), T(), 0.5)],
    "hardtanh_backward": [(T(), plain, -1, 1)],
    "_softmax_backward_data": [(plain, T(lo=0, hi=1, special=False), 1, Tested()), (plain, T(lo=0, hi=1, special=False), 0, Tested())],
    "_log_softmax_backward_data": [(plain, T(lo=-3, hi=0, special=False), 1, Tested())],
    "native_layer_norm_backward": [(plain, plain, [6], T((4, 1), special=False), T((4, 1), lo=0.5, hi=2, special=False), T((6,), special=False), T((6,), special=False), [True] * 3)],
    "nll_loss_backward": [(T((), special=False), T((5, 7), special=False), index((5,), 7), None, r, 3, T((), lo=3, hi=5, special=False)) for r in (1, 2)],
    "mse_loss_backward": [(T((), special=False), plain, plain, r) for r in (1, 2)] + [(plain, plain, plain, 0)],
    "slice_backward": [(T((4, 2)), [4, 6], 1, 1, 5, 2), (T((2, 6)), [4, 6], 0, 1, 3, 1)],
    "select_backward": [(T((6,)), [4, 6], 0, 2), (T((4,)), [4, 6], 1, -1)],
}
