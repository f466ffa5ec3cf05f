"""Updates: what an optimizer does in a recorded function, as operators of the net.

Requirement: a compiled training step changes parameters as eager code does: all of them, or none.
So the net computes new parameters and new moments from the old ones, and they are put in their
places when it has run. What the optimizer has at that time are inputs of the net: the moments, the
learning rate, the count of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy

from tinynode.core.variable import Variable, wrap_array
from tinynode.net.operator import Operator, operator_of
from tinynode.net.registry import register_op
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, OwnStep, SGDUpdate

register_op("sgd_update")(SGDUpdate)
register_op()(MomentumUpdate)
register_op()(AdamUpdate)
register_op()(OwnStep)


class Part(NamedTuple):
    """What an update does to one parameter, by names of the net.

    Attributes:
        slot: the optimizer's, with the parameter, its moments and its count.
        counted: the first slot of the same count, whose count is the input.
        parameter: what is read.
        gradient: likewise.
        result: the new parameter.
        read: the moments.
        written: the new moments.
    """

    slot: Any
    counted: Any
    parameter: str
    gradient: str
    result: str
    read: dict[str, str]
    written: dict[str, str]


class Update:
    """A call of ``optimizer.update()`` in a recorded function.

    Attributes:
        optimizer: the optimizer.
        parts: the parameters that it updates.
        skipped: the parameters that it does not: they have no gradient.
    """

    def __init__(self, optimizer: Any, namer: Any) -> None:
        self.optimizer = optimizer
        self.parts: list[Part] = []
        self.skipped: list[Variable] = []
        self._title = f"{type(optimizer).__name__}.update"
        self._function = optimizer.update_function()
        self._namer = namer
        attributes = [name for name in self._function.numbers if name != "count"]
        self._numbers = {name: namer.like(name) for name in attributes}
        self._counts: dict[int, tuple[str, Any]] = {}

    def add(self, slot: Any, parameter: str, gradient: str) -> Operator:
        """The operator that updates one more parameter.

        Raises:
            GraphError: its moments do not fit.
        """
        slot.prepare(self._title)
        new = self._namer.new
        read = {name: self._namer.like(f"{parameter}.{name}") for name in slot.moments}
        result, written = new("t"), {name: new("t") for name in slot.moments}
        names = dict(self._numbers)
        if "count" in self._function.numbers:
            if slot.count not in self._counts:
                self._counts[slot.count] = self._namer.like("count"), slot
            names["count"] = self._counts[slot.count][0]
        _, counted = self._counts.get(slot.count, ("", slot))
        self.parts.append(Part(slot, counted, parameter, gradient, result, read, written))
        numbers = [names[name] for name in self._function.numbers]
        reads = [parameter, gradient, *read.values(), *numbers]
        return operator_of(self._function, reads, [result, *written.values()])

    def inputs(self) -> dict[str, Variable]:
        """What the operators read beside parameters and gradients, as it is now, by name."""
        device = self.parts[0].slot.parameter.device
        numbers = {name: getattr(self.optimizer, key) for key, name in self._numbers.items()}
        numbers.update((name, slot.count + 1) for name, slot in self._counts.values())
        found = {
            name: wrap_array(device.from_host(numpy.asarray(number, numpy.float64)), device, False)
            for name, number in numbers.items()
        }
        for part in self.parts:
            if part.slot.device is not device:  # it was elsewhere since
                part.slot.prepare(self._title)
            for key, name in part.read.items():
                found[name] = wrap_array(part.slot.moments[key], device, False)
        return found

    def fits(self) -> bool:
        """Whether the optimizer is as it was, but for what is read anew."""
        function = self.optimizer.update_function()
        if type(function) is not type(self._function) or vars(function) != vars(self._function):
            return False
        for part in self.parts:
            if (
                part.slot.count != part.counted.count
                or part.slot.moments.keys() != part.read.keys()
            ):
                return False
        return all(parameter.grad_var is None for parameter in self.skipped)

    def writes(self) -> Iterator[tuple[str, str]]:
        """What is written, and what to it."""
        for part in self.parts:
            yield part.parameter, part.result
            yield from zip(part.read.values(), part.written.values(), strict=True)

    def release(self) -> None:
        """Let go of the gradients of the last step: the run may use their memory."""
        for part in self.parts:
            part.slot.parameter.grad_var = None

    def repeat(self, results: Mapping[str, Variable]) -> None:
        """Put the results of a run in their places."""
        for part in self.parts:
            moments = {key: results[name].raw for key, name in part.written.items()}
            part.slot.take(results[part.result].raw, moments)
