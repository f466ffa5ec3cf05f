"""Plan: how a net runs.

Requirement: a run of a net costs no look-up of names, no Variables and no hooks. A plan calls the
operators' forwards on arrays, in run order. ``Plan`` is the default for every backend. A backend
may bring its own plan (see ``plan_of``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tinynode.core.dispatch import run_forward
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Device, Planner, namespace_of, supports
from tinynode.errors import short_name
from tinynode.net.helpers import Constant
from tinynode.net.making import making_net, paused_collector
from tinynode.net.operator import EMPTY, ArraySpec, ArraySpecs, Operator
from tinynode.net.passes import is_random, simplify
from tinynode.net.shape_runner import ShapeRunner, has_large


class PlanStep(NamedTuple):
    """One call of a forward, on arrays of the plan's table of values.

    Attributes:
        operator: the operator, for messages.
        node: the FunctionNode whose forward is called; the node retains no arrays.
        device: the device of the inputs.
        output_device: the device of the outputs.
        reads: the inputs' indexes in the table. The outputs are appended to the table.
        freed: the indexes of computed arrays that no later step reads.
    """

    operator: Operator
    node: FunctionNode
    device: Device
    output_device: Device
    reads: tuple[int, ...]
    freed: tuple[int, ...]


class Packing(NamedTuple):
    """How a plan packs the arrays saved for a backward: the small arrays in one byte array.

    Attributes:
        packed: the small arrays: name, first byte and spec of each.
        size: the number of bytes of all small arrays.
        names: the names of all saved arrays, in the requested order.
    """

    packed: dict[str, tuple[int, ArraySpec]]
    size: int
    names: tuple[str, ...]

    def view(self, memory: Any, name: str) -> Any:
        """The small array of that name, as a view of the byte array."""
        start, (shape, dtype) = self.packed[name]
        length = math.prod(shape) * dtype.itemsize
        return memory[start : start + length].view(dtype).reshape(shape)


class Saved(NamedTuple):
    """The arrays saved by a forward, in the order of their names, or packed by a layout."""

    arrays: Arrays
    layout: Packing | None

    def unpacked(self) -> Arrays:
        """One array for each name."""
        if self.layout is None:
            return self.arrays
        memory, rest = self.arrays[0], iter(self.arrays[1:])
        return tuple(
            [
                self.layout.view(memory, n) if n in self.layout.packed else next(rest)
                for n in self.layout.names
            ]
        )


class Plan:
    """Calls the operators of a net one after the other.

    Args:
        operators: in run order, without nested nets.
        devices: the device of each input by name, in the order of ``run``'s arrays.
        outputs: the names of ``run``'s results.

    Attributes:
        layout: the packing of saved arrays; None, since ``Plan`` packs nothing.
    """

    layout: Packing | None = None

    def __init__(
        self,
        operators: Sequence[Operator],
        devices: Mapping[str, Device],
        outputs: Sequence[str],
    ) -> None:
        nodes = [(operator, operator.make_node()) for operator in operators]
        constants = {o.output_names[0]: n.value for o, n in nodes if isinstance(n, Constant)}
        self.constants = list(constants.values())
        where = dict(devices)
        indexes = {name: index for index, name in enumerate((*devices, *constants))}
        self.first_computed = size = len(indexes)
        fixed: set[str] = set()  # the names that depend on constants alone
        steps = []
        for operator, node in nodes:
            if fixed.issuperset(operator.input_names) and not is_random(operator):
                fixed.update(operator.output_names)
            device, output_device = devices_of(operator, node, where)
            where.update(dict.fromkeys(operator.output_names, output_device))
            if isinstance(node, Constant):
                continue
            reads = tuple([indexes[name] for name in operator.input_names])
            steps.append(PlanStep(operator, node, device, output_device, reads, ()))
            indexes.update((name, size + i) for i, name in enumerate(operator.output_names))
            size += len(operator.output_names)
        self.outputs = tuple([indexes[name] for name in outputs])
        self.copied = tuple([i for i, name in enumerate(outputs) if name in fixed])
        self.steps = self._with_freed(steps, size)

    def _with_freed(self, steps: list[PlanStep], size: int) -> list[PlanStep]:
        """The steps, each with the arrays that no later step reads."""
        needed = set(self.outputs)
        finished = []
        for step in reversed(steps):
            start = size - len(step.operator.output_names)
            computed = {index for index in step.reads if index >= self.first_computed}
            used = computed.union(range(start, size))
            finished.append(step._replace(freed=tuple(sorted(used - needed))))
            needed |= used
            size = start
        return finished[::-1]

    def run(
        self,
        arrays: Arrays,
        specs: ArraySpecs | None = None,
        forward: Callable[..., Arrays] = run_forward,
    ) -> Arrays:
        """The outputs from the inputs; ``specs`` is filled with the specs of computed arrays."""
        values = [*arrays, *self.constants]
        value = values.__getitem__
        for operator, node, device, output_device, reads, freed in self.steps:
            try:
                results = forward(node, tuple(map(value, reads)), device, output_device)
            except Exception as error:
                name_operator(error, operator)
                raise
            if specs is not None:
                note_specs(specs, operator.output_names, results)
            values += results
            for index in freed:
                values[index] = None
        results = tuple(map(value, self.outputs))
        return self._with_copies(results) if self.copied else results

    def _with_copies(self, results: Arrays) -> Arrays:
        """The results, with copies of constants: a caller may write to a result."""
        copied = list(results)
        for i in self.copied:
            copied[i] = namespace_of(copied[i]).asarray(copied[i], copy=True)
        return tuple(copied)

    def describe(self) -> Iterator[str]:
        """The calls, line by line."""
        yield f"  each operator's forward in turn: {len(self.steps)}"
        for step in self.steps:
            yield f"    {step.operator}"


def devices_of(
    operator: Operator, node: FunctionNode, where: Mapping[str, Device]
) -> tuple[Device, Device]:
    """The devices of an operator's inputs and outputs, from the device of each variable."""
    output_device = node.output_device or where[operator.input_names[0]]
    device = where[operator.input_names[0]] if operator.input_names else output_device
    return device, output_device


def call_node(
    operator: Operator, node: FunctionNode, device: Device, output_device: Device, arrays: Arrays
) -> Arrays:
    """The outputs of one step, by the backend's kernel or by the portable forward."""
    try:
        return run_forward(node, arrays, device, output_device)
    except Exception as error:
        name_operator(error, operator)
        raise


def name_operator(error: Exception, operator: Operator) -> None:
    """Add the operator of a net to an exception of its forward."""
    error.add_note(f"It was raised by this operator of a net: {short_name(str(operator))}")


def note_specs(specs: ArraySpecs, names: Iterable[str], arrays: Sequence[Any]) -> None:
    """Write shape and dtype of each array into ``specs``."""
    for name, array in zip(names, arrays, strict=True):
        if array is not None:
            specs[name] = tuple(array.shape), array.dtype


class Noted(NamedTuple):
    """The findings of the first run of a net, for the plan of later runs.

    Attributes:
        operators: the operators of the net, in run order.
        specs: shape and dtype of every variable.
        used: the devices of all variables.
    """

    operators: list[Operator]
    specs: ArraySpecs
    used: frozenset[Device]

    def plan(
        self,
        devices: Mapping[str, Device],
        outputs: Sequence[str],
        saved: Sequence[str] = (),
        layout: Packing | None = None,
    ) -> Any:
        """The plan of later runs; see ``plan_of`` for the arguments."""
        with paused_collector():
            simple = simplify(self.operators, [*outputs, *saved], self.specs)
            return plan_of(simple, devices, outputs, self.specs, saved, layout, self.used)


def first_run(
    operators: list[Operator],
    devices: Mapping[str, Device],
    wanted: Sequence[str],
    arrays: Arrays,
    known: Mapping[str, ArraySpec],
) -> tuple[Arrays | None, Noted]:
    """Run a net for the first time, by the default plan, and note the specs of all arrays.

    The plan of later runs is made by the second run: a net may run only once. But large arrays
    need the plan's care for memory. So the specs come from the recording, or from a run of
    stand-ins, if no function needs values.

    Args:
        operators: in run order, without nested nets.
        devices: the device of each input by name, in the order of ``arrays``.
        wanted: the names of the results.
        arrays: the inputs.
        known: the specs of the recording, by name; of some values, of all, or of none.

    Returns:
        The arrays of the wanted names, or None without a run; the notes for a plan.
    """
    specs: ArraySpecs = dict(known)
    note_specs(specs, devices, arrays)
    for operator in operators:
        if "value" in operator.attrs and not operator.input_names:
            note_specs(specs, operator.output_names, [operator.attrs["value"]])
    results = None
    with paused_collector():
        if not has_large(arrays) or not _has_all(specs, operators):
            first = Plan(operators, devices, wanted)
            if not (has_large(arrays) and _run_shapes(first, arrays, specs)):
                results = first.run(arrays, specs)
    return results, Noted(operators, specs, _used_devices(operators, devices))


def _has_all(specs: ArraySpecs, operators: Iterable[Operator]) -> bool:
    """True if the spec of each computed value is known."""
    return all(name in specs or name == EMPTY for one in operators for name in one.output_names)


def _used_devices(
    operators: Iterable[Operator], devices: Mapping[str, Device]
) -> frozenset[Device]:
    """The devices of the inputs and outputs of all operators but constants."""
    where, used = dict(devices), set[Device]()
    for operator in operators:
        found = devices_of(operator, operator.make_node(), where)
        where.update(dict.fromkeys(operator.output_names, found[1]))
        used.update(() if operator.node_class is Constant else found)
    return frozenset(used)


def _run_shapes(plan: Plan, arrays: Arrays, specs: ArraySpecs) -> bool:
    """Note the specs by a run with stand-ins; False without success."""
    found = dict(specs)
    try:
        with making_net():
            plan.run(arrays, found, ShapeRunner().run)
    except Exception:  # values are needed, or a run of real arrays raises the same error
        return False
    specs.update(found)
    return True


def plan_of(
    operators: Sequence[Operator],
    devices: Mapping[str, Device],
    outputs: Sequence[str],
    specs: ArraySpecs,
    saved: Sequence[str],
    layout: Packing | None,
    used: Collection[Device],
) -> Any:
    """The backend's own plan if the net uses one device and its backend plans; else ``Plan``.

    A backend's ``make_plan`` has these arguments without ``used``. The plan has ``run``, as
    ``Plan`` has, and ``layout``, the packing of the arrays it saves. A given ``layout`` is the
    packing of the inputs that another plan saved.
    """
    if len(used) == 1:
        (device,) = used
        if supports(device.backend, Planner):
            return device.backend.make_plan(operators, devices, outputs, specs, saved, layout)
    return Plan(operators, devices, [*outputs, *saved])
