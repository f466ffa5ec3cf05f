"""Sparse Jacobians: a pass for each colour in place of a pass for each row or column.

Requirement: a Jacobian with known zeros costs few passes. A single product J v gives two columns
without a common row: v is 1 at both columns. Each element of J v belongs to a single column. Such
columns get the same *colour*. A tridiagonal Jacobian of any size has three colours.

    x:  1 2 3 1 2 3 1        colours of the columns
        x x . . . . .
        x x x . . . .        no row has two columns of the same colour
        . x x x . . .
        . . x x x . .

Source: Curtis, Powell, Reid, On the Estimation of Sparse Jacobian Matrices, 1974; Coleman, More,
Estimation of Sparse Jacobian Matrices and Graph Coloring Problems, 1983.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tinynode.configuration import config, force_backprop_mode, using_config
from tinynode.core.backprop import grad
from tinynode.core.conversion import as_host, asarray, to_host
from tinynode.core.variable import Variable, wrap_array
from tinynode.errors import OperandError, describe
from tinynode.functions import matmul, reshape, stack, take, where

Pass = Callable[[Variable], Variable]
"""The product of a vector and the Jacobian, or the Jacobian and a vector."""


def colour_columns(pattern: Any) -> list[int]:
    """A colour for each column: columns of a colour have no row in common.

    pattern: (m, n) booleans, True where an entry may be non-zero -> n colours, from 0.

    Greedy: each column in turn takes the first colour without a common row. The number of colours
    is at least the largest number of entries in a row. For a band, the two numbers are equal.
    """
    taken: list[Any] = []  # for each colour, the rows of its columns
    colours = []
    for rows in numpy.asarray(pattern, dtype=bool).T:
        free = [c for c, others in enumerate(taken) if not (others & rows).any()]
        colour = free[0] if free else len(taken)
        if not free:
            taken.append(numpy.zeros_like(rows))
        taken[colour] |= rows
        colours.append(colour)
    return colours


class Colouring:
    """The colours of the rows and of the columns of a pattern, found once for many points.

    Attributes:
        pattern: the pattern as a NumPy array.
        rows, columns: a colour for each.
    """

    def __init__(self, sparsity: Any) -> None:
        self.pattern = as_host(sparsity)
        self.rows: list[int] = []
        self.columns: list[int] = []
        if self.pattern.dtype == bool and self.pattern.ndim == 2:
            self.rows, self.columns = colour_columns(self.pattern.T), colour_columns(self.pattern)

    def check(self, y: Variable, x: Variable) -> None:
        """Refuse a pattern that is not (size of y, size of x) booleans.

        Raises:
            OperandError: the pattern has another shape or dtype.
        """
        if self.pattern.dtype != bool or self.pattern.shape != (y.size, x.size):
            raise OperandError(
                f"jacobian: sparsity must be booleans of shape {(y.size, x.size)}, a row for each "
                f"element of the value {y.shape} and a column for each of the argument {x.shape}; "
                f"got {describe(self.pattern)}. True stands where a derivative may be non-zero."
            )


def sparse_jacobian(
    x: Variable, y: Variable, colouring: Colouring, enable_double_backprop: bool
) -> Variable:
    """The Jacobian of y with respect to x, by a pass for each colour.

    x: (s), y: (t), pattern: (size of y, size of x) -> J: (t + s), zero outside of the pattern.

    Colours of rows need a vjp each, colours of columns a jvp each and a vjp. The cheaper way
    is used.

    Raises:
        OperandError: the pattern has another shape, or is not boolean.
        ValueError: in debug mode: an entry outside of the pattern is not zero.
    """
    colouring.check(y, x)
    pattern, rows, columns = colouring.pattern, colouring.rows, colouring.columns
    by_rows = _count(rows) <= _count(columns) + 1
    with force_backprop_mode():
        product = vjp_of(y, x, enable_double_backprop)
        if not by_rows:
            product = jvp_of(y, x, enable_double_backprop)
    colours, seed_like = (rows, y) if by_rows else (columns, x)
    with using_config("enable_backprop", enable_double_backprop):
        found = [product(_seed(colours, c, seed_like)) for c in range(_count(colours))]
        J = _decompressed(found, colours, pattern, by_rows, x)
    if config.debug:
        _check_product(product, J, seed_like, by_rows)
    return reshape(J, y.shape + x.shape)


def vjp_of(y: Variable, x: Variable, enable_double_backprop: bool) -> Pass:
    """u -> u J: a backward pass."""

    def vjp(u: Variable) -> Variable:
        (gx,) = grad([y], [x], [u], enable_double_backprop=enable_double_backprop)
        return _zeros(x) if gx is None else gx

    return vjp


def jvp_of(y: Variable, x: Variable, enable_double_backprop: bool) -> Pass:
    """v -> J v: u J is linear in u, so the derivative with respect to u gives J v.

    Source: Townsend, A new trick for calculating Jacobian vector products, 2017.
    """
    u = wrap_array(y.xp.zeros_like(y.raw), y.device, True)
    (gx,) = grad([y], [x], [u], enable_double_backprop=True)

    def jvp(v: Variable) -> Variable:
        if gx is None:
            return _zeros(y)
        (gu,) = grad([gx], [u], [v], enable_double_backprop=enable_double_backprop)
        return _zeros(y) if gu is None else gu

    return jvp


def _count(colours: list[int]) -> int:
    return max(colours, default=-1) + 1


def _seed(colours: list[int], colour: int, like: Variable) -> Variable:
    """1 at the rows or columns of a colour, 0 elsewhere."""
    ones = (numpy.asarray(colours) == colour).reshape(like.shape)
    return _constant(ones, like)


def _decompressed(
    found: list[Variable], colours: list[int], pattern: Any, by_rows: bool, x: Variable
) -> Variable:
    """The Jacobian (m, n) from the product of each colour."""
    if not found or not pattern.size:
        return _constant(numpy.zeros(pattern.shape), x)
    compressed = stack([reshape(one, (one.size,)) for one in found], axis=0 if by_rows else 1)
    indices = asarray(numpy.asarray(colours), device=x.device)
    entries = take(compressed, indices, axis=0 if by_rows else 1)
    return where(asarray(pattern, device=x.device), entries, _constant(numpy.zeros(()), x))


def _check_product(product: Pass, J: Variable, like: Variable, by_rows: bool) -> None:
    """Compare the product with a random vector: the function's, and that of the sparse matrix."""
    random = numpy.random.default_rng(0).normal(size=like.shape)
    v = _constant(random, like)
    flat = reshape(v, (v.size,))
    expected, sparse = product(v), matmul(flat, J) if by_rows else matmul(J, flat)
    exact = numpy.asarray(to_host(expected)).ravel()
    error = numpy.abs(exact - numpy.asarray(to_host(sparse)))
    limit = numpy.sqrt(float(like.xp.finfo(like.dtype).eps)) * max(1.0, abs(exact).max(initial=0))
    if error.max(initial=0) > limit:
        position, kind = int(error.argmax()), "column" if by_rows else "row"
        raise ValueError(
            f"jacobian: sparsity is wrong: {kind} {position} of the Jacobian has an entry outside "
            f"of the pattern. A product with a random vector differs by {error.max():.3g}. Add "
            "the entry to sparsity, or leave sparsity out."
        )


def _constant(host: Any, like: Variable) -> Variable:
    return asarray(host, dtype=like.dtype, device=like.device, requires_grad=False)


def _zeros(x: Variable) -> Variable:
    return wrap_array(x.xp.zeros_like(x.raw), x.device, False)
