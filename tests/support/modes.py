"""The rows of the op table in pairs of modes: what eager code gives, every mode gives.

A *wrapper* makes a function that computes the same in another way: compiled, vmapped, recomputed.
A *question* takes a function and gives its values and derivatives. A *pair* puts a wrapper inside
of a question, and a wrapper around the question.

    outer(question(inner(f)))(xs) == question(f)(xs)

The arrays are equal up to rounding; NaN and infinities stand at the same places.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from op_cases import Case
from op_drivers import call, draw_inputs, draw_like, is_differentiable, make_inputs

import tinynode as tn
from tinynode.devices import is_floating

F = tn.functions

Function = Callable[..., list[Any]]
"""A function of Variables and arrays, which gives a list of Variables."""

# --- points ----------------------------------------------------------------------------------

ENDS = (0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0)
"""Kinks, ties of neighbours, and ends of domains."""
FAR = (0.0, 1.0, -2.0, np.inf, -np.inf, np.nan)


def at_zero(one: Any, host: Any, rng: Any) -> Any:
    return np.zeros_like(host)


def at_ties(one: Any, host: Any, rng: Any) -> Any:
    """All elements equal: a tie of all neighbours."""
    return np.full_like(host, rng.choice(ENDS[1:]))


def at_ends(one: Any, host: Any, rng: Any) -> Any:
    return rng.choice(ENDS, size=one.shape).astype(host.dtype)


def far_away(one: Any, host: Any, rng: Any) -> Any:
    return rng.choice(FAR, size=one.shape).astype(host.dtype)


def in_the_middle(one: Any, host: Any, rng: Any) -> Any:
    return host


POINTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "zero": at_zero,
    "ties": at_ties,
    "ends": at_ends,
    "far": far_away,
    "middle": in_the_middle,
}
"""The values of the inputs that a row differentiates; other inputs are those of the row."""


def hosts_at(case: Case, point: str, seed: int = 0) -> list[Any]:
    """The inputs of a row at a point."""
    rng = np.random.default_rng(seed)
    hosts = draw_inputs(case, case.dtypes[0], seed)
    for i, one in enumerate(case.inputs):
        if is_differentiable(one, hosts[i]) and one.dtype is None:
            hosts[i] = np.asarray(POINTS[point](one, hosts[i], rng))
    return hosts


# --- wrappers --------------------------------------------------------------------------------


def plain(f: Function, others: list[Any]) -> Function:
    return f


def compiled(f: Function, others: list[Any]) -> Function:
    """The second run has a plan; both runs give the same, as the other tests say."""
    made = tn.compile(f)

    def run_twice(*xs: Any) -> list[Any]:
        made(*xs)
        result: list[Any] = made(*xs)
        return result

    return run_twice


def vmapped(f: Function, others: list[Any]) -> Function:
    """The first of two examples; ``others`` are the inputs of the second example."""

    def of_first(*xs: Any) -> list[Any]:
        pairs = [F.stack([x, other]) for x, other in zip(xs, others, strict=True)]
        return [y[0] for y in tn.vmap(f)(*pairs)]

    return of_first


def vmapped_shared(f: Function, others: list[Any]) -> Function:
    """The mean of two equal examples, which share all inputs but the first."""

    def mean(x: Any, *shared: Any) -> list[Any]:
        ys = tn.vmap(f, in_axes=(0, *(None for _ in shared)))(F.stack([x, x]), *shared)
        return [F.mean(y, axis=0) if is_floating(y.raw) else y[0] for y in ys]

    return mean


def recomputed(f: Function, others: list[Any]) -> Function:
    def run(*xs: Any) -> list[Any]:
        ys = tn.checkpoint(lambda *given: tuple(f(*given)), *xs)
        return list(ys) if isinstance(ys, tuple) else [ys]

    return run


def chain(*wrappers: Any) -> Any:
    """Several wrappers as one, the outermost first."""

    def wrapped(f: Function, others: list[Any]) -> Function:
        for wrapper in reversed(wrappers):
            f = wrapper(f, others)
        return f

    return wrapped


WRAPPERS: dict[str, Any] = {
    "eager": plain,
    "compile": compiled,
    "vmap": vmapped,
    "shared vmap": vmapped_shared,
    "checkpoint": recomputed,
    "compile(vmap)": chain(compiled, vmapped),
    "vmap(compile)": chain(vmapped, compiled),
    "vmap(vmap)": chain(vmapped, vmapped_shared),
    "vmap(compile(vmap))": chain(vmapped, compiled, vmapped_shared),
}

AROUND = ("eager", "compile", "vmap", "checkpoint", "compile(vmap)", "vmap(compile(vmap))")
"""The wrappers around a question."""

# --- questions -------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row at a point.

    Attributes:
        xs, others: the inputs, and those of a second example.
        targets: the positions of the inputs that require a gradient.
        kept: the positions of the outputs that require a gradient.
        us, vs: a gradient for each floating output, and a tangent for each target.
    """

    case: Case
    xs: list[Any]
    others: list[Any]
    targets: list[int]
    kept: list[int]
    us: list[Any]
    vs: list[Any]


def row_at(case: Case, point: str, device_name: str) -> Row:
    device = tn.get_device(device_name)
    xs = make_inputs(case, hosts_at(case, point), device)
    others = make_inputs(case, hosts_at(case, "middle", 1), device)
    targets = [i for i, x in enumerate(xs) if isinstance(x, tn.Variable) and x.requires_grad]
    ys = function_of(case)(*xs)
    kept = [i for i, y in enumerate(ys) if y.requires_grad and is_floating(y.raw)]
    us = draw_like([ys[i] for i in kept], 1)
    vs = draw_like([xs[i] for i in targets], 2)
    return Row(case, xs, others, targets, kept, us, vs)


def function_of(case: Case) -> Function:
    """The outputs of a row, as a list."""

    def f(*xs: Any) -> list[Any]:
        return list(call(case, list(xs)))

    return f


def values(f: Function, row: Row) -> Function:
    return f


def reverse(f: Function, row: Row) -> Function:
    """Gradients, and gradients of the gradients."""

    def everything(*xs: Any) -> list[Any]:
        inner = of_targets(f, row, xs)

        def gradients(*given: Any) -> Any:
            return tn.vjp(inner, *given)[1](list(row.us))

        sources = [xs[i] for i in row.targets]
        if row.case.order == 1:
            return list(gradients(*sources))
        gxs, pullback = tn.vjp(gradients, *sources)
        return [*gxs, *pullback(tuple(row.vs))]

    return everything


def forward(f: Function, row: Row) -> Function:
    """Tangents, and their gradients."""

    def everything(*xs: Any) -> list[Any]:
        inner = of_targets(f, row, xs)

        def tangents(*given: Any) -> Any:
            return tn.jvp(inner, given, tuple(row.vs))[1]

        sources = [xs[i] for i in row.targets]
        if row.case.order == 1:
            return list(tangents(*sources))
        ts, pullback = tn.vjp(tangents, *sources)
        return [*ts, *pullback(list(row.us))]

    return everything


def columns(f: Function, row: Row) -> Function:
    """The Jacobian by forward mode."""

    def everything(*xs: Any) -> list[Any]:
        sources = [xs[i] for i in row.targets]
        jacobians = tn.jacfwd(of_targets(f, row, xs), tuple(range(len(sources))))(*sources)
        return [part for one in jacobians for part in leaves(one)]

    return everything


def hessians(f: Function, row: Row) -> Function:
    """The Hessian of <u, y>."""

    def everything(*xs: Any) -> list[Any]:
        sources = [xs[i] for i in row.targets]
        inner = of_targets(f, row, xs)

        def number(*given: Any) -> Any:
            pairs = zip(inner(*given), row.us, strict=True)
            return sum_of([F.sum(y * u) for y, u in pairs])

        found = tn.hessian(number, tuple(range(len(sources))))(*sources)
        return leaves(found)

    return everything


QUESTIONS: dict[str, Any] = {
    "value": values,
    "reverse": reverse,
    "jvp": forward,
    "jacfwd": columns,
    "hessian": hessians,
}


def of_targets(f: Function, row: Row, xs: Any) -> Function:
    """f as a function of its differentiable inputs, giving the outputs with a gradient."""

    def inner(*given: Any) -> list[Any]:
        every = list(xs)
        for i, x in zip(row.targets, given, strict=True):
            every[i] = x
        ys = f(*every)
        return [ys[i] for i in row.kept]

    return inner


def leaves(value: Any) -> list[Any]:
    if isinstance(value, tn.Variable):
        return [value]
    return list(itertools.chain.from_iterable(map(leaves, value)))


def sum_of(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# --- comparison ------------------------------------------------------------------------------


def answers(row: Row, question: str, inner: str = "eager", outer: str = "eager") -> list[Any]:
    """The arrays of a question, with wrappers inside and around."""
    f = WRAPPERS[inner](function_of(row.case), row.others)
    asked = QUESTIONS[question](f, row)
    return [tn.to_host(y.array) for y in WRAPPERS[outer](asked, row.others)(*row.xs)]


def is_asked(row: Row, question: str) -> bool:
    """True if a row is small and smooth enough for a question."""
    if question == "value":
        return True
    if not row.targets or not row.us or row.case.order < 1:
        return False
    entries = sum(row.xs[i].size for i in row.targets)
    size = entries * (entries if question == "hessian" else sum(u.size for u in row.us))
    if question in ("jacfwd", "hessian"):
        return size <= 400 and (question == "jacfwd" or row.case.order > 1)
    return True


def assert_agree(ours: list[Any], expected: list[Any], row: Row, question: str) -> None:
    """Equal arrays up to rounding; NaN and infinities at the same places.

    Forward mode multiplies slopes in another order in nets. A zero times an infinite slope is NaN
    in one order, and stays zero in the other. So NaN is not compared there.
    """
    tolerance = 1e-4 if row.case.single or "float64" not in row.case.dtypes[0] else 1e-9
    assert len(ours) == len(expected)
    for number, (a, b) in enumerate(zip(ours, expected, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {number}"
        if question in ("jvp", "jacfwd", "hessian"):
            a, b = np.where(np.isnan(b), b, a), np.where(np.isnan(a), a, b)
        np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=f"result {number}")
