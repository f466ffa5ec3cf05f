"""NumPy's reductions without NaN, for Variables: ``np.nanmean(x)`` and its kin.

The gradient of a NaN element is 0. Labelled arrays, as in xarray, call the functions.
"""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.core.variable import Variable


def _filled(x: Variable, value: float) -> Variable:
    """x with a number in place of NaN."""
    return functions.where(functions.isnan(x), value, x)


def _counts(x: Variable, axis: Any, keepdims: bool) -> Variable:
    """The number of elements besides NaN along the axes."""
    present = functions.astype(functions.logical_not(functions.isnan(x)), x.dtype)
    return functions.sum(present, axis, keepdims)


def nansum(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The sum without NaN."""
    return functions.sum(_filled(x, 0.0), axis, keepdims)


def nanmean(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The mean without NaN."""
    return nansum(x, axis, keepdims) / _counts(x, axis, keepdims)


def nanvar(x: Variable, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Variable:
    """The variance without NaN, with n - ddof in the denominator."""
    squares = (x - nanmean(x, axis, keepdims=True)) ** 2
    return nansum(squares, axis, keepdims) / (_counts(x, axis, keepdims) - ddof)


def nanstd(x: Variable, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Variable:
    """The square root of ``nanvar``."""
    return functions.sqrt(nanvar(x, axis, ddof, keepdims))


def nanmax(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The largest element besides NaN."""
    return functions.max(_filled(x, -float("inf")), axis, keepdims)


def nanmin(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The smallest element besides NaN."""
    return functions.min(_filled(x, float("inf")), axis, keepdims)


def nancumsum(x: Variable, axis: Any = None) -> Variable:
    """The running sum with 0 in place of NaN; of x flattened, if no axis is given."""
    if axis is None:
        x, axis = functions.reshape(x, (-1,)), 0
    return functions.cumulative_sum(_filled(x, 0.0), axis=axis)
