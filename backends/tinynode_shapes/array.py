"""ShapeArray: an array with a shape and a dtype, and without data.

Requirement: shapes and dtypes follow the Array API standard, and no second table of promotions can
disagree with NumPy. So NumPy itself answers, on arrays without elements: the dtype of ``x + y`` is
the dtype of NumPy's sum of two empty arrays. Nothing is computed, and no memory is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Never

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

from tinynode.devices import get_backend
from tinynode.errors import NoValuesError

CURE = (
    "An array on the device shapes has a shape and a dtype, and no values. Run the function on "
    "numpy, or leave out what reads the value."
)


class ShapeArray(NDArrayOperatorsMixin):  # type: ignore[misc,unused-ignore]
    """An array without data.

    Operators come from NumPy's mixin: each calls a NumPy function, which calls
    ``__array_ufunc__``.

    Args:
        shape: the shape.
        dtype: a dtype of NumPy.
    """

    __slots__ = ("__weakref__", "dtype", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements would take."""
        return self.size * int(self.dtype.itemsize)

    @property
    def device(self) -> str:
        """The only device."""
        return "shapes"

    @property
    def T(self) -> ShapeArray:
        """The array with the axes in inverted order."""
        return ShapeArray(self.shape[::-1], self.dtype)

    @property
    def mT(self) -> ShapeArray:
        """The array with the last two axes swapped."""
        return ShapeArray((*self.shape[:-2], self.shape[-1], self.shape[-2]), self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShapeArray({self.shape}, {self.dtype})"

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return get_backend("shapes").namespace()

    # --- functions of NumPy ------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """A NumPy function on arrays without data; the result of ``x += y`` is x."""
        if method != "__call__":
            return NotImplemented
        targets = options.pop("out", None)
        result = product(*inputs) if ufunc is numpy.matmul else elementwise(ufunc, inputs, options)
        if targets is None:
            return result
        check_fits(result.shape, targets[0].shape)
        return targets[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Never:
        raise no_values("a function of NumPy")

    # --- parts -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> ShapeArray:
        part = with_last_axis(self)[with_last_key(key)]
        return ShapeArray(part.shape[:-1], self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        check_written(self, key, value)

    # --- values ------------------------------------------------------------------------------

    def __bool__(self) -> Never:
        raise no_values("bool(x), as in `if x:`,")

    def __int__(self) -> Never:
        raise no_values("int(x)")

    def __float__(self) -> Never:
        raise no_values("float(x)")

    def __complex__(self) -> Never:
        raise no_values("complex(x)")

    def __index__(self) -> Never:
        raise no_values("an index")

    def item(self) -> Never:
        """Raises: there is no value."""
        raise no_values("x.item()")

    def tolist(self) -> Never:
        """Raises: there are no values."""
        raise no_values("x.tolist()")


ARRAYS = (ShapeArray, numpy.ndarray, numpy.generic)
"""The objects with a shape and a dtype. NumPy's arrays may stand beside arrays without data."""


def no_values(what: str) -> NoValuesError:
    """The error for an operation that reads values."""
    return NoValuesError(f"{what} needs values. {CURE}")


def empty(x: Any) -> Any:
    """A NumPy array with an axis of length 0 in front, for an array; other objects unchanged.

    NumPy then finds the shape and the dtype of a result, and has nothing to compute.
    """
    return numpy.empty((0, *x.shape), x.dtype) if isinstance(x, ARRAYS) else x


def without_axis(result: Any) -> Any:
    """The ShapeArray for a result with the axis of length 0 in front; or several."""
    if isinstance(result, tuple | list):
        make = getattr(type(result), "_make", tuple)  # a named tuple, such as that of eigh
        return make([without_axis(one) for one in result])
    return ShapeArray(result.shape[1:], result.dtype)


# --- elementwise functions, and products ---------------------------------------------------------

_dtypes: dict[tuple[Any, ...], Any] = {}
"""The dtype of a function's result, by function and dtypes; a tuple for several results."""


def elementwise(function: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """The result of an elementwise function of NumPy: arrays are broadcast, dtypes promoted."""
    shape = broadcast([x.shape for x in operands if isinstance(x, ARRAYS)])
    key = (function, *[x.dtype if isinstance(x, ARRAYS) else type(x) for x in operands])
    dtype = None if options else _dtypes.get(key)
    if dtype is None:
        flat = [numpy.empty(0, x.dtype) if isinstance(x, ARRAYS) else x for x in operands]
        found = function(*flat, **options)
        dtype = tuple([y.dtype for y in found]) if isinstance(found, tuple) else found.dtype
        if not options:
            _dtypes[key] = dtype
    if isinstance(dtype, tuple):
        return tuple([ShapeArray(shape, one) for one in dtype])
    return ShapeArray(shape, dtype)


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape.

    Raises:
        ValueError: there is none.
    """
    different = set(shapes)
    if len(different) == 1:
        return different.pop()
    return numpy.broadcast_shapes(*shapes)


def product(x: Any, y: Any) -> ShapeArray:
    """``x @ y``.

    Raises:
        ValueError: the inner lengths differ, or an operand has no axes.
    """
    if not x.shape or not y.shape:
        raise ValueError(f"matmul: x and y need axes, got shapes {x.shape} and {y.shape}.")
    rows = (1, *x.shape)[-2:] if len(x.shape) == 1 else x.shape[-2:]
    columns = (*y.shape, 1) if len(y.shape) == 1 else y.shape[-2:]
    if rows[1] != columns[0]:
        raise ValueError(
            f"matmul: x.shape[-1] must equal the length of y's rows, got shapes {x.shape} and "
            f"{y.shape}."
        )
    shape = broadcast([x.shape[:-2], y.shape[:-2]])
    shape = shape if len(x.shape) == 1 else (*shape, rows[0])
    shape = shape if len(y.shape) == 1 else (*shape, columns[1])
    return ShapeArray(shape, numpy.result_type(x.dtype, y.dtype))


# --- indexes -------------------------------------------------------------------------------------


def with_last_axis(x: Any) -> Any:
    """A NumPy array with an axis of length 0 at the end: an index never moves that axis."""
    return numpy.empty((*x.shape, 0), x.dtype)


def with_last_key(key: Any) -> tuple[Any, ...]:
    """The key for ``with_last_axis``. Integer arrays without values become zeros.

    Raises:
        NoValuesError: a mask has no values, so the number of its elements is unknown.
    """
    keys = key if isinstance(key, tuple) else (key,)
    known = [_known(one) for one in keys]
    has_ellipsis = any(one is ... for one in known)
    return (*known, slice(None)) if has_ellipsis else (*known, ..., slice(None))


def _known(key: Any) -> Any:
    if not isinstance(key, ShapeArray):
        return key
    if key.dtype == numpy.bool:
        raise no_values("x[mask]: the shape of the result depends on the mask, which")
    return numpy.broadcast_to(numpy.zeros((), key.dtype), key.shape)


def check_written(x: Any, key: Any, value: Any) -> None:
    """Check a write ``x[key] = value`` by NumPy's rules.

    A single number may be written at a mask: then no shape depends on values.

    Raises:
        ValueError: the shapes do not fit.
    """
    shape = tuple(value.shape) if isinstance(value, ARRAYS) else ()
    keys = key if isinstance(key, tuple) else (key,)
    has_mask = any(isinstance(one, ShapeArray) and one.dtype == numpy.bool for one in keys)
    if has_mask and not shape:
        return
    target = x[key].shape
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    check_fits(shape, target)


def check_fits(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise a ValueError unless an array of a shape may be written to the target's shape."""
    if broadcast([shape, target]) != target:
        raise ValueError(f"an array of shape {shape} does not broadcast to {target}.")
