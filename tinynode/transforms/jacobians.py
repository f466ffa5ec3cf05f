"""Jacobians and Hessians: jacrev, jacfwd, hessian.

Requirement: all first derivatives of f, row by row or column by column, as an array. A row costs a
backward pass (``jacrev``), a column costs a pass of the jvp (``jacfwd``). So rows suit few
results, and columns suit few arguments.

    J = tn.jacrev(f)(x)                              # also under the name tn.jacobian
    J = tn.jacfwd(f)(x)                              # the same array
    H = tn.hessian(f)(x)                             # the columns of the gradient's Jacobian
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinynode.configuration import using_config
from tinynode.core.variable import Variable, wrap_array
from tinynode.functions import concat, permute_dims, reshape
from tinynode.transforms.gradients import gradient_for
from tinynode.transforms.linear import Pushforward
from tinynode.transforms.trees import (
    Point,
    basis,
    call,
    check_call,
    gradients,
    is_connected,
    rebuilt,
    zeros_like,
)


def jacobian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
) -> Callable[..., Any]:
    """A function that gives all first derivatives of f.

    f: ..., x: (s), ... -> y: (t).   The result: ... -> J: (t + s), J[i, j] = dy[i] / dx[j]

    Runs a backward pass for each element of y: cheap for few results. ``jacrev`` is another name.

    Args:
        f: takes Variables or arrays, gives Variables; both also in tuples, lists and dicts.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple too.
        enable_double_backprop: record a graph of the derivatives, back to the arguments. None
            means True inside the function of another transform, else False.

    Returns:
        A function with f's arguments. The result is nested as y, with J nested as x in the place
        of each leaf.

    Raises:
        ValueError: when called: an argument is missing.
        TypeError: when called: f gives no floating Variable, or an argument is not floating.
    """
    return _jacobian("jacobian", _by_rows, f, argnums, enable_double_backprop)


jacrev = jacobian


def jacfwd(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
) -> Callable[..., Any]:
    """A function that gives all first derivatives of f, by forward mode.

    f: ..., x: (s), ... -> y: (t).   The result: ... -> J: (t + s), J[i, j] = dy[i] / dx[j]

    Runs a pass of the jvp for each element of x: cheap for few arguments.

    Args:
        f: as for ``jacobian``.
        argnums: likewise.
        enable_double_backprop: likewise.

    Returns:
        A function with f's arguments, and results as from ``jacobian``.

    Raises:
        ValueError: when called: an argument is missing.
        TypeError: when called: f gives no floating Variable, or an argument is not floating.
    """
    return _jacobian("jacfwd", _by_columns, f, argnums, enable_double_backprop)


def hessian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
) -> Callable[..., Any]:
    """A function that gives all second derivatives of f: forward mode over the gradient.

    f: ..., x: (s), ... -> y: a single number.
    The result: ... -> H: (s + s), H[i, j] = d^2 y / (dx[i] dx[j])

    Args:
        f: takes Variables or arrays, also in tuples, lists and dicts, gives a Variable of size 1.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple of tuples.
        enable_double_backprop: as for ``jacobian``.

    Raises:
        ValueError: when called: f's value has more than one element, or an argument is missing.
        TypeError: when called: f gives no Variable, or an argument is not floating.
    """
    slope = gradient_for("hessian", f, argnums)
    return _jacobian("hessian", _by_columns, slope, argnums, enable_double_backprop)


Table = list[list[Variable]]
"""The derivatives of each output, a list with one for each input."""


def _jacobian(
    name: str,
    table_of: Callable[[str, Point], Table],
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    again: bool | None,
) -> Callable[..., Any]:
    check_call(name, f, argnums)

    def jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        point = call(name, f, argnums, args, kwargs, is_connected(again))
        found = []
        for row in table_of(name, point):
            of_each = rebuilt(point.trees, row)
            found.append(of_each[0] if isinstance(argnums, int) else of_each)
        return rebuilt(point.result, found)

    return jacobian_of_f


def _by_rows(name: str, point: Point) -> Table:
    """A backward pass for each element of the outputs."""
    table = []
    for y in point.outputs:
        rows = []
        for position in range(y.size):
            gys = [basis(y, position)]
            rows.append(gradients([y], point.inputs, gys, point.connected))
        with using_config("enable_backprop", point.connected):
            each = enumerate(point.inputs)
            table.append(
                [_stacked((row[i] for row in rows), x, y.shape + x.shape) for i, x in each]
            )
    return table


def _by_columns(name: str, point: Point) -> Table:
    """A pass of the jvp for each element of the inputs."""
    push = Pushforward(name, point)
    zeros = [zeros_like(x) for x in point.inputs]
    columns: list[list[list[Variable]]] = []  # by input, by element, by output
    for i, x in enumerate(point.inputs):
        each = []
        for position in range(x.size):
            vs = [*zeros[:i], basis(x, position), *zeros[i + 1 :]]
            each.append(push.along(vs, point.connected))
        columns.append(each)
    with using_config("enable_backprop", point.connected):
        return [
            [
                _turned(_stacked((column[k] for column in each), y, x.shape + y.shape), x.ndim)
                for x, each in zip(point.inputs, columns, strict=True)
            ]
            for k, y in enumerate(point.outputs)
        ]


def _stacked(parts: Iterable[Variable], like: Variable, shape: tuple[int, ...]) -> Variable:
    """The parts, all of the form of ``like``, in a Variable of this shape."""
    if math.prod(shape) == 0:
        zeros = like.xp.zeros(shape, dtype=like.dtype, device=like.raw.device)
        return wrap_array(zeros, like.device, False)
    return reshape(concat([reshape(part, (1, like.size)) for part in parts]), shape)


def _turned(columns: Variable, ndim: int) -> Variable:
    """The first ``ndim`` axes moved behind the others."""
    axes: Sequence[int] = range(columns.ndim)
    return permute_dims(columns, (*axes[ndim:], *axes[:ndim]))
