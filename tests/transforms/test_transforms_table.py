"""Forward mode of every differentiable row of the op table.

The jvp is compared with central differences of the row's reference, and with the gradient:
<u, J v> = <u J, v>. At second order the gradient of <u, J v> is compared with differences of
<u, J v>. On ``fast`` everything is compared with the reference backend.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import op_drivers
import pytest
from op_cases import CASES, Case

import tinynode as tn
from tinynode.devices import is_floating
from tinynode.errors import TraceError

DIFFERENTIABLE = [case for case in CASES if case.order >= 1]
ROWS = op_drivers.by_operation(DIFFERENTIABLE)

NOT_COMPILED = {
    "dropout": "a generator that was made in the function",
    "gumbel_softmax": "a generator that was made in the function",
    "get_item": "a shape that depends on values",
    "set_item": "a shape that depends on values",
    "to_device": "a net takes and gives Variables of one device",
}
"""Of these operations some rows cannot be recorded, and why."""

NO_JVP: dict[str, str] = {}
"""The rows without a jvp, and why."""


class Forward:
    """A row's function of its differentiable inputs, and a direction at random.

    Attributes:
        xs, vs: the differentiable inputs, and a tangent for each.
        us: a gradient for each floating output.
        tangents: the jvp, a tangent for each output.
    """

    def __init__(self, case: Case, hosts: Any, device: Any, vs: Any = None) -> None:
        self.case = case
        self.inputs = op_drivers.make_inputs(case, hosts, device)
        self.xs = tuple(op_drivers.differentiable(self.inputs))
        drawn = draw_like(self.xs, 5)
        self.vs = tuple(drawn) if vs is None else vs

    def __call__(self, *xs: Any) -> list[Any]:
        given = iter(xs)
        known = set(map(id, self.xs))
        inputs = [next(given) if id(x) in known else x for x in self.inputs]
        ys = op_drivers.call(self.case, inputs)
        return [y for y in ys if is_floating(y.raw) and y.requires_grad]

    def product(self, us: Any, xs: Any, vs: Any) -> Any:
        """<u, J v>, differentiable."""
        tangents = tn.jvp(self, xs, vs)[1]
        products = [tn.functions.sum(u * t) for u, t in zip(us, tangents, strict=True)]
        return functools.reduce(operator.add, products)


def draw_like(variables: Any, seed: int) -> list[Any]:
    """A random Variable beside each, also on devices that share memory."""
    found = []
    for position, one in enumerate(variables):
        with tn.using_device(one.device):
            found += op_drivers.draw_like([one], 10 * seed + position)
    return found


def hosts_of(variables: Any) -> list[Any]:
    return [op_drivers.host_of(x, x) for x in variables]


def check_jvp(case: Case, device_name: str) -> Forward | None:
    """The jvp against differences of the reference, and against the vjp."""
    device = tn.get_device(device_name)
    hosts = op_drivers.draw_inputs(case, case.dtypes[0])
    forward = Forward(case, hosts, device)
    ys, tangents = tn.jvp(forward, forward.xs, forward.vs)
    if not ys:
        return None
    for y, t in zip(ys, tangents, strict=True):
        assert (y.shape, y.dtype, y.device) == (t.shape, t.dtype, t.device)
        assert t.creator_node is None or t.requires_grad
    us = draw_like(ys, 1)
    forward_product = op_drivers.inner(hosts_of(us), hosts_of(tangents))

    _, pullback = tn.vjp(forward, *forward.xs)
    reverse = op_drivers.inner(hosts_of(pullback(us)), hosts_of(forward.vs))
    np.testing.assert_allclose(forward_product, reverse, rtol=1e-5, atol=1e-7, err_msg="vjp")

    found = [i for i, x in enumerate(forward.inputs) if any(x is one for one in forward.xs)]
    directions = dict(zip(found, hosts_of(forward.vs), strict=True))
    outputs = op_drivers.call(case, forward.inputs)
    kept = [i for i, y in enumerate(outputs) if is_floating(y.raw) and y.requires_grad]

    def projected(step: float) -> float:
        moved = op_drivers.move(hosts, directions, step, np.float64)
        results = op_drivers.call_reference(case, moved, smooth=True)
        return op_drivers.inner([results[i] for i in kept], hosts_of(us))

    numeric = op_drivers.central_difference(projected, 1e-5)
    rtol, atol = (1e-5, 1e-5) if case.single else (1e-6, 1e-7)
    np.testing.assert_allclose(forward_product, numeric, rtol, atol, err_msg="differences")
    forward.us = us
    return forward


def check_second_order(case: Case, forward: Forward) -> None:
    """The gradient of <u, J v> along a direction, against differences of <u, J v>."""
    sources = (*forward.xs, *forward.vs)
    along = draw_like(sources, 6)
    count = len(forward.xs)

    def scalar(*both: Any) -> Any:
        return forward.product(forward.us, both[:count], both[count:])

    gradients = tn.gradient(scalar, tuple(range(2 * count)))(*sources)
    analytic = op_drivers.inner(hosts_of(gradients), hosts_of(along))

    def moved(step: float) -> float:
        shifted = []
        for x, direction in zip(sources, along, strict=True):
            host = tn.to_host(x.array) + step * tn.to_host(direction.array)
            shifted.append(tn.Variable(x.device.from_host(host.astype(tn.to_host(x.array).dtype))))
        return float(scalar(*shifted))

    eps, rtol, atol = (3e-2, 1e-2, 1e-3) if case.single else (1e-5, 1e-4, 1e-6)
    numeric = op_drivers.central_difference(moved, eps)
    np.testing.assert_allclose(analytic, numeric, rtol, atol, err_msg="second order")


def check_operation(operation: str, device_name: str, most: int | None = None) -> None:
    for case in ROWS[operation][:most]:
        if case.id in NO_JVP:
            continue
        with op_drivers.naming(f"{case.id} on {device_name}"), tn.using_device(device_name):
            forward = check_jvp(case, device_name)
            if forward is not None and case.order >= 2:
                check_second_order(case, forward)


@pytest.mark.parametrize("operation", ROWS)
def test_jvp(operation: str) -> None:
    """The first row of each operation; the slow test takes all rows."""
    check_operation(operation, "numpy", 1)
    check_operation(operation, "fast", 1)


@pytest.mark.slow
@pytest.mark.parametrize("device_name", ["numpy", "fast"])
@pytest.mark.parametrize("operation", ROWS)
def test_jvp_of_all_rows(operation: str, device_name: str) -> None:
    check_operation(operation, device_name)


def check_compiled(case: Case, device_name: str) -> None:
    """The compiled jvp is the eager one: recorded on one draw of inputs, compared on another."""
    device = tn.get_device(device_name)
    dtype = case.dtypes[0]
    compiled = {}
    for seed in (0, 1, 1):
        forward = Forward(case, op_drivers.draw_inputs(case, dtype, seed), device)
        if not compiled:
            compiled["jvp"] = tn.compile(Compiled(forward))
        others = [x for x in forward.inputs if not any(x is one for one in forward.xs)]
        try:
            found = compiled["jvp"](forward.xs, forward.vs, others)
        except TraceError as error:
            assert NOT_COMPILED[case.operation] in str(error)
            return
        expected = Compiled(forward)(forward.xs, forward.vs, others)
        for ours, theirs in zip(found, expected, strict=True):
            rtol, atol = (1e-12, 1e-12) if not case.single else (1e-6, 1e-6)
            np.testing.assert_allclose(
                tn.to_host(ours.array), tn.to_host(theirs.array), rtol=rtol, atol=atol
            )


class Compiled:
    """The tangents of a row's function, as a function of all inputs."""

    def __init__(self, forward: Forward) -> None:
        self.forward = forward

    def __call__(self, xs: Any, vs: Any, others: Any) -> Any:
        rest = iter(others)
        known = set(map(id, self.forward.xs))
        self.forward.inputs = [x if id(x) in known else next(rest) for x in self.forward.inputs]
        return tn.jvp(self.forward, tuple(xs), tuple(vs))[1]


@pytest.mark.slow
@pytest.mark.parametrize("device_name", ["numpy", "fast"])
@pytest.mark.parametrize("operation", ROWS)
def test_a_compiled_jvp_is_the_eager_one(operation: str, device_name: str) -> None:
    for case in ROWS[operation]:
        with op_drivers.naming(f"{case.id} on {device_name}"), tn.using_device(device_name):
            check_compiled(case, device_name)


def test_rows_left_out_are_rows() -> None:
    assert set(NO_JVP) <= {case.id for case in CASES}
    assert len(NO_JVP) <= 0.02 * len(DIFFERENTIABLE)
