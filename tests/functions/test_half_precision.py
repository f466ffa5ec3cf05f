"""float16: sums and means are added up and divided in float32, and compared with float64.

float16 has 11 bits, so 2,048 + 1 is 2,048; its largest number is 65,504. The strict backend has no
float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fake_cupy
import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.devices import namespace_of
from tinynode.functions import image_windows

MANY = 70_000
ONES, ZEROS = np.ones((2500, 2)), np.zeros((2500, 2))
LABELS = np.arange(MANY) % 2
SCORES = np.stack([np.full(MANY, 20.0), np.zeros(MANY)], axis=1)

CASES: dict[str, tuple[Any, ...]] = {
    "sum": (lambda x: fn.sum(x, axis=0), ONES),
    "sum-of-squares": (lambda x: fn.sum(x * x, axis=0), ONES),
    "sum_to": (lambda x: fn.sum_to(x * x, (1, 2)), ONES),
    "broadcast": (lambda x, y: x * x * y, np.ones((1, 2)), ONES),
    "mean": (lambda x: fn.mean(x * x) * 100.0, np.ones(MANY)),
    "mean-weights": (lambda x, w: fn.mean(x * x, 0, weights=w), ONES * 10, ONES * 100),
    "einsum": (lambda x: fn.einsum("ij,ij->j", x, x), ONES),
    "einsum-to-scalar": (lambda x: fn.einsum("ij,ij", x, x), ONES),
    "softmax": (lambda x: fn.softmax(x, axis=0) * 100.0, ZEROS),
    "softmax-many": (lambda x: fn.softmax(x) * 1000.0, np.zeros(MANY)),
    "log_softmax": (lambda x: fn.log_softmax(x, axis=0), ZEROS),
    "logsumexp": (lambda x: fn.logsumexp(x, axis=0) * 100.0, ZEROS),
    "cumulative_sum": (lambda x: fn.cumulative_sum(x * x, axis=0), ONES),
    "cumulative_prod": (lambda x: fn.cumulative_prod(x, axis=0)[-1], ONES),
    "scan": (lambda x: fn.cumulative_prod(x, axis=0)[:, 0], ONES * np.array([1.0, 0.0])),
    "max-of-ties": (lambda x: fn.max(x) * 1000.0, np.zeros(MANY)),
    "take": (lambda x, i: fn.take(x * x, i, axis=0), np.ones((2, 2)), np.zeros(2500, int)),
    "take-many": (
        lambda x, i: fn.take(x * x, i, axis=0) * 0.1,
        np.ones((2, 2)),
        np.zeros(20_000, int),
    ),
    "avg_pool2d-of-overlaps": (
        lambda x: fn.avg_pool2d(x * x, (1, 5000), 1) * 1000.0,
        np.ones((1, 1, 1, 10_000)),
    ),
    "max_pool2d-of-overlaps": (
        lambda x: fn.max_pool2d(x * x, (1, 5000), 1),
        np.where(np.arange(10_000) == 5000, 2.0, 0.0)[None, None, None],
    ),
    "avg_pool2d": (lambda x: fn.avg_pool2d(x * x, 46) * 100.0, np.ones((1, 1, 47, 46))),
    "max_pool2d": (lambda x: fn.max_pool2d(x * x, 46, 1), np.eye(91)[None, None]),
    "upsample_nearest2d": (lambda x: fn.upsample_nearest2d(x * x, 50), np.ones((1, 1, 1, 2))),
    "upsample-of-one": (
        lambda x: fn.upsample_nearest2d(x * x, (1, 20_000)) * 0.1,
        np.ones((1, 1, 1, 1)),
    ),
    "linear": (lambda b, x, w: fn.linear(x, w, b * b), ONES[0], ONES[:, :1], ONES[:2, :1]),
    "batch_norm": (lambda b, x: fn.batch_norm(x, None, b * b), ONES[0], ONES),
    "layer_norm": (
        lambda g, x: fn.layer_norm(x, g * g),
        np.ones(3000),
        np.linspace(-900.0, 900.0, 3000),
    ),
    "softmax_cross_entropy": (
        lambda x, t: fn.softmax_cross_entropy(x, t) * 1000.0,
        SCORES,
        LABELS,
    ),
    "weighted_cross_entropy": (
        lambda x, t, w: fn.softmax_cross_entropy(x, t, class_weight=w) * 1000.0,
        SCORES,
        LABELS,
        np.array([1.0, 2.0]),
    ),
    "nll": (lambda x, t: fn.nll(x * x, t) * 1000.0, np.full((MANY, 2), 1.5), LABELS),
    "hinge": (lambda x, t: fn.hinge(x * x, t) * 1000.0, np.full((MANY, 2), 0.5), LABELS),
    "mean_squared_error-large": (
        lambda x, y: fn.mean_squared_error(x, y),
        np.array([300.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        np.zeros(6),
    ),
    "kl_divergence": (
        lambda x, p: fn.kl_divergence(x * x, p) * 1000.0,
        np.full((MANY, 2), -2.0),
        np.full((MANY, 2), 0.5),
    ),
    "sigmoid_cross_entropy": (
        lambda x, t: fn.sigmoid_cross_entropy(x, t) * 1000.0,
        np.full(MANY, 2.0),
        LABELS,
    ),
    "mean_squared_error": (
        lambda x: fn.mean_squared_error(x, x * 0.0) * 1000.0,
        np.full(MANY, 1.5),
    ),
    "attention": (
        lambda x: fn.scaled_dot_product_attention(x, x, x),
        np.stack([np.full(64, 100.0), np.full(64, 99.0)]),
    ),
}
"""A function, x and constants. Factors keep gradients away from float16's smallest numbers."""

COMPILED = "sum broadcast mean-weights einsum softmax linear softmax_cross_entropy nll attention"
ROWS = [(way, name) for way in ("numpy", "fast", "cupy:0") for name in CASES]
ROWS += [("fast-compiled", name) for name in COMPILED.split()]


@pytest.fixture(scope="module")
def cupy() -> Iterator[None]:
    with fake_cupy.installed():
        yield


def results(function: Any, arrays: list[Any], dtype: str, device: str) -> list[Any]:
    """The values, a gradient, and the gradient of the gradient along a direction."""
    fitted = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
    with tn.using_device(device):
        x, *constants = [tn.asarray(a) for a in fitted]
        y = function(x, *constants)
        (gx,) = tn.grad([y], [x], [direction(y, 0.5)], enable_double_backprop=True)
        (ggx,) = tn.grad([gx], [x], [direction(gx, 0.0)])
    return [None if v is None else tn.to_host(v.array) for v in (y, gx, ggx)]


def direction(like: tn.Variable, shift: float) -> tn.Variable:
    """Gradients to start from."""
    values = shift + np.cos(np.arange(like.size) / 100).reshape(like.shape)
    return tn.asarray(np.asarray(values, like.dtype), device=like.device)


SHARE = [
    pytest.param(*row, id="-".join(row), marks=[] if i % 3 == 0 else pytest.mark.slow)
    for i, row in enumerate(ROWS)
]
"""The default tests check every third row."""


@pytest.mark.parametrize(("way", "name"), SHARE)
def test_half_precision_gives_what_double_gives(way: str, name: str, request: Any) -> None:
    device, _, is_compiled = way.partition("-")
    function, *arrays = CASES[name]
    wanted = results(function, arrays, "float64", "numpy")
    if device == "cupy:0":
        if fake_cupy.COMPILER is None:
            pytest.skip("no C++ compiler: the kernels cannot be compiled")
        request.getfixturevalue("cupy")
    own = tn.compile(function) if is_compiled else function
    with np.errstate(over="ignore"):  # while a gradient is recorded, every gradient is 1
        found = results(own, arrays, "float16", device)
    for half, double in zip(found, wanted, strict=True):
        if half is None or double is None:
            assert not np.any(half) and not np.any(double)
            continue
        assert half.dtype == np.float16
        slack = max(1e-4, 0.02 * np.abs(double).max())
        np.testing.assert_allclose(half, double, rtol=4e-3, atol=slack)


def test_columns_are_added_up_in_float32() -> None:
    windows = image_windows.Windows((1, 2500), (1, 1), (0, 0), (1, 1))
    columns = np.ones((1, 1, 2500, 1, 1, 2500), np.float16)
    (x,) = fn.convolution.Fold(windows, (1, 4999)).apply((columns,))
    assert x.dtype == np.float16
    assert x.array.max() == 2500


class SumOfSquares(tn.FunctionNode):
    """y = the sum of x^2, by a class of a user.   dL/dx = 2 x dL/dy"""

    wide = True

    def forward(self, inputs: Any) -> Any:
        (x,) = inputs
        self.retain_inputs((0,))
        assert x.dtype == np.float32
        return (namespace_of(x).sum(x * x),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (x * (grad_outputs[0] * 2.0),)


def sum_of_squares(x: tn.Variable) -> tn.Variable:
    return SumOfSquares().apply((x,))[0] * (1 / 16)


WAYS: dict[str, Any] = {
    "eager": sum_of_squares,
    "compiled": tn.compile(sum_of_squares),
    "checkpoint": lambda x: tn.checkpoint(sum_of_squares, x),
    "vmap": lambda x: tn.vmap(sum_of_squares)(x[None])[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_wide_class_of_a_user(way: str, device: str) -> None:
    """forward gets float32; the outputs, the retained arrays and the gradients are float16."""
    with tn.using_device(device):
        for _ in range(3):  # a compiled function has plans from the second call on
            x = tn.asarray(np.full(3, 256.0, np.float16))
            y = WAYS[way](x / 2.0)
            (gx,) = tn.grad([y], [x])
            assert (y.dtype, gx.dtype) == (np.float16, np.float16)
            assert y.array == 3 * 128 * 8
            np.testing.assert_array_equal(gx.array, np.full(3, 8.0))
