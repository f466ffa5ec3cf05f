"""Parts of BatchedArrays, and writes to parts."""

from __future__ import annotations

from typing import Any

from tinynode.errors import VmapError
from tinynode_batched.array import BatchedArray
from tinynode_batched.lifting import shifted


class Indexing:
    """The part of the namespace for indices.

    Attributes:
        batched: the backend.
        base: the namespace of the wrapped library.
    """

    batched: Any
    base: Any

    def get_item(self, x: BatchedArray, key: Any) -> BatchedArray:
        """x[key] in each example."""
        key = self._taken_in(key)
        one = key[0] if len(key) == 1 else None
        if type(one) is BatchedArray and self.base.isdtype(one.dtype, "bool") and one.length == 1:
            places = self.base.nonzero(self.base.reshape(one.raw, (-1,)))[0]
            rows = (one.size, *x.shape[one.ndim :])
            return self.take(self.reshape(x, rows), self.batched.shared(places), axis=0)
        place, moved = self._place(x, key)
        part = x.raw[place]
        return BatchedArray(moved.restored(self.base, part) if moved else part, self.batched)

    def written(self, x: BatchedArray, key: Any, value: Any) -> Any:
        """The wrapped array of x with a value written at key."""
        key = self._taken_in(key)
        value = self.batched.taken_in(value)
        masks = [one for one in _arrays(key) if self.base.isdtype(one.dtype, "bool")]
        if masks and _named(key) == 1 and value.ndim == 0:
            rest = (1,) * (x.ndim - masks[0].ndim)
            mask = self.base.reshape(masks[0].raw, (*masks[0].raw.shape, *rest))
            return self.base.where(mask, self.with_axes(value, x.ndim), x.raw)
        place, moved = self._place(x, key)
        lengths = {one.length for one in (value, *_arrays(key)) if type(one) is BatchedArray}
        n = max(lengths - {1}, default=x.length)
        raw = x.raw
        if n != x.length:
            raw = self.base.asarray(self.base.broadcast_to(raw, (n, *x.shape)), copy=True)
            place, moved = self._place(BatchedArray(raw, self.batched), key)
        if type(value) is BatchedArray:
            axes = int(raw[place].ndim) - 1
            if moved is not None:
                shape = tuple(moved.restored(self.base, raw[place]).shape)
                wide = self.with_axes(value, axes)
                value = moved.placed(self.base, self.base.broadcast_to(wide, shape))
            else:
                value = self.with_axes(value, axes)
        return self.batched.library.put(raw, place, value)

    def reshape(self, x: Any, shape: Any) -> BatchedArray:
        """The elements in another shape."""
        raise NotImplementedError

    def with_axes(self, x: BatchedArray, axes: int) -> Any:
        """The wrapped array, with axes of length 1 in front of the example's axes."""
        raise NotImplementedError

    def _taken_in(self, key: Any) -> tuple[Any, ...]:
        """The entries of an index; an array of the wrapped library is shared by all."""
        items = key if isinstance(key, tuple) else (key,)
        return tuple([self.batched.taken_in(one) for one in items])

    def _place(self, x: BatchedArray, key: Any) -> tuple[tuple[Any, ...], Moved | None]:
        """The key for the wrapped array, and the move of axes by the library's rule.

        Axes of several index arrays stand at the front behind a slice: NumPy's
        rule for index arrays that are not side by side.
        """
        items = key if isinstance(key, tuple) else (key,)
        if not _arrays(items):
            rest = () if Ellipsis in items else (Ellipsis,)
            return (slice(None), *items, *rest), None
        items = self._without_masks(items)
        arrays = [one for one in items if type(one) is BatchedArray]
        first, last = _span(items)
        if any(not _is_advanced(one) for one in items[first : last + 1]) and first > 0:
            raise VmapError("vmap has no rule for index arrays with slices before and between")
        leading = _result_axes(items[:first], x.ndim - _named(items))
        count = max(one.ndim for one in arrays)
        has_all = any(one is Ellipsis for one in items) or _named(items) == x.ndim
        rest = () if has_all else (Ellipsis,)
        if all(one.length == 1 for one in arrays) and any(isinstance(i, slice) for i in items):
            place = [one.raw[0, ...] if type(one) is BatchedArray else one for one in items]
            apart = any(not _is_advanced(one) for one in items[first : last + 1])
            return (slice(None), *place, *rest), Moved(count, 1) if apart else None
        lengths = {one.length for one in (x, *arrays)} - {1}
        n = max(lengths, default=1)
        numbers = self.base.arange(1 if x.length == 1 else n, device=arrays[0].device)
        examples = self.base.reshape(numbers, (-1, *(1,) * count))
        place = [self.with_axes(one, count) if type(one) is BatchedArray else one for one in items]
        moved = Moved(count, leading + 1, first=1) if leading else None
        return (examples, *place, *rest), moved

    def _without_masks(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index with positions in the place of masks."""
        found: list[Any] = []
        for one in items:
            if type(one) is BatchedArray and self.base.isdtype(one.dtype, "bool"):
                if one.length != 1:
                    raise VmapError(
                        "vmap: x[mask] has another shape in each example. Use where(mask, x, 0), "
                        "or a mask that all examples share."
                    )
                positions = self.base.nonzero(one.raw[0, ...])
                found.extend([self.batched.shared(part) for part in positions])
            else:
                found.append(one)
        return tuple(found)

    # --- functions of the standard -----------------------------------------------------------

    def take(self, x: Any, indices: Any, /, *, axis: int | None = None) -> BatchedArray:
        """The parts of x at indices (k) along an axis."""
        x, indices = self.batched.taken_in(x), self.batched.taken_in(indices)
        place = shifted(0 if axis is None else axis, x.ndim)
        if indices.length == 1:
            raw = self.base.take(x.raw, indices.raw[0, ...], axis=place)
            return BatchedArray(raw, self.batched)
        n, k = indices.length, indices.shape[0]
        rows = self.base.moveaxis(x.raw, place, 1)
        length, rest = rows.shape[1], tuple(rows.shape[2:])
        flat = self.base.where(indices.raw < 0, indices.raw + length, indices.raw)
        if x.length > 1:
            starts = self.base.arange(n, device=indices.device) * length
            flat = flat + self.base.reshape(starts, (n, 1))
        rows = self.base.reshape(rows, (x.length * length, *rest))
        taken = self.base.take(rows, self.base.reshape(flat, (n * k,)), axis=0)
        taken = self.base.reshape(taken, (n, k, *rest))
        return BatchedArray(self.base.moveaxis(taken, 1, place), self.batched)

    def take_along_axis(self, x: Any, indices: Any, /, *, axis: int = -1) -> BatchedArray:
        """x at indices along an axis."""
        x, indices = self.of_one_length([x, indices])
        place = shifted(axis, x.ndim)
        raw = self.base.take_along_axis(x.raw, indices.raw, axis=place)
        return BatchedArray(raw, self.batched)

    def of_one_length(self, arrays: Any) -> list[BatchedArray]:
        """Arrays with equal hidden axes."""
        raise NotImplementedError


class Moved:
    """Axes of an index's arrays that stand elsewhere in the library's result.

    Args:
        count: the number of axes.
        place: the first of the places in the right result.
        first: the first of the places in the library's result.
    """

    def __init__(self, count: int, place: int, first: int = 0) -> None:
        self.here = tuple(range(first, first + count))
        self.there = tuple(range(place, place + count))

    def restored(self, base: Any, array: Any) -> Any:
        """The library's result with the axes in the right places."""
        return base.moveaxis(array, self.here, self.there)

    def placed(self, base: Any, array: Any) -> Any:
        """The way back, for a value to write."""
        return base.moveaxis(array, self.there, self.here)


def _arrays(items: Any) -> list[BatchedArray]:
    given = items if isinstance(items, tuple) else (items,)
    return [one for one in given if type(one) is BatchedArray]


def _is_advanced(item: Any) -> bool:
    """True for index arrays and integers, which select element by element beside arrays."""
    return type(item) is BatchedArray or isinstance(item, int)


def _span(items: tuple[Any, ...]) -> tuple[int, int]:
    """The first and the last place of an index array or an integer."""
    places = [i for i, one in enumerate(items) if _is_advanced(one)]
    return places[0], places[-1]


def _named(items: tuple[Any, ...]) -> int:
    """The number of entries of an index that name axes."""
    given = items if isinstance(items, tuple) else (items,)
    return sum(one is not None and one is not Ellipsis for one in given)


def _result_axes(items: tuple[Any, ...], rest: int) -> int:
    """The number of axes of the result for slices, new axes and ``...``."""
    return sum(rest if one is Ellipsis else 1 for one in items)
