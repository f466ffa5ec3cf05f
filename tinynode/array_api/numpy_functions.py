"""NumPy's functions of Variables: ``np.sin(x)`` is ``functions.sin(x)``.

Requirement: no gradient is lost in silence, and no array of objects is made. NumPy hands over the
calls by the protocols ``__array_ufunc__`` and ``__array_function__``. The tables below have the
function of tinynode for a function of NumPy. For another function the error names the remedy.
Without a Variable that requires a gradient, NumPy computes on the arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy

from tinynode import functions
from tinynode.array_api.special import call_ufunc
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.variable import Variable
from tinynode.errors import OperandError
from tinynode.functions import linalg
from tinynode.habits import remedy_of

STANDARD_NAMES = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil copysign cos cosh divide
    equal exp expm1 floor floor_divide greater greater_equal hypot isfinite isinf isnan less
    less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
    matmul maximum minimum multiply negative not_equal positive pow reciprocal remainder sign
    signbit sin sinh sqrt square subtract tan tanh trunc vecdot
"""
"""The functions with one name in NumPy and in tinynode: that of the Array API standard."""

UFUNCS: dict[Any, Callable[..., Any]] = {
    getattr(numpy, name): getattr(functions, name) for name in STANDARD_NAMES.split()
} | {
    numpy.fabs: functions.abs,
    numpy.float_power: functions.pow,
    numpy.rint: functions.round,
}
"""The elementwise functions of NumPy, and the products, with those of tinynode."""


class Same(NamedTuple):
    """A function of tinynode with the meaning of NumPy's.

    Attributes:
        function: the function of tinynode.
        arguments: the names of the arguments with one meaning, in NumPy's order; a name of
            tinynode's stands after a colon, if different.
    """

    function: Callable[..., Any]
    arguments: str


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _ndim(x: Any) -> int:
    return int(x.ndim)


def _size(x: Any) -> int:
    return int(x.size)


def _ravel(x: Any) -> Any:
    return functions.reshape(x, (-1,))


def _transpose(x: Any, axes: Any = None) -> Any:
    order = tuple(reversed(range(x.ndim))) if axes is None else axes
    return functions.permute_dims(x, order)


def _swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    order = list(range(x.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return functions.permute_dims(x, order)


def _squeeze(x: Any, axis: Any = None) -> Any:
    return x.squeeze(axis)


def _dot(x: Any, y: Any) -> Any:
    """The product of vectors and matrices; a number multiplies."""
    if numpy.ndim(x) > 2 or numpy.ndim(y) > 2:
        raise OperandError(
            "numpy.dot: x or y has three axes or more; write tn.functions.matmul(x, y), or "
            "tn.functions.tensordot for sums over other axes."
        )
    if numpy.ndim(x) == 0 or numpy.ndim(y) == 0:
        return functions.multiply(x, y)
    return functions.matmul(x, y)


def _vstack(xs: Iterable[Any]) -> Any:
    rows = [functions.reshape(x, (1, -1)) if numpy.ndim(x) < 2 else x for x in xs]
    return functions.concat(rows, axis=0)


def _hstack(xs: Iterable[Any]) -> Any:
    parts = [functions.reshape(x, (-1,)) if numpy.ndim(x) == 0 else x for x in xs]
    return functions.concat(parts, axis=0 if numpy.ndim(parts[0]) == 1 else 1)


def _column_stack(xs: Iterable[Any]) -> Any:
    columns = [functions.reshape(x, (-1, 1)) if numpy.ndim(x) < 2 else x for x in xs]
    return functions.concat(columns, axis=1)


# --- reductions without NaN: the gradient of a NaN element is 0 ----------------------------------


def _filled(x: Variable, value: float) -> Variable:
    """x with a number in place of NaN."""
    return functions.where(functions.isnan(x), value, x)


def _counts(x: Variable, axis: Any, keepdims: bool) -> Variable:
    """The number of elements besides NaN along the axes."""
    present = functions.astype(functions.logical_not(functions.isnan(x)), x.dtype)
    return functions.sum(present, axis, keepdims)


def _nansum(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The sum without NaN."""
    return functions.sum(_filled(x, 0.0), axis, keepdims)


def _nanmean(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The mean without NaN."""
    return _nansum(x, axis, keepdims) / _counts(x, axis, keepdims)


def _nanvar(x: Variable, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Variable:
    """The variance without NaN, with n - ddof in the denominator."""
    squares = (x - _nanmean(x, axis, keepdims=True)) ** 2
    return _nansum(squares, axis, keepdims) / (_counts(x, axis, keepdims) - ddof)


def _nanstd(x: Variable, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Variable:
    """The square root of ``_nanvar``."""
    return functions.sqrt(_nanvar(x, axis, ddof, keepdims))


def _nanmax(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The largest element besides NaN."""
    return functions.max(_filled(x, -float("inf")), axis, keepdims)


def _nanmin(x: Variable, axis: Any = None, keepdims: bool = False) -> Variable:
    """The smallest element besides NaN."""
    return functions.min(_filled(x, float("inf")), axis, keepdims)


def _nancumsum(x: Variable, axis: Any = None) -> Variable:
    """The running sum with 0 in place of NaN; of x flattened, if no axis is given."""
    if axis is None:
        x, axis = functions.reshape(x, (-1,)), 0
    return functions.cumulative_sum(_filled(x, 0.0), axis=axis)


# --- the table -----------------------------------------------------------------------------------

_REDUCTION = "x axis dtype- out- keepdims"

FUNCTIONS: dict[Any, Same] = {
    numpy.sum: Same(functions.sum, _REDUCTION),
    numpy.prod: Same(functions.prod, _REDUCTION),
    numpy.mean: Same(functions.mean, _REDUCTION),
    numpy.max: Same(functions.max, "x axis out- keepdims"),
    numpy.min: Same(functions.min, "x axis out- keepdims"),
    numpy.amax: Same(functions.max, "x axis out- keepdims"),
    numpy.amin: Same(functions.min, "x axis out- keepdims"),
    numpy.std: Same(functions.std, "x axis dtype- out- ddof:correction keepdims"),
    numpy.var: Same(functions.var, "x axis dtype- out- ddof:correction keepdims"),
    numpy.argmax: Same(functions.argmax, "x axis out- keepdims"),
    numpy.argmin: Same(functions.argmin, "x axis out- keepdims"),
    numpy.sort: Same(functions.sort, "x axis"),
    numpy.argsort: Same(functions.argsort, "x axis"),
    numpy.concatenate: Same(functions.concat, "xs axis"),
    numpy.stack: Same(functions.stack, "xs axis"),
    numpy.vstack: Same(_vstack, "xs"),
    numpy.hstack: Same(_hstack, "xs"),
    numpy.split: Same(functions.split, "x indices_or_sections axis"),
    numpy.reshape: Same(functions.reshape, "x shape"),
    numpy.ravel: Same(_ravel, "x"),
    numpy.transpose: Same(_transpose, "x axes"),
    numpy.swapaxes: Same(_swapaxes, "x axis1 axis2"),
    numpy.moveaxis: Same(functions.moveaxis, "x source destination"),
    numpy.expand_dims: Same(functions.expand_dims, "x axis"),
    numpy.squeeze: Same(_squeeze, "x axis"),
    numpy.broadcast_to: Same(functions.broadcast_to, "x shape"),
    numpy.flip: Same(functions.flip, "x axis"),
    numpy.tile: Same(functions.tile, "x reps:repetitions"),
    numpy.repeat: Same(functions.repeat, "x repeats axis"),
    numpy.roll: Same(functions.roll, "x shift axis"),
    numpy.where: Same(functions.where, "condition x y"),
    numpy.clip: Same(functions.clip, "x a_min:min a_max:max"),
    numpy.round: Same(functions.round, "x"),
    numpy.take_along_axis: Same(functions.take_along_axis, "x indices axis"),
    numpy.tril: Same(functions.tril, "x k"),
    numpy.triu: Same(functions.triu, "x k"),
    numpy.diff: Same(functions.diff, "x n axis"),
    numpy.dot: Same(_dot, "x y"),
    numpy.outer: Same(linalg.outer, "x1 x2"),
    numpy.tensordot: Same(functions.tensordot, "x y axes"),
    numpy.einsum: Same(functions.einsum, "*"),
    numpy.linalg.inv: Same(linalg.inv, "x"),
    numpy.linalg.det: Same(linalg.det, "x"),
    numpy.linalg.solve: Same(linalg.solve, "x1 x2"),
    numpy.linalg.pinv: Same(linalg.pinv, "x"),
    numpy.linalg.cholesky: Same(linalg.cholesky, "x"),
    numpy.nansum: Same(_nansum, "x axis dtype- out- keepdims"),
    numpy.nanmean: Same(_nanmean, "x axis dtype- out- keepdims"),
    numpy.nanvar: Same(_nanvar, "x axis dtype- out- ddof keepdims"),
    numpy.nanstd: Same(_nanstd, "x axis dtype- out- ddof keepdims"),
    numpy.nanmax: Same(_nanmax, "x axis out- keepdims"),
    numpy.nanmin: Same(_nanmin, "x axis out- keepdims"),
    numpy.nancumsum: Same(_nancumsum, "x axis dtype- out-"),
    numpy.column_stack: Same(_column_stack, "xs"),
    numpy.shape: Same(_shape, "x"),
    numpy.ndim: Same(_ndim, "x"),
    numpy.size: Same(_size, "x"),
}
"""Functions of NumPy with those of tinynode. A "-" marks an argument that has to be left out."""


def refused_ufunc(
    ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """A call that ``UFUNCS`` has no function for: NumPy's result on arrays, or an error.

    Raises:
        OperandError: a gradient would be lost, or an option has no counterpart.
    """
    name = f"np.{ufunc.__name__}"
    if any(isinstance(y, ArrayMethods) for y in options.get("out", ())):
        raise OperandError(f"{name}: out= cannot be a Variable. Use the result: y = {name}(...).")
    if "out" in options:
        raise OperandError(
            f"{name}: a Variable is not written into an array: write a = a + x in place of "
            "a += x, or take x.array."
        )
    if method != "__call__":
        raise OperandError(
            f"{name}.{method}: NumPy's methods of functions take no Variable. Write "
            f"{_remedy(_REDUCED.get(ufunc, '') if method == 'reduce' else '', 'x')}"
        )
    if ufunc in UFUNCS:
        raise OperandError(f"{name}: write {name}(x) without {', '.join(options)}.")
    result = None if options else call_ufunc(ufunc, inputs)  # a function of scipy.special
    return _on_arrays(ufunc, name, ufunc.__name__, inputs, options) if result is None else result


_REDUCED = {numpy.add: "sum", numpy.multiply: "prod", numpy.maximum: "max", numpy.minimum: "min"}


def call_function(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The work of ``__array_function__``."""
    same = FUNCTIONS.get(function)
    module = function.__module__.replace("numpy", "np")
    name = f"{module}.{function.__name__}"
    if same is None:
        return _on_arrays(function, name, function.__name__, arguments, options)
    if same.arguments == "*":
        return same.function(*arguments, **options)
    names = same.arguments.split()
    given = dict(options)
    for position, value in enumerate(arguments):
        if position >= len(names):
            raise _refused(name, same, f"argument {position + 1}")
        given[names[position].partition(":")[0]] = value
    first = names[0]
    translated = dict(name.split(":") for name in names if ":" in name)
    keywords = {}
    for key, value in given.items():
        if key in names and key != first and value is not None:
            keywords[key] = value
        elif key in translated and value is not None:
            keywords[translated[key]] = value
        elif key == first or value is None:
            continue
        else:
            raise _refused(name, same, key.removesuffix("-"))
    if first not in given:
        raise _refused(name, same, "a keyword for the first argument")
    return same.function(given[first], **keywords)


def _refused(name: str, same: Same, argument: str) -> OperandError:
    known = [n.partition(":")[0] for n in same.arguments.split() if not n.endswith("-")]
    ours, cure = same.function.__name__, name
    if hasattr(functions, ours):
        cure = f"tn.functions.{ours}"
    elif hasattr(linalg, ours):
        cure = f"tn.functions.linalg.{ours}"
    return OperandError(
        f"{name}: {argument} has no counterpart for a Variable; write {cure} with "
        f"{', '.join(known)}."
    )


def _on_arrays(
    function: Any, title: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """NumPy's result for the arrays, if no Variable requires a gradient.

    Raises:
        OperandError: a Variable requires a gradient, which would be lost.
    """
    values: list[Any] = [*arguments, *options.values()]
    if any(_requires_grad(value) for value in values):
        raise OperandError(f"{title}: NumPy would lose the gradient of x. Write {_remedy(name)}")
    converted = [_as_numpy(value) for value in arguments]
    return function(*converted, **{key: _as_numpy(value) for key, value in options.items()})


def _remedy(name: str, argument: str = "x") -> str:
    arrays = f"tn.to_host({argument}.array) where no gradient is needed."
    known = remedy_of("F", name, functions.__all__) if name else ""
    known = re.sub(r" in place of \w+'s \w+", "", known)  # NumPy's name stands before
    return f"{known.removeprefix('write ')} Or take {arrays}" if known else arrays


def _requires_grad(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_requires_grad(item) for item in value)
    return isinstance(value, ArrayMethods) and value.requires_grad


def _as_numpy(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_as_numpy(item) for item in value])
    return numpy.asarray(value) if isinstance(value, ArrayMethods) else value
