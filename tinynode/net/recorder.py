"""Recorder: writes down the functions that run, as operators of a net.

Requirement: what define-by-run code does is found by watching it, with no second way to run
functions. The recorder observes each application, and gives each VariableNode a name.

Three kinds of Variables come from outside. One that was *bound* has the name that it was given.
One that somebody still holds when the recording ends, such as a parameter, is *captured*: it
becomes an input of the net, and its array is read anew at each run. One that nobody holds any
more is a constant, such as the number in ``x * 2``, or a copy without a gradient, if its array is
that of a known Variable: ``x.detach()``.

Functions may write to captured Variables, as ``x[i] = v`` does. What they have written is put back
when the recording ends, since the recording is no run: a run of the net writes it again.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tinynode.configuration import config
from tinynode.core.function import FunctionAdapter
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook, thread_state
from tinynode.core.variable import Variable, restore
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Array, Device, namespace_of
from tinynode.errors import TraceError
from tinynode.functions.indexing import GetItem, Positions
from tinynode.net.helpers import Constant, StopGradient
from tinynode.net.operator import EMPTY, Operator, operator_of
from tinynode.net.updates import Update


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
    """A Variable from outside: its name, and what it was when it was first met.

    ``copy`` is the operator that the Variable is the result of, if it turns out to be a constant
    with the array of another Variable.
    """

    name: str
    variable: weakref.ref[Variable]
    array: Array
    device: Device
    grad: Variable | None
    copy: Operator | None


class GradientWrite(NamedTuple):
    """A captured Variable whose gradient was cleared, and perhaps computed after that.

    Attributes:
        variable: the captured Variable.
        target: the name of its gradient as something that is written.
        name: the name of what is written; None where it was cleared only.
    """

    variable: Variable
    target: str
    name: str | None

    def repeat(self, results: Mapping[str, Variable]) -> None:
        """Do it again, with the results of a run."""
        self.variable.grad_var = None if self.name is None else results[self.name].detach()


class Write(NamedTuple):
    """What a function did to a captured Variable.

    Attributes:
        variable: the captured Variable.
        target: its name.
        name: the name of what it stands for now.
        moved: whether it stands on the node of a result now, as after ``x[i] = v``; otherwise it
            has another array on the node that it had.
        requires_grad: whether that result requires a gradient.
    """

    variable: Variable
    target: str
    name: str
    moved: bool
    requires_grad: bool

    def repeat(self, results: Mapping[str, Variable]) -> None:
        """Do it again, with the results of a run."""
        result = results[self.name]
        if self.moved:
            self.variable.become(result if self.requires_grad else result.detach())
        else:
            self.variable.raw = result.raw


class NetRecorder(FunctionHook):
    """Collects operators. Use it by ``with recorder:``.

    Args:
        namer: gives names to variables.
        title: the name of the function that is recorded.
        records_nets: True if a whole function is recorded. Then values must not be read off
            Variables. False for the ``backward`` of one function.

    Attributes:
        operators: what was recorded, in run order.
        modules: the modules that were called.
        updates: what optimizers do.
        error: the first error that was raised, if there was one.
        title: the name of the function that is recorded.
    """

    def __init__(
        self, namer: Namer, title: str = "the function", records_nets: bool = False
    ) -> None:
        self.name = f"net recorder {id(self)}"
        self.records_nets = records_nets
        self.namer = namer
        self.title = title
        self.operators: list[Operator] = []
        self.modules: list[Any] = []
        self.updates: list[Update] = []
        self.error: TraceError | None = None
        self._cleared: set[VariableNode] = set()
        self._updated: set[VariableNode] = set()
        # nodes are kept: a retained output that nobody holds would come back with another one
        self._names: dict[VariableNode, str] = {}
        self._leaves: dict[VariableNode, _Leaf] = {}
        self._arrays: dict[int, tuple[str, Callable[[], Array | None]]] = {}
        self._is_connected = config.enable_backprop
        self._computed: set[str] = set()
        self._chained: list[weakref.ref[VariableNode]] = []  # computed, with a graph
        self._plain: set[str] = set()  # computed without a graph
        self._copies: dict[str, str] = {}  # the names of what has a gradient, without one

    def failure(self, message: str) -> TraceError:
        """The error to raise. It is kept: a function that catches it cannot be recorded either."""
        error = TraceError(message)
        self.error = self.error or error
        return error

    def bind(self, variable: Variable, name: str) -> None:
        """Say what a Variable is called."""
        self._names[variable.node] = name
        if variable.raw is not None:
            self._arrays[id(variable.raw)] = name, _reference(variable.raw)

    def _name_of_array(self, array: Array) -> str | None:
        """What the Variable with this very array is called, if it was seen."""
        name, reference = self._arrays.get(id(array), (None, None))
        # another array may have had this id before
        return name if reference is not None and reference() is array else None

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Write an application down.

        Raises:
            TraceError: the shape of its output depends on values, or it is an old-style Function.
        """
        if isinstance(function, FunctionAdapter):
            raise self.failure(
                f"{self.title}: {function.label} is an old-style Function, whose backward works "
                "on arrays, so it has no gradient net. Write it as a FunctionNode, or call it "
                "outside of the compiled function."
            )
        if isinstance(function, _SELECTING) and any(_is_mask(x) for x in inputs):
            raise self.failure(
                f"{self.title}: x[mask] has a shape that depends on values, and a net has fixed "
                "shapes. Use where(mask, x, 0), or do it outside of the compiled function."
            )
        is_cut = self._is_connected and not config.enable_backprop
        read = [self._without_gradient(x) if is_cut else self.name_of(x) for x in inputs]
        written = []
        for y in outputs:
            name = EMPTY if y.raw is None else self.namer.new("t")
            self.bind(y, name)
            self._computed.add(name)
            written.append(name)
            if y.creator_node is not None:
                self._chained.append(weakref.ref(y.node))
        if is_cut:
            self._plain.update(written)
        self.operators.append(operator_of(function, read, written))

    def name_of(self, variable: Variable) -> str:
        """The name of a Variable; one that is not known is a leaf, or was detached from one."""
        if variable.node in self._updated:
            raise self.failure(
                f"{self.title}: a parameter ({variable.label}) is read after the optimizer's "
                "update(), which a net does at its end. Return before, and go on in another call."
            )
        leaf = self._leaves.get(variable.node)
        if leaf is not None and variable.raw is not leaf.array:
            return self._name_of_new_array(variable, leaf)
        if variable.node not in self._names:
            known = self._name_of_array(variable.raw)
            if known is not None and known in self._computed:
                name = self.namer.new("t")
                self._computed.add(name)
                self._add_copy(known, name)
            else:
                name = self._leaf(variable, known)
            self.bind(variable, name)
        return self._names[variable.node]

    def _name_of_new_array(self, variable: Variable, leaf: _Leaf) -> str:
        """The name of what was written to a captured Variable, such as a running mean."""
        if variable.requires_grad:
            raise self.failure(
                f"{self.title}: {leaf.name} requires a gradient, was given a new array, and is "
                "read again: a net has one value of it. Go on with the new value as a Variable "
                "of its own, or in another call."
            )
        # where it is not known, the end of the recording says so
        return self._name_of_array(variable.raw) or leaf.name

    def _without_gradient(self, variable: Variable) -> str:
        """The name of what no_backprop_mode() sees of a Variable: no gradient comes back to it."""
        name = self.name_of(variable)
        if name in self._plain or not variable.requires_grad:
            return name
        if name not in self._copies:
            self._copies[name] = self.namer.new("t")
            self._add_copy(name, self._copies[name])
        return self._copies[name]

    def _add_copy(self, source: str, name: str) -> Operator:
        copy = operator_of(StopGradient(), [source], [name])
        self.operators.append(copy)
        return copy

    def _leaf(self, variable: Variable, known: str | None) -> str:
        """A name for a Variable from outside, or for the copy of one: ``finish`` finds out."""
        name = self.namer.like(variable.name) if variable.name else self.namer.new("c")
        copy = None if known is None else self._add_copy(known, name)
        self._leaves[variable.node] = _Leaf(
            name,
            weakref.ref(variable),
            variable.raw,
            variable.device,
            variable.grad_var,
            copy,
        )
        return name

    def training_read(self, module: Any) -> None:
        """The net depends on the module's ``training``."""
        if module not in self.modules:
            self.modules.append(module)

    def numbers_drawn(self) -> None:
        """Raise: random numbers that are drawn now would be the same in each run of the net."""
        if not self.records_nets:
            return
        raise self.failure(
            f"{self.title}: tinynode.random draws numbers while a net is recorded: every run would"
            " get the same. Draw them before, and pass them as an argument. (dropout may be "
            "recorded: it draws at each run.)"
        )

    def setting_assigned(self, what: str) -> None:
        """Raise: a number that is set now would be the same in each run of the net."""
        if not self.records_nets:
            return
        raise self.failure(
            f"{self.title}: {what} is set while a net is recorded, and a net would not set it "
            "again. Set it outside of the compiled function: it is read anew at each run."
        )

    def value_read(self, what: str) -> None:
        """Raise: the values of a Variable are read, and a net has none.

        This holds for every Variable: a value that is read off a parameter would never change.
        """
        if not self.records_nets:
            return
        raise self.failure(
            f"{self.title}: {what} asks for the value of a Variable while a net is recorded, and "
            "nets have shapes and dtypes but no values. Keep to functions of Variables "
            "(where(...) for a choice), do it outside of the compiled function, or pass a Python "
            "number as an argument."
        )

    def check_chains(self) -> None:
        """Refuse a function that has unchained a Variable.

        Raises:
            TraceError: it has; a net would let the gradient through.
        """
        for reference in self._chained:
            node = reference()
            if node is not None and node.creator_node is None:
                raise self.failure(
                    f"{self.title}: {self._names[node]} ({node.label}) was unchained, which a net "
                    "cannot repeat. Go on with x.detach() in place of x.unchain()."
                )

    def finish(self) -> dict[str, Variable]:
        """End the recording: constants become operators at the front; gives what is captured.

        Call it when only those Variables are alive that somebody else holds.
        """
        captured, constants = {}, []
        for node, leaf in self._leaves.items():
            variable = leaf.variable()
            if variable is None:
                variable = node.get_variable_or_none()
            if variable is not None:
                captured[leaf.name] = variable
                if leaf.copy is not None:
                    self.operators.remove(leaf.copy)
            elif leaf.copy is None:
                # a copy: what is written to the array later would be seen by some nets only
                array = namespace_of(leaf.array).asarray(leaf.array, copy=True)
                constant = Constant(array, leaf.device)
                constants.append(operator_of(constant, [], [leaf.name]))
        self.operators[:0] = constants
        return captured

    def array_assigned(self, variable: Variable) -> None:
        """The net has to know the variable before its array is replaced."""
        if self.records_nets:
            self.name_of(variable)

    def gradient_cleared(self, variable: Variable) -> None:
        """A gradient is set to None: what is computed after that does not add to what was."""
        if not self.records_nets:
            return
        if variable.node not in self._names:
            self.name_of(variable)
        self._cleared.add(variable.node)

    def update_requested(self, optimizer: Any, slots: Sequence[Any]) -> bool:
        """An optimizer updates its parameters. Nothing is computed: the first run does that.

        Args:
            optimizer: the optimizer.
            slots: what it knows of each of its parameters.

        Returns:
            True: the update became operators of the net.

        Raises:
            TraceError: a net cannot do what ``update`` would do now.
        """
        update = Update(optimizer, self.namer)
        missing = [slot.parameter for slot in slots if slot.parameter.grad_var is None]
        is_skipping = optimizer.allow_missing and len(missing) < len(slots)
        for slot in slots:
            parameter, gradient = slot.parameter, slot.parameter.grad_var
            if gradient is None and is_skipping:
                continue
            name = self._check_update(optimizer, parameter, gradient)
            self.operators.append(update.add(slot, name, self._names[gradient.node]))
            self._updated.add(parameter.node)
        update.skipped += [p for p in missing if p.node not in self._cleared]
        self.updates.append(update)
        return True

    def _check_update(self, optimizer: Any, parameter: Variable, gradient: Any) -> str:
        """The name of a parameter that can be updated."""
        update = f"{type(optimizer).__name__}.update()"
        if parameter.node in self._updated:
            raise self.failure(
                f"{self.title}: {update} is called on a parameter ({parameter.label}) that was "
                "updated already; a net updates once, at its end. Use one call for each step."
            )
        name = self.name_of(parameter)
        if gradient is None or gradient.node not in self._names:
            raise self.failure(
                f"{self.title}: {update} is called, but the gradient of {name} is not computed in "
                "the function. Call cleargrads() and loss.backward() in it, or update() outside."
            )
        leaf = self._leaves.get(parameter.node)
        if parameter.node not in self._cleared and leaf is not None and leaf.grad is not None:
            raise self.failure(f"{self.title}: {_GRADIENT.format(name)}")
        return name

    def take_back_writes(self) -> list[Write | GradientWrite]:
        """What was done to captured Variables.

        They get back what they had: a run of the net will write again.

        Raises:
            TraceError: a net cannot repeat it: an array that was not computed by recorded
                functions, or a gradient.
        """
        writes: list[Write | GradientWrite] = []
        problems = []
        for node, leaf in self._leaves.items():
            variable = leaf.variable()
            if variable is None:
                continue
            moved = variable.node_or_none is not node
            has_new_array = variable.raw is not leaf.array
            if moved or has_new_array:
                name = self._name_of_write(variable, moved)
                if name is None:
                    problems.append(_OTHER_ARRAY.format(leaf.name))
                else:
                    flag = variable.requires_grad
                    writes.append(Write(variable, leaf.name, name, moved, flag))
            gradient = variable.grad_var
            name = None if gradient is None else self._names.get(gradient.node)
            if self._changed_after_update(variable, name):
                problems.append(_AFTER_UPDATE.format(leaf.name))
            if node in self._cleared and (gradient is None or name is not None):
                writes.append(GradientWrite(variable, f"{leaf.name}.grad", name))
            elif gradient is not leaf.grad:
                problems.append(_GRADIENT.format(leaf.name))
            _put_back(variable, node, leaf)
        if problems:
            raise self.failure(f"{self.title}: {problems[0]}")
        return writes

    def _changed_after_update(self, variable: Variable, name: str | None) -> bool:
        """Whether a parameter has another gradient than the one that it was updated with."""
        parts = [part for one in self.updates for part in one.parts]
        used = [part.gradient for part in parts if part.slot.parameter is variable]
        return bool(used) and name is not None and name not in used

    def _name_of_write(self, variable: Variable, moved: bool) -> str | None:
        if moved:
            return None if variable.node_or_none is None else self._names.get(variable.node)
        return self._name_of_array(variable.raw)


def _reference(array: Array) -> Callable[[], Array | None]:
    """A weak reference, or a strong one where an array library has no weak ones."""
    try:
        return weakref.ref(array)
    except TypeError:
        return itertools.repeat(array).__next__


_SELECTING = (GetItem, Positions)


def _is_mask(x: Variable) -> bool:
    return bool(x.raw.dtype == x.xp.bool)


_AFTER_UPDATE = (
    "the gradient of {} was computed anew after the optimizer's update(), which a net does at its "
    "end. Return before, and go on in another call."
)
_OTHER_ARRAY = (
    "{} was given an array that no recorded function computed, so a net cannot repeat it. Compute "
    "it from Variables, or do it outside of the compiled function."
)
_GRADIENT = (
    "the gradient of {} was changed, by backward() for example, and a net cannot add to what it "
    "was. Call cleargrad() first, in the function too; or take gradients with tinynode.grad and "
    "return them, or call backward() on what the compiled function returns."
)


def _put_back(variable: Variable, node: VariableNode, leaf: _Leaf) -> None:
    """Give a Variable what it had when it was first met."""
    restore(variable, node, leaf.array, leaf.grad)


@contextmanager
def without_hooks() -> Iterator[None]:
    """A recording is no call of the user's: hooks of the thread do not see its functions."""
    hooks, thread_state.hooks = thread_state.hooks, {}
    try:
        yield
    finally:
        thread_state.hooks = hooks


def needed_operators(operators: list[Operator], names: Iterable[Any]) -> list[Operator]:
    """The operators that some of these names depend on, in the same order."""
    wanted = set(names)
    kept = []
    for operator in reversed(operators):
        if not wanted.isdisjoint(operator.output_names):
            wanted.update(operator.input_names)
            kept.append(operator)
    return kept[::-1]
