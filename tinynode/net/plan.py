"""Plan: how a net runs.

Requirement: running a net costs no names, no Variables and no hooks: each operator's forward is
called on arrays, in turn. This is the default, for any backend; one that knows better brings its
own (see ``plan_of``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tinynode.backend import Arrays, Device
from tinynode.function_node import FunctionNode
from tinynode.net.helpers import Constant
from tinynode.net.operator import EMPTY, Operator


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


class Plan:
    """Calls the operators of a net one after the other.

    Args:
        operators: in run order; nets in nets are flattened before.
        devices: the inputs' names, in the order of ``run``'s arrays, and their devices.
        outputs: the names of what ``run`` returns.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        devices: Mapping[str, Device],
        outputs: Sequence[str],
    ) -> None:
        places: dict[str, int] = {name: place for place, name in enumerate(devices)}
        self.number_of_inputs = len(places)
        self.constants: list[Any] = []
        where = dict(devices)
        pending = []
        for operator in operators:
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
        self.steps = _with_ends(pending, {*self.outputs, *(p for p, _ in self.constants)})

    def run(self, arrays: Arrays) -> Arrays:
        """The outputs' arrays, from those of the inputs."""
        values: list[Any] = [*arrays, *([None] * (self.size - len(arrays)))]
        for place, value in self.constants:
            values[place] = value
        for step in self.steps:
            results = call(step, tuple([values[place] for place in step.reads]))
            for place, result in zip(step.writes, results, strict=True):
                if place >= 0:
                    values[place] = result
            for place in step.dead:
                values[place] = None
        return tuple([values[place] for place in self.outputs])


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


def call(step: Step, arrays: Arrays) -> Arrays:
    """One step's outputs: by the backend's kernel, or the portable forward."""
    node = step.node
    try:
        results = step.device.backend.forward(node, arrays)
        if type(results) is not tuple:  # Fallback
            results = node.forward(arrays)
    except Exception as error:
        error.add_note(f"It was raised by this operator of a net: {step.operator}")
        raise
    types = step.output_device.array_types
    for result in results:
        if type(result) not in types and result is not None:
            return tuple([r if r is None else step.output_device.lift(r) for r in results])
    return tuple(results)
