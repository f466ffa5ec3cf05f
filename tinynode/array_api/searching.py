"""Searching, sorting and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from tinynode import functions
from tinynode.array_api.base import NamespaceBase
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable


class UniqueAll(NamedTuple):
    """The result of ``unique_all``."""

    values: Variable
    indices: Variable
    inverse_indices: Variable
    counts: Variable


class UniqueCounts(NamedTuple):
    """The result of ``unique_counts``."""

    values: Variable
    counts: Variable


class UniqueInverse(NamedTuple):
    """The result of ``unique_inverse``."""

    values: Variable
    inverse_indices: Variable


class Searching(NamespaceBase):
    """Searching, sorting and sets. Indices and counts have no gradient; values have one."""

    def argmax(self, x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Variable:
        """The index of the largest element, the first at ties."""
        return functions.argmax(self._lift("argmax", x), axis=axis, keepdims=keepdims)

    def argmin(self, x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Variable:
        """The index of the smallest element, the first at ties."""
        return functions.argmin(self._lift("argmin", x), axis=axis, keepdims=keepdims)

    def nonzero(self, x: Any, /) -> tuple[Variable, ...]:
        """The indices of the elements different from 0: an array for each axis."""
        return tuple(self._new(i) for i in self._xp.nonzero(self._array("nonzero", x)))

    def searchsorted(
        self, x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None
    ) -> Variable:
        """Where the elements of x2 stand in the sorted vector x1."""
        a, v = self._arrays("searchsorted", x1, x2)
        order = None if sorter is None else self._array("searchsorted", sorter)
        return self._new(self._xp.searchsorted(a, v, side=side, sorter=order))

    def where(self, condition: Any, x1: Any, x2: Any, /) -> Variable:
        """x1 where the condition holds, x2 elsewhere."""
        condition = self._lift("where", condition)
        return functions.where(condition, *self._pair("where", x1, x2))

    def argsort(
        self, x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Variable:
        """The indices that sort x along an axis."""
        x = self._lift("argsort", x)
        return functions.argsort(x, axis=axis, descending=descending, stable=stable)

    def sort(
        self, x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True
    ) -> Variable:
        """x sorted along an axis; the gradient goes back through the permutation."""
        x = self._lift("sort", x)
        return functions.sort(x, axis=axis, descending=descending, stable=stable)

    def isin(self, x1: Any, x2: Any, /, *, invert: bool = False) -> Variable:
        """True where an element of x1 is among the elements of x2."""
        invert = as_flag("isin", "invert", invert)
        x1, x2 = self._arrays("isin", x1, x2)
        if hasattr(self._xp, "isin"):
            return self._new(self._xp.isin(x1, x2, invert=invert))
        equal = self._xp.any(x1[..., None] == self._xp.reshape(x2, (-1,)), axis=-1)
        return self._new(self._xp.logical_not(equal) if invert else equal)

    # --- sets ----------------------------------------------------------------------------------

    def unique_all(self, x: Any, /) -> UniqueAll:
        """The different values, first places, the places of all elements, and counts."""
        found = self._xp.unique_all(self._array("unique_all", x))
        return UniqueAll(
            self.unique_values(x),
            self._new(found.indices),
            self._new(found.inverse_indices),
            self._new(found.counts),
        )

    def unique_counts(self, x: Any, /) -> UniqueCounts:
        """The different values, and how often each stands in x."""
        found = self._xp.unique_counts(self._array("unique_counts", x))
        return UniqueCounts(self.unique_values(x), self._new(found.counts))

    def unique_inverse(self, x: Any, /) -> UniqueInverse:
        """The different values, and the index of the value for each element of x."""
        found = self._xp.unique_inverse(self._array("unique_inverse", x))
        return UniqueInverse(self.unique_values(x), self._new(found.inverse_indices))

    def unique_values(self, x: Any, /) -> Variable:
        """The different values, sorted. The gradient goes to the first of equal elements."""
        x = self._lift("unique_values", x)
        if not x.requires_grad:
            return self._new(self._xp.unique_values(self._array("unique_values", x)))
        ordered = functions.sort(functions.reshape(x, (-1,)))
        first = self._xp.ones((1,), dtype=self._xp.bool, device=ordered.raw.device)
        array = self._array("unique_values", ordered)
        is_new = self._xp.concat([first[: array.shape[0]], array[1:] != array[:-1]])
        return functions.get_item(ordered, is_new)
