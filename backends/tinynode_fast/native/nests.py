"""Nests: operations on values of one shape become one pass over memory.

Requirement: a value for the next operator never goes to memory. A nest holds formulas and
reductions on values of a common broadcast shape. The layouts of the values decide about the
dimensions: four axes of arrays in C order are a single dimension.

A value that varies along the last dimension is an element. A value that varies along the other
dimensions alone belongs to a row. The other values are single numbers. A reduction along the last
dimension alone makes a value of a row, for the next phase of the row. Other reductions are ends:
no call of the nest reads their values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy

from tinynode.net.operator import EMPTY, ArraySpec
from tinynode_fast.actions import Action, FunctionCall, OpaqueCall, View
from tinynode_fast.native.formulas import ElementFormula, Reduction, broadcasts

Strides: TypeAlias = tuple[int, ...]
TYPES = {numpy.dtype("float32"): "float", numpy.dtype("float64"): "double"}
TYPES[numpy.dtype("bool")] = "uint8_t"  # loops with _Bool have no vector form
TYPES |= {numpy.dtype("int64"): "int64_t", numpy.dtype("int32"): "int32_t"}  # of labels
TYPES[numpy.dtype("int8")] = "int8_t"  # of the winners of windows
MOST_CALLS = 50  # the time of a compiler grows faster than a function
MOST_DEFERRED = 64
LONGEST = 128
"""The most rows that a sum adds up one after another: with more, the error would grow."""
MEETING = 16
"""The mean number of rows at one place from which rounding errors are kept."""
STRIP = 512
"""The most elements of a row that a sum of float64 adds up in a loop, with several lanes."""
ROW_BYTES = 1 << 16
"""The bytes of the rows kept for later phases: the rows stay on the stack."""


@dataclass
class Layouts:
    """The steps of each value in memory, in elements, along the value's own axes."""

    forms: Mapping[str, ArraySpec]
    orders: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Any]
    known: dict[str, Strides] = field(default_factory=dict)
    wide: dict[tuple[str, int], Strides] = field(default_factory=dict)

    def of(self, name: str) -> Strides:
        """The steps of a value."""
        if name in self.constants:
            array = self.constants[name]
            return tuple([step // array.itemsize for step in array.strides])
        if name not in self.known:
            shape = self.forms[name][0]
            steps, step = [0] * len(shape), 1
            for axis in reversed(self.orders.get(name, range(len(shape)))):
                steps[axis] = step
                step *= shape[axis]
            self.known[name] = tuple(steps)
        return self.known[name]

    def broadcast(self, name: str, rank: int) -> Strides:
        """The steps of a value along the axes of a shape that it broadcasts to."""
        found = self.wide.get((name, rank))
        if found is None:
            shape = self.forms[name][0]
            own = [0 if n == 1 else step for n, step in zip(shape, self.of(name), strict=True)]
            found = self.wide[name, rank] = (*[0] * (rank - len(shape)), *own)
        return found

    def add_view(self, view: View) -> None:
        """Note the steps of a view: the function is called on bytes in place of numbers."""
        (read,), (write,) = view.reads, view.writes
        shape, steps = self.forms[read][0], self.of(read)
        if not math.prod(shape):
            return
        size = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
        stand_in: Any = numpy.ndarray(shape, bool, numpy.empty(size, bool), 0, steps)
        found = view.function(stand_in)
        if numpy.may_share_memory(found, stand_in):  # else it is copied, in the value's own order
            self.known[write] = found.strides


class Nest:
    """A loop nest.

    Attributes:
        calls: the calls, in order.
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
        self.calls: list[FunctionCall] = []
        self.shape: tuple[int, ...] = ()
        self.reads: tuple[str, ...] = ()
        self.writes: tuple[str, ...] = ()
        self.made: set[str] = set()
        self.is_plain = True
        self.dims: tuple[int, ...] = ()
        self.steps: dict[str, Strides] = {}
        self.over: dict[str, str] = {}

    # --- taking calls ----------------------------------------------------------------------------

    def add(self, call: FunctionCall) -> bool:
        """Take a call, if the call fits the nest."""
        is_reduction = isinstance(call.function, Reduction)
        shape = self.forms[call.reads[0] if is_reduction else call.writes[0]][0]
        is_near = not self.calls or shape == self.shape or not self.made.isdisjoint(call.reads)
        if not is_near or len(self.calls) >= MOST_CALLS:
            return False
        wide = shape if not self.calls or math.prod(shape) > self.size else self.shape
        if not broadcasts(shape, wide) or not broadcasts(self.shape, wide):
            return False
        before = self.shape, self.is_plain, self.dims, self.steps
        self.is_plain &= not is_reduction and (not self.calls or shape == wide == self.shape)
        if self.is_plain:
            self.is_plain = all(self._is_plain(n, wide) for n in (*call.reads, *call.writes))
        self.shape = wide
        self.calls.append(call)
        self.made.update(call.writes)
        if self.is_plain or self._is_possible():
            return True
        self.shape, self.is_plain, self.dims, self.steps = before
        self.calls.pop()
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
        """True if each value has a place, and no call reads an end."""
        self.measure()
        known: set[str] = set()
        for call in self.calls:
            (write,) = call.writes
            if any(name in self.made and name not in known for name in call.reads):
                return False
            if isinstance(call.function, Reduction):
                if self.forms[call.reads[0]][0] != self.shape:
                    return False
                known.update([] if self.is_end(call) else [write])
            else:
                *outer, last = self.steps[write]
                if not all(outer) and (last or any(outer)):  # no element, row or single number
                    return False
                known.add(write)
        rows = {n for c in self.calls for n in c.reads if n in self.made}
        return self.dims[-1] * 8 * len(rows) <= ROW_BYTES or not self.has_phases

    # --- the places of values --------------------------------------------------------------------

    def is_element(self, name: str) -> bool:
        """True for a value that varies along the last dimension."""
        return self.steps[name][-1] != 0

    def is_end(self, call: FunctionCall) -> bool:
        """True for a reduction whose value is complete after all loops."""
        steps = self.steps[call.writes[0]]
        is_row = steps[-1] == 0 and 0 not in steps[:-1]
        return isinstance(call.function, Reduction) and not is_row

    @property
    def size(self) -> int:
        """The number of elements of the loops."""
        return math.prod(self.shape)

    @property
    def has_phases(self) -> bool:
        """True if a call reads a reduction: of the loop of the threads, with a single loop."""
        reduced = {c.writes[0] for c in self.calls if isinstance(c.function, Reduction)}
        return any(not reduced.isdisjoint(call.reads) for call in self.calls)

    def shared_ends(self) -> Iterator[tuple[int, str, tuple[int, ...], Any]]:
        """Place, kind, shape and dtype of each reduction along the first loop."""
        for place, name in enumerate(self.writes, len(self.reads)):
            (call,) = [call for call in self.calls if call.writes[0] == name]
            is_end = isinstance(call.function, Reduction) and not self.steps[name][0]
            if is_end or call.function.name == "rows":
                yield place, call.function.name, *self.forms[name]

    def long_rows(self) -> list[str]:
        """The sums by index of many rows, at least ``MEETING`` for each row of the result.

        There an add with the rounding error takes up to twice the time.
        """
        rows = [call for call in self.calls if call.function.name == "rows"]
        counts = [(c.writes[0], self.forms[c.reads[0]][0][0]) for c in rows]
        return [
            name
            for name, count in counts
            if count > LONGEST and count >= MEETING * self.forms[name][0][0]
        ]

    def long_sums(self) -> list[str]:
        """The ends that add up more rows than ``LONGEST``."""
        found = []
        for call in self.calls:
            steps = self.steps[call.writes[0]]
            if call.function.name != "sum" or not self.is_end(call):
                continue
            rows = math.prod(n for n, step in zip(self.dims, steps[:-1], strict=False) if not step)
            is_float_total = not any(steps) and TYPES[self.forms[call.writes[0]][1]] == "float"
            if rows > LONGEST and not is_float_total:  # the total is a double
                found.append(call.writes[0])
        return found

    def measure(self) -> None:
        """Find the dimensions, and the steps of every value along the dimensions."""
        names = dict.fromkeys([n for call in self.calls for n in (*call.writes, *call.reads)])
        written = [call.writes[0] for call in self.calls]
        rank = len(self.shape)
        wide = {name: self.layouts.broadcast(name, rank) for name in names}
        axes = [axis for axis in range(rank) if self.shape[axis] > 1]
        has_rows = any(call.function.name == "rows" for call in self.calls)
        for leader in itertools.chain(written, names):  # the loops follow a result
            if self.forms[leader][0] == self.shape and not has_rows:
                axes.sort(key=[-abs(step) for step in wide[leader]].__getitem__)
                break
        dims: list[int] = []
        chosen: list[int] = []  # the axis with the steps of each dimension
        for axis in axes:
            n = self.shape[axis]
            if dims and all(s[chosen[-1]] == s[axis] * n for s in wide.values()):
                chosen.pop()  # the two axes are one in memory
                n *= dims.pop()
            dims.append(n)
            chosen.append(axis)
        self.steps = {name: tuple([s[axis] for axis in chosen]) for name, s in wide.items()}
        if not dims:  # single numbers: a loop over one element
            dims.append(1)
            reduced = {c.writes[0] for c in self.calls if isinstance(c.function, Reduction)}
            self.steps = {name: (int(name not in reduced),) for name in names}
        self.dims = tuple(dims)

    def form(self) -> tuple[Any, ...]:
        """All that the C of the nest depends on: places in ``steps`` stand for names.

        The length of the first loop is an argument of the function, unless a row has phases.
        """
        place = {name: i for i, name in enumerate(self.steps)}.__getitem__
        fixed = self.dims[1:] or (self.has_phases and self.dims)
        calls = [(c.function, *map(place, (*c.reads, *c.writes))) for c in self.calls]
        arrays = *map(place, self.reads), -1, *map(place, self.writes)
        over = [(place(write), place(read)) for write, read in self.over.items()]
        ends = [self.forms[c.writes[0]][0] for c in self.calls if c.function.name == "rows"]
        types = [TYPES[self.forms[name][1]] for name in self.steps]
        steps = (*self.steps.values(),)
        long = self.dims[-1] > STRIP, *map(place, (*self.long_sums(), *self.long_rows()))
        return fixed, (*calls,), arrays, (*over,), (*ends,), (*types,), steps, long

    def outer_reads(self) -> tuple[str, ...]:
        """The values from outside of the nest."""
        reads = dict.fromkeys(n for call in self.calls for n in call.reads if n not in self.made)
        return tuple(reads)

    def close(self, needed: set[str]) -> None:
        """Fix the arrays of the function; ``needed`` are the values with other readers."""
        if self.is_plain:  # not measured yet
            self.measure()
        self.reads = self.outer_reads()
        self.writes = tuple([call.writes[0] for call in self.calls if call.writes[0] in needed])


def is_in_c(action: Action, forms: Mapping[str, ArraySpec]) -> bool:
    """True for a call that C can compute."""
    made = getattr(action, "function", None)
    has_c = isinstance(made, Reduction) or (isinstance(made, ElementFormula) and made.in_c)
    return has_c and all(forms[name][1] in TYPES for name in (*action.reads, *action.writes))


# --- bringing calls together ---------------------------------------------------------------------


def into_nests(
    parts: Sequence[Sequence[Any]], layouts: Layouts, outputs: set[str]
) -> list[list[Action | Nest]]:
    """The parts of the actions, with calls in nests; a nest has calls of a single part.

    A call joins the open nest past independent calls. Other calls wait until the nest is closed.
    """
    in_c = {id(action) for part in parts for action in part if is_in_c(action, layouts.forms)}
    for action in itertools.chain(*parts):
        if isinstance(action, View):
            layouts.add_view(action)
    results: list[list[Action | Nest]] = []
    for part in parts:
        results.append([])
        waiting = list(part)
        while waiting:
            waiting = _take(waiting, layouts, in_c, results[-1])
    needed = set(outputs)
    for step in itertools.chain(*results):
        needed.update(step.outer_reads() if isinstance(step, Nest) else step.reads)
    for step in itertools.chain(*results):
        if isinstance(step, Nest):
            step.close(needed)
    return [[s for s in steps if not isinstance(s, Nest) or s.writes] for steps in results]


def _take(
    waiting: Sequence[Action], layouts: Layouts, in_c: set[int], result: list[Action | Nest]
) -> list[Action]:
    """Move actions up to the end of a nest to the result; return the waiting actions."""
    nest = Nest(layouts)
    blocked: set[str] = set()  # what a waiting action makes
    later: list[Action] = []
    before: list[Action | Nest] = []
    for i, action in enumerate(waiting):
        if len(later) >= MOST_DEFERRED:
            later += waiting[i:]
            break
        waits = False
        if isinstance(action, FunctionCall) and id(action) in in_c:
            if blocked.isdisjoint(action.reads) and nest.add(action):
                continue
            waits = bool(nest.calls)
        elif isinstance(action, OpaqueCall):  # which may draw random numbers, in order
            waits = any(isinstance(a, OpaqueCall) for a in later)
        is_free = blocked.isdisjoint(action.reads) and nest.made.isdisjoint(action.reads)
        if is_free and not waits:
            before.append(action)
            continue
        later.append(action)
        blocked.update(name for name in action.writes if name != EMPTY)
    result += [*before, nest] if nest.calls else before
    return later
