"""The rows of the op table under vmap, beside a loop over the examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from op_cases import Case
from op_drivers import call, draw_inputs, draw_like, host_of, is_differentiable

import tinynode as tn
from tinynode.devices import Device

EXAMPLES = 3
SPECIAL = (0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0)
"""Kinks, ties of neighbours, and ends of domains."""


def examples_of(case: Case, dtype: str) -> list[list[Any]]:
    """The inputs of each example."""
    return [draw_inputs(case, dtype, seed) for seed in range(EXAMPLES)]


def special_examples_of(case: Case, dtype: str) -> list[list[Any]]:
    """The inputs of each example, with special values in place of random numbers.

    The first element of each array is 0.
    """
    examples = examples_of(case, dtype)
    for seed, example in enumerate(examples):
        rng = np.random.default_rng(seed)
        for i, one in enumerate(case.inputs):
            if is_differentiable(one, example[i]) and one.dtype is None:
                values = rng.choice(SPECIAL, size=one.shape)
                values.flat[:1] = 0.0
                example[i] = values.astype(dtype)
    return examples


def stacked(case: Case, hosts: list[list[Any]], device: Device, shared: frozenset[int]) -> Any:
    """The inputs of all examples, stacked; those at ``shared`` are of the first example."""
    xs, axes = [], []
    for i, one in enumerate(case.inputs):
        host = hosts[0][i] if i in shared else np.stack([example[i] for example in hosts])
        array = device.from_host(host)
        requires = is_differentiable(one, host)
        xs.append(array if one.raw else tn.Variable(array, requires_grad=requires))
        axes.append(None if i in shared else 0)
    return xs, tuple(axes)


class Row:
    """The values and derivatives of a row: by vmap and by a loop."""

    def __init__(
        self,
        case: Case,
        device_name: str,
        shared: frozenset[int] = frozenset(),
        draw: Callable[[Case, str], list[list[Any]]] = examples_of,
    ) -> None:
        self.case = case
        self.device = tn.get_device(device_name)
        self.shared = shared
        self.hosts = draw(case, case.dtypes[0])
        for example in self.hosts:
            for i in shared:
                example[i] = self.hosts[0][i]

    def example(self, *xs: Any) -> tuple[tn.Variable, ...]:
        """The outputs of one example."""
        return call(self.case, list(xs))

    def by_vmap(self, compiled: bool = False) -> list[Any]:
        """Values, gradients and second gradients by vmap, as arrays."""
        xs, axes = stacked(self.case, self.hosts, self.device, self.shared)
        f = tn.transforms.vmap(self.example, in_axes=axes)
        ys = (tn.compile(f) if compiled else f)(*xs)
        return self.derivatives(xs, list(ys))

    def by_loop(self) -> list[Any]:
        """The same by a loop over the examples, with the results stacked."""
        xs, axes = stacked(self.case, self.hosts, self.device, self.shared)
        rows = []
        for number in range(EXAMPLES):
            parts = [x if a is None else x[number, ...] for x, a in zip(xs, axes, strict=True)]
            rows.append(self.example(*parts))
        ys = [tn.functions.stack(list(row)) for row in zip(*rows, strict=True)]
        return self.derivatives(xs, ys)

    def inside(self) -> list[Any]:
        """What ``by_vmap`` gives, with the derivatives inside of a compiled function."""
        xs, axes = stacked(self.case, self.hosts, self.device, self.shared)
        f = tn.transforms.vmap(self.example, in_axes=axes)
        none: list[int] = []

        def everything(*xs: Any) -> list[Any]:
            results = self.results(list(xs), list(f(*xs)))
            none[:] = [i for i, (y, _) in enumerate(results) if y is None]
            return [x if y is None else y for y, x in results]

        compiled = tn.compile(everything)
        for _ in range(2):
            found = compiled(*xs)
        return [
            np.zeros(y.shape, y.dtype) if i in none else tn.to_host(y.array)
            for i, y in enumerate(found)
        ]

    def derivatives(self, xs: list[Any], ys: list[Any]) -> list[Any]:
        return [tn.to_host(y.array) if y is x else host_of(y, x) for y, x in self.results(xs, ys)]

    def results(self, xs: list[Any], ys: list[Any]) -> list[tuple[Any, Any]]:
        """Values, gradients and second gradients; each with a Variable of the shape."""
        found: list[tuple[Any, Any]] = [(y, y) for y in ys]
        sources = [x for x in xs if isinstance(x, tn.Variable) and x.requires_grad]
        floating = [y for y in ys if y.requires_grad]
        if not sources or not floating or self.case.order < 1:
            return found
        gys = draw_like(floating, 1)
        twice = self.case.order >= 2
        gxs = tn.grad(floating, sources, gys, enable_double_backprop=twice)
        found += zip(gxs, sources, strict=True)
        known = [gx for gx in gxs if gx is not None]
        if twice and known:
            every = [*sources, *gys]
            ggs = tn.grad(known, every, draw_like(known, 2))
            found += zip(ggs, every, strict=True)
        return found


def assert_close(ours: list[Any], expected: list[Any], case: Case) -> None:
    """vmap gives what the loop gives: values, gradients, second gradients."""
    assert len(ours) == len(expected)
    tolerance = 1e-4 if case.single or "float64" not in case.dtypes[0] else 1e-9
    for a, b in zip(ours, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
