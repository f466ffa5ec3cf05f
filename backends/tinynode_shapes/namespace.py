"""The functions of the Array API standard on ShapeArrays.

``FAMILIES`` names the functions by rule. A rule calls NumPy's function of the same name, on arrays
with an axis of length 0. Functions with a rule of their own are methods.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Never

import numpy

from tinynode_shapes.array import (
    ARRAYS,
    ShapeArray,
    broadcast,
    elementwise,
    empty,
    no_values,
    product,
    without_axis,
)


class Rule:
    """A function of the namespace: a call gives the shape and the dtype of NumPy's result.

    Args:
        function: the function of NumPy.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"<{self.function.__name__} of shapes, by the rule {type(self).__name__}>"


class ElementwiseRule(Rule):
    """Functions that broadcast."""

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return elementwise(self.function, operands, options)


class OnMatrices(Rule):
    """Functions of the last axes. Arrays of fewer axes get axes of length 1 in front."""

    def __call__(self, *operands: Any, **options: Any) -> Any:
        axes = max(len(x.shape) for x in operands if isinstance(x, ARRAYS))
        arrays = [empty(with_axes(x, axes)) for x in operands]
        return without_axis(self.function(*arrays, **options))


class AxesRule(Rule):
    """Functions with ``axis``: an integer, several, or None for all axes."""

    keyword = "axis"
    default: Any = None

    def __call__(self, x: Any, /, *others: Any, **options: Any) -> ShapeArray:
        options[self.keyword] = shifted(options.pop(self.keyword, self.default), len(x.shape))
        return without_axis(self.function(empty(x), *others, **options))  # type: ignore[no-any-return]


class LastAxisRule(AxesRule):
    """Functions with ``axis=-1`` by default."""

    default = -1


class FFTAxesRule(AxesRule):
    """Functions with ``axes``, of which None stands for all."""

    keyword = "axes"


class FlatteningRule(AxesRule):
    """Functions with ``axis`` that flatten the array for None."""

    def __call__(self, x: Any, /, *others: Any, axis: Any = None, **options: Any) -> ShapeArray:
        if axis is not None:
            return super().__call__(x, *others, axis=axis, **options)
        flat = super().__call__(ShapeArray((x.size,), x.dtype), *others, axis=0, **options)
        keeps = options.get("keepdims", False)
        shape = (1,) * x.ndim if keeps else flat.shape if flat.shape != (x.size,) else x.shape
        return ShapeArray(shape, flat.dtype)


class Filled(Rule):
    """Functions that make an array of a given shape."""

    def __call__(self, shape: Any, *values: Any, dtype: Any = None, device: Any = None) -> Any:
        values = tuple([numpy.zeros((), v.dtype) if isinstance(v, ARRAYS) else v for v in values])
        made = self.function((0,), *values, dtype=dtype)
        return ShapeArray(lengths(shape), made.dtype)


class Line(Rule):
    """Functions that make a vector from numbers: NumPy makes the vector."""

    def __call__(self, *numbers: Any, device: Any = None, **options: Any) -> ShapeArray:
        made = self.function(*numbers, **options)
        return ShapeArray(made.shape, made.dtype)


class NeedsValues(Rule):
    """Functions with a result whose shape depends on values."""

    def __call__(self, *operands: Any, **options: Any) -> Never:
        raise no_values(f"{self.function.__name__}: the shape of the result")


FAMILIES: dict[type[Rule], str] = {
    ElementwiseRule: """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert
        bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil conj copysign cos cosh
        divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf
        isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or
        logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
        reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc where
        empty_like full_like ones_like zeros_like
    """,
    OnMatrices: "matrix_transpose tril triu vecdot",
    AxesRule: "all any count_nonzero flip max mean min prod std sum var",
    LastAxisRule: "argsort cumulative_prod cumulative_sum diff sort",
    FlatteningRule: "argmax argmin roll",
    Filled: "empty full ones zeros",
    Line: "arange linspace",
    NeedsValues: "nonzero unique_all unique_counts unique_inverse unique_values",
}
LINALG: dict[type[Rule], str] = {
    OnMatrices: """
        cholesky cross det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_power
        matrix_rank matrix_transpose pinv qr slogdet svd svdvals trace vecdot
    """,
    AxesRule: "vector_norm",
}
FFT: dict[type[Rule], str] = {
    LastAxisRule: "fft hfft ifft ihfft irfft rfft",
    FFTAxesRule: "fftn fftshift ifftn ifftshift irfftn rfftn",
    Line: "fftfreq rfftfreq",
}
PLAIN = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
    complex128 e inf nan newaxis pi finfo iinfo isdtype __array_namespace_info__
"""


class ExtensionOfShapes:
    """The extension ``linalg`` or ``fft``."""


class LinAlgOfShapes(ExtensionOfShapes):
    """The extension ``linalg``: functions by a rule, and further functions."""

    def __init__(self, namespace: Namespace) -> None:
        self.matmul, self.tensordot = namespace.matmul, namespace.tensordot

    def solve(self, x1: Any, x2: Any, /) -> ShapeArray:
        """The solution y of x1 y = x2; x2 may be a vector."""
        column = ShapeArray((*x2.shape, 1), x2.dtype) if len(x2.shape) == 1 else x2
        y = OnMatrices(numpy.linalg.solve)(x1, column)
        return ShapeArray(y.shape[:-1], y.dtype) if column is not x2 else y

    def outer(self, x1: Any, x2: Any, /) -> ShapeArray:
        """y[i, j] = x1[i] x2[j]."""
        return ShapeArray((x1.size, x2.size), numpy.result_type(x1.dtype, x2.dtype))


class Namespace:
    """The namespace of the backend ``shapes``."""

    def __init__(self) -> None:
        fill(self, FAMILIES, numpy)
        for name in PLAIN.split():
            setattr(self, name, getattr(numpy, name))
        self.linalg: Any = LinAlgOfShapes(self)
        fill(self.linalg, LINALG, numpy.linalg)

    @functools.cached_property
    def fft(self) -> Any:
        """The extension ``fft``, made at the first use: NumPy loads its own then."""
        extension = ExtensionOfShapes()
        fill(extension, FFT, numpy.fft)
        return extension

    # --- dtypes ------------------------------------------------------------------------------

    def asarray(
        self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> ShapeArray:
        """An array of the dtype; the same array if nothing changes, and no copy is asked for."""
        like = obj if isinstance(obj, ARRAYS) else numpy.asarray(obj)
        wanted = like.dtype if dtype is None else numpy.dtype(dtype)
        if isinstance(obj, ShapeArray) and wanted == obj.dtype and not copy:
            return obj
        return ShapeArray(tuple(like.shape), wanted)

    def astype(
        self, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None
    ) -> ShapeArray:
        """The array in another dtype."""
        return self.asarray(x, dtype=dtype, copy=copy)

    def result_type(self, *arrays_and_dtypes: Any) -> Any:
        """The common dtype of arrays, dtypes and numbers."""
        return numpy.result_type(*[dtype_of(x) for x in arrays_and_dtypes])

    def can_cast(self, from_: Any, to: Any, /) -> bool:
        """True if the dtype may be cast."""
        return numpy.can_cast(dtype_of(from_), to)

    def clip(self, x: Any, /, min: Any = None, max: Any = None) -> ShapeArray:
        """The elements between two bounds."""
        return elementwise(numpy.clip, (x, min, max), {})  # type: ignore[no-any-return]

    # --- shapes ------------------------------------------------------------------------------

    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: Any = None,
        device: Any = None,
    ) -> ShapeArray:
        """Ones on a diagonal."""
        shape = (n_rows, n_rows if n_cols is None else n_cols)
        return ShapeArray(shape, numpy.eye(0, dtype=dtype).dtype)

    def reshape(self, x: Any, shape: Any, *, copy: bool | None = None) -> ShapeArray:
        """The elements in another shape; a single length may be -1."""
        wanted = lengths(shape)
        known = math.prod(n for n in wanted if n != -1)
        if -1 in wanted and known:
            wanted = tuple([x.size // known if n == -1 else n for n in wanted])
        if math.prod(wanted) != x.size or wanted.count(-1):
            raise ValueError(
                f"reshape: an array of shape {x.shape} has {x.size} elements, which do not fill "
                f"the shape {shape}."
            )
        return ShapeArray(wanted, x.dtype)

    def permute_dims(self, x: Any, /, axes: tuple[int, ...]) -> ShapeArray:
        """The axes in another order."""
        order = (0, *shifted(tuple(axes), len(x.shape)))
        return without_axis(numpy.permute_dims(empty(x), order))  # type: ignore[no-any-return]

    def moveaxis(self, x: Any, source: Any, destination: Any, /) -> ShapeArray:
        """Axes moved to other places."""
        places = shifted(source, len(x.shape)), shifted(destination, len(x.shape))
        return without_axis(numpy.moveaxis(empty(x), *places))  # type: ignore[no-any-return]

    def expand_dims(self, x: Any, /, *, axis: Any = 0) -> ShapeArray:
        """New axes of length 1."""
        added = len(axis) if isinstance(axis, tuple) else 1
        made = numpy.expand_dims(empty(x), shifted(axis, len(x.shape) + added))
        return without_axis(made)  # type: ignore[no-any-return]

    def squeeze(self, x: Any, /, axis: Any) -> ShapeArray:
        """Without the given axes, of length 1."""
        axes = shifted(axis, len(x.shape))
        return without_axis(numpy.squeeze(empty(x), axes))  # type: ignore[no-any-return]

    def broadcast_to(self, x: Any, /, shape: Any) -> ShapeArray:
        """The array, repeated to a shape."""
        wanted = lengths(shape)
        if broadcast([x.shape, wanted]) != wanted:
            raise ValueError(f"broadcast_to: shape {x.shape} does not broadcast to {wanted}.")
        return ShapeArray(wanted, x.dtype)

    def broadcast_arrays(self, *arrays: Any) -> tuple[ShapeArray, ...]:
        """Arrays broadcast against each other."""
        shape = broadcast([x.shape for x in arrays])
        return tuple([ShapeArray(shape, x.dtype) for x in arrays])

    def meshgrid(self, *arrays: Any, indexing: str = "xy") -> tuple[ShapeArray, ...]:
        """Coordinates on a grid."""
        shape = [x.size for x in arrays]
        if indexing == "xy" and len(shape) > 1:
            shape[:2] = shape[1], shape[0]
        return tuple([ShapeArray(tuple(shape), x.dtype) for x in arrays])

    def concat(self, arrays: Any, /, *, axis: int | None = 0) -> ShapeArray:
        """Arrays joined along an axis; for None, all elements in a vector."""
        joined, place = list(arrays), axis
        if place is None:
            joined, place = [ShapeArray((x.size,), x.dtype) for x in joined], 0
        raws = [empty(x) for x in joined]
        made = numpy.concat(raws, axis=shifted(place, len(joined[0].shape)))
        return without_axis(made)  # type: ignore[no-any-return]

    def stack(self, arrays: Any, /, *, axis: int = 0) -> ShapeArray:
        """Arrays along a new axis."""
        raws = [empty(x) for x in arrays]
        return without_axis(numpy.stack(raws, axis=shifted(axis, raws[0].ndim)))  # type: ignore[no-any-return]

    def unstack(self, x: Any, /, *, axis: int = 0) -> tuple[ShapeArray, ...]:
        """The parts along an axis."""
        return without_axis(numpy.unstack(empty(x), axis=shifted(axis, len(x.shape))))  # type: ignore[no-any-return]

    def tile(self, x: Any, repetitions: Any, /) -> ShapeArray:
        """The array, repeated along each axis."""
        counts = lengths(repetitions)
        counts = (1,) * (len(x.shape) - len(counts)) + counts
        made = numpy.tile(empty(with_axes(x, len(counts))), (1, *counts))
        return without_axis(made)  # type: ignore[no-any-return]

    def repeat(self, x: Any, repeats: Any, /, *, axis: int | None = None) -> ShapeArray:
        """Each entry along an axis repeated."""
        if isinstance(repeats, ShapeArray):
            raise no_values("repeat: the number of repetitions")
        flat, place = (ShapeArray((x.size,), x.dtype), 0) if axis is None else (x, axis)
        made = numpy.repeat(empty(flat), repeats, axis=shifted(place, len(flat.shape)))
        return without_axis(made)  # type: ignore[no-any-return]

    # --- places ------------------------------------------------------------------------------

    def take(self, x: Any, indices: Any, /, *, axis: int = -1) -> ShapeArray:
        """The entries of an axis at the indices."""
        place = axis % len(x.shape)
        shape = (*x.shape[:place], *indices.shape, *x.shape[place + 1 :])
        return ShapeArray(shape, x.dtype)

    def take_along_axis(self, x: Any, indices: Any, /, *, axis: int = -1) -> ShapeArray:
        """For each row of the axis, the entries at the row's indices."""
        place = axis % len(x.shape)
        others = (*x.shape[:place], 1, *x.shape[place + 1 :])
        return ShapeArray(broadcast([others, indices.shape]), x.dtype)

    def searchsorted(self, x1: Any, x2: Any, /, **options: Any) -> ShapeArray:
        """The places of numbers in a sorted vector."""
        return ShapeArray(getattr(x2, "shape", ()), numpy.dtype(numpy.intp))

    def isin(self, x1: Any, x2: Any, /, *, invert: bool = False) -> ShapeArray:
        """True where an element is among the elements of x2."""
        return ShapeArray(getattr(x1, "shape", ()), numpy.dtype(numpy.bool))

    # --- products ----------------------------------------------------------------------------

    def matmul(self, x1: Any, x2: Any, /) -> ShapeArray:
        """Matrix products."""
        return product(x1, x2)

    def tensordot(self, x1: Any, x2: Any, /, *, axes: Any = 2) -> ShapeArray:
        """Products summed over pairs of axes."""
        if isinstance(axes, int):
            axes = range(len(x1.shape) - axes, len(x1.shape)), range(axes)
        left = [n % len(x1.shape) for n in axes[0]]
        right = [n % len(x2.shape) for n in axes[1]]
        if [x1.shape[n] for n in left] != [x2.shape[n] for n in right]:
            raise ValueError(
                f"tensordot: the summed axes must have equal lengths, got shapes {x1.shape} and "
                f"{x2.shape} with axes {axes}."
            )
        rows = [n for i, n in enumerate(x1.shape) if i not in left]
        columns = [n for i, n in enumerate(x2.shape) if i not in right]
        return ShapeArray((*rows, *columns), numpy.result_type(x1.dtype, x2.dtype))


def fill(target: Any, families: dict[type[Rule], str], library: Any) -> None:
    """Set the functions of the families."""
    for rule, names in families.items():
        for name in names.split():
            setattr(target, name, rule(getattr(library, name)))


def dtype_of(x: Any) -> Any:
    """The dtype of an array; other objects unchanged."""
    return x.dtype if isinstance(x, ARRAYS) else x


def with_axes(x: Any, axes: int) -> Any:
    """An array with axes of length 1 in front; other objects unchanged."""
    if not isinstance(x, ARRAYS) or len(x.shape) >= axes:
        return x
    return ShapeArray((1,) * (axes - len(x.shape)) + tuple(x.shape), x.dtype)


def shifted(axis: Any, axes: int) -> Any:
    """An axis, or several, counted behind an axis in front; None stands for all."""
    if axis is None:
        return tuple(range(1, axes + 1))
    if isinstance(axis, tuple | list):
        return tuple([shifted(one, axes) for one in axis])
    return axis + 1 if axis >= 0 else axis + axes + 1


def lengths(shape: Any) -> tuple[int, ...]:
    """A shape, given as a tuple or as a single length."""
    return tuple(shape) if isinstance(shape, tuple | list) else (int(shape),)
