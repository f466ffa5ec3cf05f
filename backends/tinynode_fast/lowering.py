"""Lowering: a net becomes calls that write to memory of a plan.

Requirement: a run of a net costs the functions of NumPy and C, and next to nothing else. A rule
turns an operator into formulas, reductions, other calls and views. A plan in C runs formulas and
reductions as loops. A plan in NumPy runs a formula by one function of NumPy. Without a rule or a
function the operator runs as a FunctionNode.

A training step in C needs no second copy of parameters and moments. An update writes the new value
of an element in the place of the old value. So updates run last: other operators may fail.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TypeAlias

import numpy

from tinynode import functions
from tinynode.functions import convolution
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import node_class_of
from tinynode_fast.actions import Action, Net, OpaqueCall, View
from tinynode_fast.draft import Draft
from tinynode_fast.images import CHANNELS_LAST
from tinynode_fast.memory import is_small
from tinynode_fast.native.formulas import ElementFormula, Reduction
from tinynode_fast.native.nests import Layouts, Nest, into_nests
from tinynode_fast.rules import OF_SEVERAL_DTYPES, RULES, UPDATES, free_matrices

TO_CHANNELS_LAST = {convolution.Conv2d, convolution.Conv2dGradX, functions.MaxPool2dGrad}
"""The kernels for images lay out these results with the channels last."""
Step: TypeAlias = Action | Nest


class Lowering(Draft):
    """The actions of a net, in the order of a run.

    Attributes:
        first, last: the actions before the updates, and the updates.
        roots: for each view, the value that owns the memory.
    """

    def __init__(self, net: Net, is_native: bool) -> None:
        outputs = (*net.outputs, *net.saved)
        super().__init__(dict(net.forms), is_native, free_matrices(net.operators, outputs))
        self.orders.update(net.orders)
        read = {name for operator in net.operators for name in operator.input_names}
        last: list[Action] = []
        for operator in net.operators:
            before = len(self.actions)
            self._lower(operator)
            is_last = is_native and node_class_of(operator) in UPDATES
            if is_last and read.isdisjoint(operator.output_names):
                last += self.actions[before:]
                del self.actions[before:]
        # an update as a FunctionNode makes new arrays, and may fail
        first = [*self.actions, *[action for action in last if isinstance(action, OpaqueCall)]]
        last = [action for action in last if not isinstance(action, OpaqueCall)]
        self.actions = [*first, *last]
        self.roots: dict[str, str] = {}
        for action in self.actions:
            if isinstance(action, View):
                self.roots[action.writes[0]] = self.root(action.reads[0])
        self._choose_overwritten(net, first, last)
        self.first: list[Step] = [*first]
        self.last: list[Step] = [*last]
        if is_native:
            layouts = Layouts(self.forms, self.orders, self.constants)
            self.first, self.last = into_nests((first, last), layouts, set(outputs))
            for nest in self.nests():
                nest.over = {w: self.over[w] for w in nest.writes if w in self.over}

    def nests(self) -> list[Nest]:
        """The nests among the actions."""
        return [step for step in (*self.first, *self.last) if isinstance(step, Nest)]

    def root(self, name: str) -> str:
        """The value that owns the memory of a value."""
        return self.roots.get(name, name)

    def _choose_overwritten(self, net: Net, first: list[Action], last: list[Action]) -> None:
        """Keep in ``over`` the inputs that only the update of the same element reads."""
        reads = Counter(self.root(name) for action in last for name in action.reads)
        held = {self.root(name) for name in (*net.outputs, *net.saved)}
        for action in first:
            if isinstance(action, OpaqueCall):  # may give a view of the plan's copy of an input
                names = map(self.root, action.reads)
                held.update(n for n in names if n in net.devices and is_small(self.forms[n]))
        writers = {name: action for action in last for name in action.writes}
        self.over = {
            write: read
            for write, read in self.over.items()
            if write in writers and read in writers[write].reads and reads[read] == 1
            if read not in held and write not in self.orders
            if self.forms[read] == self.forms[write]
        }

    # --- an operator -----------------------------------------------------------------------------

    def _lower(self, operator: Operator) -> None:
        """Append the actions of one operator."""
        if operator.type == "constant":
            self.constants[operator.output_names[0]] = operator.attrs["value"]
            return
        node = operator.make_node()
        kind, before, known = type(node), len(self.actions), len(self.known)
        reads, writes = tuple(operator.input_names), tuple(operator.output_names)
        has_rule = kind in RULES and (kind in OF_SEVERAL_DTYPES or self.one_dtype(*reads, *writes))
        if has_rule and all(math.prod(self.shape(n)) for n in reads + writes if n != EMPTY):
            self.title = kind.__name__.lower()
            RULES[kind](self, node, reads, writes)
        if len(self.actions) == before or not all(map(self._can_run, self.actions[before:])):
            del self.actions[before:]
            while len(self.known) > known:
                self.known.popitem()
            self.actions.append(OpaqueCall(operator, reads, writes))
        for action in self.actions[before:]:
            self._note_order(kind, action)

    def _can_run(self, action: Action) -> bool:
        """True if the plan has a function for an action, and the shapes agree.

        The shapes of values come from a run. A rule reads attributes, and these may be wrong.
        """
        function = getattr(action, "function", None)
        shapes, result = list(map(self.shape, action.reads)), self.shape(action.writes[0])
        if isinstance(action, View):
            stand_in = numpy.broadcast_to(numpy.empty((), bool), shapes[0])
            return bool(action.function(stand_in).shape == result)
        if isinstance(function, ElementFormula | Reduction) and not function.agrees(
            shapes, result
        ):
            return False
        if isinstance(function, ElementFormula):
            return (self.is_native and function.in_c) or function.in_numpy is not None
        return self.is_native or not isinstance(function, Reduction)

    def _note_order(self, kind: type, action: Action) -> None:
        """Note the order of axes in memory: of images, or of the first operand."""
        if kind in TO_CHANNELS_LAST and not isinstance(action, View):
            self.orders.setdefault(action.writes[0], CHANNELS_LAST)
        elif kind is functions.MaxPool2d or isinstance(
            getattr(action, "function", None), ElementFormula
        ):
            for order in [self.orders[name] for name in action.reads if name in self.orders]:
                if len(order) == len(self.shape(action.writes[0])):
                    # NumPy then passes over memory in one run
                    self.orders.update((n, order) for n in action.writes if n in self.forms)
                    return
