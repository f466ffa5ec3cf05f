"""Compiled equals eager: every row of the op table, values and first and second gradients.

Each row is recorded on one draw of inputs and compared on another, so that a value that was baked
into a net shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import op_drivers
import pytest
from op_table import CASES, Case

import tinynode as tn

DEVICES = ["numpy", "strict:device1"]
NOT_COMPILED: dict[str, str] = {}


def rows() -> Any:
    pairs = [(case, d) for d in DEVICES for case in CASES if op_drivers.runs_on(case, d)]
    return pytest.mark.parametrize(
        ("case", "device"), pairs, ids=[f"{case.id}-{device}" for case, device in pairs]
    )


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


@rows()
def test_compiled_equals_eager(case: Case, device: str) -> None:
    place = tn.get_device(device)
    compiled = tn.compile(case.function)
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    examples = op_drivers.make_inputs(case, op_drivers.draw_inputs(case, dtype, 0), place)
    compiled(*examples, **case.constants)
    hosts = op_drivers.draw_inputs(case, dtype, 1)
    expected = derivatives(case.function, case, op_drivers.make_inputs(case, hosts, place))
    actual = derivatives(compiled, case, op_drivers.make_inputs(case, hosts, place))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        if ours is None or theirs is None:  # zero and None say the same
            other = theirs if ours is None else ours
            assert other is None or not np.any(other)
            continue
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
