"""What tinynode shows: the names are pinned, and every one of them says what it is."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinynode as tn
from tinynode import functions, interop, show

TINYNODE = """
Backend Device Fallback Function FunctionAdapter FunctionHook FunctionNode TinynodeError Variable
VariableNode __version__ array_api array_namespace as_array as_variable asarray backward checkpoint
compile config custom_fixed_point custom_root diagnose distributed enable_grad fixed_point
force_backprop_mode forget functions get_device global_config grad gradient gradient_check hessian
hooks hvp interop is_debug jacfwd jacobian jacrev jvp linearize namespace_of net newton nn
no_backprop_mode no_grad random register_backend seed set_debug show summary synchronize testing
to_host trace transforms using_config using_device value_and_grad vjp vmap
"""

NET = """
CompiledFunction NetOp OpInfo OpInfoMap Operator Scope Trace append_backward backward build_grad_op
compile dumps get_op_info load_net loads register_op save_net trace
"""

FUNCTIONS = """
abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
adaptive_max_pool2d adaptive_max_pool3d add add_all argmax argmin argsort asin asinh astype atan
atan2 atanh avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear bitwise_and bitwise_invert
bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_shapes
broadcast_to ceil clip clipped_relu concat conj contrastive conv1d conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d copy copysign cos cosh cosine_similarity crelu ctc_loss
cumulative_prod cumulative_sum diff digamma divide dropout einsum elu embedding equal erf erfc
erfinv exp expand_dims expm1 fft fixed_batch_norm flip floor floor_divide fmod gaussian_nll gelu
get_item global_avg_pool2d global_max_pool2d glu greater greater_equal grid_sample group_norm
gumbel_softmax hard_sigmoid hard_silu hard_tanh hinge huber hypot identity imag index_add
instance_norm interpolate isfinite isinf isnan keyed_bits kl_divergence layer_norm leaky_relu less
less_equal lgamma linalg linear log log10 log1p log2 log_sigmoid log_softmax logaddexp logical_and
logical_not logical_or logical_xor logsumexp matmul matrix_transpose max max_pool1d max_pool2d
max_pool3d max_unpool2d maximum maxout mean mean_absolute_error mean_squared_error meshgrid min
minimum moveaxis multiply negative nll normalize not_equal one_hot pad permute_dims pixel_shuffle
pixel_unshuffle polygamma positive pow prelu prod real reciprocal relu relu6 remainder repeat
reshape rms_norm roll round rsqrt scaled_dot_product_attention scatter_add selu set_item sigmoid
sigmoid_cross_entropy sign signbit silu sin sinh softmax softmax_cross_entropy softplus sort split
sqrt square squeeze stack std subtract sum sum_to take take_along_axis tan tanh tensordot tile
to_device topk tril triplet_margin triu trunc unstack upsample_nearest2d var vecdot where
zero_safe_divide zero_safe_multiply
"""

FUNCTION_NODES = """
Abs Acos Acosh Add AddAll AddAt ArgMax ArgMin ArgSort AsType Asin Asinh Atan Atan2 Atanh AvgPool2d
AvgPool2dGrad BitwiseAnd BitwiseInvert BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor
BroadcastTo CTCStates Ceil Cholesky Clip ClipGrad Cofactors CofactorsGrad Concat Conj Copy CopySign
Cos Cosh Counters Cross CumulativeProd CumulativeSum Det Direction Divide ELU Eigh Einsum Equal Erf
ErfInv Erfc Exp Expm1 ExtremeGrad FMod Flip Floor FloorDivide Fold GELU GELUGrad Gauss GetItem
GetItemGrad Greater GreaterEqual GumbelNoise HardSiLU HardSiLUGrad Hypot Identity Imag Inv IsFinite
IsInf IsNaN KeepZeros KeyedBits KeyedNormal LGamma LeakyReLU LeakyReLUGrad Less LessEqual Linear
LinearScan Log Log10 Log1p Log2 LogAddExp LogSigmoid LogSoftmax LogSumExp LogicalAnd LogicalNot
LogicalOr LogicalXor MatMul MatMulOfTransposed Max MaxPool2d MaxPool2dGrad Maximum Mean Min Minimum
Multiply Negative NotEqual OneHot PermuteDims Pinv PolyGamma Positions PositionsAlongAxis Positive
Pow PowConstant Prod Qr ReLU ReLUGrad Real Reciprocal Remainder Reshape Roll Round RowWeights
SameInfinity SetItem SetItemGrad Sigmoid Sign SignBit Sin Sinh SlogDet Softmax SoftmaxCrossEntropy
SoftmaxCrossEntropyGrad SoftmaxGrad Solve SolveTriangular Split Sqrt Square Stack Standardize
StandardizeGrad Std Subtract Sum SumTo Svd TakeAlongAxis TakeRows TakeWinners Tan Tanh TanhGELU
TanhGELUGrad ToDevice Trunc Unfold Unstack VecDot VectorNorm Where ZeroSafeDivide ZeroSafeMultiply
"""

SHOW = """
CCode Change Comparison Diagram Difference Film LinkedProgram Plot Replay bars c compare fallbacks
graph histogram lines link matrix points read_link record text training_curves transfers watch
what_if
"""

LINALG = """
cholesky cholesky_solve cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power
matrix_transpose outer pinv qr slogdet solve solve_triangular svd svdvals tensordot trace vecdot
vector_norm
"""

FFT = """
fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn
"""


def public_things() -> Iterator[tuple[str, Any]]:
    """The classes and functions that users can name, each once."""
    for module in (tn, tn.net, functions, functions.fft, functions.linalg, interop, show):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
    for name in FUNCTION_NODES.split():
        yield f"{functions.__name__}.{name}", getattr(functions, name)


THINGS = dict(public_things())
NODES = {n: c for n, c in THINGS.items() if inspect.isclass(c) and issubclass(c, tn.FunctionNode)}
CLASSES = {name: thing for name, thing in THINGS.items() if inspect.isclass(thing)}


@pytest.mark.parametrize(
    ("module", "pinned"),
    [
        (tn, TINYNODE),
        (tn.net, NET),
        (functions, FUNCTIONS),
        (functions.fft, FFT),
        (functions.linalg, LINALG),
        (interop, "jax_function onnx_model torch_function"),
        (show, SHOW),
    ],
)
def test_the_public_names_are_these(module: types.ModuleType, pinned: str) -> None:
    names = module.__all__
    if module is functions:  # the sum of the files' lists, which are sorted each
        names = sorted(names)
    assert set(names) ^ set(pinned.split()) == set(), "a public name came or went"
    assert names == pinned.split() == sorted(names)


def modules_with_a_list() -> dict[str, types.ModuleType]:
    """The modules of tinynode with ``__all__``, by name."""
    found = {tn.__name__: tn}
    for info in pkgutil.walk_packages(tn.__path__, tn.__name__ + "."):
        path = Path(tn.__file__).parent.joinpath(*info.name.split(".")[1:])
        file = path / "__init__.py" if info.ispkg else path.with_suffix(".py")
        if "\n__all__ = [" in file.read_text(encoding="utf-8"):
            found[info.name] = importlib.import_module(info.name)
    return found


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def test_public_modules_have_a_list() -> None:
    """The modules that the lists of public modules name, from ``tinynode`` on; and a few more."""
    with_list = modules_with_a_list()
    waiting = ["tinynode", "tinynode.devices", "tinynode.errors", "tinynode.type_check"]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        assert name in with_list, f"{name} is public, and has no __all__"
        members = {key: getattr(with_list[name], key) for key in with_list[name].__all__}
        inside = {value.__name__ for value in members.values() if inspect.ismodule(value)}
        waiting += inside - seen
    assert len(seen) > 20


def test_completion_shows_the_public_names_alone() -> None:
    """``dir(module)`` is what a shell or a notebook offers behind ``module.`` and a tab."""
    for name, module in modules_with_a_list().items():
        shown = [n for n in dir(module) if not is_dunder(n)]
        assert shown == sorted(n for n in module.__all__ if not is_dunder(n)), name
        assert [n for n in module.__all__ if not hasattr(module, n)] == [], name


def test_completion_of_functions_shows_functions() -> None:
    """The FunctionNode classes are there for those who name them."""
    assert {n for n in dir(functions) if inspect.isclass(getattr(functions, n))} == set()
    names = [name for file in function_files() for name in file.__all__ if file is not functions]
    classes = {n for n in names if hasattr(functions, n) and n[0].isupper()}
    of_linalg = set(FUNCTION_NODES.split()) - classes
    assert all(getattr(functions, n) is getattr(functions.linalg, n) for n in of_linalg)
    assert classes < set(FUNCTION_NODES.split())


def function_files() -> list[types.ModuleType]:
    """The modules of ``tinynode.functions`` with a list."""
    found = modules_with_a_list()
    return [module for name, module in found.items() if name.startswith(functions.__name__)]


def test_each_file_of_functions_has_a_sorted_list() -> None:
    folder = Path(functions.__file__).parent
    helpers = {"__init__", "attribute_types", "attributes", "checked", "guards"}
    helpers |= {"image_columns", "image_windows", "operands", "recurrent", "scaling"}
    for name in {path.stem for path in folder.glob("*.py")} - helpers:
        names = importlib.import_module(f"tinynode.functions.{name}").__all__
        assert names == sorted(set(names)), name
        shown = {*functions.__all__, *FUNCTION_NODES.split()}
        assert set(names) <= shown or name in ("fft", "linalg"), name


@pytest.mark.parametrize("module", [tn, tn.net, functions, show])
def test_nothing_else_looks_public(module: types.ModuleType) -> None:
    """Submodules aside, which Python adds to a package by itself."""
    visible = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    ]
    named = [n for n in module.__all__ if not _is_module_or_dunder(module, n)]
    named += FUNCTION_NODES.split() if module is functions else []
    assert sorted(visible) == sorted(named)


def _is_module_or_dunder(module: types.ModuleType, name: str) -> bool:
    return name.startswith("__") or isinstance(getattr(module, name), types.ModuleType)


def test_everything_has_a_docstring() -> None:
    assert THINGS
    assert [name for name, thing in THINGS.items() if len(thing.__doc__ or "") <= 10] == []


def test_methods_have_docstrings() -> None:
    """An override may leave it to the method that it overrides."""
    bare = []
    for name, kind in CLASSES.items():
        for attribute, value in vars(kind).items():
            described = inspect.isfunction(value) or isinstance(value, property | classmethod)
            public = described and not attribute.startswith("_")
            if public and not inspect.getdoc(getattr(kind, attribute)):
                bare.append(f"{name}.{attribute}")
    assert CLASSES
    assert bare == []


def test_function_nodes_state_shapes_and_gradient() -> None:
    """Which shapes go in and come out, by an arrow; and the gradient, or that there is none."""
    nodes = {name: n for name, n in NODES.items() if name.startswith("tinynode.functions.")}
    docs = {name: node.__doc__ or "" for name, node in nodes.items()}
    assert docs
    assert [name for name, doc in docs.items() if "->" not in doc] == []
    assert [n for n, d in docs.items() if "dL/d" not in d and "no gradient" not in d.lower()] == []
