"""Updates: an optimizer's update in a recorded function, as operators of the net.

Requirement: a compiled training step changes all parameters, or none, as eager code does. So the
net computes new parameters and moments from the old values. The new values are stored after the
run. The optimizer's moments, learning rate and count of steps are inputs of the net.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy

from tinynode.core.variable import Variable
from tinynode.devices import Array, Device
from tinynode.net.commit import ArrayHolder
from tinynode.net.operator import Operator, operator_of
from tinynode.net.owned_memory import lent
from tinynode.net.registry import register_op
from tinynode.nn.clipping import ClipByNorm, ClipByValue
from tinynode.nn.optimizers import accept_all
from tinynode.nn.updates import (
    AdagradUpdate,
    AdamUpdate,
    DecayedSGDUpdate,
    LionUpdate,
    MomentumUpdate,
    NAdamUpdate,
    OwnStep,
    RMSpropUpdate,
    SGDUpdate,
)

register_op("sgd_update")(SGDUpdate)
register_op("decayed_sgd_update")(DecayedSGDUpdate)
register_op()(MomentumUpdate)
register_op()(AdamUpdate)
register_op("rmsprop_update")(RMSpropUpdate)
register_op()(AdagradUpdate)
register_op("nadam_update")(NAdamUpdate)
register_op()(LionUpdate)
register_op()(OwnStep)
register_op()(ClipByNorm)
register_op()(ClipByValue)


class Part(NamedTuple):
    """The update of one parameter, by names of the net.

    Attributes:
        slot: the optimizer's slot: the parameter, the moments and the count.
        counted: the first slot of the same count; this slot's count is the input.
        parameter: the name of the parameter.
        gradient: the name of the gradient.
        result: the name of the new parameter.
        read: the names of the moments.
        written: the names of the new moments.
    """

    slot: Any
    counted: Any
    parameter: str
    gradient: str
    result: str
    read: dict[str, str]
    written: dict[str, str]


class ResultIndexes(NamedTuple):
    """The indexes of the results of one parameter's update, among the outputs of a program.

    Attributes:
        slot: the optimizer's slot.
        parameter: the index of the new parameter.
        moments: name and index of each new moment.
    """

    slot: Any
    parameter: int
    moments: list[tuple[str, int]]


def store(indexes: Iterable[ResultIndexes], outputs: Sequence[Array]) -> None:
    """Store the results of a run, for all parameters of an update."""
    found = []
    for slot, parameter, moments in indexes:
        new = {key: outputs[index] for key, index in moments}
        found.append((slot, outputs[parameter], new))
    accept_all(found)


class Update:
    """A call of ``optimizer.update()`` in a recorded function, for one group of parameters.

    Attributes:
        optimizer: the group.
        function: the update of one parameter.
        parts: the updated parameters.
        skipped: the parameters without a gradient, which stay as they are.
        frozen: the frozen parameters, which stay as they are.
        uncleared: the parameters whose gradients the function clears after the update alone. Eager
            code would add to an old gradient, so the net fits only where there is none.
    """

    def __init__(self, optimizer: Any, namer: Any) -> None:
        self.optimizer = optimizer
        self.parts: list[Part] = []
        self.skipped: list[Variable] = []
        self.frozen: list[Variable] = []
        self.uncleared: list[Variable] = []
        self._title = f"{type(optimizer).__name__}.update"
        self.function = optimizer.update_function()
        self._namer = namer
        attributes = [name for name in self.function.numbers if name != "count"]
        self._numbers = {name: namer.like(name) for name in attributes}
        self._counts: dict[int, tuple[str, Any]] = {}

    def add(self, slot: Any, parameter: str, gradient: str) -> Operator:
        """Add a parameter, and return the operator of the update.

        Raises:
            GraphError: the moments do not fit.
        """
        slot.prepare(self._title)
        new = self._namer.new
        read = {name: self._namer.like(f"{parameter}.{name}") for name in slot.moments}
        result, written = new("t"), {name: new("t") for name in slot.moments}
        names = dict(self._numbers)
        if "count" in self.function.numbers:
            if slot.count not in self._counts:
                self._counts[slot.count] = self._namer.like("count"), slot
            names["count"] = self._counts[slot.count][0]
        _, counted = self._counts.get(slot.count, ("", slot))
        self.parts.append(Part(slot, counted, parameter, gradient, result, read, written))
        numbers = [names[name] for name in self.function.numbers]
        reads = [parameter, gradient, *read.values(), *numbers]
        return operator_of(self.function, reads, [result, *written.values()])

    def input_devices(self) -> dict[str, Device]:
        """Name and device of each value read beside parameters and gradients."""
        if not self.parts:  # a group without a gradient
            return {}
        names = [*self._numbers.values(), *[name for name, _ in self._counts.values()]]
        for part in self.parts:
            names += part.read.values()
        return dict.fromkeys(names, self.parts[0].slot.parameter.device)

    def inputs(self) -> list[Array]:
        """The current values of ``input_devices``, in the same order."""
        if not self.parts:
            return []
        device = self.parts[0].slot.parameter.device
        numbers = [getattr(self.optimizer, key) for key in self._numbers]
        numbers += [slot.count + 1 for _, slot in self._counts.values()]
        found = [device.from_host(numpy.asarray(number, numpy.float64)) for number in numbers]
        for part in self.parts:
            slot = part.slot
            if slot.device is not device:  # the parameter was moved
                slot.prepare(self._title)
            for key in part.read:
                found.append(lent(slot.moments[key]))
        return found

    def fits(self) -> bool:
        """True if the optimizer is as recorded, except for values read at each run."""
        function = self.optimizer.update_function()
        if type(function) is not type(self.function) or vars(function) != vars(self.function):
            return False
        for slot, counted, _, _, _, read, _ in self.parts:
            if slot.count != counted.count or slot.moments.keys() != read.keys():
                return False
        if any(parameter.requires_grad for parameter in self.frozen):
            return False
        without_gradient = (*self.skipped, *self.uncleared)
        return all(parameter.grad_var is None for parameter in without_gradient)

    def writes(self) -> Iterator[tuple[str, str]]:
        """Pairs of names: the target, and the written value."""
        for part in self.parts:
            yield part.parameter, part.result
            yield from zip(part.read.values(), part.written.values(), strict=True)

    def places(self) -> Iterator[tuple[str, ArrayHolder]]:
        """Each parameter and moment that is read and written, by name."""
        for part in self.parts:
            yield part.parameter, ArrayHolder(part.slot, None)
            yield from [(name, ArrayHolder(part.slot, key)) for key, name in part.read.items()]

    def release(self) -> None:
        """Free the gradients of the last step, and let the nodes forget the parameters' arrays.

        The run may use the memory. Recorded functions hold the arrays for backward themselves.
        """
        for part in self.parts:
            parameter = part.slot.parameter
            parameter.grad_var = None
            node = parameter.node_or_none
            if node is not None:
                node.data = None

    def result_indexes(self, outputs: Iterable[str]) -> list[ResultIndexes]:
        """For each parameter the indexes of the results, among the names of the outputs."""
        index = {name: i for i, name in enumerate(outputs)}
        found = []
        for part in self.parts:
            moments = [(key, index[name]) for key, name in part.written.items()]
            found.append(ResultIndexes(part.slot, index[part.result], moments))
        return found
