"""Each elementwise function is right to a few ulp, over the whole range of its dtype.

Requirement: values are right to 4 ulp (8 of special functions, 2 in float16), derivatives of first
and second order to 8. Exceptions are data: ``allowances.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from c_compiler import missing_compiler

import tinynode as tn
from accuracy.allowances import judged
from accuracy.coverage import EXCEPTIONS, all_without_a_row
from accuracy.measure import (
    DENSE,
    DTYPES,
    ORDERS,
    SPARSE,
    compiled_results,
    constant,
    errors,
    grid,
    results,
    true_results,
)
from accuracy.rows import ROWS, Row
from accuracy.special_rows import SPECIAL_ROWS
from tinynode import functions as fn
from tinynode_fast import plan as plan_module

INF = float("inf")
BY_NAME = {row.name: row for row in ROWS}


def check(row: Row, dtype: str, count: int, found: list[Any], device: str) -> None:
    """Compare the results of a row with mpmath."""
    x, c = grid(row, dtype, count), constant(row, dtype)
    for order in range(len(row.exact)):
        true = true_results(row, order, x, c)
        ulps = errors(found[order], true, order)
        shares = judged(row, order, device, x, ulps, np.abs(true[0]))
        worst = int(shares.argmax())
        assert shares[worst] <= 1.0, (
            f"{row.name}, {dtype}, {ORDERS[order]}: {ulps[worst]:.3g} ulp at x = {x[worst]!r}: "
            f"got {found[order][worst]!r}, expected {true[0][worst]!r}."
        )


def parameters(mark: Any) -> list[Any]:
    """All rows: two of three, and those of special functions, have a mark.

    mpmath takes long for special functions.
    """
    usual = [
        pytest.param(row, id=row.name, marks=[] if i % 3 == 0 else mark)
        for i, row in enumerate(ROWS)
    ]
    return usual + [pytest.param(row, id=row.name, marks=mark) for row in SPECIAL_ROWS]


@pytest.mark.parametrize("row", parameters(pytest.mark.slow))
def test_errors_on_the_sparse_grid(row: Row) -> None:
    for dtype in DTYPES:
        found = results(row, grid(row, dtype, SPARSE), constant(row, dtype))
        check(row, dtype, SPARSE, found, "numpy")


@pytest.mark.slow
@pytest.mark.parametrize("row", parameters(pytest.mark.long))
def test_errors_on_the_dense_grid(row: Row) -> None:
    for dtype in DTYPES:
        found = results(row, grid(row, dtype, DENSE), constant(row, dtype))
        check(row, dtype, DENSE, found, "numpy")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nets become libraries of C before their first run."""
    if missing_compiler():
        pytest.skip(missing_compiler())
    monkeypatch.setenv("TINYNODE_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr(plan_module.build, "in_background", lambda work, seconds: work())


USED = """exp; tanh; sigmoid; silu; gelu; gelu by tanh; log_sigmoid;
softmax_cross_entropy, [x, 0], label 0; log_softmax, [x, 0];
sigmoid_cross_entropy, label 1.0; divide, small / x; atan2 of (x, 300.0)"""


def test_errors_of_compiled_functions(at_once: None) -> None:
    check_compiled(
        [BY_NAME[" ".join(name.split())] for name in USED.split(";")], "float32", SPARSE
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_errors_of_all_compiled_functions(dtype: str, at_once: None) -> None:
    check_compiled(ROWS, dtype, 60)


def check_compiled(rows: list[Row], dtype: str, count: int) -> None:
    with tn.using_device("fast"), tn.using_config(compiler="auto"):
        found = compiled_results(rows, dtype, count)
    for row, results_of_row in zip(rows, found, strict=True):
        check(row, dtype, count, results_of_row, "fast")


def test_every_elementwise_function_has_a_row() -> None:
    """Classes by ``is_elementwise``, functions by the table of operations, rules by theirs."""
    assert all_without_a_row() == EXCEPTIONS


# at infinity: value, first and second derivative
CORNERS = [
    (fn.silu, -INF, (-0.0, 0.0, 0.0)),
    (fn.silu, INF, (INF, 1.0, 0.0)),
    (fn.gelu, -INF, (-0.0, 0.0, 0.0)),
    (fn.gelu, INF, (INF, 1.0, 0.0)),
    (fn.sigmoid, -INF, (0.0, 0.0, 0.0)),
    (fn.sigmoid, INF, (1.0, 0.0, 0.0)),
    (fn.tanh, -INF, (-1.0, 0.0, 0.0)),
    (fn.tanh, INF, (1.0, 0.0, 0.0)),
    (fn.softplus, -INF, (0.0, 0.0, 0.0)),
    (fn.softplus, INF, (INF, 1.0, 0.0)),
    (fn.hard_silu, -INF, (-0.0, 0.0, 0.0)),
    (fn.hard_silu, INF, (INF, 1.0, 0.0)),
    (fn.erf, INF, (1.0, 0.0, 0.0)),
    (fn.erfc, INF, (0.0, -0.0, 0.0)),
    (fn.expm1, -INF, (-1.0, 0.0, 0.0)),
    (fn.atan, INF, (np.pi / 2, 0.0, None)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("function", "x", "expected"), CORNERS, ids=lambda one: getattr(one, "__name__", str(one))
)
def test_infinities(function: Any, x: float, expected: Any, dtype: str) -> None:
    row = Row("corner", function, (None, None, None))
    found = results(row, np.array([x], dtype), None)
    for got, wanted in zip(found, expected, strict=True):
        if wanted is not None:
            np.testing.assert_array_equal(got, np.array([wanted], dtype))
    assert np.signbit(found[0]) == np.signbit(expected[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_reciprocal_gamma_at_its_zeros(n: int, dtype: str) -> None:
    """The derivative is (-1)^n n!, where digamma has a pole."""
    row = next(row for row in SPECIAL_ROWS if row.name == "special.rgamma")
    value, first, second = results(row, np.array([-n], dtype), None)
    np.testing.assert_array_equal(value, np.zeros(1, dtype))
    np.testing.assert_allclose(first, [(-1) ** n * math.factorial(n)], 4 * np.finfo(dtype).eps)
    (exact,), _ = true_results(row, 2, np.array([-n], dtype), None)
    np.testing.assert_allclose(second, [exact], 16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logit_at_its_ends(dtype: str) -> None:
    row = next(row for row in SPECIAL_ROWS if row.name == "special.logit")
    value, first, second = results(row, np.array([0.0, 1.0], dtype), None)
    np.testing.assert_array_equal(value, np.array([-INF, INF], dtype))
    np.testing.assert_array_equal(first, np.array([INF, INF], dtype))
    np.testing.assert_array_equal(second, np.array([-INF, INF], dtype))


def test_a_small_cross_entropy_is_no_zero() -> None:
    """The usual log(sum of exp) is 0 in float32: 1 + 4.1e-8 is 1."""
    x = tn.Variable(np.array([[17.0, 0.0]], np.float32))
    loss = fn.softmax_cross_entropy(x, np.array([0]))
    loss.backward()
    np.testing.assert_allclose(loss.item(), 4.1399376e-8, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(x.grad), [[-4.1399376e-8, 4.1399376e-8]], rtol=1e-6)


def test_gelu_in_the_tail() -> None:
    y = fn.gelu(tn.Variable(np.float32([-5.5])))
    np.testing.assert_allclose(y.detach().numpy(), [-1.0444e-7], rtol=1e-4)


def test_fmod_by_its_divisor_counts_exactly() -> None:
    """x / y rounds to 3 in float16; the quotient is below 3."""
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 2, 20_000).astype(np.float16)
    x = (np.nextafter(y, np.float16(0)).astype(np.float64) * rng.integers(2, 9, 20_000)).astype(
        np.float16
    )
    for function, whole in ((fn.fmod, np.trunc), (fn.remainder, np.floor)):
        d = tn.Variable(y)
        (gy,) = tn.grad([fn.sum(function(tn.asarray(x), d))], [d])
        np.testing.assert_array_equal(-gy.numpy(), whole(x.astype(np.float64) / y))
