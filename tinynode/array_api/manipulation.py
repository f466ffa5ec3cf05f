"""Shapes, joining and indexing."""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.base import NamespaceBase
from tinynode.core.variable import Variable


class Manipulation(NamespaceBase):
    """Shapes, joining and indexing. The results are never views of the arguments."""

    def broadcast_arrays(self, *arrays: Any) -> tuple[Variable, ...]:
        """The arrays, broadcast to their common shape."""
        return functions.broadcast_arrays(*[self._lift("broadcast_arrays", x) for x in arrays])

    def broadcast_shapes(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The common shape of shapes."""
        return functions.broadcast_shapes(*shapes)

    def broadcast_to(self, x: Any, /, shape: Any) -> Variable:
        """x, repeated to a shape."""
        return functions.broadcast_to(self._lift("broadcast_to", x), shape)

    def concat(self, arrays: Any, /, *, axis: int | None = 0) -> Variable:
        """The arrays one behind the other along an axis; flattened for None."""
        return functions.concat(self._of_one_dtype("concat", arrays), axis)

    def _of_one_dtype(self, function: str, arrays: Any) -> list[Variable]:
        """The arrays as Variables, cast to the dtype of them all."""
        given = [self._lift(function, x) for x in arrays]
        dtypes = [x.dtype for x in given]
        if all(dtype == dtypes[0] for dtype in dtypes):
            return given
        common = self._xp.result_type(*dtypes)
        return [self._cast(function, x, common) for x in given]

    def expand_dims(self, x: Any, /, axis: Any) -> Variable:
        """x with new axes of length 1 at the positions ``axis`` of the result."""
        return functions.expand_dims(self._lift("expand_dims", x), axis)

    def flip(self, x: Any, /, *, axis: Any = None) -> Variable:
        """The elements in reversed order along the axes."""
        return functions.flip(self._lift("flip", x), axis=axis)

    def moveaxis(self, x: Any, source: Any, destination: Any, /) -> Variable:
        """x with axes at other positions."""
        return functions.moveaxis(self._lift("moveaxis", x), source, destination)

    def permute_dims(self, x: Any, /, axes: Any) -> Variable:
        """x with the axes in another order."""
        return functions.permute_dims(self._lift("permute_dims", x), axes)

    def repeat(self, x: Any, repeats: Any, /, *, axis: int | None = None) -> Variable:
        """Each element, repeated."""
        return functions.repeat(self._lift("repeat", x), repeats, axis=axis)

    def reshape(self, x: Any, /, shape: Any, *, copy: bool | None = None) -> Variable:
        """The same elements in another shape; ``copy=True`` takes new memory.

        Raises:
            ValueError: the numbers of elements differ.
        """
        y = functions.reshape(self._lift("reshape", x), shape)
        return functions.copy(y) if copy else y

    def roll(self, x: Any, /, shift: Any, *, axis: Any = None) -> Variable:
        """The elements shifted along axes; those beyond the end come back at the front."""
        return functions.roll(self._lift("roll", x), shift, axis=axis)

    def squeeze(self, x: Any, /, axis: Any) -> Variable:
        """x without axes of length 1."""
        return functions.squeeze(self._lift("squeeze", x), axis)

    def stack(self, arrays: Any, /, *, axis: int = 0) -> Variable:
        """The arrays side by side along a new axis."""
        return functions.stack(self._of_one_dtype("stack", arrays), axis=axis)

    def tile(self, x: Any, repetitions: Any, /) -> Variable:
        """x, repeated along each axis."""
        return functions.tile(self._lift("tile", x), repetitions)

    def unstack(self, x: Any, /, *, axis: int = 0) -> tuple[Variable, ...]:
        """The slices of x along an axis."""
        return functions.unstack(self._lift("unstack", x), axis=axis)

    def take(self, x: Any, indices: Any, /, *, axis: int | None = None) -> Variable:
        """The elements of x at the indices of an axis."""
        x, indices = self._lift("take", x), self._lift("take", indices)
        return functions.take(x, indices, axis=axis if axis is not None or x.ndim != 1 else 0)

    def take_along_axis(self, x: Any, indices: Any, /, *, axis: int = -1) -> Variable:
        """The elements of x at own indices for each line along an axis."""
        x, indices = self._lift("take_along_axis", x), self._lift("take_along_axis", indices)
        return functions.take_along_axis(x, indices, axis=axis)

    # --- products ------------------------------------------------------------------------------

    def matmul(self, x1: Any, x2: Any, /) -> Variable:
        """The matrix product."""
        return functions.matmul(self._lift("matmul", x1), self._lift("matmul", x2))

    def matrix_transpose(self, x: Any, /) -> Variable:
        """x with the last two axes swapped."""
        return functions.matrix_transpose(self._lift("matrix_transpose", x))

    def tensordot(self, x1: Any, x2: Any, /, *, axes: Any = 2) -> Variable:
        """The sum of products over axes of x1 and axes of x2."""
        x1, x2 = self._lift("tensordot", x1), self._lift("tensordot", x2)
        return functions.tensordot(x1, x2, axes=axes)

    def vecdot(self, x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
        """The sum of conj(x1) * x2 along an axis."""
        x1, x2 = self._lift("vecdot", x1), self._lift("vecdot", x2)
        return functions.vecdot(x1, x2, axis=axis)
