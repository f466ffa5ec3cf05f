"""Fused: a chain of elementwise calls that runs block by block.

Requirement: a chain's intermediate values are as large as a block, not as an array, and stay in
the cache. A sum over all elements at the chain's end is added up block by block as well.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy

from tinynode.net.passes import ArraySpec
from tinynode_fast.blocks import in_shares, thread_count
from tinynode_fast.kernel import Elementwise
from tinynode_fast.limits import LIMITS
from tinynode_fast.lowering import Action, Call, SumOver

ArraySpecs: TypeAlias = dict[str, ArraySpec]


class Fused:
    """Elementwise calls on arrays of one shape, in the order of their memory.

    Attributes:
        reads: arrays of that shape, then arrays of one element.
        writes: arrays of that shape, then sums over all elements.
        slots: the position of each name in a block's table of arrays.
        dtype: the dtype of every array.
        scratch: the number of scratch blocks.
        block: the elements of a block.
    """

    def __init__(self, calls: Sequence[Call], forms: ArraySpecs, needed: set[str]) -> None:
        elementwise = [call for call in calls if call.elementwise]
        sums = [call for call in calls if not call.elementwise]
        shape, self.dtype = forms[calls[0].writes[0]]
        self.size = math.prod(shape)
        made = {call.writes[0] for call in calls}
        read = dict.fromkeys(n for call in calls for n in call.reads if n not in made)
        self.large = [n for n in read if math.prod(forms[n][0]) == self.size]
        self.single = [n for n in read if n not in self.large]
        self.kept = [call.writes[0] for call in elementwise if call.writes[0] in needed]
        self.reads = (*self.large, *self.single)
        self.writes = (*self.kept, *[call.writes[0] for call in sums])
        self.slots = {n: i for i, n in enumerate([*self.large, *self.kept, *self.single])}
        self.scratch = self._share_scratch(elementwise, [call.reads[0] for call in sums])
        self.program = [
            (call.function, tuple([self.slots[n] for n in (*call.reads, *call.writes)]))
            for call in elementwise
        ]
        self.summed = [self.slots[call.reads[0]] for call in sums]
        arrays = len(self.large) + len(self.kept) + self.scratch
        steps = LIMITS.chain_bytes // (arrays * self.dtype.itemsize) // LIMITS.chain_step
        self.block = LIMITS.chain_step * max(1, steps)

    def _share_scratch(self, calls: Sequence[Call], summed: list[str]) -> int:
        """Give slots to the values that stay in the chain; one may follow another in a slot."""
        last = {n: i for i, call in enumerate(calls) for n in (*call.reads, *call.writes)}
        inner = {call.writes[0] for call in calls}.difference(self.kept)
        first, free, count = len(self.slots), list[int](), 0
        for i, call in enumerate(calls):
            (name,) = call.writes
            if name in inner:
                count += not free
                self.slots[name] = free.pop() if free else first + count - 1
            ends = {n for n in call.reads if n in inner and last[n] == i}.difference(summed)
            free += [self.slots[n] for n in sorted(ends)]
        return count

    def __str__(self) -> str:
        names = ", ".join(str(getattr(call, "__name__", call)) for call, _ in self.program)
        sums = f" and {len(self.summed)} sums" if self.summed else ""
        return f"in blocks of {self.block}: {names}{sums}"

    def __call__(self, *arrays: Any) -> None:
        """Run the chain on the arrays of ``reads`` and ``writes``."""
        split = len(self.large)
        end = split + len(self.single)
        kept = end + len(self.kept)
        flat = [x.reshape(-1) for x in (*arrays[:split], *arrays[end:kept])]
        single = [x.reshape(()) for x in arrays[split:end]]
        shares = thread_count() if self.size >= LIMITS.threaded else 1
        number = -(-self.size // (shares * self.block))  # of blocks in a share
        totals = in_shares(self.size, number * self.block, partial(self._share, flat, single))
        for i, out in enumerate(arrays[kept:]):
            parts = [part[i] for share in totals for part in share]
            out[...] = numpy.sum(parts, dtype=out.dtype)

    def _share(self, flat: list[Any], single: list[Any], start: int, stop: int) -> list[Any]:
        """Run the blocks from ``start`` to ``stop``; return the sums of each block."""
        spare = numpy.empty((self.scratch, min(self.block, stop - start)), self.dtype)
        totals = []
        for low in range(start, stop, self.block):
            high = min(low + self.block, stop)
            table = [*[x[low:high] for x in flat], *single, *[x[: high - low] for x in spare]]
            for function, slots in self.program:
                function(*[table[slot] for slot in slots])
            if self.summed:
                totals.append([numpy.add.reduce(table[slot]) for slot in self.summed])
        return totals


def fuse(
    actions: Sequence[Action], forms: ArraySpecs, outputs: set[str], orders: Container[str]
) -> list[Action | Fused]:
    """Bring neighbouring elementwise calls on long arrays together.

    Calls with a value in ``orders``, whose axes have another order in memory, stay alone.
    """
    last = {name: i for i, action in enumerate(actions) for name in action.reads}
    result: list[Action | Fused] = []
    group: list[Call] = []
    for i, action in enumerate(actions):
        if not _joins(action, group, forms, orders):
            result += _closed(group, i, forms, outputs, last)
            group = []
        if isinstance(action, Call) and _joins(action, group, forms, orders):
            group.append(action)
        else:
            result.append(action)
    return result + _closed(group, len(actions), forms, outputs, last)


def _joins(
    action: Action, group: Sequence[Call], forms: ArraySpecs, orders: Container[str]
) -> bool:
    """True if an action belongs to a chain on arrays of one shape."""
    if not isinstance(action, Call):
        return False
    if not action.elementwise:  # a sum over all elements of a value of the chain
        made = {call.writes[0] for call in group if call.elementwise}
        is_sum = isinstance(action.function, SumOver) and action.reads[0] in made
        return is_sum and math.prod(forms[action.writes[0]][0]) == 1
    form = forms[(group or [action])[0].writes[0]]
    if math.prod(form[0]) < LIMITS.in_cache or forms[action.writes[0]] != form:
        return False
    if any(name in orders for name in (*action.reads, *action.writes)):
        return False
    shapes = [forms[name][0] for name in action.reads]
    summed = {call.writes[0] for call in group if not call.elementwise}
    return summed.isdisjoint(action.reads) and all(
        s == form[0] or math.prod(s) == 1 for s in shapes
    )


def _closed(
    group: list[Call], end: int, forms: ArraySpecs, outputs: set[str], last: dict[str, int]
) -> list[Action | Fused]:
    """A chain as one action; a single call of one pass stays as it is."""
    if not group or (len(group) == 1 and not isinstance(group[0].function, Elementwise)):
        return list(group)  # pragma: no mutate (DropCopy): the caller adds the elements to a list
    made = [call.writes[0] for call in group]
    return [Fused(group, forms, {n for n in made if n in outputs or last.get(n, -1) >= end})]
