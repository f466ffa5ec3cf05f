"""Nests: calls on values of one shape become one pass over memory.

Requirement: a value for the next operator never goes to memory. A nest holds formulas and
reductions on values of a common broadcast shape. The layouts of the values decide about the
dimensions: four axes of arrays in C order are a single dimension.

A value that varies along the last dimension is an element. A value that varies along the other
dimensions alone belongs to a row. The other values are single numbers. A reduction along the last
dimension alone makes a value of a row, for the next phase of the row. Other reductions end the
nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy

from tinynode.net.operator import EMPTY
from tinynode.net.passes import ArraySpec
from tinynode_fast.lowering import Action, Call, OpaqueCall, View
from tinynode_fast.native.formulas import Formula, Operation, Pick, Reduction, as_c

Strides: TypeAlias = tuple[int, ...]
TYPES = {numpy.dtype("float32"): "float", numpy.dtype("float64"): "double"}
TYPES[numpy.dtype("bool")] = "uint8_t"  # loops with _Bool have no vector form
TYPES |= {numpy.dtype("int64"): "int64_t", numpy.dtype("int32"): "int32_t"}  # of labels
TYPES[numpy.dtype("int8")] = "int8_t"  # of the winners of windows
MOST_STATEMENTS = 50  # the time of a compiler grows faster than a function
MOST_DEFERRED = 64
ROW_BYTES = 1 << 16
"""The bytes of the rows kept for later phases: the rows stay on the stack."""


class Layouts:
    """The steps of each value in memory, in elements, along the value's own axes."""

    def __init__(
        self, forms: Mapping[str, ArraySpec], orders: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.forms = forms
        self.orders = orders
        self.views: dict[str, Strides] = {}

    def of(self, name: str) -> Strides:
        """The steps of a value."""
        if name in self.views:
            return self.views[name]
        shape, order = self.forms[name][0], self.orders.get(name)
        steps = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        if order is not None:
            straight = [shape[i] for i in order]
            for place, axis in enumerate(order):
                steps[axis] = math.prod(straight[place + 1 :])
        return tuple(steps)

    def as_c(self, call: Call) -> Operation | None:
        """What a call computes, if C can compute it."""
        return as_c(call, self.forms[call.reads[0]][0]) if call.reads else None

    def add_view(self, view: View) -> None:
        """Note the steps of a view: the function is called on bytes in place of numbers."""
        (read,), (write,) = view.reads, view.writes
        shape, steps = self.forms[read][0], self.of(read)
        if not math.prod(shape):
            return
        size = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
        stand_in = numpy.lib.stride_tricks.as_strided(numpy.empty(size, bool), shape, steps)
        found = view.function(stand_in)
        if numpy.may_share_memory(found, stand_in):
            self.views[write] = found.strides
        elif self.orders.get(write) is None:
            self.views.pop(write, None)  # copied, in C order


class Nest:
    """A loop nest.

    Attributes:
        calls: the calls, in order.
        what: what each call computes.
        shape: the broadcast shape of all values.
        reads, writes: the arrays of the function, in order.
        dims: the lengths of the loops, the outermost first.
        steps: for each value, the steps along ``dims``; 0 where the value does not vary.
        over: for each result in the memory of an operand, the operand.
    """

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self.forms = layouts.forms
        self.name = ""
        self.calls: list[Call] = []
        self.what: list[Operation] = []
        self.shape: tuple[int, ...] = ()
        self.reads: tuple[str, ...] = ()
        self.writes: tuple[str, ...] = ()
        self.made: set[str] = set()
        self.is_plain = True
        self.dims: tuple[int, ...] = ()
        self.steps: dict[str, Strides] = {}
        self.over: dict[str, str] = {}

    def add(self, call: Call) -> bool:
        """Take a call, if the call fits the nest."""
        what = self.layouts.as_c(call)
        names = (*call.reads, *call.writes)
        if what is None or any(self.forms[name][1] not in TYPES for name in names):
            return False
        if isinstance(what, Reduction) and TYPES[self.forms[call.reads[0]][1]] == "uint8_t":
            return False
        if not all(math.prod(self.forms[name][0]) for name in names):
            return False
        shape = self.forms[call.reads[0] if isinstance(what, Reduction) else call.writes[0]][0]
        shape = self.forms[call.reads[0]][0] if isinstance(what, Pick) else shape
        wide = shape if math.prod(shape) > math.prod(self.shape) or not self.calls else self.shape
        if len(self.calls) >= MOST_STATEMENTS:
            return False
        if self.calls and shape != self.shape and self.made.isdisjoint(call.reads):
            return False  # a pass over other memory
        if not (broadcasts(shape, wide) and broadcasts(self.shape, wide)):
            return False
        before = self.shape, self.is_plain, self.dims, self.steps
        plain = self.is_plain and isinstance(what, Formula) and wide == shape
        plain = plain and (wide == self.shape or not self.calls)
        self.is_plain = plain and all(self._is_plain(name, wide) for name in names)
        self.shape = wide
        self.calls.append(call)
        self.what.append(what)
        self.made.update(call.writes)
        if self.is_plain or self._is_possible():
            return True
        self.shape, self.is_plain, self.dims, self.steps = before
        self.calls.pop()
        self.what.pop()
        self.made.difference_update(call.writes)
        return False

    def _is_plain(self, name: str, shape: tuple[int, ...]) -> bool:
        """True for a single number from memory, or a value of the nest's shape and order."""
        if name not in self.made and math.prod(self.forms[name][0]) == 1:
            return True
        first = self.calls[0].writes[0] if self.calls else name
        layouts = self.layouts
        return self.forms[name][0] == shape and layouts.of(name) == layouts.of(first)

    def _is_possible(self) -> bool:
        """True if each value has a place, and no call reads a result of the end."""
        self.measure()
        known: set[str] = set()
        for call, what in zip(self.calls, self.what, strict=True):
            (write,) = call.writes
            if any(name in self.made and name not in known for name in call.reads):
                return False
            if isinstance(what, Reduction):
                if self.forms[call.reads[0]][0] != self.shape:
                    if not self.is_of_rows(call):
                        return False
                elif self.is_row(write):
                    known.add(write)
            elif self._has_place(write):
                known.add(write)
            else:
                return False
        rows = {n for c in self.calls for n in c.reads if n in self.made}
        size = self.dims[-1] * 8 if self.dims else 0
        has_phases = any(isinstance(what, Reduction) for what in self.what)
        return not has_phases or size * len(rows) <= ROW_BYTES or not self._reads_rows()

    def _has_place(self, name: str) -> bool:
        """True for an element, a row or a single number."""
        depth = self.depth(name)
        return depth in {0, len(self.dims) - 1, len(self.dims)} and all(self.steps[name][:depth])

    def _reads_rows(self) -> bool:
        """True if a call reads a reduction of the nest."""
        ends = {
            call.writes[0]
            for call, what in zip(self.calls, self.what, strict=True)
            if isinstance(what, Reduction)
        }
        return any(not ends.isdisjoint(call.reads) for call in self.calls)

    def is_row(self, write: str) -> bool:
        """True if a reduction runs along the last dimension alone."""
        steps = self.steps[write]
        return bool(steps) and steps[-1] == 0 and 0 not in steps[:-1]

    def is_of_rows(self, call: Call) -> bool:
        """True if a reduction takes a value of each row to a single number."""
        read, write = call.reads[0], call.writes[0]
        inner = max(len(self.dims) - 1, 0)
        is_full = math.prod(self.dims[:inner]) == math.prod(self.forms[read][0])
        return read in self.made and is_full and not any(self.steps[write])

    @property
    def may_refuse(self) -> bool:
        """True if the function returns 1 for some labels."""
        return any(isinstance(what, Pick) for what in self.what)

    def depth(self, name: str) -> int:
        """The number of loops around the computation of a value."""
        steps = self.steps[name]
        return max([i + 1 for i, step in enumerate(steps) if step], default=0)

    @property
    def size(self) -> int:
        """The number of elements of the loops."""
        return math.prod(self.dims)

    @property
    def is_shareable(self) -> bool:
        """False if a call reads a reduction along the loop of the threads."""
        return len(self.dims) > 1 or not self._reads_rows()

    def shared_ends(self) -> list[tuple[int, str, tuple[int, ...], Any]]:
        """Place, kind, shape and dtype of each reduction along the first loop."""
        found = []
        for call, what in zip(self.calls, self.what, strict=True):
            (write,) = call.writes
            if isinstance(what, Reduction) and write in self.writes and not self.steps[write][0]:
                place = len(self.reads) + self.writes.index(write)
                found.append((place, what.name, *self.forms[write]))
        return found

    def measure(self) -> None:
        """Find the dimensions, and the steps of every value along the dimensions."""
        names = dict.fromkeys(n for call in self.calls for n in (*call.reads, *call.writes))
        rank = len(self.shape)
        wide = {name: self._broadcast(name, rank) for name in names}
        ordered = [*[call.writes[0] for call in self.calls], *names]  # the loops follow a result
        leader = next((n for n in ordered if self.forms[n][0] == self.shape), None)
        axes = [axis for axis in range(rank) if self.shape[axis] > 1]
        if leader is not None:
            axes.sort(key=[-abs(step) for step in wide[leader]].__getitem__)
        dims: list[int] = []
        steps: dict[str, list[int]] = {name: [] for name in names}
        for axis in axes:
            n = self.shape[axis]
            if dims and all(
                s[-1] == wide[name][axis] * n and (s[-1] == 0) == (wide[name][axis] == 0)
                for name, s in steps.items()
            ):
                dims[-1] *= n
                for name, s in steps.items():
                    s[-1] = wide[name][axis]
            else:
                dims.append(n)
                for name, s in steps.items():
                    s.append(wide[name][axis])
        if not dims and any(isinstance(what, Reduction) for what in self.what):
            dims.append(1)  # a reduction needs a loop
            for s in steps.values():
                s.append(1)
            for call, what in zip(self.calls, self.what, strict=True):
                steps[call.writes[0]][0] -= isinstance(what, Reduction)
        self.dims = tuple(dims)
        self.steps = {name: tuple(s) for name, s in steps.items()}

    def _broadcast(self, name: str, rank: int) -> list[int]:
        """The steps of a value along the axes of the nest's shape."""
        shape, steps = self.forms[name][0], self.layouts.of(name)
        own = [0 if n == 1 else step for n, step in zip(shape, steps, strict=True)]
        return [0] * (rank - len(shape)) + own

    def close(self, needed: set[str]) -> None:
        """Fix the arrays of the function; ``needed`` are the values with other readers."""
        self.measure()
        reads = dict.fromkeys(n for call in self.calls for n in call.reads if n not in self.made)
        self.reads = tuple(reads)
        self.writes = tuple([call.writes[0] for call in self.calls if call.writes[0] in needed])


def broadcasts(shape: Sequence[int], wide: Sequence[int]) -> bool:
    """True if a shape broadcasts to a wide shape."""
    pairs = zip(reversed(shape), reversed(wide), strict=False)
    return len(shape) <= len(wide) and all(n in (1, m) for n, m in pairs)


# --- bringing calls together ---------------------------------------------------------------------


def into_nests(
    parts: Sequence[Sequence[Action]],
    forms: Mapping[str, ArraySpec],
    outputs: set[str],
    orders: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, Any],
) -> list[Any]:
    """The actions, with calls in nests; a nest has calls of a single part.

    A call joins the open nest past independent calls. Other calls wait until the nest is closed.
    """
    layouts = Layouts(forms, orders)
    for name, array in constants.items():
        layouts.views[name] = tuple([step // array.itemsize for step in array.strides])
    for action in [action for part in parts for action in part]:
        if isinstance(action, View):
            layouts.add_view(action)
    result: list[Any] = []
    for part in parts:
        waiting = list(part)
        while waiting:
            waiting = _take(waiting, layouts, result)
    readers: dict[str, int] = {}
    for action in result:
        for name in set(_outer_reads(action)):
            readers[name] = readers.get(name, 0) + 1
    needed = {*outputs, *readers}
    for action in result:
        if isinstance(action, Nest):
            action.close(needed)
    return [action for action in result if not isinstance(action, Nest) or action.writes]


def _outer_reads(action: Any) -> Iterator[str]:
    """The values from outside of an action."""
    if isinstance(action, Nest):
        for call in action.calls:
            yield from [name for name in call.reads if name not in action.made]
    else:
        yield from action.reads


def _take(waiting: Sequence[Action], layouts: Layouts, result: list[Any]) -> list[Action]:
    """Move actions up to the end of a nest to the result; return the waiting actions."""
    nest = Nest(layouts)
    blocked: set[str] = set()  # what the nest or a waiting action makes
    later: list[Action] = []
    before: list[Any] = []
    for i, action in enumerate(waiting):
        if len(later) >= MOST_DEFERRED:
            later += waiting[i:]
            break
        held = blocked - nest.made
        free = held.isdisjoint(action.reads)
        if free and isinstance(action, Call) and nest.add(action):
            blocked.update(action.writes)
            continue
        draws = isinstance(action, OpaqueCall) and any(isinstance(a, OpaqueCall) for a in later)
        nestable = isinstance(action, Call) and nest.calls and layouts.as_c(action) is not None
        if blocked.isdisjoint(action.reads) and not draws and not nestable:
            before.append(action)
            continue
        later.append(action)
        blocked.update(name for name in action.writes if name != EMPTY)
    result += [*before, nest] if nest.calls else before
    return later
