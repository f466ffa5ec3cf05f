"""Operators: ``x + y``, ``x == y``, ``x[i] = v`` and ``x += v`` of Variables.

Requirement: each operator calls a function of ``tinynode.functions``. The folder lies above this
module: a function is looked up at call time. ``arithmetic`` is set by the folder.

Writes (``x[i] = v``, ``x += v``) compute a new Variable, and this one moves to its node. So no
array that a function retained ever changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import tinynode
from tinynode.configuration import config
from tinynode.devices import check_cast, kind_of
from tinynode.errors import GraphError

if TYPE_CHECKING:
    arithmetic = tinynode.functions.arithmetic  # at run time, ``tinynode.functions`` sets it


class Operators:
    """Base class of ArrayMethods: Python's operators."""

    __slots__ = ()
    __hash__ = object.__hash__  # by identity, although == compares elementwise

    @property
    def is_leaf(self) -> bool:
        """True for a Variable with a gradient, if no function computed the Variable."""
        raise NotImplementedError

    def become(self, result: Any) -> None:
        """Take over array and node of ``result``: the end of every write."""
        raise NotImplementedError

    # --- operators -------------------------------------------------------------------------

    def __add__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Add().apply((self, other))[0]

    def __radd__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Add().apply((other, self))[0]

    def __sub__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Subtract().apply((self, other))[0]

    def __rsub__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Subtract().apply((other, self))[0]

    def __mul__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Multiply().apply((self, other))[0]

    def __rmul__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Multiply().apply((other, self))[0]

    def __truediv__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Divide().apply((self, other))[0]

    def __rtruediv__(self, other: Any) -> tinynode.Variable:
        return arithmetic.Divide().apply((other, self))[0]

    def __floordiv__(self, other: Any) -> tinynode.Variable:
        return arithmetic.FloorDivide().apply((self, other))[0]

    def __rfloordiv__(self, other: Any) -> tinynode.Variable:
        return arithmetic.FloorDivide().apply((other, self))[0]

    def __mod__(self, other: Any) -> tinynode.Variable:
        return arithmetic.remainder(self, other)

    def __rmod__(self, other: Any) -> tinynode.Variable:
        return arithmetic.remainder(other, self)

    def __pow__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.pow(self, other)

    def __rpow__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.pow(other, self)

    def __matmul__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.matmul(self, other)

    def __rmatmul__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.matmul(other, self)

    def __and__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_and(self, other)

    def __rand__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_and(other, self)

    def __or__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_or(self, other)

    def __ror__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_or(other, self)

    def __xor__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_left_shift(other, self)

    def __rshift__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.bitwise_right_shift(other, self)

    def __invert__(self) -> tinynode.Variable:
        return tinynode.functions.bitwise_invert(self)

    def __neg__(self) -> tinynode.Variable:
        return arithmetic.negative(self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> tinynode.Variable:
        return arithmetic.abs(self)

    def __eq__(self, other: object) -> Any:
        if not tinynode.core.conversion.is_comparable(other):
            return NotImplemented
        return tinynode.functions.equal(self, other)

    def __ne__(self, other: object) -> Any:
        if not tinynode.core.conversion.is_comparable(other):
            return NotImplemented
        return tinynode.functions.not_equal(self, other)

    def __lt__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.less(self, other)

    def __le__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.less_equal(self, other)

    def __gt__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.greater(self, other)

    def __ge__(self, other: Any) -> tinynode.Variable:
        return tinynode.functions.greater_equal(self, other)

    # --- writing: functional underneath ------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_writable("x[i] = v")
        result = tinynode.functions.set_item(self, index, value)
        tinynode.transforms.finish_write(self, result, "x[i] = v")

    def __iadd__(self, other: Any) -> Self:
        return self._written("x += v", tinynode.functions.add, other)

    def __isub__(self, other: Any) -> Self:
        return self._written("x -= v", tinynode.functions.subtract, other)

    def __imul__(self, other: Any) -> Self:
        return self._written("x *= v", tinynode.functions.multiply, other)

    def __itruediv__(self, other: Any) -> Self:
        return self._written("x /= v", tinynode.functions.divide, other)

    def __ifloordiv__(self, other: Any) -> Self:
        return self._written("x //= v", tinynode.functions.floor_divide, other)

    def __imod__(self, other: Any) -> Self:
        return self._written("x %= v", tinynode.functions.remainder, other)

    def __ipow__(self, other: Any) -> Self:
        return self._written("x **= v", tinynode.functions.pow, other)

    def __imatmul__(self, other: Any) -> Self:
        return self._written("x @= v", tinynode.functions.matmul, other)

    def __iand__(self, other: Any) -> Self:
        return self._written("x &= v", tinynode.functions.bitwise_and, other)

    def __ior__(self, other: Any) -> Self:
        return self._written("x |= v", tinynode.functions.bitwise_or, other)

    def __ixor__(self, other: Any) -> Self:
        return self._written("x ^= v", tinynode.functions.bitwise_xor, other)

    def __ilshift__(self, other: Any) -> Self:
        return self._written("x <<= v", tinynode.functions.bitwise_left_shift, other)

    def __irshift__(self, other: Any) -> Self:
        return self._written("x >>= v", tinynode.functions.bitwise_right_shift, other)

    def check_writable(self, operation: str) -> None:
        """Refuse a write to a leaf.

        Raises:
            GraphError: the Variable is a leaf that requires a gradient.
        """
        if self.is_leaf and config.enable_backprop:  # without it every result looks like a leaf
            raise GraphError(
                f"{operation}: this variable is a leaf that requires a gradient, and writing to "
                "it would make that meaningless. Compute a new Variable from it (x = x + v), "
                "or assign to x.array between two passes."
            )

    def _written(self, operation: str, function: Any, other: Any) -> Self:
        """Become the function of this variable and another operand, cast to the dtype of x."""
        self.check_writable(operation)
        x, v = tinynode.functions.operands.as_operands(operation, self, other, ("x", "v"))
        if v.device is x.device and v.dtype != x.dtype:
            check_cast(operation, v.raw, x.raw)
            if kind_of(v.raw) < kind_of(x.raw):  # libraries differ in promotion between kinds
                v = tinynode.functions.astype(v, x.dtype)
        result = function(x, v)
        if result.shape != x.shape:
            raise ValueError(
                f"{operation}: the result has shape {result.shape}, x has shape {x.shape}: "
                "an in-place operator keeps the shape. Write x = x + v instead."
            )
        if result.dtype != x.dtype:
            check_cast(operation, result.raw, x.raw)
            result = tinynode.functions.astype(result, x.dtype)
        tinynode.transforms.finish_write(self, result, operation)
        return self
