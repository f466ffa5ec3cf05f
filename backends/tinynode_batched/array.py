"""BatchedArray: the arrays of all examples, with the look of the array of an example."""

from __future__ import annotations

import math
from typing import Any, Never

from tinynode.errors import VmapError


class BatchedArray:
    """An array of shape (s) in each example.

    Args:
        raw: (n, s) with a row for each example, or (1, s) if all examples share the values. An
            array of the wrapped library; while a net is recorded, a Variable.
        backend: the ``Batched`` backend of the array.
    """

    __slots__ = ("__weakref__", "raw", "tinynode_backend")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, raw: Any, backend: Any) -> None:
        self.raw = raw
        self.tinynode_backend = backend

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in an example."""
        return tuple(self.raw.shape[1:])

    @property
    def ndim(self) -> int:
        """The number of axes in an example."""
        return int(self.raw.ndim) - 1

    @property
    def size(self) -> int:
        """The number of elements in an example."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """The number of examples, or 1 if all examples share the values."""
        return int(self.raw.shape[0])

    @property
    def dtype(self) -> Any:
        """The dtype, of the wrapped library."""
        return self.raw.dtype

    @property
    def device(self) -> Any:
        """The wrapped library's device."""
        return self.raw.device

    @property
    def mT(self) -> Any:
        """The array with the last two axes swapped."""
        return self.tinynode_backend.xp.matrix_transpose(self)

    @property
    def T(self) -> Any:
        """The array with the axes in inverted order."""
        return self.tinynode_backend.xp.permute_dims(self, tuple(range(self.ndim))[::-1])

    def __repr__(self) -> str:
        return f"BatchedArray({self.length} x {self.shape}, {self.dtype})"

    # --- values: only where all examples agree ---------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.tinynode_backend.common_value(self, "bool(x)"))

    def __int__(self) -> int:
        return int(self.tinynode_backend.common_value(self, "int(x)"))

    def __float__(self) -> float:
        return float(self.tinynode_backend.common_value(self, "float(x)"))

    def __complex__(self) -> complex:
        return complex(self.tinynode_backend.common_value(self, "complex(x)"))

    def __index__(self) -> int:
        return int(self.tinynode_backend.common_value(self, "an index").__index__())

    def item(self) -> Any:
        """The only element, a Python number."""
        return self.tinynode_backend.common_value(self, "x.item()").item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Never:
        raise VmapError(
            "vmap: a function of NumPy got an array of a vmapped function, which has one value "
            "for each example. Call tinynode.functions, or the namespace of x.__array_namespace__."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """A function of NumPy with the same name in the standard; operators beside NumPy's arrays.

        Raises:
            VmapError: the standard has no function of the name.
        """
        lifted = getattr(self.tinynode_backend.xp, ufunc.__name__, None)
        if lifted is None or method != "__call__" or options:
            self.__array__()
        return lifted(*inputs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self.tinynode_backend.xp

    def __len__(self) -> int:
        return self.shape[0]

    # --- parts -----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        return self.tinynode_backend.xp.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.raw = self.tinynode_backend.xp.written(self, key, value)

    # --- operators -------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.add(other, self)

    def __sub__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.multiply(other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.remainder(other, self)

    def __pow__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.pow(self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.pow(other, self)

    def __matmul__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.matmul(self, other)

    def __neg__(self) -> Any:
        return self.tinynode_backend.xp.negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.tinynode_backend.xp.abs(self)

    def __invert__(self) -> Any:
        return self.tinynode_backend.xp.bitwise_invert(self)

    def __and__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_and(other, self)

    def __or__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_or(other, self)

    def __xor__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_left_shift(self, other)

    def __rshift__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.bitwise_right_shift(self, other)

    def __eq__(self, other: object) -> Any:
        return self.tinynode_backend.xp.equal(self, other)

    def __ne__(self, other: object) -> Any:
        return self.tinynode_backend.xp.not_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.less(self, other)

    def __le__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return self.tinynode_backend.xp.greater_equal(self, other)
