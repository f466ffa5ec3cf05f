"""BatchedNamespace: the functions of the Array API standard on BatchedArrays."""

from __future__ import annotations

import math
from typing import Any

from tinynode.devices import mean_array, running_sum_array, sum_array
from tinynode.errors import VmapError
from tinynode_batched.array import BatchedArray
from tinynode_batched.indexing import Indexing
from tinynode_batched.lifting import (
    AlongAxes,
    AlongFFTAxes,
    AlongLastAxis,
    Creation,
    Deciding,
    Elementwise,
    Flattening,
    shifted,
)

FAMILIES: dict[type, str] = {
    Elementwise: """
        abs acos acosh add asin asinh astype atan atan2 atanh bitwise_and bitwise_invert
        bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos
        cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite
        isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not
        logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow
        real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc
        where empty_like full_like ones_like zeros_like matrix_transpose tril triu
    """,
    Deciding: "all any",
    AlongAxes: "count_nonzero flip max mean min prod std sum var",
    AlongLastAxis: "argsort sort diff",
    Flattening: "argmax argmin cumulative_prod cumulative_sum roll",
    Creation: "arange empty eye full linspace ones zeros",
}
"""The functions by rule. Further functions are methods."""
LINALG: dict[type, str] = {
    Elementwise: """
        cholesky det diagonal eig eigh eigvals eigvalsh inv matrix_norm matrix_power matrix_rank
        matrix_transpose pinv qr slogdet svd svdvals trace
    """,
    AlongAxes: "vector_norm",
}
FFT: dict[type, str] = {
    AlongLastAxis: "fft ifft rfft irfft hfft ihfft",
    AlongFFTAxes: "fftn ifftn rfftn irfftn fftshift ifftshift",
    Creation: "fftfreq rfftfreq",
}
PLAIN = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64
    complex128 e inf nan newaxis pi finfo iinfo isdtype can_cast __array_namespace_info__
"""


class Extension:
    """The extension ``linalg`` or ``fft``."""


class LinAlg(Extension):
    """The extension ``linalg``: functions by a rule, and further functions."""

    def __init__(self, namespace: BatchedNamespace, base: Any) -> None:
        self.namespace = namespace
        self.base = base
        self.matmul, self.tensordot = namespace.matmul, namespace.tensordot
        self.vecdot = namespace.vecdot

    def solve(self, x1: Any, x2: Any, /) -> BatchedArray:
        """The solution y of x1 y = x2; x2 may be a vector."""
        if x2.ndim == 1:
            y = self.solve(x1, self.namespace.expand_dims(x2, axis=-1))
            return self.namespace.squeeze(y, axis=-1)
        batched = self.namespace.batched
        return batched.wrap(self.base.solve(*batched.aligned((x1, x2))))  # type: ignore[no-any-return]

    def outer(self, x1: Any, x2: Any, /) -> BatchedArray:
        """y[i, j] = x1[i] x2[j]."""
        xp = self.namespace
        product: BatchedArray = xp.expand_dims(x1, axis=1) * xp.expand_dims(x2, axis=0)
        return product

    def cross(self, x1: Any, x2: Any, /, *, axis: int = -1) -> BatchedArray:
        """The cross product along an axis, counted from the end."""
        batched = self.namespace.batched
        end = axis if axis < 0 else axis - x1.ndim
        return batched.wrap(self.base.cross(*batched.aligned((x1, x2)), axis=end))  # type: ignore[no-any-return]


class BatchedNamespace(Indexing):
    """The namespace of a ``Batched`` backend.

    Args:
        batched: the backend.
        base: the namespace of the wrapped library.
    """

    def __init__(self, batched: Any, base: Any) -> None:
        self.batched = batched
        self.base = base
        fill(self, FAMILIES, batched, base)
        if not batched.library.is_recorded:  # else the operators of the net add up in blocks
            self.sum = AlongAxes(batched, sum_array)
            self.mean = AlongAxes(batched, mean_array)
            self.cumulative_sum = Flattening(batched, running_sum_array)
        for name in PLAIN.split():
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        if hasattr(base, "linalg"):
            self.linalg: Any = LinAlg(self, base.linalg)
            fill(self.linalg, LINALG, batched, base.linalg)
        if hasattr(base, "fft"):
            self.fft: Any = Extension()
            fill(self.fft, FFT, batched, base.fft)

    # --- new arrays --------------------------------------------------------------------------

    def asarray(
        self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> BatchedArray:
        """A BatchedArray, converted; numbers and arrays of others are shared by all examples."""
        if type(obj) is BatchedArray and obj.tinynode_backend is self.batched:
            return BatchedArray(self.base.asarray(obj.raw, dtype=dtype, copy=copy), self.batched)
        made = self.base.asarray(obj, dtype=dtype, device=device, copy=copy)
        return self.batched.shared(made)  # type: ignore[no-any-return]

    def result_type(self, *arrays_and_dtypes: Any) -> Any:
        """The common dtype of arrays, dtypes and numbers."""
        raws = [x.raw if type(x) is BatchedArray else x for x in arrays_and_dtypes]
        return self.base.result_type(*raws)

    # --- shapes ------------------------------------------------------------------------------

    def with_axes(self, x: BatchedArray, axes: int) -> Any:
        """The wrapped array, with axes of length 1 in front of the example's axes."""
        if x.ndim >= axes:
            return x.raw
        shape = (x.length, *(1,) * (axes - x.ndim), *x.shape)
        return self.base.reshape(x.raw, shape)

    def of_one_length(self, arrays: Any) -> list[BatchedArray]:
        """Arrays with equal hidden axes: shared arrays are repeated if another is not shared."""
        taken = [self.batched.taken_in(x) for x in arrays]
        lengths = {x.length for x in taken} - {1}
        if not lengths:
            return taken
        (n,) = lengths
        return [x if x.length == n else self._repeated(x, n) for x in taken]

    def _repeated(self, x: BatchedArray, n: int) -> BatchedArray:
        return BatchedArray(self.base.broadcast_to(x.raw, (n, *x.shape)), self.batched)

    def reshape(self, x: Any, shape: Any, *, copy: bool | None = None) -> BatchedArray:
        """The elements in another shape; a single length may be -1."""
        wanted = (shape,) if isinstance(shape, int) else tuple(shape)
        if -1 in wanted:
            known = math.prod(n for n in wanted if n != -1)
            wanted = tuple([x.size // max(known, 1) if n == -1 else n for n in wanted])
        options = {} if copy is None else {"copy": copy}
        raw = self.base.reshape(x.raw, (x.length, *wanted), **options)
        return BatchedArray(raw, self.batched)

    def permute_dims(self, x: Any, axes: tuple[int, ...]) -> BatchedArray:
        """The axes in another order."""
        raw = self.base.permute_dims(x.raw, (0, *shifted(tuple(axes), x.ndim)))
        return BatchedArray(raw, self.batched)

    def moveaxis(self, x: Any, source: Any, destination: Any, /) -> BatchedArray:
        """Axes moved to other places."""
        places = shifted(source, x.ndim), shifted(destination, x.ndim)
        return BatchedArray(self.base.moveaxis(x.raw, *places), self.batched)

    def expand_dims(self, x: Any, /, *, axis: int | tuple[int, ...]) -> BatchedArray:
        """New axes of length 1."""
        added = len(axis) if isinstance(axis, tuple) else 1
        raw = self.base.expand_dims(x.raw, axis=shifted(axis, x.ndim + added))
        return BatchedArray(raw, self.batched)

    def squeeze(self, x: Any, /, axis: int | tuple[int, ...]) -> BatchedArray:
        """Without the given axes, of length 1."""
        return BatchedArray(self.base.squeeze(x.raw, axis=shifted(axis, x.ndim)), self.batched)

    def broadcast_to(self, x: Any, shape: Any) -> BatchedArray:
        """The array, repeated to a shape."""
        raw = self.with_axes(x, len(shape))
        return BatchedArray(self.base.broadcast_to(raw, (x.length, *shape)), self.batched)

    def concat(self, arrays: Any, /, *, axis: int | None = 0) -> BatchedArray:
        """Arrays joined along an axis."""
        joined = self.of_one_length(arrays)
        if axis is None:
            joined, axis = [self.reshape(x, (-1,)) for x in joined], 0
        raws = [x.raw for x in joined]
        raw = self.base.concat(raws, axis=shifted(axis, joined[0].ndim))
        return BatchedArray(raw, self.batched)

    def stack(self, arrays: Any, /, *, axis: int = 0) -> BatchedArray:
        """Arrays along a new axis."""
        joined = self.of_one_length(arrays)
        place = shifted(axis, joined[0].ndim + 1)
        return BatchedArray(self.base.stack([x.raw for x in joined], axis=place), self.batched)

    def unstack(self, x: Any, /, *, axis: int = 0) -> tuple[BatchedArray, ...]:
        """The parts along an axis."""
        parts = self.base.unstack(x.raw, axis=shifted(axis, x.ndim))
        return tuple([BatchedArray(part, self.batched) for part in parts])

    def tile(self, x: Any, repetitions: Any, /) -> BatchedArray:
        """The array, repeated along each axis."""
        counts = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
        raw = self.base.tile(self.with_axes(x, len(counts)), (1, *counts))
        return BatchedArray(raw, self.batched)

    def repeat(self, x: Any, repeats: Any, /, *, axis: int | None = None) -> BatchedArray:
        """Each entry along an axis repeated."""
        if type(repeats) is BatchedArray:
            if repeats.length != 1:
                raise VmapError("vmap has no rule for repeat with numbers that differ by example")
            repeats = repeats.raw[0, ...]
        if axis is None:
            x, axis = self.reshape(x, (x.size,)), 0
        raw = self.base.repeat(x.raw, repeats, axis=shifted(axis, x.ndim))
        return BatchedArray(raw, self.batched)

    def broadcast_arrays(self, *arrays: Any) -> tuple[BatchedArray, ...]:
        """Arrays broadcast against each other."""
        raws = self.batched.aligned(arrays)
        shapes = [tuple(raw.shape[1:]) for raw in raws]
        shape = tuple(
            [0 if 0 in lengths else max(lengths) for lengths in zip(*shapes, strict=True)]
        )
        return tuple([self.broadcast_to(x, shape) for x in arrays])

    # --- products ------------------------------------------------------------------------------

    def matmul(self, x1: Any, x2: Any, /) -> BatchedArray:
        """Matrix products; all rows at once with a matrix that all examples share."""
        x, y = self.batched.taken_in(x1), self.batched.taken_in(x2)
        is_row, is_column = x.ndim == 1, y.ndim == 1
        x = self.expand_dims(x, axis=0) if is_row else x
        y = self.expand_dims(y, axis=-1) if is_column else y
        if y.length == 1 and y.ndim == 2 and x.length > 1:
            rows = self.base.reshape(x.raw, (x.length * math.prod(x.shape[:-1]), x.shape[-1]))
            product = self.base.matmul(rows, y.raw[0, ...])
            z = self.batched.wrap(
                self.base.reshape(product, (x.length, *x.shape[:-1], y.shape[-1]))
            )
        elif x.shape[-1] == 1:  # a column times a row
            z = x * y
        else:
            z = self.batched.wrap(self.base.matmul(*self.batched.aligned((x, y))))
        z = self.squeeze(z, axis=-2) if is_row else z
        return self.squeeze(z, axis=-1) if is_column else z

    def vecdot(self, x1: Any, x2: Any, /, *, axis: int = -1) -> BatchedArray:
        """Products of vectors along an axis, counted from the end."""
        return self.batched.wrap(self.base.vecdot(*self.batched.aligned((x1, x2)), axis=axis))  # type: ignore[no-any-return]

    def tensordot(self, x1: Any, x2: Any, /, *, axes: Any = 2) -> BatchedArray:
        """Products summed over pairs of axes."""
        x, y = self.batched.taken_in(x1), self.batched.taken_in(x2)
        if isinstance(axes, int):
            axes = range(x.ndim - axes, x.ndim), range(axes)
        left = [n % x.ndim for n in axes[0]]
        right = [n % y.ndim for n in axes[1]]
        rows = [n for n in range(x.ndim) if n not in left]
        columns = [n for n in range(y.ndim) if n not in right]
        n = math.prod(x.shape[i] for i in left)
        above, beside = [x.shape[i] for i in rows], [y.shape[i] for i in columns]
        first = self.reshape(self.permute_dims(x, (*rows, *left)), (math.prod(above), n))
        second = self.reshape(self.permute_dims(y, (*right, *columns)), (n, math.prod(beside)))
        shape = (*above, *beside)
        return self.reshape(self.matmul(first, second), shape)


def fill(target: Any, families: dict[type, str], batched: Any, base: Any) -> None:
    """Set the functions of the families that the wrapped library has."""
    for rule, names in families.items():
        for name in names.split():
            if hasattr(base, name):
                setattr(target, name, rule(batched, getattr(base, name)))
