"""Rows: claims about a function, each checked against plain NumPy and by differences.

Requirement: an author of a function writes a line for each claim. The package's own table,
``tests/op_cases``, has rows of the same kind. In an installed package, this module runs rows.

    rows = [row("broadcasting", np.hypot, positive(2, 3), positive(3))]
    failures(hypot, rows)        # {} if all claims hold, else the reasons by claim
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinynode import gradient_check
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.devices import to_host

TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}


@dataclass(frozen=True)
class Input:
    """An input of a row: the shape, and the function that draws the values."""

    shape: tuple[int, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...]], Any]


@dataclass(frozen=True)
class Row:
    """A claim: the function equals ``reference`` on these inputs, with right gradients.

    Attributes:
        claim: a few words, such as "broadcasting".
        reference: the same function in plain NumPy.
        inputs: the inputs.
        order: the number of times that the function can be differentiated here: 0, 1 or 2.
        dtypes: the dtypes of inputs and result.
    """

    claim: str
    reference: Callable[..., Any]
    inputs: tuple[Input, ...]
    order: int
    dtypes: tuple[str, ...]


def row(
    claim: str,
    reference: Callable[..., Any],
    *inputs: Input,
    order: int = 2,
    dtypes: tuple[str, ...] = ("float64",),
) -> Row:
    """A row, in one line."""
    return Row(claim, reference, inputs, order, dtypes)


def normal(*shape: int) -> Input:
    """Normal random numbers of both signs."""
    return Input(shape, _draw_normal)


def positive(*shape: int) -> Input:
    """Random numbers from 0.5 to 2."""
    return Input(shape, _draw_positive)


def zeros(*shape: int) -> Input:
    """Zeros."""
    return Input(shape, _draw_zeros)


def _draw_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape)


def _draw_positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.uniform(0.5, 2.0, size=shape)


def _draw_zeros(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape)


def failures(function: Callable[..., Any], rows: Iterable[Row]) -> dict[str, str]:
    """The claims that do not hold, with a reason each."""
    found = {}
    for one in rows:
        try:
            with np.errstate(all="ignore"):
                check_row(function, one)
        except Exception as error:
            found[one.claim] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found


def check_row(function: Callable[..., Any], one: Row) -> None:
    """Check a claim.

    Raises:
        AssertionError: A value, a shape, a dtype or a gradient is wrong.
        Exception: Any error of the function.
    """
    for dtype in one.dtypes:
        rng = np.random.default_rng(0)
        drawn = [np.asarray(i.draw(rng, i.shape), dtype=dtype) for i in one.inputs]
        _check_value(function, one.reference, drawn, dtype)
    inputs = tuple(array.astype("float64") for array in drawn)
    y = function(*map(_variable, inputs))
    gy = rng.normal(size=y.shape)
    if one.order > 0:
        gradient_check.check_backward(function, inputs, gy, eps=1e-5)
    if one.order > 1:
        weights = tuple(rng.normal(size=i.shape) for i in one.inputs)
        gradient_check.check_double_backward(function, inputs, gy, weights, eps=1e-5)


def _check_value(
    function: Callable[..., Any], reference: Callable[..., Any], arrays: list[Any], dtype: str
) -> None:
    y = function(*map(_variable, arrays))
    if not isinstance(y, Variable):
        raise AssertionError(f"the result is no Variable, but {type(y).__name__}")
    expected = np.asarray(reference(*arrays))
    found = to_host(y.array)
    if found.shape != expected.shape:
        raise AssertionError(f"shape {found.shape}, expected {expected.shape}")
    if str(found.dtype) != dtype:
        raise AssertionError(f"the dtype of the result is {found.dtype}, expected {dtype}")
    if not np.allclose(found, expected, TOLERANCE[dtype], TOLERANCE[dtype], equal_nan=True):
        raise AssertionError(f"a value for {dtype} differs from the reference")


def _variable(array: Any) -> Variable:
    return asarray(array, requires_grad=True)
