"""Plans: how the fast path runs a net.

Requirement: after the first run nothing is decided any more. Every value that is not a result has
memory of its own that the plan keeps, shared by values whose lives do not overlap; views are made
once; what is left is a list of calls on known arrays. Long elementwise chains run block by block,
on a thread per core, so that what lies in between stays in the cache.

Results, and what a backward will read, are fresh arrays at each run: nobody else sees the plan's
memory.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy

from tinynode.devices import Arrays, Device, get_device
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.plan import Layout, Plan, call_node
from tinynode_fast.emit import (
    Action,
    Call,
    Emitter,
    Form,
    Generic,
    Order,
    Several,
    View,
    copy_as,
)
from tinynode_fast.fused import Fused, fuse

SMALL = 4096
"""Inputs and results of at most so many bytes are copied, which lets calls know their arrays."""


class Known(NamedTuple):
    """A call on arrays that are known: ``function(*arrays)``."""

    function: Callable[..., Any]
    arrays: Arrays


class Open(NamedTuple):
    """A call on arrays that are looked up at each run; the result goes to a place, if it has one.

    ``reads`` are places in the table of values.
    """

    function: Callable[..., Any]
    reads: tuple[int, ...]
    write: int


class FastPlan:
    """A net as a list of calls on arrays. ``run`` is as that of ``Plan``.

    Args:
        operators: in run order.
        devices: the inputs by name.
        outputs: the names of what ``run`` returns.
        forms: shape and dtype of every variable.
        saved: the names of what ``run`` returns after the outputs, by ``self.layout``.
        layout: how the inputs that another plan saved come.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        devices: Mapping[str, Device],
        outputs: Sequence[str],
        forms: Mapping[str, Form],
        saved: Sequence[str] = (),
        layout: Layout | None = None,
    ) -> None:
        self.net = operators, devices, [*outputs, *saved]
        self.default: Plan | None = None
        self.lock = threading.Lock()
        self.given = Given(list(devices), layout)
        self.number = len(outputs)
        builder = _Builder(operators, self.given, [*outputs, *saved], dict(forms), saved)
        self.layout = builder.layout if builder.layout.packed else None
        self.arena = builder.arena
        self.copied = builder.copied
        self.fresh = builder.fresh
        self.reserved = {place for place, _ in self.fresh}
        self.results = builder.results
        self.template = builder.template
        self.straight = builder.straight
        self.parts = grouped(builder.steps)
        kept = (*builder.memory.all, *builder.packed, self.arena, *builder.constants.values())
        self.own = {id(owner_of(memory)) for memory in kept}
        self.bytes = builder.memory.bytes

    def run(self, arrays: Arrays) -> Arrays:
        """The outputs' arrays, from those of the inputs."""
        if not self.lock.acquire(blocking=False):  # another thread is in it: it has the memory
            if self.default is None:
                self.default = Plan(*self.net)
            return self._packed(self.default.run(self.given.unpacked(arrays)))
        try:
            return self._run(arrays)
        finally:
            self.lock.release()

    def describe(self) -> Iterator[str]:
        """What is run, line by line."""
        steps = [
            step for part in self.parts for step in (part if isinstance(part, list) else [part])
        ]
        known = sum(isinstance(step, Known) for step in steps)
        yield f"  {len(steps)} calls, {known} of them on arrays that are known before"
        yield f"  {self.bytes} bytes of memory that the plan keeps"
        if self.layout is not None:
            number, size = len(self.layout.packed), self.layout.size
            yield f"  {number} small arrays are saved in one of {size} bytes"
        for step in steps:
            yield f"    {name_of_call(step.function)}"

    def _packed(self, results: Arrays) -> Arrays:
        """Results in the form of ``layout``."""
        if self.layout is None:
            return results
        memory = numpy.empty(self.layout.size, numpy.uint8)
        rest = []
        for name, array in zip(self.layout.names, results[self.number :], strict=True):
            if name in self.layout.packed:
                self.layout.view(memory, name)[...] = array
            else:
                rest.append(array)
        return (*results[: self.number], memory, *rest)

    def _run(self, arrays: Arrays) -> Arrays:
        values = self.template.copy()
        values[: len(arrays)] = arrays
        for place in self.straight:
            values[place] = numpy.asarray(values[place], order="C")
        for place, array in self.copied:
            numpy.copyto(array, values[place])
        for place, reserve in self.fresh:
            values[place] = reserve.take()
        for part in self.parts:
            if isinstance(part, list):
                for function, known in part:
                    function(*known)
            else:
                result = part.function(*[values[place] for place in part.reads])
                if part.write >= 0:
                    values[part.write] = result
        results = []
        for place, array in self.results:
            if array is not None:
                results.append(array.copy("K"))
            elif place in self.reserved or self._may_leave(values[place]):
                results.append(values[place])
            else:
                results.append(values[place].copy("K"))
        if self.layout is not None:
            results.insert(self.number, self.arena.copy())
        return tuple(results)

    def _may_leave(self, result: Any) -> bool:
        """Whether an array is none of the plan's, nor a view of such a one."""
        base = result.base
        if base is None:
            return True
        owns = type(base) is numpy.ndarray and base.base is None
        return owns and id(base) not in self.own and bool(result.flags.writeable)


def owner_of(array: Any) -> Any:
    """The array that an array is a view of, or itself."""
    return array if type(array.base) is not numpy.ndarray else owner_of(array.base)


def grouped(steps: Sequence[Known | Open]) -> list[list[Known] | Open]:
    """Known calls that follow each other as one list, which runs quicker; the others."""
    parts: list[list[Known] | Open] = []
    for step in steps:
        if isinstance(step, Open):
            parts.append(step)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(step)
        else:
            parts.append([step])
    return parts


def name_of_call(function: Any) -> str:
    """A call in a few words; what runs as a function gives the kernel's reason, if it has one."""
    if isinstance(function, Fused):
        return str(function)
    if isinstance(function, _Run):
        return f"{function.operator}    (as a function)"
    return str(getattr(function, "__name__", function))


class Given(NamedTuple):
    """The inputs of a plan: names, of which those of a layout come packed."""

    names: list[str]
    layout: Layout | None

    def places(self) -> list[str]:
        """The names of the arrays that come, in their order."""
        if self.layout is None:
            return self.names
        first = self.names.index(self.layout.names[0]) if self.layout.names else 0
        others = [name for name in self.names if name not in self.layout.packed]
        return [*others[:first], PACKED, *others[first:]] if self.layout.names else others

    def unpacked(self, arrays: Arrays) -> Arrays:
        """One array for each name."""
        if self.layout is None:
            return arrays
        found = dict(zip(self.places(), arrays, strict=True))
        memory = found.get(PACKED)
        return tuple(
            [
                self.layout.view(memory, name) if name in self.layout.packed else found[name]
                for name in self.names
            ]
        )


PACKED = "@packed"


def make_plan(
    operators: Sequence[Operator],
    devices: Mapping[str, Device],
    outputs: Sequence[str],
    forms: Mapping[str, Form],
    saved: Sequence[str],
    layout: Layout | None,
) -> FastPlan:
    """What ``tinynode.net`` asks this backend for."""
    return FastPlan(operators, devices, outputs, forms, saved, layout)


class _Memory:
    """Arrays that the plan keeps; one that nobody needs any more is given out again."""

    def __init__(self) -> None:
        self.free: dict[int, list[Any]] = {}
        self.all: list[Any] = []
        self.bytes = 0

    def take(self, form: Form, order: Order = None) -> tuple[Any, Any]:
        """An array, and the memory that it lies in."""
        size = max(64, 1 << (math.prod(form[0]) * form[1].itemsize - 1).bit_length())
        waiting = self.free.get(size)
        if waiting:
            memory = waiting.pop()
        else:
            memory = numpy.empty(size, numpy.uint8)
            self.all.append(memory)
            self.bytes += size
        return array_in(memory, form, order), memory

    def give_back(self, memory: Any) -> None:
        self.free.setdefault(memory.nbytes, []).append(memory)


def array_in(memory: Any, form: Form, order: Order) -> Any:
    """An array at the beginning of some memory, its axes in some order."""
    shape, dtype = form
    flat = memory[: math.prod(shape) * dtype.itemsize].view(dtype)
    if order is None:
        return flat.reshape(shape)
    return flat.reshape([shape[i] for i in order]).transpose(numpy.argsort(order))


class Reserve:
    """Memory for one result, which leaves the plan. What nobody holds any more is used again:
    fresh memory costs page faults.
    """

    def __init__(self, form: Form, order: Order) -> None:
        self.form = form
        self.order = order
        self.size = math.prod(form[0]) * form[1].itemsize
        self.given: list[Any] = []

    def take(self) -> Any:
        """An array in memory that nobody else has."""
        for memory in self.given:
            if sys.getrefcount(memory) <= _HELD_BY_A_LIST:
                return array_in(memory, self.form, self.order)
        memory = numpy.empty(self.size, numpy.uint8)
        if len(self.given) < MOST_KEPT:
            self.given.append(memory)
        return array_in(memory, self.form, self.order)


MOST_KEPT = 2
"""So many results of each name are remembered."""


def _references_of_a_list() -> int:
    """What ``Reserve.take`` counts where only its list holds the memory."""
    for memory in [numpy.empty(0)]:
        found = sys.getrefcount(memory)
    return found


_HELD_BY_A_LIST = _references_of_a_list()


class _Builder:
    """Makes the list of calls.

    Attributes:
        arrays: the values whose arrays are known, by name.
        places: the others: their places in the table of values.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        given: Given,
        outputs: list[str],
        forms: dict[str, Form],
        saved: Sequence[str],
    ) -> None:
        self.forms = forms
        self.outputs = set(outputs)
        inputs = given.places()
        self.memory = _Memory()
        self.arrays: dict[str, Any] = {}
        self.places = {name: place for place, name in enumerate(inputs)}
        self.template: list[Any] = [None] * len(inputs)
        self.copied: list[tuple[int, Any]] = []
        self.fresh: list[tuple[int, Reserve]] = []
        self.packed: list[Any] = []
        self.straight: list[int] = []
        self.steps: list[Known | Open] = []
        self.roots: dict[str, str] = {}
        self.owned: dict[str, Any] = {}
        actions = self._actions(operators)
        self.ends = self._last_uses(actions)
        self.leaving = {self._root(name) for name in outputs}
        self.layout = self._lay_out(actions, saved, outputs[: len(outputs) - len(saved)])
        self.arena = numpy.empty(self.layout.size, numpy.uint8)
        self._take_inputs(inputs, actions, given.layout)
        for number, action in enumerate(actions):
            self._add(action)
            self._free(number)
        for name in outputs[: len(outputs) - len(saved)]:
            self._part_from_constants(name)
        self.results = [self._result(n) for n in outputs if n not in self.layout.packed]

    def _actions(self, operators: Sequence[Operator]) -> list[Action | Fused]:
        emitter = Emitter(self.forms)
        for operator in operators:
            if operator.type == "constant":
                self.arrays[operator.output_names[0]] = operator.attrs["value"]
            else:
                emitter.emit(operator)
        self.constants = {**self.arrays, **emitter.constants}
        self.arrays.update(emitter.constants)
        self.orders = emitter.orders
        return fuse(emitter.actions, self.forms, self.outputs, self.orders)

    def _last_uses(self, actions: Sequence[Action | Fused]) -> dict[int, list[str]]:
        """For each action, the roots of memory that nobody reads after it."""
        last: dict[str, int] = {}
        for number, action in enumerate(actions):
            if isinstance(action, View):
                self.roots[action.write] = self._root(action.read)
            for name in (*reads_of(action), *writes_of(action)):
                last[self._root(name)] = number
        for name in self.outputs:
            last[self._root(name)] = len(actions)
        for action in reversed(actions):
            if isinstance(action, Generic):  # what it gives may be a view of what it reads
                until = max(last[self._root(name)] for name in action.writes)
                for name in action.reads:
                    last[self._root(name)] = max(last[self._root(name)], until)
        ends: dict[int, list[str]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        return ends

    def _root(self, name: str) -> str:
        return self.roots.get(name, name)

    def _free(self, number: int) -> None:
        for name in self.ends.get(number, ()):
            if name in self.owned:
                self.memory.give_back(self.owned.pop(name))

    def _lay_out(
        self, actions: Sequence[Action | Fused], saved: Sequence[str], outputs: Sequence[str]
    ) -> Layout:
        """Places in one array for what is saved, small, and written by a call."""
        written = {
            name
            for action in actions
            if isinstance(action, Call | Fused)
            for name in writes_of(action)
        }
        packed, size = {}, 0
        for name in saved:
            shape, dtype = self.forms[name]
            length = math.prod(shape) * dtype.itemsize
            if name in written and name not in outputs and length <= SMALL:
                packed[name] = size, (shape, dtype)
                size += -(-length // 64) * 64
        return Layout(packed, size, tuple(saved))

    def _take_inputs(
        self, inputs: list[str], actions: Sequence[Action | Fused], layout: Layout | None
    ) -> None:
        blockwise = {n for one in actions if isinstance(one, Fused) for n in one.reads}
        for place, name in enumerate(inputs):
            if name == PACKED:
                assert layout is not None
                memory = numpy.empty(layout.size, numpy.uint8)
                self.copied.append((place, memory))
                self.packed.append(memory)
                for one in layout.packed:
                    self.arrays[one] = layout.view(memory, one)
                continue
            shape, dtype = self.forms[name]
            if math.prod(shape) * dtype.itemsize <= SMALL:
                self.arrays[name] = self.memory.take((shape, dtype))[0]  # never given back
                self.copied.append((place, self.arrays[name]))
            elif name in blockwise:
                self.straight.append(place)

    def _add(self, action: Action | Fused) -> None:
        if isinstance(action, View):
            self._add_view(action)
        elif isinstance(action, Generic):
            self._add_generic(action)
        elif isinstance(action, Fused | Several):
            for name in action.writes:
                self._provide(name)
            function = action if isinstance(action, Fused) else action.function
            self._append(function, (*action.reads, *action.writes), -1)
        else:
            self._provide(action.write)
            self._append(action.function, (*action.reads, action.write), -1)

    def _provide(self, name: str) -> None:
        """Memory for a value: of the plan, or fresh at each run for a large result."""
        shape, dtype = self.forms[name]
        if name in self.layout.packed:
            self.arrays[name] = self.layout.view(self.arena, name)
        elif name in self.leaving and math.prod(shape) * dtype.itemsize > SMALL:
            reserve = Reserve((shape, dtype), self.orders.get(name))
            self.fresh.append((self._new_place(name), reserve))
        else:
            order = self.orders.get(name)
            self.arrays[name], self.owned[name] = self.memory.take((shape, dtype), order)

    def _new_place(self, name: str) -> int:
        self.places[name] = len(self.template)
        self.template.append(None)
        return self.places[name]

    def _append(self, function: Callable[..., Any], names: Sequence[str], write: int) -> None:
        """A call: known if all arrays are, else with their places."""
        if write < 0 and all(name in self.arrays for name in names):
            self.steps.append(Known(function, tuple([self.arrays[name] for name in names])))
            return
        for name in names:
            if name not in self.places:  # known: its array stands in the table from the start
                self.template[self._new_place(name)] = self.arrays[name]
        self.steps.append(Open(function, tuple([self.places[name] for name in names]), write))

    def _add_view(self, action: View) -> None:
        if action.read in self.arrays:
            view = action.function(self.arrays[action.read])
            if not view.size or numpy.may_share_memory(view, self.arrays[action.read]):
                self.arrays[action.write] = view
                return
            self._provide(action.write)  # in memory it is another order: a copy
            self._append(copy_as, (action.read, action.write), -1)
            return
        self._append(action.function, (action.read,), self._new_place(action.write))

    def _add_generic(self, action: Generic) -> None:
        wanted = [name for name in action.writes if name != EMPTY]
        single = len(action.writes) == 1
        call = _Run(action.operator, single)
        if single:
            self._append(call, action.reads, self._new_place(wanted[0]))
            return
        whole = self._new_place(f"@all {len(self.template)}")
        self._append(call, action.reads, whole)
        for position, name in enumerate(action.writes):
            if name != EMPTY:
                self.steps.append(Open(_Item(position), (whole,), self._new_place(name)))

    def _part_from_constants(self, name: str) -> None:
        """Let a result that is a constant be copied: who gets it may write to it."""
        if self._root(name) in self.constants and name in self.arrays:
            memory = numpy.empty(max(1, self.arrays[name].nbytes), numpy.uint8)
            self.memory.all.append(memory)
            self.arrays[name], constant = (
                array_in(memory, self.forms[name], None),
                self.arrays[name],
            )
            numpy.copyto(self.arrays[name], constant)

    def _result(self, name: str) -> tuple[int, Any]:
        """Where a result is found: a place, or an array of the plan to be copied."""
        if name in self.arrays:
            return -1, self.arrays[name]
        return self.places[name], None


class _Run:
    """Calls a FunctionNode's kernel or portable forward; gives the one output, or all."""

    def __init__(self, operator: Operator, single: bool) -> None:
        self.operator = operator
        self.node = operator.make_node()
        self.device = get_device("fast")
        self.single = single

    def __call__(self, *arrays: Any) -> Any:
        results = call_node(self.operator, self.node, self.device, self.device, arrays)
        return results[0] if self.single else results


@dataclass(frozen=True)
class _Item:
    """One output of several."""

    position: int

    def __call__(self, results: Arrays) -> Any:
        return results[self.position]


def reads_of(action: Action | Fused) -> tuple[str, ...]:
    """The names that an action reads."""
    return (action.read,) if isinstance(action, View) else action.reads


def writes_of(action: Action | Fused) -> tuple[str, ...]:
    """The names that an action writes."""
    return (action.write,) if isinstance(action, View | Call) else action.writes
