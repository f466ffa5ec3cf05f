"""softmax and its kin: limits at infinities, and derivatives of almost sure classes."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, nan
from typing import Any

import numpy as np
import pytest

import tinynode as tn

pytestmark = pytest.mark.usefixtures("without_numpy_warnings")

F = tn.functions
Function = Callable[[Any], Any]


# a row, softmax and log_softmax of it; one +inf has a limit, and several have none
LIMITS = [
    ([2, inf, 3], [0, 1, 0], [-inf, 0, -inf]),
    ([-inf, inf, 3], [0, 1, 0], [-inf, 0, -inf]),
    ([1e300, inf, -1e300], [0, 1, 0], [-inf, 0, -inf]),
    ([-inf, 2, -inf], [0, 1, 0], [-inf, 0, -inf]),
    ([inf, 2, inf], [nan] * 3, [nan] * 3),
    ([inf, 2, nan], [nan] * 3, [nan] * 3),
    ([-inf] * 3, [0] * 3, [nan] * 3),
]
WEIGHTS = np.array([1.0, 3.0, 7.0])


def answers(f: Function) -> Function:
    """The value, the gradient of the weighted sum, and the gradient of that."""

    def all_of(x: Any, weights: Any) -> Any:
        y = f(x)
        (gx,) = tn.grad([F.sum(y * weights)], [x], enable_double_backprop=True)
        return y, gx, tn.grad([F.sum(gx * gx)], [x])[0]

    return all_of


def over_rows(f: Function) -> Function:
    return tn.vmap(lambda row: f(row[None])[0])  # type: ignore[no-any-return]


WAYS: dict[str, Function] = {
    "eager": answers,
    "compiled": lambda f: answers(tn.compile(f)),
    "in a net": lambda f: tn.compile(answers(f)),
    "vmap": lambda f: answers(over_rows(f)),
    "vmap in a net": lambda f: tn.compile(answers(over_rows(f))),
}
every_way = pytest.mark.parametrize("way", WAYS)
every_device = pytest.mark.parametrize("device", ["numpy", "fast", "strict"])


def found_by(f: Function, rows: Any, way: str, device: str, dtype: str = "float64") -> list[Any]:
    with tn.using_device(device):
        run = WAYS[way](f)
        for _ in range(2):
            x = tn.asarray(np.array(rows, dtype), device=device, requires_grad=True)
            found = run(x, tn.asarray(WEIGHTS.astype(dtype), device=device))
    return [tn.to_host(y.array) for y in found]


@every_device
@every_way
def test_softmax_of_infinities_is_the_limit(way: str, device: str) -> None:
    value, first, second = found_by(F.softmax, [row for row, _, _ in LIMITS], way, device)
    np.testing.assert_array_equal(value, [y for _, y, _ in LIMITS])
    zeros = [np.array(y) * 0.0 for _, y, _ in LIMITS]
    np.testing.assert_array_equal(first, zeros)
    np.testing.assert_array_equal(second, zeros)


@every_device
@every_way
def test_log_softmax_of_infinities_is_the_limit(way: str, device: str) -> None:
    value, first, second = found_by(F.log_softmax, [row for row, _, _ in LIMITS], way, device)
    np.testing.assert_array_equal(value, [y for _, _, y in LIMITS])
    kept = np.array([p for _, p, _ in LIMITS[:4]])
    expected = WEIGHTS - kept * WEIGHTS.sum()
    np.testing.assert_array_equal(first, [*expected, *[[nan] * 3] * 3])
    np.testing.assert_array_equal(second, [*expected * 0.0, *[[nan] * 3] * 3])


@every_device
@every_way
def test_logsumexp_of_infinities_has_the_limit_as_a_gradient(way: str, device: str) -> None:
    rows = [row for row, _, _ in LIMITS]
    value, first, second = found_by(
        lambda x: F.logsumexp(x, axis=1, keepdims=True), rows, way, device
    )
    np.testing.assert_array_equal(value[:, 0], [inf, inf, inf, 2, inf, nan, -inf])
    expected = [np.array(y) * WEIGHTS.sum() for _, y, _ in LIMITS]
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, [y * 0.0 for y in expected])


@every_device
@pytest.mark.parametrize("way", ["eager", "compiled", "in a net"])
def test_the_cross_entropy_of_infinite_logits(way: str, device: str) -> None:
    rows = [[2, inf, 3], [inf, 2, 3], [-inf, 2, -inf], [2, -inf, 3], [2, inf, inf]]

    def losses(x: Any) -> Any:
        labels = tn.asarray(np.ones(5, "int64"), device=device)
        return F.reshape(F.softmax_cross_entropy(x, labels, reduction="none"), (5, 1))

    value, first, _ = found_by(losses, rows, way, device)
    np.testing.assert_array_equal(value[:, 0], [0, inf, 0, inf, nan])
    p = 1 / (1 + exp(1.0))
    expected = np.array([[0, 0, 0], [1, -1, 0], [0, 0, 0], [p, -1, 1 - p], [nan, nan, nan]])
    np.testing.assert_allclose(first, expected * WEIGHTS.sum(), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_infinity_beside_the_largest_number_is_alone(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    for device in ("numpy", "fast"):
        for way in ("eager", "in a net"):
            value, first, _ = found_by(F.softmax, [[largest, inf, 0.0]], way, device, dtype)
            np.testing.assert_array_equal(value, [[0, 1, 0]])
            np.testing.assert_array_equal(first, [[0, 0, 0]])


# --- sure classes --------------------------------------------------------------------------------

SURE = [("float16", 9.0), ("float32", 17.0), ("float32", 80.0), ("float64", 40.0)]
SURE += [("float64", 700.0)]


@every_device
@every_way
@pytest.mark.parametrize(("dtype", "logit"), SURE)
def test_the_derivatives_of_a_sure_softmax_do_not_cancel(
    dtype: str, logit: float, way: str, device: str
) -> None:
    """With the weights 1, 3 and 7, dL/dx = p_i times the differences of the weights."""
    if (dtype, device) == ("float16", "strict"):
        pytest.skip("array_api_strict has no float16")
    value, first, _ = found_by(F.softmax, [[logit, 0.0, 0.0]], way, device, dtype)
    p = exp(-logit) / (1 + 2 * exp(-logit))
    q = 1 - 2 * p
    np.testing.assert_allclose(value, [[q, p, p]], rtol=4 * np.finfo(dtype).eps)
    total = 2 * p + 6 * p
    wanted = [-q * total, p * (2 - total), p * (6 - total)]
    np.testing.assert_allclose(first, [wanted], rtol=4 * np.finfo(dtype).eps)
