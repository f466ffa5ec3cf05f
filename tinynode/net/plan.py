"""Plan: how a net runs.

Requirement: running a net costs no names, no Variables and no hooks: each operator's forward is
called on arrays, in turn. This is the default, for any backend; one that knows better brings its
own (see ``plan_of``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tinynode.core.dispatch import run_forward
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Device, Planner, namespace_of, supports
from tinynode.net.helpers import Constant
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import is_random, simplify

Form: TypeAlias = tuple[tuple[int, ...], Any]
"""Shape and dtype."""
Forms: TypeAlias = dict[str, Form]


class Step(NamedTuple):
    """One call: a function on some places of the table of values, its results to others.

    Attributes:
        operator: what the step does, for messages.
        node: the FunctionNode whose forward is called; it keeps no arrays.
        device: where its inputs lie.
        output_device: where its outputs lie.
        reads: places of the inputs.
        writes: places of the outputs; -1 for one that nobody wants.
        dead: places that no later step reads.
    """

    operator: Operator
    node: FunctionNode
    device: Device
    output_device: Device
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    dead: tuple[int, ...]


class Layout(NamedTuple):
    """How a plan hands on what it saves for a backward: small arrays together, in one.

    Attributes:
        packed: the small ones: name, first byte, shape and dtype of each.
        size: the bytes of all of them.
        names: all that is saved, in the order that was asked for.
    """

    packed: dict[str, tuple[int, Form]]
    size: int
    names: tuple[str, ...]

    def place(self, memory: Any, name: str) -> Any:
        """The array of that name, a view of the memory."""
        start, (shape, dtype) = self.packed[name]
        length = math.prod(shape) * dtype.itemsize
        return memory[start : start + length].view(dtype).reshape(shape)


class Saved(NamedTuple):
    """What a forward saved: arrays in the order of the names, or as a layout says."""

    arrays: Arrays
    layout: Layout | None

    def unpacked(self) -> Arrays:
        """One array for each name."""
        if self.layout is None:
            return self.arrays
        memory, rest = self.arrays[0], iter(self.arrays[1:])
        return tuple(
            [
                self.layout.place(memory, n) if n in self.layout.packed else next(rest)
                for n in self.layout.names
            ]
        )


class Plan:
    """Calls the operators of a net one after the other.

    Args:
        operators: in run order; nets in nets are flattened before.
        devices: the inputs' names, in the order of ``run``'s arrays, and their devices.
        outputs: the names of what ``run`` returns.

    Attributes:
        layout: how what is saved is handed on: one array for each name.
    """

    layout: Layout | None = None

    def __init__(
        self,
        operators: Sequence[Operator],
        devices: Mapping[str, Device],
        outputs: Sequence[str],
    ) -> None:
        places: dict[str, int] = {name: place for place, name in enumerate(devices)}
        self.constants: list[Any] = []
        where = dict(devices)
        pending = []
        fixed: set[str] = set()  # what depends on constants alone
        for operator in operators:
            if fixed.issuperset(operator.input_names) and not is_random(operator):
                fixed.update(operator.output_names)
            node = operator.make_node()
            read = [places[name] for name in operator.input_names]
            device = where[operator.input_names[0]] if read else node.output_device
            assert device is not None
            output_device = node.output_device or device
            written = []
            for name in operator.output_names:
                where[name] = output_device
                written.append(-1 if name == EMPTY else places.setdefault(name, len(places)))
            if isinstance(node, Constant):
                self.constants.append((written[0], node.value))
            else:
                pending.append((operator, node, device, output_device, read, written))
        self.size = len(places)
        self.outputs = tuple(places[name] for name in outputs)
        self.copied = tuple([i for i, name in enumerate(outputs) if name in fixed])
        self.steps = _with_ends(pending, {*self.outputs, *(p for p, _ in self.constants)})

    def run(self, arrays: Arrays, forms: Forms | None = None) -> Arrays:
        """The outputs' arrays, from those of the inputs; ``forms`` gets what comes on the way."""
        values: list[Any] = [*arrays, *([None] * (self.size - len(arrays)))]
        for place, value in self.constants:
            values[place] = value
        for step in self.steps:
            read = tuple([values[place] for place in step.reads])
            results = call_node(step.operator, step.node, step.device, step.output_device, read)
            if forms is not None:
                note_forms(forms, step.operator.output_names, results)
            for place, result in zip(step.writes, results, strict=True):
                if place >= 0:
                    values[place] = result
            for place in step.dead:
                values[place] = None
        wanted = [values[place] for place in self.outputs]
        for i in self.copied:  # who gets a result may write to it, not to a constant
            wanted[i] = namespace_of(wanted[i]).asarray(wanted[i], copy=True)
        return tuple(wanted)

    def describe(self) -> Iterator[str]:
        """What is run, line by line."""
        yield f"  each operator's forward in turn: {len(self.steps)}"
        for step in self.steps:
            yield f"    {step.operator}"


def _with_ends(pending: list[Any], kept: set[int]) -> list[Step]:
    """The steps, each with the places that it is the last one to touch."""
    later = set(kept)
    steps = []
    for operator, node, device, output_device, read, written in reversed(pending):
        touched = {place for place in (*read, *written) if place >= 0}
        dead = tuple(sorted(touched - later))
        later |= touched
        steps.append(
            Step(operator, node, device, output_device, tuple(read), tuple(written), dead)
        )
    return steps[::-1]


def call_node(
    operator: Operator, node: FunctionNode, device: Device, output_device: Device, arrays: Arrays
) -> Arrays:
    """One step's outputs: by the backend's kernel, or the portable forward."""
    try:
        return run_forward(node, arrays, device, output_device)
    except Exception as error:
        error.add_note(f"It was raised by this operator of a net: {operator}")
        raise


def note_forms(forms: Forms, names: Sequence[str], arrays: Sequence[Any]) -> None:
    """Remember shape and dtype of each array."""
    for name, array in zip(names, arrays, strict=True):
        if array is not None:
            forms[name] = tuple(array.shape), array.dtype


def first_run(
    operators: Sequence[Operator],
    devices: Mapping[str, Device],
    outputs: Sequence[str],
    arrays: Arrays,
    saved: Sequence[str] = (),
    layout: Layout | None = None,
) -> tuple[Arrays, Any]:
    """The arrays of outputs and of what is saved; and the plan for the runs that follow.

    It needs the forms, which are known after this run.
    """
    forms: Forms = {}
    note_forms(forms, list(devices), arrays)
    for operator in operators:
        if "value" in operator.attrs and not operator.input_names:
            note_forms(forms, operator.output_names, [operator.attrs["value"]])
    wanted = [*outputs, *saved]
    first = Plan(operators, devices, wanted)
    results = first.run(arrays, forms)
    used = {device for step in first.steps for device in (step.device, step.output_device)}
    simple = simplify(list(operators), wanted, forms)
    return results, plan_of(simple, devices, outputs, forms, saved, layout, used)


def plan_of(
    operators: Sequence[Operator],
    devices: Mapping[str, Device],
    outputs: Sequence[str],
    forms: Forms,
    saved: Sequence[str],
    layout: Layout | None,
    used: Collection[Device],
) -> Any:
    """The backend's own plan, if it brings one and only one device is used; else the default.

    A backend's ``make_plan`` gets these arguments. Its plan has ``run``, as that of ``Plan``, and
    ``layout``: how it hands on what is saved. With a ``layout`` given, the inputs of that layout's
    names come as it says.
    """
    if len(used) == 1:
        (device,) = used
        if supports(device.backend, Planner):
            return device.backend.make_plan(operators, devices, outputs, forms, saved, layout)
    return Plan(operators, devices, [*outputs, *saved])
