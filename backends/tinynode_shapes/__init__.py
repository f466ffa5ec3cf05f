"""The backend of arrays without data: an array has a shape and a dtype.

Functions run on it as they are, forward and backward, and give the shapes and dtypes that NumPy
gives. So a program learns the shapes of a model before any value is computed.

``array`` has the arrays, and ``namespace`` the functions of the Array API standard.
"""

from __future__ import annotations

from typing import Any, Never

import numpy

from tinynode.errors import NoValuesError
from tinynode_shapes.array import ShapeArray, no_values
from tinynode_shapes.namespace import Namespace

name = "shapes"
capabilities = frozenset({"float64", "shapes"})
_NAMESPACE = Namespace()


def devices() -> tuple[str, ...]:
    return ("shapes",)


def namespace() -> Any:
    return _NAMESPACE


def owns(array: object) -> bool:
    return type(array) is ShapeArray


def index_of(array: Any) -> str:
    return "shapes"


def from_host(array: Any, index: str) -> Any:
    return ShapeArray(array.shape, array.dtype)


def to_host(array: Any) -> Never:
    raise no_values("to_host, as in float(x), bool(x), x.item(), x.numpy(),")


def synchronize(index: str) -> None:
    """Nothing is computed, so there is nothing to wait for."""


def lift(value: object) -> Any:
    """A scalar of NumPy, computed from shapes, as a 0-d array."""
    return ShapeArray((), value.dtype) if isinstance(value, numpy.generic) else None


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    """Run a function; random numbers are not drawn.

    Of an array of NumPy among the inputs, as in ``tn.summary``, shape and dtype are used.

    Raises:
        NoValuesError: the function reads values. The message names the function.
    """
    if node.is_random:
        return (ShapeArray(node.shape, numpy.dtype(node.dtype)),)
    known = [x if type(x) is ShapeArray else ShapeArray(x.shape, x.dtype) for x in arrays]
    try:
        return node.forward(tuple(known))
    except NoValuesError as error:
        raise NoValuesError(f"{node.label}: {error}") from error


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros."""
    return ShapeArray((length, *values.shape[1:]), values.dtype)
