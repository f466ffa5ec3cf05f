"""Recorder: writes down the functions that run, as operators of a net.

Requirement: what define-by-run code does is found by watching it, with no second way to run
functions. The recorder observes each application, and gives each VariableNode a name.

Three kinds of Variables come from outside. One that was *bound* has the name that it was given.
One that somebody still holds when the recording ends, such as a parameter, is *captured*: it
becomes an input of the net, and its array is read anew at each run. One that nobody holds any
more, such as the number in ``x * 2``, is a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tinynode.backend import Array, Device
from tinynode.errors import TraceError
from tinynode.function_hook import Observer
from tinynode.function_node import FunctionNode
from tinynode.net.helpers import Constant, StopGradient
from tinynode.net.operator import EMPTY, Operator, operator_of
from tinynode.variable import Variable
from tinynode.variable_node import VariableNode


class Namer:
    """Gives out names that were not there before."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._counts: dict[str, int] = {}

    def new(self, prefix: str) -> str:
        """``prefix`` with the next free number."""
        number = self._counts.get(prefix, 0)
        while f"{prefix}{number}" in self.taken:
            number += 1
        self._counts[prefix] = number + 1
        self.taken.add(f"{prefix}{number}")
        return f"{prefix}{number}"

    def like(self, wanted: str) -> str:
        """The name itself if it is free, else the name with a number."""
        if wanted in self.taken:
            return self.new(f"{wanted}_")
        self.taken.add(wanted)
        return wanted


class _Leaf(NamedTuple):
    """A Variable from outside: its name, and what it was when it was first met."""

    name: str
    array: Array
    device: Device


class Recorder(Observer):
    """Collects operators. Use it by ``with observing(recorder):``.

    Attributes:
        operators: what was recorded, in run order.
        title: the name of the function that is recorded.
    """

    def __init__(self, namer: Namer, title: str = "the function") -> None:
        self.namer = namer
        self.title = title
        self.operators: list[Operator] = []
        self._names: dict[VariableNode, str] = {}
        self._leaves: dict[VariableNode, _Leaf] = {}
        self._arrays: dict[int, tuple[str, Array]] = {}  # with the array, which keeps its id

    def bind(self, variable: Variable, name: str) -> None:
        """Say what a Variable is called."""
        self._names[variable.node] = name
        if variable._array is not None:
            self._arrays[id(variable._array)] = name, variable._array

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Write an application down."""
        read = [self.name_of(x) for x in inputs]
        written = []
        for y in outputs:
            name = EMPTY if y._array is None else self.namer.new("t")
            self.bind(y, name)
            written.append(name)
        self.operators.append(operator_of(function, read, written))

    def name_of(self, variable: Variable) -> str:
        """The name of a Variable; one that is not known is a leaf, or was detached from one."""
        node = variable.node
        if node in self._names:
            return self._names[node]
        known = self._arrays.get(id(variable._array))
        if known is not None:  # the same array on another node: x.detach()
            name = self.namer.new("t")
            self.operators.append(operator_of(StopGradient(), [known[0]], [name]))
        else:
            name = self.namer.like(variable._name) if variable._name else self.namer.new("c")
            self._leaves[node] = _Leaf(name, variable._array, variable._device)
        self.bind(variable, name)
        return name

    def refuse(self, what: str) -> None:
        """Raise: something asks for the values of a Variable, which a net does not have.

        This holds for every Variable: what was read off a parameter now would stay as it is now.
        """
        raise TraceError(
            f"{self.title}: {what} asks for the value of a Variable while a net is recorded; a net "
            "has shapes and dtypes but no values. Keep to functions of Variables (where(...) for "
            "a choice), do it outside of the compiled function, or pass a Python number as an "
            "argument."
        )

    def finish(self) -> dict[str, Variable]:
        """End the recording: constants become operators at the front; gives what is captured.

        Call it when only those Variables are alive that somebody else holds.
        """
        captured, constants = {}, []
        for node, leaf in self._leaves.items():
            variable = node.get_variable_or_none()
            if variable is not None:
                captured[leaf.name] = variable
            else:
                constant = Constant(leaf.array, leaf.device)
                constants.append(operator_of(constant, [], [leaf.name]))
        self.operators[:0] = constants
        return captured

    def take_back_writes(self) -> dict[str, Variable]:
        """The captured Variables that have other arrays now, by the names of those arrays.

        They get their old arrays back: a run of the net will write the new ones.

        Raises:
            TraceError: the new array was not computed by recorded functions.
        """
        writes = {}
        for node, leaf in self._leaves.items():
            variable = node.get_variable_or_none()
            if variable is None or variable._array is leaf.array:
                continue
            known = self._arrays.get(id(variable._array))
            variable._array = leaf.array
            if known is None:
                raise TraceError(
                    f"{self.title}: {leaf.name} was given an array that no recorded function "
                    "computed, so a net cannot repeat it. Compute it from Variables, or do it "
                    "outside of the compiled function."
                )
            writes[known[0]] = variable
        return writes


def needed_operators(operators: list[Operator], names: Iterable[Any]) -> list[Operator]:
    """The operators that some of these names depend on, in the same order."""
    wanted = set(names)
    kept = []
    for operator in reversed(operators):
        if not wanted.isdisjoint(operator.output_names):
            wanted.update(operator.input_names)
            kept.append(operator)
    return kept[::-1]
