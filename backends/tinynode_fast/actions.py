"""Actions: a net as calls, views and nests, in the order of a run.

Requirement: a training step in C needs no second copy of parameters and moments. An optimizer's
update reads the old value of an element, and writes the new value in the same place. So updates
run last, after all other operators, which may fail or read an old value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tinynode.devices import Device
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import ArraySpec, node_class_of
from tinynode.net.plan import Layout
from tinynode_fast.lowering import UPDATES, Action, Lowering, OpaqueCall, View
from tinynode_fast.memory import is_small
from tinynode_fast.native.nests import Layouts, Nest, into_nests


class Net(NamedTuple):
    """What a plan runs.

    Attributes:
        operators: in run order.
        devices: the inputs by name.
        outputs: the names of the results.
        forms: shape and dtype of every variable.
        saved: the names of further results.
        layout: how the inputs that another plan saved come.
    """

    operators: Sequence[Operator]
    devices: Mapping[str, Device]
    outputs: Sequence[str]
    forms: Mapping[str, ArraySpec]
    saved: Sequence[str]
    layout: Layout | None


Step: TypeAlias = Action | Nest


class Actions:
    """The actions of a net.

    Attributes:
        steps: the actions, in the order of a run.
        forms: the shape and dtype of each value.
        constants: the constant arrays, by name.
        orders: the axes from the largest step in memory to the smallest, where C order is unusual.
        updated: the results of the updates, which run last.
        over: for each result in the memory of an input, the input.
        roots: for each view, the value that owns the memory.
    """

    def __init__(self, net: Net, is_native: bool) -> None:
        lowering = Lowering(dict(net.forms), is_native)
        others, updates = updates_last(net.operators) if is_native else (net.operators, [])
        for operator in others:
            if operator.type == "constant":
                lowering.constants[operator.output_names[0]] = operator.attrs["value"]
            else:
                lowering.lower(operator)
        count = len(lowering.actions)
        for operator in updates:
            lowering.lower(operator)
        first, last = lowering.actions[:count], lowering.actions[count:]
        # an update as a FunctionNode makes new arrays, and may fail
        first += [action for action in last if isinstance(action, OpaqueCall)]
        last = [action for action in last if not isinstance(action, OpaqueCall)]
        self.forms, self.orders, self.constants = (
            lowering.forms,
            lowering.orders,
            lowering.constants,
        )
        self.updated = {name for action in last for name in action.writes}
        self.roots: dict[str, str] = {}
        for action in (*first, *last):
            if isinstance(action, View):
                self.roots[action.writes[0]] = self.root(action.reads[0])
        self.over = self._overwritten(net, updates, first, last)
        self.steps: list[Step] = [*first, *last]
        if is_native:
            layouts = Layouts(self.forms, self.orders, self.constants)
            self.steps = into_nests((first, last), layouts, {*net.outputs, *net.saved})
            for nest in self.nests():
                nest.over = {w: self.over[w] for w in nest.writes if w in self.over}

    def nests(self) -> list[Nest]:
        """The nests among the actions."""
        return [step for step in self.steps if isinstance(step, Nest)]

    def root(self, name: str) -> str:
        """The value that owns the memory of a value."""
        return self.roots.get(name, name)

    def _overwritten(
        self, net: Net, updates: Sequence[Operator], first: list[Action], last: list[Action]
    ) -> dict[str, str]:
        """The results of updates in the memory of an input, with the name of the input."""
        reads = Counter(self.root(name) for action in last for name in action.reads)
        leaving = {self.root(name) for name in (*net.outputs, *net.saved)}
        opaque = [action for action in first if isinstance(action, OpaqueCall)]
        # the plan copies a small input; an opaque call may give a view of the copy
        seen = {self.root(name) for action in opaque for name in action.reads}
        seen = {name for name in seen if name in net.devices and is_small(self.forms[name])}
        writers = {name: action for action in last for name in action.writes}
        found = {}
        for operator in updates:
            (p, _, *others), (new, *results) = operator.input_names, operator.output_names
            for read, write in zip((p, *others), (new, *results), strict=False):
                if write == EMPTY or write in self.orders or self.forms[read] != self.forms[write]:
                    continue
                is_alone = write in writers and read in writers[write].reads and reads[read] == 1
                if is_alone and read not in leaving and read not in seen:
                    found[write] = read
        return found


def updates_last(operators: Sequence[Operator]) -> tuple[list[Operator], list[Operator]]:
    """The other operators, and the updates whose results no operator reads."""
    read = {name for operator in operators for name in operator.input_names}
    others: list[Operator] = []
    updates: list[Operator] = []
    for operator in operators:
        is_last = node_class_of(operator) in UPDATES and read.isdisjoint(operator.output_names)
        (updates if is_last else others).append(operator)
    return others, updates
