"""Fused: a chain of elementwise calls that runs block by block.

Requirement: what a chain computes on the way is as large as a block, not as an array, and stays in
the cache. A sum over everything at the chain's end is added up block by block as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy

from tinynode_fast import blocks
from tinynode_fast.emit import Action, AddReduce, Call, Form, Passes, View

LEAST = 1 << 15
"""Shorter arrays are in the cache anyway."""
CACHE = 1 << 20
"""The bytes of all blocks of a chain together."""
SMALLEST_BLOCK = 1024
"""Blocks are of a multiple of so many elements."""


class Fused:
    """Elementwise calls on arrays of one shape, in the order of their memory.

    Attributes:
        reads: arrays of that shape, then arrays of one element.
        writes: arrays of that shape, then sums over everything.
    """

    def __init__(
        self, calls: Sequence[Call], forms: dict[str, Form], needed: set[str], shape: Any
    ) -> None:
        self.size = math.prod(shape)
        elementwise = [call for call in calls if call.elementwise]
        sums = [call for call in calls if not call.elementwise]
        made = {call.write for call in calls}
        read = dict.fromkeys(n for call in calls for n in call.reads if n not in made)
        self.large = [n for n in read if math.prod(forms[n][0]) == self.size]
        self.single = [n for n in read if n not in self.large]
        self.kept = [call.write for call in elementwise if call.write in needed]
        self.sums = [call.write for call in sums]
        self.reads = (*self.large, *self.single)
        self.writes = (*self.kept, *self.sums)
        inner = [call.write for call in elementwise if call.write not in needed]
        self.places, self.scratch = self._share_scratch(elementwise, sums, inner, forms)
        self.program = [
            (call.function, tuple([self.places[n] for n in (*call.reads, call.write)]))
            for call in elementwise
        ]
        self.summed = [self.places[call.reads[0]] for call in sums]
        arrays = len(self.large) + len(self.kept) + len(self.scratch)
        itemsize = max(forms[n][1].itemsize for n in (*self.large, *self.kept, *inner))
        steps = CACHE // (max(arrays, 1) * itemsize) // SMALLEST_BLOCK
        self.block = SMALLEST_BLOCK * max(1, steps)

    def _share_scratch(
        self,
        calls: Sequence[Call],
        sums: Sequence[Call],
        inner: Sequence[str],
        forms: dict[str, Form],
    ) -> tuple[dict[str, int], list[Any]]:
        """A place for each name, and the dtypes of the scratch blocks; lives may share one."""
        places = {name: i for i, name in enumerate((*self.large, *self.kept, *self.single))}
        first = len(places)
        last = {n: i for i, call in enumerate(calls) for n in (*call.reads, call.write)}
        last.update((call.reads[0], len(calls)) for call in sums)
        dtypes: list[Any] = []
        free: dict[Any, list[int]] = {}
        for i, call in enumerate(calls):
            ending = {n for n in call.reads if n in inner and last[n] == i}
            in_place = not isinstance(call.function, Passes)
            if in_place:  # NumPy may write to what it reads, slice by slice
                _set_free(ending, places, forms, free)
            if call.write in inner:
                waiting = free.get(forms[call.write][1])
                if waiting:
                    places[call.write] = waiting.pop()
                else:
                    places[call.write] = first + len(dtypes)
                    dtypes.append(forms[call.write][1])
            if not in_place:
                _set_free(ending, places, forms, free)
        return places, dtypes

    def __str__(self) -> str:
        names = ", ".join(str(getattr(call, "__name__", call)) for call, _ in self.program)
        sums = f" and {len(self.sums)} sums" if self.sums else ""
        return f"in blocks of {self.block}: {names}{sums}"

    def __call__(self, *arrays: Any) -> None:
        """Run it on the arrays of ``reads`` and ``writes``."""
        split = len(self.large)
        end = split + len(self.single)
        kept = end + len(self.kept)
        flat = [x.reshape(-1) for x in (*arrays[:split], *arrays[end:kept])]
        single = [x.reshape(()) for x in arrays[split:end]]
        shares = blocks.thread_count() if self.size >= blocks.THREADED else 1
        number = -(-self.size // (shares * self.block))  # of blocks in a share
        totals = blocks.in_shares(self.size, number * self.block, self._share(flat, single))
        for place, out in enumerate(arrays[kept:]):
            parts = [part[place] for share in totals for part in share]
            out[...] = numpy.sum(parts, dtype=out.dtype)

    def _share(self, flat: list[Any], single: list[Any]) -> Callable[[int, int], list[Any]]:
        return _Share(self, flat, single).run


class _Share:
    """The part of the work that one thread does."""

    def __init__(self, chain: Fused, flat: list[Any], single: list[Any]) -> None:
        self.chain = chain
        self.flat = flat
        self.single = single

    def run(self, start: int, stop: int) -> list[Any]:
        """Run the blocks from ``start`` to ``stop``; gives each block's sums."""
        chain = self.chain
        spare = [numpy.empty(min(chain.block, stop - start), dtype) for dtype in chain.scratch]
        totals = []
        for low in range(start, stop, chain.block):
            high = min(low + chain.block, stop)
            table = [x[low:high] for x in self.flat]
            table += self.single
            table += [x[: high - low] for x in spare]
            for function, places in chain.program:
                function(*[table[place] for place in places])
            if chain.summed:
                totals.append([numpy.add.reduce(table[place]) for place in chain.summed])
        return totals


def _set_free(
    names: Iterable[str], places: dict[str, int], forms: dict[str, Form], free: dict[Any, Any]
) -> None:
    """Give the places of names that nobody reads any more to those that come."""
    for name in names:
        free.setdefault(forms[name][1], []).append(places[name])


def fuse(
    actions: Sequence[Action], forms: dict[str, Form], outputs: set[str], orders: Container[str]
) -> list[Action | Fused]:
    """Bring neighbouring elementwise calls on long arrays together.

    What has another order of axes in memory, those of ``orders``, is left alone.
    """
    last: dict[str, int] = {}
    for number, action in enumerate(actions):
        for name in (action.read,) if isinstance(action, View) else action.reads:
            last[name] = number
    result: list[Action | Fused] = []
    group: list[Call] = []
    for number, action in enumerate(actions):
        if not _joins(action, group, forms, orders):
            result += _closed(group, number, forms, outputs, last)
            group = []
        if isinstance(action, Call) and _joins(action, group, forms, orders):
            group.append(action)
        else:
            result.append(action)
    return result + _closed(group, len(actions), forms, outputs, last)


def _joins(
    action: Action, group: Sequence[Call], forms: dict[str, Form], orders: Container[str]
) -> bool:
    """Whether an action belongs to a chain on arrays of one shape."""
    if not isinstance(action, Call):
        return False
    shape = forms[group[0].write][0] if group else forms[action.write][0]
    if not action.elementwise:  # a sum over everything that the chain computed
        made = {call.write for call in group if call.elementwise}
        everything = isinstance(action.function, AddReduce) and len(action.function.axes) == len(
            forms[action.reads[0]][0]
        )
        return everything and action.reads[0] in made
    if math.prod(shape) < LEAST or forms[action.write][0] != shape:
        return False
    if any(name in orders for name in (*action.reads, action.write)):
        return False
    summed = {call.write for call in group if not call.elementwise}
    for name in action.reads:
        if name in summed or (forms[name][0] != shape and math.prod(forms[name][0]) != 1):
            return False
    return True


def _closed(
    group: list[Call],
    number: int,
    forms: dict[str, Form],
    outputs: set[str],
    last: dict[str, int],
) -> list[Action | Fused]:
    """A chain as one action; a single call stays what it is."""
    if not group or (len(group) == 1 and not isinstance(group[0].function, Passes)):
        return list(group)
    made = [call.write for call in group]
    needed = {name for name in made if name in outputs or last.get(name, -1) >= number}
    return [Fused(group, forms, needed, forms[group[0].write][0])]
