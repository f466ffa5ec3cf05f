"""Compiled equals eager: every row of the op table, values and first and second gradients.

Each row is recorded on one draw of inputs and compared on another, so that a value that was baked
into a net shows. On ``fast`` the second run is compared: the first one finds the forms, and plans.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import op_drivers
import pytest
from fast_kernels import set_all_limits
from op_cases import CASES, Case

import tinynode as tn
from tinynode.errors import TraceError


class Way(NamedTuple):
    """Where a row is compiled: a device, the dtype of the inputs, the limits of ``fast``."""

    device: str
    dtype: str = "float64"
    limits: str = ""


WAYS = [Way("numpy"), Way("fast", "float32", "0")]
OTHER_WAYS = [
    Way("numpy", "float32"),
    Way("strict:device1"),
    Way("fast"),
    Way("fast", "float32", "huge"),
    Way("fast", "float64", "0"),
    Way("fast", "float64", "huge"),
]

# of these operations some rows are refused when they are recorded, and why
NOT_COMPILED = {
    "dropout": "a generator that was made in the function",
    "gumbel_softmax": "a generator that was made in the function",
    "Positions": "a shape that depends on values",
    "get_item": "a shape that depends on values",
    "set_item": "a shape that depends on values",
    "to_device": "a net takes and gives Variables of one device",
}


ROWS = op_drivers.by_operation(CASES)


@pytest.mark.parametrize("operation", ROWS)
def test_compiled_equals_eager(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of each operation; the slow tests take all rows."""
    check_operation(operation, WAYS[0], monkeypatch, 1)  # nothing is planned on NumPy
    check_operation(operation, WAYS[1], monkeypatch, 3)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ROWS)
def test_compiled_equals_eager_in_other_ways(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_operation(operation, WAYS[1], monkeypatch, 10)
    for way in OTHER_WAYS:
        check_operation(operation, way, monkeypatch, 3)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("operation", ROWS)
def test_all_rows_compiled_equal_eager(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in [*WAYS, *OTHER_WAYS]:
        check_operation(operation, way, monkeypatch)


def check_operation(
    operation: str, way: Way, monkeypatch: pytest.MonkeyPatch, most: int | None = None
) -> None:
    with monkeypatch.context() as patch, tn.using_device(way.device):
        if way.limits:
            set_all_limits(patch, way.limits == "huge")
        for case in ROWS[operation][:most]:
            if op_drivers.runs_on(case, way.device):
                with op_drivers.naming(f"{case.id}: {way}"):
                    check_unless_refused(case, tn.get_device(way.device), way.dtype)


def check_unless_refused(case: Case, device: Any, dtype: str) -> None:
    try:
        check(case, device, dtype)
    except TraceError as error:
        assert NOT_COMPILED[case.operation] in str(error)


def check(case: Case, device: Any, dtype: str = "float64") -> None:
    compiled = tn.compile(case.function)
    dtype = dtype if dtype in case.dtypes else case.dtypes[0]
    for seed in (0, 1) if str(device) == "fast" else (0,):  # it is recorded here, and planned
        hosts = op_drivers.draw_inputs(case, dtype, seed)
        derivatives(compiled, case, op_drivers.make_inputs(case, hosts, device))
    hosts = op_drivers.draw_inputs(case, dtype, 1)
    expected = derivatives(case.function, case, op_drivers.make_inputs(case, hosts, device))
    actual = derivatives(compiled, case, op_drivers.make_inputs(case, hosts, device))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        if ours is None or theirs is None:  # zero and None say the same
            other = theirs if ours is None else ours
            assert other is None or not np.any(other)
            continue
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        rtol, atol = (1e-12, 1e-13) if ours.dtype == np.float64 else (1e-6, 1e-6)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def derivatives(function: Any, case: Case, inputs: list[Any]) -> list[Any]:
    """Values, first and second gradients, as host arrays; None where there is no gradient."""
    xs = op_drivers.differentiable(inputs)
    ys = function(*inputs, **case.constants)
    ys = list(ys) if isinstance(ys, tuple | list) else [ys]
    found = list(ys)
    ys = [y for y in ys if y.requires_grad]
    if not ys or not xs:
        return [tn.to_host(y.array) for y in found]
    gys = op_drivers.draw_like(ys, 1)
    gxs = tn.grad(ys, xs, gys, enable_double_backprop=case.order >= 2)
    found += gxs
    known = [gx for gx in gxs if gx is not None and gx.requires_grad]
    if case.order >= 2 and known:
        found += tn.grad(known, [*xs, *gys], op_drivers.draw_like(known, 2))
    return [None if y is None else tn.to_host(y.array) for y in found]
