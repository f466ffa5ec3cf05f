"""Every function keeps the zeros of a mask: values at poles, out of the domain, infinite and NaN.

A row of numbers stands before a mask. The first and the second derivative are exactly 0 where the
mask hides, eagerly, compiled, in checkpoints, in vmap and in a compiled vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinynode as tn

pytestmark = pytest.mark.usefixtures("without_numpy_warnings")

F = tn.functions
Function = Callable[[Any], Any]


NAMES = """abs acos acosh asin asinh atan atanh cos cosh digamma elu erf erfc erfinv exp expm1 gelu
hard_sigmoid hard_silu hard_tanh leaky_relu lgamma log log10 log1p log2 log_sigmoid negative
reciprocal relu rsqrt selu sigmoid silu sin sinh softplus sqrt square tan tanh"""
PAIRS = "add subtract multiply divide pow maximum minimum atan2 hypot fmod remainder logaddexp"
ELEMENTWISE: dict[str, Function] = {
    **{name: getattr(F, name) for name in NAMES.split()},
    "clip": lambda x: F.clip(x, -1.0, 1.0),
    "x ** 0.5": lambda x: x**0.5,
    "x ** -1": lambda x: x**-1.0,
    "2 ** x": lambda x: 2.0**x,
    "tanh gelu": lambda x: F.gelu(x, approximate=True),
}
for name in [*PAIRS.split(), "copysign"]:
    function = getattr(F, name)
    ELEMENTWISE[f"{name}(x, x)"] = lambda x, f=function: f(x, x)
    ELEMENTWISE[f"{name}(x, 2)"] = lambda x, f=function: f(x, x * 0.0 + 2.0)
    ELEMENTWISE[f"{name}(2, x)"] = lambda x, f=function: f(x * 0.0 + 2.0, x)
    ELEMENTWISE[f"{name}(x, 1 / x)"] = lambda x, f=function: f(x, 1.0 / x)

GAMMA = np.array([1.0, 2.0, 3.0])
LABELS, EVEN = np.array([0, 2]), np.full((2, 3), 1 / 3)


def cross_entropy(x: Any, labels: Any = LABELS, **more: Any) -> Any:
    return F.softmax_cross_entropy(x, labels, reduction="none", **more)[:, None]


ROWS: dict[str, Function] = {
    "sum": lambda x: F.sum(x * x, axis=1, keepdims=True),
    "mean": lambda x: F.mean(x, axis=1, keepdims=True),
    "prod": lambda x: F.prod(x, axis=1, keepdims=True),
    "max": lambda x: F.max(x, axis=1, keepdims=True),
    "var": lambda x: F.var(x, axis=1, keepdims=True),
    "std": lambda x: F.std(x, axis=1, keepdims=True),
    "norm": lambda x: F.linalg.vector_norm(x, axis=1, keepdims=True),
    "norm without axes": lambda x: F.linalg.vector_norm(x, axis=1)[:, None],
    "norm 3": lambda x: F.linalg.vector_norm(x, axis=1, keepdims=True, ord=3),
    "cumulative_sum": lambda x: F.cumulative_sum(x, axis=1),
    "logsumexp": lambda x: F.logsumexp(x, axis=1, keepdims=True),
    "softmax": lambda x: F.softmax(x, axis=1),
    "log_softmax": lambda x: F.log_softmax(x, axis=1),
    "layer_norm": lambda x: F.layer_norm(x, GAMMA),
    "rms_norm": lambda x: F.rms_norm(x, GAMMA),
    "normalize": F.normalize,
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * 2.0)[:, None],
    "vecdot": lambda x: F.vecdot(x, x)[:, None],
    "einsum": lambda x: F.einsum("ij,ij->i", x, x)[:, None],
    "einsum of three": lambda x: F.einsum("ij,ij,ij->i", x, x, x)[:, None],
    "cross entropy": lambda x: cross_entropy(x),
    "cross entropy with weights": lambda x: cross_entropy(x, class_weight=GAMMA),
    "smoothed cross entropy": lambda x: cross_entropy(x, label_smoothing=0.1),
    "cross entropy of probabilities": lambda x: cross_entropy(x, EVEN),
    "nll": lambda x: F.nll(F.log_softmax(x), LABELS, reduction="none")[:, None],
    "huber": lambda x: F.huber(x, x * 0.0, reduction="none"),
    "kl_divergence": lambda x: F.kl_divergence(x, F.abs(x), reduction="none"),
}


def vmapped(f: Function) -> Function:
    return lambda x: tn.vmap(f)(x[None])[0]


RUNS: list[Function] = [
    lambda f: f,
    lambda f: tn.compile(f),
    lambda f: lambda x: tn.checkpoint(f, x),
    vmapped,
    lambda f: tn.compile(vmapped(f)),
]


WAYS = [RUNS[0], RUNS[-1], *[pytest.param(run, marks=pytest.mark.slow) for run in RUNS[1:-1]]]
"""Eagerly, and compiled in vmap; the ways between are slow tests."""


def hidden_derivatives(f: Function, run: Any, numbers: Any, shown: Any) -> Iterator[Any]:
    """The derivatives of both orders at the hidden elements of the first row."""
    x = tn.Variable(np.array(numbers))

    def masked(x: Any) -> Any:
        return F.where(tn.asarray(np.array(shown)), f(x), 0.0)

    (gx,) = tn.grad([F.sum(run(masked)(x))], [x], enable_double_backprop=True)
    yield gx.array[0]
    ggx = tn.grad([F.sum(gx)], [x])[0] if gx.requires_grad else None
    if ggx is not None:  # None stands for zeros
        yield ggx.array[0]


PLANTED = [
    (0.0, np.inf, np.nan),
    pytest.param((1.0, -1.0, -3.0, 1e3, -np.inf), marks=pytest.mark.slow),
]
"""The hidden numbers of the default tests, and of the slow tests."""


@pytest.mark.parametrize("numbers", PLANTED)
@pytest.mark.parametrize("run", WAYS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_keep_zeros(name: str, run: Any, numbers: Any) -> None:
    for planted in numbers:
        found = hidden_derivatives(ELEMENTWISE[name], run, [planted, 0.5], [False, True])
        for order, derivative in enumerate(found, 1):
            assert derivative == 0.0, (planted, order)


@pytest.mark.parametrize(
    "made",
    ["1 / x", *[pytest.param(m, marks=pytest.mark.slow) for m in ("-1 / x", "sqrt(x - 1)")]],
)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_operands_that_a_function_made_keep_zeros(name: str, made: str) -> None:
    before: Function = {
        "1 / x": lambda x: 1.0 / x,
        "-1 / x": lambda x: -1.0 / x,
        "sqrt(x - 1)": lambda x: F.sqrt(x - 1.0),
    }[made]
    for run in RUNS[:2]:
        f = ELEMENTWISE[name]
        for derivative in hidden_derivatives(
            lambda x, f=f: f(before(x)), run, [0.0, 2.5], [False, True]
        ):
            assert derivative == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("numbers", PLANTED)
@pytest.mark.parametrize("run", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_functions_of_rows_keep_the_zeros_of_hidden_rows(
    name: str, run: Any, numbers: Any
) -> None:
    other = [0.5, 1.5, 0.7]
    for planted in numbers:
        for row in ([planted, 1.0, 2.0], [planted] * 3):
            found = hidden_derivatives(ROWS[name], run, [row, other], [[False], [True]])
            for order, derivative in enumerate(found, 1):
                np.testing.assert_array_equal(derivative, [0.0] * 3, err_msg=f"{row} {order}")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("planted", [np.inf, -np.inf, np.nan])
def test_a_running_product_keeps_the_zeros_behind_the_last_number_that_counts(
    planted: float, run: Any
) -> None:
    def masked(x: Any) -> Any:
        return F.where(np.array([True, True, False]), F.cumulative_prod(x), 0.0)

    x = tn.Variable(np.array([2.0, 3.0, planted]))
    (gx,) = tn.grad([F.sum(run(masked)(x))], [x], enable_double_backprop=True)
    np.testing.assert_array_equal(gx.array, [4, 2, 0])
    np.testing.assert_array_equal(tn.grad([F.sum(gx)], [x])[0].array, [1, 1, 0])


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_an_ignored_row_has_no_gradient_whatever_it_holds(reduction: str, device: str) -> None:
    labels = np.array([-1, 2])

    def losses(x: Any) -> Any:
        return F.softmax_cross_entropy(x, labels, reduction)

    with tn.using_device(device):
        for planted in (np.inf, np.nan):
            x = tn.asarray(np.array([[planted] * 2 + [1.0], [0.5, 1.5, 0.7]]), requires_grad=True)
            for run in RUNS[:3]:
                (gx,) = tn.grad([F.sum(run(losses)(x))], [x])
                np.testing.assert_array_equal(gx.array[0], [0.0] * 3)
                assert np.isfinite(gx.array).all()


@pytest.mark.parametrize("name", ["softmax", "norm", "std", "layer_norm", "einsum"])
def test_rows_without_a_mask_are_not_finite_as_before(name: str) -> None:
    infinite = [np.inf] * 2 if name == "softmax" else [np.inf, 1.0]  # one has a limit there
    x = tn.Variable(np.array([[*infinite, 2.0]]))
    (gx,) = tn.grad([F.sum(ROWS[name](x))], [x])
    assert not np.isfinite(gx.array).all()
