"""Plans: how the fast path runs a net.

Requirement: after the first run no decisions are left. A plan keeps memory for every value that
is not a result, and makes views once. The rest is a list of calls on known arrays: of NumPy, of
compiled C, and of FunctionNodes. Results, and the arrays saved for a backward plan, are fresh at
each run. No caller sees the memory of the plan.

A plan in NumPy runs first. A plan in C is built in the background, and then replaces the plan in
NumPy. With large values the first run waits a moment, because a plan in NumPy needs more memory.

A plan in C runs updates of parameters last, and overwrites old arrays without another holder; see
``lowering``, and ``tinynode.net.commit`` for the promise of the whole step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy

from tinynode.configuration import config
from tinynode.devices import Arrays, get_device
from tinynode.net.commit import Commit
from tinynode.net.operator import EMPTY, ArraySpec, Operator
from tinynode.net.owned_memory import lent, owned_copy
from tinynode.net.plan import Packing, call_node
from tinynode_fast.actions import FunctionCall, Net, OpaqueCall, View
from tinynode_fast.images import unusual_orders
from tinynode_fast.limits import LIMITS
from tinynode_fast.lowering import Lowering, Step
from tinynode_fast.memory import (
    Memory,
    array_in,
    bytes_of,
    fresh_array,
    give_pages_back,
    is_small,
    owner_of,
)
from tinynode_fast.native import build
from tinynode_fast.native.cache import NotBuiltError
from tinynode_fast.native.calls import CallsInOrder, NestCall
from tinynode_fast.native.emit import source_of
from tinynode_fast.native.formulas import ElementFormula
from tinynode_fast.native.nests import Nest

PACKED = "@packed"
"""The name of the array that holds the small arrays of a layout."""
REPORTS = {"raise", "call", "log", "print"}
"""The settings of numpy.errstate that need NumPy: C finds no errors of floating point."""


class FastPlan:
    """The plans of a ``Net``, in NumPy and in C; ``run`` is as that of ``tinynode.net.plan.Plan``.

    Attributes:
        layout: the packing of the saved arrays.
        plain: the plans in NumPy that no thread runs.
        native: the plans in C that no thread runs; None before the first.
        is_first_call: True in the first call of the net: a net may run only once, without C.
    """

    overwrites = True
    is_first_call = False

    def __init__(self, *net: Any) -> None:
        self.net = Net(*net)
        self.layout = packing_of(self.net)
        self.plain: list[CallPlan] = []
        self.native: list[CallPlan] | None = None
        self.compiler = ""  # of the plans in C, once these are asked for

    def run(self, arrays: Arrays, commit: Commit | None = None) -> Arrays:
        """The outputs' arrays, from those of the inputs.

        With ``commit``, updates may write over inputs. All other calls have returned by then.
        """
        if not self.compiler:
            self._ask_for_c(arrays)
        self.is_first_call = False
        free, is_native = self.native, True
        if free is None or not REPORTS.isdisjoint(numpy.geterr().values()):
            free, is_native, commit = self.plain, False, None
        try:
            plan = free.pop()
        except IndexError:  # other threads run the plans, or the memory is given up
            plan = self._new_plan(is_native)
        try:
            return plan.run(arrays, commit)
        finally:
            free.append(plan)

    def _new_plan(self, is_native: bool, compiles: bool = True) -> CallPlan:
        library_of = partial(build.library, wanted=self.compiler, compiles=compiles)
        return CallPlan(self.net, self.layout, library_of if is_native else None)

    def _ask_for_c(self, arrays: Arrays) -> None:
        """Build the plan in C for such arrays: in the background, or now if values are large."""
        names = [name for operator in self.net.operators for name in operator.output_names]
        size = sum(bytes_of(self.net.forms[name]) for name in names if name in self.net.forms)
        is_large = size >= LIMITS.awaited_bytes
        if self.is_first_call and not is_large:
            return
        given = names_given(list(self.net.devices), self.net.layout)
        self.net = self.net._replace(orders=unusual_orders(given, arrays))
        self.compiler = config.compiler
        if self.compiler != "none" and not (is_large and self._build(compiles=False)):
            build.in_background(self._build, LIMITS.awaited_seconds if is_large else 0.0)

    def _build(self, compiles: bool = True) -> bool:
        """Build the plan in C; the plan in NumPy keeps no memory beside it. True with success."""
        try:
            build.compiler(self.compiler)  # a reason comes before any work
            self.native = [self._new_plan(True, compiles)]
            self.plain = []  # a running plan returns to the old list
            give_pages_back()
        except KeyboardInterrupt:  # the next call asks again
            self.compiler = ""
            raise
        except Exception as error:  # the plan in NumPy is as right
            kind = "" if isinstance(error, NotBuiltError) else f"{type(error).__name__}: "
            if compiles:
                build.note(f"{kind}{error}"[:200])
        return self.native is not None

    def c_source(self) -> str:
        """The C of the net's nests."""
        nests = Lowering(self.net, is_native=True).nests()
        return source_of(nests) if nests else ""

    def describe(self) -> Iterator[str]:
        """The calls, line by line, and the C of the net."""
        plans = self.native or self.plain or [CallPlan(self.net, self.layout)]
        yield from plans[0].describe()
        source = self.c_source()
        yield "  as C, in use:" if source and self.native is not None else "  as C, not in use:"
        yield from [f"    {line}" for line in (source or "no operator becomes C").splitlines()]


def packing_of(net: Net) -> Packing | None:
    """The places of the small saved arrays in one array of bytes."""
    packed, size = {}, 0
    for name in net.saved:
        if is_small(net.forms[name]):
            packed[name] = size, net.forms[name]
            size += -(-bytes_of(net.forms[name]) // 64) * 64
    return Packing(packed, size, tuple(net.saved)) if packed else None


def names_given(names: list[str], layout: Packing | None) -> list[str]:
    """The names of the arrays for ``run``; the small arrays of a layout come as ``PACKED``."""
    if layout is None:
        return names
    first = names.index(layout.names[0])
    others = [name for name in names if name not in layout.packed]
    return [*others[:first], PACKED, *others[first:]]


# --- a list of calls -----------------------------------------------------------------------------


class CallStep(NamedTuple):
    """``function(*arrays)``, on arrays known from the start, or from the table of values.

    ``reads`` are slots in the table of values; the result goes to the slot ``write``, unless -1.
    """

    function: Callable[..., Any]
    arrays: Arrays | None
    reads: tuple[int, ...]
    write: int


class CallPlan:
    """A net as a list of calls on arrays, and the memory of the plan: for one thread at a time.

    Args:
        net: the net.
        packing: the places of the small saved arrays.
        library_of: the functions of C source, for a plan in C; None for a plan in NumPy.

    Attributes:
        arrays: the values whose arrays are known, by name.
        slots: the other values: their slots in the table of values.
        template: the table of values at the start of a run.
        copied: slots of small inputs, and the array with their copies, end to end.
        fresh: slots, form and order of the large results, which are new at each run.
        arena: the memory of the small arrays that are saved; ``packed`` has their names.
        steps: the calls, one by one.
        first, last: the steps before the updates, and the updates, neighbours together.
        swaps: slots and name of each large result in the memory of an input: input, result, name.
        dropped: the slots without an update as reader: a view there would hold a parameter.
        results: a slot, or an array that is copied, for each result.
    """

    def __init__(
        self, net: Net, packing: Packing | None, library_of: Callable[[str], Any] | None = None
    ) -> None:
        self.lowering = Lowering(net, is_native=library_of is not None)
        nests = self.lowering.nests()
        self.library: Any = library_of(source_of(nests)) if library_of and nests else None
        self.packing = packing or Packing({}, 0, ())
        self.packed = self.packing.packed
        self.outputs = {*net.outputs, *net.saved}
        self.leaving = {self.lowering.root(name) for name in self.outputs}
        self.ends = self._last_uses()
        self.memory = Memory()
        self.arena = numpy.empty(self.packing.size, numpy.uint8)
        self.arrays: dict[str, Any] = dict(self.lowering.constants)
        given = names_given(list(net.devices), net.layout)
        self.slots = {name: slot for slot, name in enumerate(given)}
        self.template: list[Any] = [None] * len(given)
        self.copied: list[tuple[list[int], Any]] = []
        self.fresh: list[tuple[int, ArraySpec, Any]] = []
        self.swaps: list[tuple[int, int, str]] = []
        self.steps: list[CallStep] = []
        self.owned: dict[str, Any] = {}
        self.bound: dict[int, NestCall] = {}  # by the index of the step
        self.kept: list[CallsInOrder] = []  # their arrays stay in memory
        self._take_inputs(given, net.layout)
        for name in self.packed:
            if name in self.slots or name in self.arrays:  # an input or a constant
                self._pack(name)
        self._add_all(self.lowering.first, 0)
        count = len(self.steps)
        self._add_all(self.lowering.last, len(self.lowering.first))
        self.first = self._in_order(range(count))
        self.last = self._in_order(range(count, len(self.steps)))
        names = [*net.outputs, *[name for name in net.saved if name not in self.packed]]
        self.results = [(self.slots.get(name, -1), self.arrays.get(name)) for name in names]
        if self.packed:
            self.results.insert(len(net.outputs), (-1, self.arena))
        self.dropped = self._dropped()
        kept = (*self.memory.all, self.arena, *self.lowering.constants.values())
        self.own = set(map(id, map(owner_of, kept)))

    # --- making the list -------------------------------------------------------------------------

    def _last_uses(self) -> dict[int, list[str]]:
        """For each action, the roots of memory without later readers."""
        last: dict[str, int] = {}
        root, steps = self.lowering.root, (*self.lowering.first, *self.lowering.last)
        for number, action in enumerate(steps):
            for name in (*action.reads, *action.writes):
                last[root(name)] = number
        for name in self.outputs:
            last[root(name)] = len(steps)
        for action in reversed(steps):
            if isinstance(action, OpaqueCall):  # its results may be views of its inputs
                until = max(last[root(name)] for name in action.writes)
                for name in action.reads:
                    last[root(name)] = max(last[root(name)], until)
        ends: dict[int, list[str]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        return ends

    def _take_inputs(self, given: list[str], layout: Packing | None) -> None:
        """Copy small inputs at each run, so that calls know their arrays."""
        small: dict[Any, list[str]] = {}
        for name in given:
            if layout is not None and name == PACKED:
                memory = numpy.empty(layout.size, numpy.uint8)
                self.memory.all.append(memory)
                self.copied.append(([self.slots[name]], memory))
                self.arrays.update({n: layout.view(memory, n) for n in layout.packed})
            elif is_small(self.lowering.forms[name]):
                small.setdefault(self.lowering.forms[name][1], []).append(name)
        for dtype, names in small.items():
            shapes = [self.lowering.forms[name][0] for name in names]
            block, parts = self.memory.in_one_array(dtype, shapes)  # one call copies all of them
            self.arrays.update(zip(names, parts, strict=True))
            self.copied.append(([self.slots[name] for name in names], block))

    def _add_all(self, actions: Sequence[Step], number: int) -> None:
        """Add actions, with numbers from ``number`` on."""
        for i, action in enumerate(actions, number):
            self._add(action)
            for name in self.ends.get(i, ()):
                if name in self.owned:  # later values use the memory
                    self.memory.give_back(self.owned.pop(name))

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
            else:
                function = action.function
                function = function.in_numpy if isinstance(function, ElementFormula) else function
                self._append(function, (*action.reads, *action.writes), -1)
        is_in_place = isinstance(
            action, Nest | FunctionCall
        )  # a call writes C order into the arena
        for name in action.writes:
            if name in self.packed and not (is_in_place and name not in self.lowering.orders):
                self._pack(name)

    def _add_nest(self, nest: Nest) -> None:
        """A call of C; the pointers to known arrays are fixed."""
        call = NestCall(nest, self.library, self.arrays)
        if call.late or call.shares > 1:
            self._append(call, call.late, -1)
        else:
            self.bound[len(self.steps)] = call
            self.steps.append(CallStep(call.function, call.arguments, (), -1))

    def _in_order(self, places: range) -> list[CallStep]:
        """Some steps; neighbouring calls of C on known arrays are one step."""
        found = []
        for is_bound, group in itertools.groupby(places, self.bound.__contains__):
            steps = list(group)
            if is_bound and len(steps) > 1:
                call = CallsInOrder([self.bound[i] for i in steps], self.library)
                self.kept.append(call)
                found.append(CallStep(call.function, call.arguments, (), -1))
            else:
                found += [self.steps[i] for i in steps]
        return found

    def _provide(self, name: str) -> None:
        """Memory for a value: of the plan, or fresh at each run for a large result."""
        form, order = self.lowering.forms[name], self.lowering.orders.get(name)
        read = self.lowering.over.get(name)
        if name in self.packed and order is None:
            self.arrays[name] = self.packing.view(self.arena, name)
        elif read in self.arrays:
            self.arrays[name] = self.arrays[read]  # over the plan's copy
        elif read is not None:
            self.swaps.append((self.slots[read], self._new_slot(name), read))
        elif name in self.leaving and not is_small(form):
            self.fresh.append((self._new_slot(name), form, order))
        else:
            self.owned[name] = self.memory.take(form)
            self.arrays[name] = array_in(self.owned[name], form, order)

    def _pack(self, name: str) -> None:
        """Copy a value to the arena that no call writes there."""
        place = f"{PACKED} {name}"
        self.arrays[place] = self.packing.view(self.arena, name)
        self._append(numpy.copyto, (place, name), -1)

    def _new_slot(self, name: str) -> int:
        self.slots[name] = len(self.template)
        self.template.append(None)
        return self.slots[name]

    def _append(self, function: Callable[..., Any], names: Sequence[str], write: int) -> None:
        """A call: bound if all arrays are known, else late."""
        if write < 0 and all(name in self.arrays for name in names):
            known = tuple([self.arrays[name] for name in names])
            self.steps.append(CallStep(function, known, (), -1))
            return
        for name in names:
            if name not in self.slots:  # the known array stands in the table from the start
                self.template[self._new_slot(name)] = self.arrays[name]
        reads = tuple([self.slots[name] for name in names])
        self.steps.append(CallStep(function, None, reads, write))

    def _add_view(self, action: View) -> None:
        (read,), (write,) = action.reads, action.writes
        source = self.arrays.get(read)
        view = None if source is None else action.function(source)
        if view is not None and (not view.size or numpy.may_share_memory(view, source)):
            self.arrays[write] = view
        else:  # of an array that is not known, or a copy
            self._append(self._on_lent(action.function, (read,)), (read,), self._new_slot(write))

    def _add_opaque_call(self, action: OpaqueCall) -> None:
        whole = self._new_slot(f"@all {len(self.template)}")
        call = self._on_lent(NodeCall(action.operator), action.reads)
        self._append(call, action.reads, whole)
        for i, name in enumerate(action.writes):
            if name != EMPTY:
                self.steps.append(CallStep(itemgetter(i), None, (whole,), self._new_slot(name)))

    def _on_lent(self, function: Callable[..., Any], reads: Sequence[str]) -> Callable[..., Any]:
        """A call that may keep an array, with arrays of its own for inputs to overwrite."""
        overwritten = set(self.lowering.over.values())
        return function if overwritten.isdisjoint(reads) else OnLent(function)

    def _dropped(self) -> list[int]:
        """The slots of the values that end before the updates."""
        if not self.swaps:
            return []
        needed = {slot for step in self.last for slot in step.reads}
        needed.update(slot for slot, _ in self.results)
        needed.update(slot for pair in self.swaps for slot in pair[:2])
        return [slot for slot in range(len(self.template)) if slot not in needed]

    # --- a run -----------------------------------------------------------------------------------

    def run(self, arrays: Arrays, commit: Commit | None) -> Arrays:
        """The outputs' arrays, from those of the inputs."""
        values = self.template.copy()
        values[: len(arrays)] = arrays
        for slots, array in self.copied:
            numpy.concatenate([values[slot] for slot in slots], axis=None, out=array)
        for slot, form, order in self.fresh:
            values[slot] = fresh_array(form, order)
        call_all(self.first, values)
        if self.swaps:
            self._swap(values, commit)
        call_all(self.last, values)
        return self._results(values)

    def _swap(self, values: list[Any], commit: Commit | None) -> None:
        """Give the updates' results the memory of their inputs, or of copies of inputs."""
        for slot in self.dropped:
            values[slot] = None
        if commit is not None:
            commit.begin()
        for read, write, name in self.swaps:
            array = values[read]
            if commit is None:
                values[write] = numpy.array(array, order="C")
            else:
                values[write] = array if commit.take(name, array) else owned_copy(array)

    def _results(self, values: list[Any]) -> Arrays:
        """The results, with copies of the arrays in memory of the plan, and of read-only views."""
        results = []
        for slot, known in self.results:
            array = values[slot] if known is None else known
            is_free = known is None and id(owner_of(array)) not in self.own
            results.append(array if is_free and array.flags.writeable else array.copy("K"))
        return tuple(results)

    def describe(self) -> Iterator[str]:
        """The calls, line by line."""
        bound = sum(step.arrays is not None for step in self.steps)
        yield f"  {len(self.steps)} calls, {bound} of them on arrays that are known before"
        yield f"  {self.memory.bytes} bytes of memory that the plan keeps"
        yield from [f"    {name_of_call(step.function)}" for step in self.steps]


def call_all(steps: list[CallStep], values: list[Any]) -> None:
    """Make the calls in order, with the table of values."""
    for function, known, reads, write in steps:
        result = function(*(known or [values[slot] for slot in reads]))
        if write >= 0:
            values[write] = result


class NodeCall:
    """The outputs of a FunctionNode, by its kernel or its portable forward."""

    def __init__(self, operator: Operator) -> None:
        self.__name__ = f"{operator}    (as a function)"
        self.operator, self.node, self.device = operator, operator.make_node(), get_device("fast")

    def __call__(self, *arrays: Any) -> Arrays:
        return call_node(self.operator, self.node, self.device, self.device, arrays)


class OnLent:
    """A call on lent arrays: a result that is a view, or a node that keeps an array, is noted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__ = name_of_call(function)
        self.function = function

    def __call__(self, *arrays: Any) -> Any:
        return self.function(*map(lent, arrays))


def name_of_call(function: Any) -> str:
    """A call in a few words."""
    function = function.func if isinstance(function, partial) else function
    return str(getattr(function, "__name__", function))
