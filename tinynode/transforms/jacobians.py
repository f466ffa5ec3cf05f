"""Jacobians and Hessians: jacrev, jacfwd, hessian.

Requirement: all first derivatives of f, row by row or column by column, as an array. A row costs a
backward pass (``jacrev``), a column costs a pass of the jvp (``jacfwd``). So rows suit few
results, and columns suit few arguments.

    J = tn.jacrev(f)(x)                              # also under the name tn.jacobian
    J = tn.jacfwd(f)(x)                              # the same array
    H = tn.hessian(f)(x)                             # the columns of the gradient's Jacobian
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from tinynode.configuration import using_config
from tinynode.core.variable import Variable
from tinynode.errors import VmapError
from tinynode.functions import concat, permute_dims, reshape
from tinynode.transforms.colouring import Colouring, sparse_jacobian
from tinynode.transforms.gradients import gradient_for
from tinynode.transforms.linear import Pushforward
from tinynode.transforms.trees import (
    Point,
    basis,
    call,
    check_call,
    gradients,
    rebuilt,
    unit_vectors,
    zeros,
    zeros_like,
)
from tinynode.transforms.vmap import vmap

P = ParamSpec("P")


def jacobian(
    f: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    sparsity: Any = None,
    has_aux: bool = False,
) -> Callable[P, Any]:
    """A function that gives all first derivatives of f.

    f: ..., x: (s), ... -> y: (t).   The result: ... -> J: (t + s), J[i, j] = dy[i] / dx[j]

    Runs a backward pass for each element of y: cheap for few results. ``jacrev`` is another name.

        >>> tn.jacobian(lambda x: x * x)(tn.asarray([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]

    Args:
        f: takes Variables or arrays, gives Variables; both also in tuples, lists and dicts.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple too.
        enable_double_backprop: record a graph of the derivatives, back to the arguments. None
            means True inside the function of another transform, else False.
        sparsity: booleans, (size of y, size of x): True where a derivative may be non-zero. Few
            passes suffice then, one for each colour (see ``transforms.colouring``). The result is
            still the whole array, with zeros outside of the pattern. A wrong pattern gives a wrong
            result; debug mode compares a product with a random vector, and raises.
        has_aux: f returns a pair ``(value, aux)``, and the function gives ``(J, aux)``.

    Returns:
        A function with f's arguments. The result is nested as y, with J nested as x in the place
        of each leaf.

    Raises:
        ValueError: when called: an argument is missing. In debug mode: ``sparsity`` is wrong.
        TypeError: when called: f gives no floating Variable, or an argument is not floating, or
            ``sparsity`` has another shape or dtype. At once: ``sparsity`` with several argnums.
    """
    if sparsity is None:
        return _jacobian("jacobian", _by_rows, f, argnums, enable_double_backprop, has_aux)
    if not isinstance(argnums, int):
        raise TypeError(f"jacobian: sparsity is for one argument, got argnums={argnums!r}.")
    by_colours = functools.partial(_by_colours, Colouring(sparsity))
    return _jacobian("jacobian", by_colours, f, argnums, enable_double_backprop, has_aux)


jacrev = jacobian


def jacfwd(
    f: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> Callable[P, Any]:
    """A function that gives all first derivatives of f, by forward mode.

    f: ..., x: (s), ... -> y: (t).   The result: ... -> J: (t + s), J[i, j] = dy[i] / dx[j]

    Runs a pass of the jvp for each element of x: cheap for few arguments.

    Args:
        f: as for ``jacobian``.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple too.
        enable_double_backprop: as for ``jacobian``.
        has_aux: as for ``jacobian``.

    Returns:
        A function with f's arguments, and results as from ``jacobian``.

    Raises:
        ValueError: when called: an argument is missing.
        TypeError: when called: f gives no floating Variable, or an argument is not floating.
    """
    return _jacobian("jacfwd", _by_columns, f, argnums, enable_double_backprop, has_aux)


def hessian(
    f: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> Callable[P, Any]:
    """A function that gives all second derivatives of f: forward mode over the gradient.

    f: ..., x: (s), ... -> y: a single number.
    The result: ... -> H: (s + s), H[i, j] = d^2 y / (dx[i] dx[j])

        >>> tn.hessian(lambda x: F.sum(x**3))(tn.asarray([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]

    Args:
        f: takes Variables or arrays, also in tuples, lists and dicts, gives a Variable of size 1.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple of tuples.
        enable_double_backprop: as for ``jacobian``.
        has_aux: f returns a pair ``(value, aux)``, and the function gives ``(H, aux)``.

    Raises:
        ValueError: when called: f's value has more than one element, or an argument is missing.
        TypeError: when called: f gives no Variable, or an argument is not floating.
    """
    slope = gradient_for("hessian", f, argnums, has_aux=has_aux)
    return _jacobian("hessian", _by_columns, slope, argnums, enable_double_backprop, has_aux)


AT_ONCE = 128
"""The largest number of backward passes at the same time."""
ELEMENTS_AT_ONCE = 2**22
"""The largest number of elements that the passes give together: 32 MiB of float64."""
Table = list[list[Variable]]
"""The derivatives of each output, a list with an entry for each input."""


def _jacobian(
    name: str,
    table_of: Callable[[str, Point], Table],
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    again: bool | None,
    has_aux: bool,
) -> Callable[..., Any]:
    has_aux = check_call(name, f, argnums, has_aux)

    def jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        point = call(name, f, argnums, args, kwargs, again, has_aux)
        found = []
        with using_config("enable_backprop", point.needs_graph()):
            table = table_of(name, point)
        for row in table:
            of_each = rebuilt(point.trees, row)
            found.append(of_each[0] if isinstance(argnums, int) else of_each)
        jacobian = rebuilt(point.result, found)
        return (jacobian, point.aux) if has_aux else jacobian

    return jacobian_of_f


def _by_rows(name: str, point: Point) -> Table:
    """The gradients of each element of the outputs: backward passes, many at once by vmap."""
    table = []
    for y in point.outputs:
        rows = along_basis(functools.partial(_row, point, y), y, point.inputs)
        table.append(
            [reshape(J, y.shape + x.shape) for J, x in zip(rows, point.inputs, strict=True)]
        )
    return table


def _row(point: Point, y: Variable, gy: Variable) -> list[Variable]:
    return gradients([y], point.inputs, [gy], point.needs_graph())


def along_basis(
    product: Callable[[Variable], list[Variable]], x: Variable, likes: Sequence[Variable]
) -> list[Variable]:
    """A linear function at each vector of the standard basis: one axis of x.size in front.

    ``vmap`` runs the function on many vectors at once. Without a rule, the vectors come in turn.
    """
    parts: list[list[Variable]] = []
    widest = max([x.size, *(like.size for like in likes), 1])
    count = min(AT_ONCE, max(ELEMENTS_AT_ONCE // widest, 1))
    try:
        for start in range(0, x.size, count):
            parts.append(vmap(product)(unit_vectors(x, start, min(start + count, x.size))))
    except VmapError:
        rows = [product(basis(x, position)) for position in range(x.size)]
        parts = [[reshape(one, (1, *one.shape)) for one in row] for row in rows]
    if not parts:
        return [zeros(like, (0, *like.shape)) for like in likes]
    return [concat([part[i] for part in parts]) for i in range(len(likes))]


def _by_colours(colouring: Colouring, name: str, point: Point) -> Table:
    """A pass for each colour of the pattern."""
    if len(point.outputs) != 1 or len(point.inputs) != 1:
        raise TypeError(
            "jacobian: sparsity is for one Variable as the argument and one as the result, got "
            f"{len(point.inputs)} and {len(point.outputs)}. Join them with functions.concat."
        )
    (x,), (y,) = point.inputs, point.outputs
    return [[sparse_jacobian(x, y, colouring, point.needs_graph())]]


def _by_columns(name: str, point: Point) -> Table:
    """The derivatives along each element of the inputs: passes of the jvp, many at once."""
    push = Pushforward(name, point)
    columns = []  # by input, by output
    for i, x in enumerate(point.inputs):
        along = functools.partial(_column, push, i)
        columns.append(along_basis(along, x, point.outputs))
    table = []
    for k, y in enumerate(point.outputs):
        row = []
        for x, each in zip(point.inputs, columns, strict=True):
            row.append(_turned(reshape(each[k], x.shape + y.shape), x.ndim))
        table.append(row)
    return table


def _column(push: Pushforward, i: int, v: Variable) -> list[Variable]:
    """J v for a v of the input i alone."""
    vs = [zeros_like(x) for x in push.point.inputs]
    vs[i] = v
    return push.along(vs, push.point.needs_graph())


def _turned(columns: Variable, ndim: int) -> Variable:
    """The first ``ndim`` axes moved behind the others."""
    axes: Sequence[int] = range(columns.ndim)
    return permute_dims(columns, (*axes[ndim:], *axes[:ndim]))
