"""Statistics: sums, means, the smallest and the largest elements."""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.base import NamespaceBase
from tinynode.core.variable import Variable


class Statistical(NamespaceBase):
    """The statistical functions, and ``diff``, ``all``, ``any``.

    ``axis`` is an integer, a tuple, or None for all axes. ``keepdims`` keeps the reduced axes with
    length 1.
    """

    def cumulative_prod(
        self,
        x: Any,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> Variable:
        """The running product along an axis; with ``include_initial`` it begins with 1."""
        x = self._cast("cumulative_prod", x, dtype)
        y = functions.cumulative_prod(x, axis=axis, include_initial=include_initial)
        return self._cast("cumulative_prod", y, dtype)

    def cumulative_sum(
        self,
        x: Any,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> Variable:
        """The running sum along an axis; with ``include_initial`` it begins with 0."""
        x = self._cast("cumulative_sum", x, dtype)
        y = functions.cumulative_sum(x, axis=axis, include_initial=include_initial)
        return self._cast("cumulative_sum", y, dtype)

    def max(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """The largest element; at ties the gradient is shared."""
        return functions.max(self._lift("max", x), axis, keepdims)

    def mean(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """The arithmetic mean."""
        return functions.mean(self._lift("mean", x), axis, keepdims=keepdims)

    def min(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """The smallest element; at ties the gradient is shared."""
        return functions.min(self._lift("min", x), axis, keepdims)

    def prod(
        self, x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Variable:
        """The product."""
        y = functions.prod(self._cast("prod", x, dtype), axis, keepdims)
        return self._cast("prod", y, dtype)  # sums and products of small integers are int64

    def std(
        self, x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Variable:
        """The standard deviation, with n - ``correction`` in the denominator."""
        return functions.std(self._lift("std", x), axis, correction, keepdims)

    def sum(
        self, x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False
    ) -> Variable:
        """The sum."""
        return self._cast("sum", functions.sum(self._cast("sum", x, dtype), axis, keepdims), dtype)

    def var(
        self, x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
    ) -> Variable:
        """The variance, with n - ``correction`` in the denominator."""
        return functions.var(self._lift("var", x), axis, correction, keepdims)

    def diff(
        self, x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
    ) -> Variable:
        """The n-th difference of neighbours along an axis."""
        x = self._lift("diff", x)
        before = None if prepend is None else self._lift("diff", prepend)
        after = None if append is None else self._lift("diff", append)
        return functions.diff(x, axis=axis, n=n, prepend=before, append=after)

    def all(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """True where all elements are true or different from 0."""
        return self._new(self._xp.all(self._array("all", x), axis=axis, keepdims=keepdims))

    def any(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """True where an element is true or different from 0."""
        return self._new(self._xp.any(self._array("any", x), axis=axis, keepdims=keepdims))

    def count_nonzero(self, x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Variable:
        """The number of elements different from 0."""
        array = self._array("count_nonzero", x)
        return self._new(self._xp.count_nonzero(array, axis=axis, keepdims=keepdims))
