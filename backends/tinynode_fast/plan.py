"""Plans: how the fast path runs a net.

Requirement: after the first run no decisions are left. The plan keeps memory for every value that
is not a result; values of different lifetimes share memory. Views are made once. The rest is a
list of calls on known arrays. Long elementwise chains run block by block on every core, so
intermediate values stay in the cache.

Results, and the arrays saved for a backward plan, are fresh at each run. No caller sees the memory
of the plan.

Updates of parameters run last. Old arrays without another holder are overwritten; see
``overwriting``, and ``tinynode.net.commit`` for the promise of the whole step.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode.configuration import config
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Device, get_device
from tinynode.net.commit import Commit
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import ArraySpec
from tinynode.net.plan import Layout, call_node
from tinynode_fast.blocks import give_pages_back, in_order
from tinynode_fast.fused import Fused, fuse
from tinynode_fast.limits import LIMITS
from tinynode_fast.lowering import Action, Call, Lowering, OpaqueCall, View, free_matrices
from tinynode_fast.native import build
from tinynode_fast.native.build import NotBuiltError
from tinynode_fast.native.calls import NestCall, RefusedError
from tinynode_fast.native.emit import source_of
from tinynode_fast.native.formulas import NativeLowering
from tinynode_fast.native.nests import Nest, into_nests
from tinynode_fast.overwriting import opaque_first, overwritten, updates_last

PACKED = "@packed"
"""The name of the array that holds the small arrays of a layout."""


Step: TypeAlias = Action | Fused | Nest


class BoundCall(NamedTuple):
    """``function(*arrays)``: a call on arrays known from the start."""

    function: Callable[..., Any]
    arrays: Arrays


class LateCall(NamedTuple):
    """A call on arrays from the table of values, at each run.

    ``reads`` are slots in the table of values; the result goes to the slot ``write``, unless -1.
    """

    function: Callable[..., Any]
    reads: tuple[int, ...]
    write: int


def names_given(names: list[str], layout: Layout | None) -> list[str]:
    """The names of the arrays for ``run``; the small arrays of a layout come as ``PACKED``."""
    if layout is None:
        return names
    first = names.index(layout.names[0])
    others = [name for name in names if name not in layout.packed]
    return [*others[:first], PACKED, *others[first:]]


def bytes_of(form: ArraySpec) -> int:
    """The bytes of an array."""
    return math.prod(form[0]) * int(form[1].itemsize)


def array_in(memory: Any, form: ArraySpec, order: tuple[int, ...] | None) -> Any:
    """An array at the start of some memory; ``order`` lists its axes, the largest step first."""
    shape, dtype = form
    flat = memory[: bytes_of(form)].view(dtype)
    if order is None:
        return flat.reshape(shape)
    return in_order(flat.reshape([shape[i] for i in order]), order)


class Memory:
    """The memory of the plan; free memory is taken again."""

    def __init__(self) -> None:
        self.free: dict[int, list[Any]] = {}
        self.all: list[Any] = []
        self.bytes = 0

    def take(self, form: ArraySpec) -> Any:
        """Memory for an array, of a power of two of bytes."""
        size = max(64, 1 << (bytes_of(form) - 1).bit_length())
        waiting = self.free.get(size)
        if waiting:
            return waiting.pop()
        self.all.append(numpy.empty(size, numpy.uint8))
        self.bytes += size
        return self.all[-1]

    def give_back(self, memory: Any) -> None:
        """Let another value use the memory."""
        self.free.setdefault(memory.nbytes, []).append(memory)


@dataclass
class ResultPool:
    """Memory for one large result. It is used again once no caller holds the result.

    Fresh memory costs page faults.
    """

    form: ArraySpec
    order: tuple[int, ...] | None
    given: list[Any] = field(default_factory=list)

    def take(self) -> Any:
        """An array in memory that no caller holds."""
        for memory in self.given:
            if sys.getrefcount(memory) <= _HELD_BY_A_LIST:
                return array_in(memory, self.form, self.order)
        memory = numpy.empty(bytes_of(self.form), numpy.uint8)
        if len(self.given) < LIMITS.results_kept:
            self.given.append(memory)
        return array_in(memory, self.form, self.order)


_HELD_BY_A_LIST = max(sys.getrefcount(memory) for memory in [numpy.empty(0)])
"""The count of references to memory in ``ResultPool.given`` without other holders."""


def run_node(operator: Operator, node: FunctionNode, device: Device, *arrays: Any) -> Arrays:
    """The outputs of a FunctionNode, by its kernel or its portable forward."""
    return call_node(operator, node, device, device, arrays)


class FastPlan:
    """A net as a list of calls on arrays, and the memory of the plan.

    ``run`` is as that of ``tinynode.net.plan.Plan``.

    Args:
        operators: in run order.
        devices: the inputs by name.
        outputs: the names of the results of ``run``.
        forms: shape and dtype of every variable.
        saved: the names of further results, handed on by ``self.layout``.
        layout: how the inputs that another plan saved come.

    Attributes:
        arrays: the values whose arrays are known, by name.
        slots: the other values: their slots in the table of values.
        template: the table of values at the start of a run.
        copied: the slots of small inputs, and the arrays that they are copied to.
        pools: the slots of large results, and their memory.
        arena: the memory of the small arrays that are saved.
        is_first_call: True in the first call of the net: a net may run only once, without C.
        over: for each result in the memory of an input, the input.
        swaps: slots and name of each large result of that kind: input, result, name.
        dropped: the slots without an update as reader.
        results: a slot, or an array that is copied, for each result.
    """

    overwrites = True
    is_first_call = False

    def __init__(
        self,
        operators: Sequence[Operator],
        devices: Mapping[str, Device],
        outputs: Sequence[str],
        forms: Mapping[str, ArraySpec],
        saved: Sequence[str] = (),
        layout: Layout | None = None,
        native: Native | None = None,
    ) -> None:
        self.net = operators, devices, outputs, forms, saved, layout
        self.native = native
        self.compiled: FastPlan | None = None  # the plan that calls C, once it is built
        self.is_asked_for = native is not None  # to build that plan
        self.is_empty = False
        self.number = len(outputs)
        self.lock = threading.Lock()
        self.other: FastPlan | None = None  # the plan for a second thread
        self.forms = dict(forms)
        self.outputs = {*outputs, *saved}
        given = names_given(list(devices), layout)
        self._begin(given)
        actions = self._actions(operators)
        self.ends = self._last_uses(actions)
        self.leaving = {self._root(name) for name in self.outputs}
        self.packing = native.packing if native else self._pack(actions, saved, outputs)
        self.layout = self.packing if self.packing.packed else None
        self.arena = numpy.empty(self.packing.size, numpy.uint8)
        self._take_inputs(given, layout)
        self._add_all(actions)
        names = [name for name in (*outputs, *saved) if name not in self.packing.packed]
        self.results = [(self.slots.get(name, -1), self.arrays.get(name)) for name in names]
        self.dropped = self._dropped()
        kept = (*self.memory.all, self.arena, *self.constants.values())
        self.own = set(map(id, map(owner_of, kept)))
        self.is_new = True

    def _begin(self, given: list[str]) -> None:
        """The tables of a plan without actions."""
        self.memory = Memory()
        self.arrays: dict[str, Any] = {}
        self.slots = {name: slot for slot, name in enumerate(given)}
        self.template: list[Any] = [None] * len(given)
        self.copied: list[tuple[int, Any]] = []
        self.pools: list[tuple[int, ResultPool]] = []
        self.swaps: list[tuple[int, int, str]] = []
        self.over: dict[str, str] = {}
        self.steps: list[BoundCall | LateCall] = []
        self.roots: dict[str, str] = {}
        self.owned: dict[str, Any] = {}
        self.straight: dict[str, Any] = {}  # copies in C order, for further views
        self.kept: list[NestCall] = []  # their arrays stay in memory

    def _actions(self, operators: Sequence[Operator]) -> list[Step]:
        kind = NativeLowering if self.native else Lowering
        lowering = kind(self.forms, free_matrices(operators, self.outputs))
        others, updates = updates_last(operators)
        for operator in others:
            if operator.type == "constant":
                self.arrays[operator.output_names[0]] = operator.attrs["value"]
            else:
                lowering.lower(operator)
        number = len(lowering.actions)
        for operator in updates:
            lowering.lower(operator)
        self.arrays.update(lowering.constants)
        self.constants = dict(self.arrays)  # pragma: no mutate: later arrays are of the plan
        self.orders = lowering.orders
        first, last, self.updated = opaque_first(lowering.actions, number)
        small = {name for name in self.slots if name in self.forms and self._is_small(name)}
        self.over = overwritten(updates, first, last, self.forms, self.orders, self.outputs, small)
        if self.native is not None:
            nests = into_nests(
                (first, last), self.forms, self.outputs, self.orders, self.constants
            )
            return self.native.build(nests, self.over)
        needed = self.outputs.union(*[action.reads for action in last])
        fused = fuse(first, self.forms, needed, self.orders)
        return [*fused, *fuse(last, self.forms, self.outputs, self.orders)]

    def _is_small(self, name: str) -> bool:
        """True for an array that is copied to memory of the plan."""
        return bytes_of(self.forms[name]) <= LIMITS.copied_bytes

    def _dropped(self) -> list[int]:
        """The slots of the values that end before the updates: views would hold parameters."""
        if not self.swaps:
            return []
        late = [step for step in self.last_groups if isinstance(step, LateCall)]
        needed = {slot for step in late for slot in step.reads}
        needed.update(slot for slot, _ in self.results)
        needed.update(slot for pair in self.swaps for slot in pair[:2])
        return [slot for slot in range(len(self.template)) if slot not in needed]

    def _last_uses(self, actions: Sequence[Step]) -> dict[int, list[str]]:
        """For each action, the roots of memory without later readers."""
        last: dict[str, int] = {}
        for number, action in enumerate(actions):
            if isinstance(action, View):
                self.roots[action.writes[0]] = self._root(action.reads[0])
            for name in (*action.reads, *action.writes):
                last[self._root(name)] = number
        for name in self.outputs:
            last[self._root(name)] = len(actions)
        for action in reversed(actions):
            if isinstance(action, OpaqueCall):  # its results may be views of its inputs
                until = max(last[self._root(name)] for name in action.writes)
                for name in action.reads:
                    last[self._root(name)] = max(last[self._root(name)], until)
        ends: dict[int, list[str]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        return ends

    def _root(self, name: str) -> str:
        """The value that owns the memory of a value."""
        return self.roots.get(name, name)

    def _pack(
        self, actions: Sequence[Step], saved: Sequence[str], outputs: Sequence[str]
    ) -> Layout:
        """Places in the arena for the small saved values that calls write."""
        calls = [action for action in actions if isinstance(action, Call | Fused | Nest)]
        written = {name for call in calls for name in call.writes}.difference(outputs)
        packed, size = {}, 0
        for name in saved:
            length = bytes_of(self.forms[name])
            if name in written and length <= LIMITS.copied_bytes:
                packed[name] = size, self.forms[name]
                size += -(-length // 64) * 64
        return Layout(packed, size, tuple(saved))

    def _take_inputs(self, given: list[str], layout: Layout | None) -> None:
        """Copy small inputs at each run, so that calls know their arrays."""
        for slot, name in enumerate(given):
            if layout is not None and name == PACKED:
                memory = numpy.empty(layout.size, numpy.uint8)
                self.memory.all.append(memory)
                self.copied.append((slot, memory))
                self.arrays.update({n: layout.view(memory, n) for n in layout.packed})
            elif self._is_small(name):
                memory = self.memory.take(self.forms[name])  # never given back
                self.arrays[name] = array_in(memory, self.forms[name], None)
                self.copied.append((slot, self.arrays[name]))

    def _add_all(self, actions: Sequence[Step]) -> None:
        number_of_first = 0  # of the calls before the updates
        for number, action in enumerate(actions):
            is_update = not self.updated.isdisjoint(action.writes)
            self._add(action)
            self._free(number)
            number_of_first = number_of_first if is_update else len(self.steps)
        self.groups = grouped(self.steps[:number_of_first])
        self.last_groups = grouped(self.steps[number_of_first:])

    def _add(self, action: Step) -> None:
        if isinstance(action, View):
            self._add_view(action)
        elif isinstance(action, OpaqueCall):
            self._add_opaque_call(action)
        else:
            for name in action.writes:
                self._provide(name)
            if isinstance(action, Nest):
                self._add_nest(action)
                return
            function = action if isinstance(action, Fused) else action.function
            self._append(function, (*action.reads, *action.writes), -1)

    def _add_nest(self, nest: Nest) -> None:
        """A call of C; the pointers to known arrays are fixed."""
        assert self.native is not None
        call = NestCall(nest, self.native.library, self.arrays)
        if not call.fits(self.arrays):  # a view that lies in memory in an unforeseen way
            raise NotBuiltError(f"{nest.name}: an operand lies in another order")
        if call.late or call.shares > 1 or nest.may_refuse:
            self._append(call, call.late, -1)
            return
        self.steps.append(BoundCall(call.function, call.arguments))
        self.kept.append(call)

    def _free(self, number: int) -> None:
        """Let later values use the memory that has no readers after an action."""
        for name in self.ends.get(number, ()):
            if name in self.owned:
                self.memory.give_back(self.owned.pop(name))

    def _provide(self, name: str) -> None:
        """Memory for a value: of the plan, or fresh at each run for a large result."""
        form, order = self.forms[name], self.orders.get(name)
        if name in self.packing.packed:
            self.arrays[name] = self.packing.view(self.arena, name)
        elif name in self.over and self.over[name] in self.arrays:
            self.arrays[name] = self.arrays[self.over[name]]  # over the plan's copy
        elif name in self.over:
            read = self.over[name]
            self.swaps.append((self.slots[read], self._new_slot(name), read))
        elif name in self.leaving and bytes_of(form) > LIMITS.copied_bytes:
            self.pools.append((self._new_slot(name), ResultPool(form, order)))
        else:
            self.owned[name] = self.memory.take(form)
            self.arrays[name] = array_in(self.owned[name], form, order)

    def _new_slot(self, name: str) -> int:
        self.slots[name] = len(self.template)
        self.template.append(None)
        return self.slots[name]

    def _append(self, function: Callable[..., Any], names: Sequence[str], write: int) -> None:
        """A call: bound if all arrays are known, else late."""
        if write < 0 and all(name in self.arrays for name in names):
            self.steps.append(BoundCall(function, tuple([self.arrays[name] for name in names])))
            return
        for name in names:
            if name not in self.slots:  # the known array stands in the table from the start
                self.template[self._new_slot(name)] = self.arrays[name]
        self.steps.append(LateCall(function, tuple([self.slots[name] for name in names]), write))

    def _add_view(self, action: View) -> None:
        (read,), (write,) = action.reads, action.writes
        if read not in self.arrays:
            self._append(action.function, (read,), self._new_slot(write))
            return
        source = self.arrays[read]
        view = action.function(source)
        is_shared = not view.size or numpy.may_share_memory(view, source)
        if not is_shared and read in self.straight:
            view = action.function(self.straight[read])
            is_shared = numpy.may_share_memory(view, self.straight[read])
        if is_shared and write not in self.packing.packed:
            self.arrays[write] = view
            return
        self._provide(write)  # in memory the elements have another order: a copy at each run
        self._append(copy_elements, (read, write), -1)
        copy = self.arrays.get(write)
        if copy is not None and write not in self.packing.packed:  # the next view needs no copy
            self.straight[read] = copy.reshape(source.shape)

    def _add_opaque_call(self, action: OpaqueCall) -> None:
        whole = self._new_slot(f"@all {len(self.template)}")
        operator = action.operator
        call = partial(run_node, operator, operator.make_node(), get_device("fast"))
        self._append(call, action.reads, whole)
        for i, name in enumerate(action.writes):
            if name != EMPTY:
                self.steps.append(LateCall(itemgetter(i), (whole,), self._new_slot(name)))

    def run(self, arrays: Arrays, commit: Commit | None = None) -> Arrays:
        """The outputs' arrays, from those of the inputs.

        With ``commit``, updates may write over inputs. All other calls have returned by then, and
        errors of floating point raise nothing during such updates.
        """
        before = self.compiled
        if before is not None and not raises_errors():
            with contextlib.suppress(RefusedError):
                return before.run(arrays, commit)
        if not self.is_asked_for and not self.is_first_call:
            self._ask_for_c()
        self.is_first_call = False
        if self.lock.acquire(blocking=False):
            try:
                if not self.is_empty:
                    return self._run(arrays, commit)
            finally:
                self.lock.release()
        if self.compiled is not before:  # the plan in C was finished at this moment
            return self.run(arrays, commit)
        if self.other is None:  # another thread uses the memory, or the memory is given up
            self.other = FastPlan(*self.net)
            self.other.is_asked_for = self.is_empty  # the plan in C has refused
        return self.other.run(arrays, commit)

    def _ask_for_c(self) -> None:
        """Build the plan in C, in the background."""
        self.is_asked_for = True
        if config.compiler != "none":
            build.in_background(partial(self._build, config.compiler))

    def _build(self, compiler: str) -> None:
        try:
            self.compiled = FastPlan(*self.net, Native(self.packing, compiler))
            with self.lock:
                self._give_up_memory()
        except NoNestError:
            return
        except NotBuiltError as error:
            build.note(str(error))
        except Exception as error:  # the NumPy plan is as right
            build.note(f"{type(error).__name__}: {error}"[:200])

    def _give_up_memory(self) -> None:
        """Keep no arrays beside the arrays of the plan in C."""
        self.is_empty = True
        self.memory, self.arena = Memory(), numpy.empty(0, numpy.uint8)
        lists: list[list[Any]] = [self.steps, self.groups, self.last_groups, self.template]
        for kept in [*lists, self.copied, self.pools, self.swaps, self.dropped, self.results]:
            kept.clear()
        for table in (self.arrays, self.owned, self.constants):
            table.clear()

    def c_source(self) -> str:
        """The C of the net's nests."""
        native = Native(self.packing, None)
        with contextlib.suppress(NoNestError, NotBuiltError):
            FastPlan(*self.net, native)
        return native.source

    def describe(self) -> Iterator[str]:
        """The calls, line by line, and the C of the net."""
        yield from self._calls() if self.compiled is None else self.compiled._calls()
        yield "  as C:" if self.compiled is None else "  as C, in use:"
        yield from [f"    {line}" for line in self.c_source().splitlines()]

    def _calls(self) -> Iterator[str]:
        bound = sum(isinstance(step, BoundCall) for step in self.steps)
        yield f"  {len(self.steps)} calls, {bound} of them on arrays that are known before"
        yield f"  {self.memory.bytes} bytes of memory that the plan keeps"
        yield from [f"    {name_of_call(step.function)}" for step in self.steps]

    def _run(self, arrays: Arrays, commit: Commit | None) -> Arrays:
        if self.is_new:  # large results come now: first the memory of the recording is given back
            self.is_new = False
            if self.pools or self.swaps:
                give_pages_back()
        values = self.template.copy()
        values[: len(arrays)] = arrays
        for slot, array in self.copied:
            numpy.copyto(array, values[slot])
        for slot, pool in self.pools:
            values[slot] = pool.take()
        call_all(self.groups, values)
        if self.swaps and self._swap(values, commit) and self.native is None:
            with numpy.errstate(all="ignore"):
                call_all(self.last_groups, values)
        else:
            call_all(self.last_groups, values)
        return self._results(values)

    def _swap(self, values: list[Any], commit: Commit | None) -> bool:
        """Give the updates' results the memory of their inputs, or of copies of inputs.

        Returns:
            True if an input is overwritten.
        """
        for slot in self.dropped:
            values[slot] = None
        if raises_errors():
            commit = None
        if commit is not None:
            commit.begin()
        is_overwriting = False
        for read, write, name in self.swaps:
            array = values[read]
            usable = type(array) is numpy.ndarray and array.base is None and array.flags.carray
            del array
            # the table of values and the arguments of ``run`` hold the array too
            if usable and commit is not None and commit.is_free(name, values, read, 1):
                values[write] = values[read]
                is_overwriting = True
            else:
                values[write] = numpy.array(values[read], order="C")
        return is_overwriting

    def _results(self, values: list[Any]) -> Arrays:
        """The results, with copies of the arrays in memory of the plan."""
        results = []
        for slot, array in self.results:
            if array is not None:
                results.append(array.copy("K"))
            elif self._may_leave(values[slot]):
                results.append(values[slot])
            else:
                results.append(values[slot].copy("K"))
        if self.layout is not None:
            results.insert(self.number, self.arena.copy())
        return tuple(results)

    def _may_leave(self, result: Any) -> bool:
        """True if an array shares no memory with the plan."""
        base = result.base
        owns = type(base) is numpy.ndarray and base.base is None and id(base) not in self.own
        return base is None or (owns and bool(result.flags.writeable))


@dataclass
class Native:
    """The library of a plan in C, and the needs from the plan in NumPy.

    Attributes:
        packing: the places of the small saved values, for the backward plan.
        compiler: the value of ``config.compiler``; None emits the source alone.
    """

    packing: Layout
    compiler: str | None
    source: str = ""
    library: Any = None

    def build(self, actions: list[Step], over: Mapping[str, str]) -> list[Step]:
        """Compile the nests among the actions, or raise NotBuiltError.

        ``over`` has the results in the memory of an input, and the inputs.
        """
        nests = [action for action in actions if isinstance(action, Nest)]
        if not nests:
            raise NoNestError
        for nest in nests:
            nest.over = {write: over[write] for write in nest.writes if write in over}
        self.source = source_of(nests)
        self.library = build.library(self.source, self.compiler or "none")
        return actions


class NoNestError(Exception):
    """No operator of a net has C."""


def raises_errors() -> bool:
    """True if numpy.errstate asks for more than warnings: C finds no errors of floating point."""
    return not {"raise", "call", "log", "print"}.isdisjoint(numpy.geterr().values())


def call_all(groups: list[Any], values: list[Any]) -> None:
    """Make the calls in order, with the table of values."""
    for group in groups:
        if isinstance(group, list):
            for function, known in group:
                function(*known)
        else:
            result = group.function(*[values[slot] for slot in group.reads])
            if group.write >= 0:
                values[group.write] = result


def grouped(steps: list[BoundCall | LateCall]) -> list[Any]:
    """The calls, with bound calls in a row as one list, which runs quicker."""
    groups: list[Any] = []
    for kind, found in itertools.groupby(steps, type):
        calls = list(found)
        groups += calls if kind is LateCall else [calls]
    return groups


def owner_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while type(array.base) is numpy.ndarray:
        array = array.base
    return array


def name_of_call(function: Any) -> str:
    """A call in a few words."""
    if isinstance(function, partial) and function.func is run_node:
        return f"{function.args[0]}    (as a function)"
    function = function.func if isinstance(function, partial) else function
    return str(getattr(function, "__name__", function))


def copy_elements(x: Any, out: Any) -> None:
    """The elements of x in the shape of out."""
    numpy.copyto(out.reshape(x.shape), x)
