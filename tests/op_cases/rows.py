"""What a row of the table is made of: inputs, the case, and short names for both.

For example:

    row("add", "leading-axes", fn.add, np.add, x(2, 3), x(3))

reads: ``fn.add`` on normal inputs of these shapes gives what ``np.add`` gives, and has gradients
of first and second order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import numpy as np

import tinynode as tn

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32")
ALL = slice(None)


# --- what a row is made of -----------------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(0.5, 2, size=shape)


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of both signs, and away from the kink or the pole at 0."""
    return positive(rng, shape) * rng.choice([-1.0, 1.0], size=shape)


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """At least 0.25 apart, so that small steps change no order."""
    size = int(np.prod(shape))
    return (rng.permutation(size).reshape(shape) - size / 2) * 0.25 + 0.1


def integers(
    rng: np.random.Generator, shape: tuple[int, ...], low: int = -3, high: int = 4
) -> Any:
    """Few values, so that some of them are equal."""
    return rng.integers(low, high, size=shape)


def nonzero_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(1, 4, size=shape) * rng.choice([-1, 1], size=shape)


def bools(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.random(size=shape) < 0.5


def with_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """About half of them 0: several in most rows and columns, none in some."""
    return nonzero(rng, shape) * rng.integers(0, 2, size=shape)


@dataclass(frozen=True)
class Input:
    """One input of a row.

    Attributes:
        shape: its shape.
        make: how its values are drawn.
        dtype: its dtype; None takes the dtype at which the row is run.
        layout: "contiguous"; or "strided", "transposed", "reversed" in memory.
        raw: hand it over as an array, not as a Variable.
        grad: whether it requires a gradient, if its dtype is floating.
    """

    shape: tuple[int, ...]
    make: Callable[..., Any] = normal
    dtype: str | None = None
    layout: str = "contiguous"
    raw: bool = False
    grad: bool = True


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        operation: the exported name that the row is about.
        id: the operation and what is special in this row.
        function: takes Variables (or arrays, where an input is raw); gives one or a tuple of them.
        reference: the same in plain NumPy.
        inputs: the inputs.
        order: how often it can be differentiated, 2 at most; 0 for functions without a gradient.
        dtypes: the dtypes at which it is run; the first is the one of the derivatives.
        single: a float32 step inside limits the precision of derivatives at float64.
        smooth: what the derivatives are compared with, where ``reference`` rounds.
        not_on_strict: why array_api_strict refuses what the row does; empty if it does not.
        constants: further keyword arguments of function and reference.
    """

    operation: str
    id: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: tuple[Input, ...]
    order: int = 2
    dtypes: tuple[str, ...] = FLOATS
    single: bool = False
    smooth: Callable[..., Any] | None = None
    not_on_strict: str = ""
    constants: dict[str, Any] = field(default_factory=dict)


CASES: list[Case] = []


def row(
    operation: str,
    claim: str,
    function: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Input,
    order: int = 2,
    dtypes: tuple[str, ...] = FLOATS,
    single: bool = False,
    smooth: Callable[..., Any] | None = None,
    not_on_strict: str = "",
    **constants: Any,
) -> None:
    """Add a row to the table."""
    id = f"{operation}-{claim}"
    dtypes = dtypes[:1] if single else dtypes
    how = (order, dtypes, single, smooth, not_on_strict)
    CASES.append(Case(operation, id, function, reference, inputs, *how, constants))


def of_list(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a sequence, as one of separate arguments."""

    @wraps(function)
    def call(*xs: Any, **constants: Any) -> Any:
        return function(list(xs), **constants)

    return call


def node(kind: type[tn.FunctionNode], *attributes: Any) -> Callable[..., Any]:
    """A FunctionNode class as a function: for gradient nodes, which have no function."""

    def call(*xs: Any) -> Any:
        return kind(*attributes).apply(xs)[0]

    return call


LAYOUTS = ("strided", "transposed", "reversed")
BROADCASTS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("same-shape", (2, 3), (2, 3)),
    ("leading-axes-of-y", (2, 3), (3,)),
    ("leading-axes-of-x", (3,), (4, 2, 3)),
    ("one-axis-of-y", (2, 3), (2, 1)),
    ("one-axis-of-x", (2, 1), (2, 3)),
    ("one-axes-of-both", (2, 1), (1, 3)),
    ("leading-and-one-axes", (4, 1, 3), (2, 1)),
    ("0-d-x", (), (2, 3)),
    ("0-d-y", (2, 3), ()),
    ("0-d-both", (), ()),
    ("size-one-and-0-d", (1,), ()),
    ("zero-size", (0, 3), (0, 3)),
    ("zero-size-leading", (0, 3), (3,)),
    ("zero-size-one-axis", (1, 3), (0, 3)),
]


# Inputs by their values, so that a row fits on a line: x(2, 3) is a normal input of that shape.


def x(*shape: int, **more: Any) -> Input:
    return Input(shape, normal, **more)


def pos(*shape: int, **more: Any) -> Input:
    return Input(shape, positive, **more)


def nz(*shape: int, **more: Any) -> Input:
    return Input(shape, nonzero, **more)


def few(*shape: int, **more: Any) -> Input:
    return Input(shape, integers, **more)


def mask(*shape: int, **more: Any) -> Input:
    return Input(shape, bools, dtype="bool", **more)


def indices(*shape: int, n: int, low: int | None = None, **more: Any) -> Input:
    """Integers that count in an axis of length n, from both ends; several are equal."""
    return Input(shape, partial(integers, low=-n if low is None else low, high=n), "int64", **more)


def sep(*shape: int, **more: Any) -> Input:
    return Input(shape, distinct, **more)


def zeros(*shape: int, **more: Any) -> Input:
    return Input(shape, with_zeros, **more)
