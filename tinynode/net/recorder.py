"""Recorder: records the applications of functions as operators of a net.

Requirement: define-by-run code is recorded while it runs, with no second way to run functions. The
recorder observes each application, and gives each VariableNode a name.

Variables from outside the function are of three kinds:

- *bound*: an argument, with a given name.
- *captured*: a Variable still alive at the end of the recording, such as a parameter. Captured
  Variables become inputs of the net; each run reads their arrays anew.
- constant: a Variable freed by then, such as the number in ``x * 2``.

The recorder knows Variables, and hears of each ``x.detach()``. An array from outside may be the
array of a parameter too. So an array from outside never stands for a Variable.

Functions may write to captured Variables, as ``x[i] = v`` does. The recording is no run, so the
recorder restores the old values at the end. Each run of the net repeats the writes.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinynode.configuration import config
from tinynode.core.conversion import restore
from tinynode.core.function_node import FunctionNode
from tinynode.core.gradient_table import unshared
from tinynode.core.hooks import FunctionHook, thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    Array,
    Arrays,
    Device,
    hidden_axes,
    hides_variables,
    is_array,
    namespace_of,
    own_backend,
)
from tinynode.errors import TraceError, describe, printable
from tinynode.functions.indexing import GetItem, Positions
from tinynode.interop.old_style import FunctionAdapter
from tinynode.net.helpers import Constant, StopGradient
from tinynode.net.operator import EMPTY, OF_APPLY, ArraySpecs, Operator, operator_of
from tinynode.net.registry import is_of_tinynode
from tinynode.net.shape_runner import ShapeRunner, run_operators
from tinynode.net.updates import Update


class Namer:
    """Makes new names."""

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

    def of_user(self, wanted: str) -> str:
        """``like`` for a name of the user's: ``@`` marks the names of gradients and of plans."""
        return self.like(printable(wanted).replace("@", "_"))

    def like(self, wanted: str) -> str:
        """The wanted name if free, else with a number."""
        if wanted in self.taken:
            return self.new(f"{wanted}_")
        self.taken.add(wanted)
        return wanted


class _Leaf(NamedTuple):
    """A Variable from outside: the name, and the state at the first use."""

    name: str
    variable: weakref.ref[Variable]
    array: Array
    device: Device
    grad: Variable | None


class GradientWrite(NamedTuple):
    """A captured Variable with a gradient that was cleared, and perhaps computed again.

    Attributes:
        variable: the captured Variable.
        target: the gradient's name as a target of the write.
        name: the name of the written value; None if the gradient was only cleared.
    """

    variable: Variable
    target: str
    name: str | None

    def repeat(self, array: Array | None, device: Device, taken: set[int]) -> None:
        """Repeat the write with the array of a run; None only clears the gradient.

        The gradient is copied if others hold its memory; see ``unshared``. It fits the variable,
        since a recording runs for variables of the same specs alone.
        """
        if array is None:
            self.variable.grad_var = None
        else:
            gx = wrap_array(array, device, False)
            self.variable.take_gradient(unshared(gx, taken, self.variable.raw))


class Write(NamedTuple):
    """A function's write to a captured Variable.

    Attributes:
        variable: the captured Variable.
        target: the Variable's name.
        name: the name of the written value.
        moved: True if the Variable moved to a result's node, as after ``x[i] = v``; False if the
            old node got a new array.
        requires_grad: True if the result requires a gradient.
    """

    variable: Variable
    target: str
    name: str
    moved: bool
    requires_grad: bool

    def repeat(self, result: Variable) -> None:
        """Repeat the write with the result of a run."""
        if self.moved:
            self.variable.become(result if self.requires_grad else result.detach())
        else:
            self.variable.raw = result.raw


class NetRecorder(FunctionHook):
    """Collects operators, inside ``with recorder:``.

    Args:
        namer: gives names to variables.
        title: the name of the recorded function.
        records_nets: True if a whole function is recorded: reading a Variable's values is then an
            error. False for the ``backward`` of a FunctionNode.

    Attributes:
        operators: the recorded operators, in run order.
        modules: the modules whose ``training`` was read.
        updates: the optimizers' updates.
        specs: shape and dtype of each computed value, by name.
        error: the first error, if any.
        title: the name of the recorded function.
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
        self.specs: ArraySpecs = {}
        self.error: TraceError | None = None
        self._cleared: set[VariableNode] = set()
        self._updated: set[VariableNode] = set()
        # nodes stay alive: a freed node of a retained output would come back as a new node
        self._names: dict[VariableNode, str] = {}
        self._leaves: dict[VariableNode, _Leaf] = {}
        self._arrays: dict[int, tuple[str, Callable[[], Array | None]]] = {}
        self._bound: dict[VariableNode, Callable[[], Array | None]] = {}
        self.given: dict[str, tuple[Any, Device]] = {}  # the arguments' arrays
        self._is_connected = config.enable_backprop
        self._running: list[FunctionNode] = []  # whose forward runs now, on arrays
        # the attributes of users' functions, before forward
        self._before: dict[FunctionNode, dict[str, Any]] = {}
        self._chained: list[weakref.ref[VariableNode]] = []  # computed, with a graph
        self._plain: set[str] = set()  # computed without a graph
        self._copies: dict[str, str] = {}  # the copies without a gradient, by the original's name

    def added(self, function: Any) -> None:
        """Let stand-ins take the place of large arrays, while a whole function is recorded."""
        if self.records_nets:
            self.forward_runner = ShapeRunner(self._values_of).run

    def deleted(self, function: Any) -> None:
        """Free the stand-ins, and the arguments."""
        self.forward_runner = None
        self.given.clear()

    def failure(self, message: str) -> TraceError:
        """The error to raise; stored, since a function cannot catch the error and be recorded.

        While vmap tries to record a forward, an error is no failure: there is another way.
        """
        error = TraceError(message)
        if not hidden_axes.trials:
            self.error = self.error or error
        return error

    def bind(self, variable: Variable, name: str) -> None:
        """Give a name to a Variable, and to an array that is unknown outside of the recording."""
        self._names[variable.node] = name
        if variable.raw is not None:
            reference = self._bound[variable.node] = _reference(variable.raw)
            self._arrays[id(variable.raw)] = name, reference

    def _name_of_array(self, array: Array) -> str | None:
        """The name of the known Variable with this very array, or None."""
        name, reference = self._arrays.get(id(array), (None, None))
        # a freed array may have had the same id
        return name if reference is not None and reference() is array else None

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Record an application.

        Raises:
            TraceError: the output's shape depends on values, or the function is old-style.
        """
        if self._running:
            return  # inside of a forward, which each run of the net calls
        if outputs and hides_variables(outputs[0].device):
            return  # in a vmapped function: the net has the functions on whole batches
        if isinstance(function, FunctionAdapter):
            raise self.failure(
                f"{self.title}: {function.label} is an old-style Function, whose backward works "
                "on arrays, so it has no gradient net. Write it as a FunctionNode, or call it "
                "outside of the compiled function."
            )
        if any(x.raw.dtype == x.xp.bool for x in _index_arrays(function, inputs)):
            raise self.failure(
                f"{self.title}: x[mask] has a shape that depends on values, and a net has fixed "
                "shapes. Use where(mask, x, 0), or do it outside of the compiled function."
            )
        is_cut = self._is_connected and not config.enable_backprop
        read = [self._without_gradient(x) if is_cut else self.name_of(x) for x in inputs]
        written = []
        for y in outputs:
            name = EMPTY if y.raw is None else self.namer.new("t")
            written.append(name)
            self._note_spec(name, y.raw)
            if self._name_of_array(y.raw) is None and any(y.raw is x.raw for x in inputs):
                self._names[y.node] = name  # identity of a parameter: the array is from outside
                self._bound[y.node] = _reference(y.raw)
            else:
                self.bind(y, name)
            if y.creator_node is not None:
                self._chained.append(weakref.ref(y.node))
        if is_cut:
            self._plain.update(written)
        self.operators.append(operator_of(function, read, written))

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Note the function, whose forward may use Variables of its own."""
        if not any(map(_hides_variables, in_data)):
            self._running.append(function)
        if not is_of_tinynode(type(function)):
            self._before[function] = dict(vars(function))

    def forward_postprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Check that the forward of a user's function left no array on ``self``.

        Raises:
            TraceError: a net would keep the array of the recording for all runs.
        """
        self._end_forward(function)
        before = self._before.pop(function, None)
        if before is None:  # a function of tinynode
            return
        for name, value in vars(function).items():
            if name in OF_APPLY or value is before.get(name):
                continue
            array = _array_in(value)
            if array is not None:
                raise self.failure(
                    f"{self.title}: forward of {function.label} leaves {describe(array)} in "
                    f"self.{name}, and a net would keep that value for all runs. {_CURE_OF_SELF}"
                )

    def failed(self, function: Any, direction: str, error: BaseException) -> None:
        self._end_forward(function)

    def _end_forward(self, function: FunctionNode) -> None:
        if self._running and self._running[-1] is function:
            self._running.pop()

    def _note_spec(self, name: str, array: Array | None) -> None:
        if array is not None:
            self.specs[name] = tuple(array.shape), array.dtype

    def _values_of(self, arrays: list[Any]) -> list[Any]:
        """The values of recorded arrays, by a run of the recorded operators."""
        names = [self._name_of_array(x) for x in arrays]
        wanted = [name for name in dict.fromkeys(names) if name is not None]
        leaves = {leaf.name: (leaf.array, leaf.device) for leaf in self._leaves.values()}
        given = {**self.given, **leaves}
        devices = {name: device for name, (_, device) in given.items()}
        operators = needed_operators(self.operators, wanted)
        sources = tuple([array for array, _ in given.values()])
        found = run_operators(operators, devices, wanted, sources)
        return [found.get(n or "", x) for n, x in zip(names, arrays, strict=True)]

    def name_of(self, variable: Variable) -> str:
        """The name of a Variable; an unknown Variable is a leaf, or was detached from a leaf."""
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
            name = self._leaf(variable) if known is None else self._copy(known, variable.raw)
            self._names[variable.node] = name
        name, bound = self._names[variable.node], self._bound.get(variable.node)
        if bound is None or bound() is variable.raw:
            return name
        written = self._name_of_array(variable.raw)  # x += v in no_backprop_mode(), or a buffer
        if written is None:
            raise self.failure(f"{self.title}: {_OTHER_ARRAY.format(name)}")
        return written

    def detached(self, source: Variable, copy: Variable) -> None:
        """Name a new Variable on the array of another: a copy without a gradient."""
        if self._running:
            return
        if hides_variables(source.device):
            copy.raw = type(source.raw)(source.raw.raw.detach(), source.device.backend)
            return
        if source.raw is not None:
            self._names[copy.node] = self._copy(self.name_of(source), source.raw)

    def _name_of_new_array(self, variable: Variable, leaf: _Leaf) -> str:
        """The name of the array written to a captured Variable, such as a running mean."""
        if variable.requires_grad:
            raise self.failure(
                f"{self.title}: {leaf.name} requires a gradient, was given a new array, and is "
                "read again: a net has one value of it. Go on with the new value as a Variable "
                "of its own, or in another call."
            )
        # an unknown array is an error at the end of the recording
        return self._name_of_array(variable.raw) or leaf.name

    def _without_gradient(self, variable: Variable) -> str:
        """The name of the Variable's copy in no_backprop_mode(): a copy without a gradient."""
        name = self.name_of(variable)
        if name in self._plain or not variable.requires_grad:
            return name
        if name not in self._copies:
            self._copies[name] = self._copy(name, variable.raw)
        return self._copies[name]

    def _copy(self, source: str, array: Array) -> str:
        """The name of a new copy without a gradient."""
        name = self.namer.new("t")
        self._note_spec(name, array)
        self.operators.append(operator_of(StopGradient(), [source], [name]))
        return name

    def _leaf(self, variable: Variable) -> str:
        """A name for a Variable from outside: captured or constant, as ``finish`` decides."""
        name = self.namer.of_user(variable.name) if variable.name else self.namer.new("c")
        self._leaves[variable.node] = _Leaf(
            name,
            weakref.ref(variable),
            variable.raw,
            variable.device,
            variable.grad_var,
        )
        return name

    def training_read(self, module: Any) -> None:
        """The net depends on the module's ``training``."""
        if module not in self.modules:
            self.modules.append(module)

    def numbers_drawn(self) -> None:
        """Raise: random numbers drawn now would be the same in each run of the net."""
        if not self.records_nets:
            return
        raise self.failure(
            f"{self.title}: tinynode.random draws numbers while a net is recorded: every run would"
            " get the same. Pass a key of tn.random.key as an argument, and draw with key=: a new "
            "key gives new numbers. Or draw before, and pass the numbers as an argument. (dropout "
            "may be recorded: it draws at each run.)"
        )

    def setting_assigned(self, what: str) -> None:
        """Raise: a number set now would be the same in each run of the net."""
        if not self.records_nets:
            return
        raise self.failure(
            f"{self.title}: {what} is set while a net is recorded, and a net would not set it "
            "again. Set it outside of the compiled function: it is read anew at each run."
        )

    def value_read(self, what: str) -> None:
        """Raise: the values of a Variable are read, and a net has no values.

        A parameter's value is refused too: the value would never change.
        """
        if not self.records_nets or hidden_axes.checks or self._running:
            return
        index = " For table[x], with an array of NumPy, write functions.take(table, x, axis=0)."
        raise self.failure(
            f"{self.title}: {what} asks for the value of a Variable while a net is recorded, and "
            "nets have shapes and dtypes but no values. Keep to functions of Variables "
            "(where(...) for a choice), do it outside of the compiled function, or pass a Python "
            f"number as an argument.{index if what.startswith('numpy.asarray') else ''}"
        )

    def check_chains(self) -> None:
        """Refuse a function that unchained a Variable.

        Raises:
            TraceError: the net would let the gradient through.
        """
        for reference in self._chained:
            node = reference()
            if node is not None and node.creator_node is None:
                raise self.failure(
                    f"{self.title}: {self._names[node]} ({node.label}) was unchained, which a net "
                    "cannot repeat. Go on with x.detach() in place of x.unchain()."
                )

    def finish(self) -> dict[str, Variable]:
        """End the recording: constants become operators at the front.

        Call ``finish`` after the function's own Variables were freed.

        Returns:
            The captured Variables, by name.
        """
        captured, constants = {}, []
        for node, leaf in self._leaves.items():
            variable = leaf.variable()
            if variable is None:
                variable = node.get_variable_or_none()
            if variable is not None:
                captured[leaf.name] = variable
            else:
                # a copy: only some nets would see later writes to the array
                array = namespace_of(leaf.array).asarray(leaf.array, copy=True)
                constant = Constant(array, leaf.device)
                constants.append(operator_of(constant, [], [leaf.name]))
        self.operators[:0] = constants
        return captured

    def array_assigned(self, variable: Variable) -> None:
        """Name the variable before the array is replaced.

        Raises:
            TraceError: a recorded function computed the variable.
        """
        if not self.records_nets or self._running or hides_variables(variable.device):
            return
        name = self.name_of(variable)
        if variable.node in self._leaves or not variable.requires_grad:
            return  # ``name_of`` finds the new array, or refuses it
        if any(name in operator.output_names for operator in self.operators):
            raise self.failure(
                f"{self.title}: {name} ({variable.label}) was computed in the function and is "
                "given a new array, which a net cannot repeat. Go on with a new Variable."
            )

    def gradient_cleared(self, variable: Variable) -> None:
        """Note a cleared gradient: later gradients are not added to the old gradient."""
        if not self.records_nets or self._running:
            return
        if variable.node not in self._names:
            self.name_of(variable)
        self._cleared.add(variable.node)

    def abandon(self, error: BaseException) -> None:
        """Restore the captured Variables; after an error of the function, without the gradients.

        The function had cleared these gradients before the error.
        """
        with contextlib.suppress(TraceError):  # the first error is the error to show
            self.take_back_writes()
        if isinstance(error, TraceError):
            return
        for node in self._cleared:
            leaf = self._leaves.get(node)
            variable = None if leaf is None else leaf.variable()
            if variable is not None:
                variable.grad_var = None

    def update_requested(self, optimizer: Any, slots: Sequence[Any]) -> bool:
        """Record an optimizer's update. The first run of the net computes the new parameters.

        Args:
            optimizer: the optimizer.
            slots: the optimizer's slot of each parameter.

        Returns:
            True: the update became operators of the net.

        Raises:
            TraceError: a net cannot repeat this ``update``.
        """
        trained = optimizer.trained_slots
        missing = [slot.parameter for slot in trained if slot.parameter.grad_var is None]
        is_skipping = optimizer.allow_missing and len(missing) < len(trained)
        for group in optimizer.groups:
            update = Update(group, self.namer)
            for slot in group.slots:
                parameter, gradient = slot.parameter, slot.parameter.grad_var
                if not parameter.requires_grad:
                    update.frozen.append(parameter)
                    continue
                if gradient is None and is_skipping:
                    if parameter.node not in self._cleared:
                        update.skipped.append(parameter)
                    continue
                name = self._check_update(group, parameter, gradient)
                operator = update.add(slot, name, self._names[gradient.node])
                self.operators.append(operator)
                if parameter.node not in self._cleared:
                    update.uncleared.append(parameter)
                if update.function.keeps_form and is_of_tinynode(type(update.function)):
                    arrays = (parameter.raw, *slot.moments.values())
                    for result, like in zip(operator.output_names, arrays, strict=True):
                        self._note_spec(result, like)
                self._updated.add(parameter.node)
            self.updates.append(update)
        return True

    def _check_update(self, optimizer: Any, parameter: Variable, gradient: Any) -> str:
        """The name of a parameter, if a net can update the parameter."""
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
            raise self.failure(f"{self.title}: {_GRADIENT.format(name, parameter.shape)}")
        return name

    def take_back_writes(self) -> list[Write | GradientWrite]:
        """The writes to captured Variables, after the old values are restored.

        Raises:
            TraceError: a net cannot repeat the write of a gradient, or of an array not computed
                by recorded functions.
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
                problems.append(_GRADIENT.format(leaf.name, variable.shape))
            _put_back(variable, node, leaf)
        if problems:
            raise self.failure(f"{self.title}: {problems[0]}")
        return writes

    def _changed_after_update(self, variable: Variable, name: str | None) -> bool:
        """True if a parameter's gradient differs from the gradient of the update."""
        parts = [part for one in self.updates for part in one.parts]
        used = [part.gradient for part in parts if part.slot.parameter is variable]
        return bool(used) and name is not None and name not in used

    def _name_of_write(self, variable: Variable, moved: bool) -> str | None:
        if moved:
            return None if variable.node_or_none is None else self._names.get(variable.node)
        return self._name_of_array(variable.raw)


def _reference(array: Array) -> Callable[[], Array | None]:
    """A weak reference; a strong reference if the array type allows no weak references."""
    try:
        return weakref.ref(array)
    except TypeError:
        return itertools.repeat(array).__next__


def _array_in(value: Any) -> Any:
    """The array, Variable or scalar of NumPy in a value, a list, a tuple or a dict; else None."""
    if isinstance(value, dict):
        value = list(value.values())
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, Variable | np.generic) or is_array(one):
            return one
    return None


def _hides_variables(array: Any) -> bool:
    """True for a batched array of a recorded vmap: a net has the functions on what is inside."""
    backend: Any = own_backend(array)
    return backend is not None and bool(backend.library.is_recorded)


def _index_arrays(function: FunctionNode, inputs: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """The arrays of an index among the inputs of a function."""
    if isinstance(function, GetItem):
        return inputs[1:]
    return inputs if isinstance(function, Positions) else ()


_CURE_OF_SELF = (
    "For backward, call self.retain_inputs((0,)) or self.retain_outputs((0,)) in forward; return "
    "other arrays as outputs. A value that depends on shapes alone may be a Python number."
)
_AFTER_UPDATE = (
    "the gradient of {} was computed anew after the optimizer's update(), which a net does at its "
    "end. Return before, and go on in another call."
)
_OTHER_ARRAY = (
    "{} was given an array that no recorded function computed, so a net cannot repeat it. Compute "
    "it from Variables, or do it outside of the compiled function."
)
_GRADIENT = (
    "the gradient of {} (shape {}) was changed, by backward() for example, and a net cannot add "
    "to what it was. Clear it in the function, before backward(): model.cleargrads() for every "
    "model that the loss depends on, since an optimizer clears its own parameters alone. Or take "
    "gradients with tinynode.grad and return them, or call backward() on what the compiled "
    "function returns."
)


def _put_back(variable: Variable, node: VariableNode, leaf: _Leaf) -> None:
    """Restore the Variable's state from before tracing."""
    restore(variable, node, leaf.array, leaf.grad)


@contextmanager
def without_hooks() -> Iterator[None]:
    """Hide functions from the thread's hooks: a recording is no call of the user's."""
    hooks, thread_state.hooks = thread_state.hooks, {}
    try:
        yield
    finally:
        thread_state.hooks = hooks


def needed_operators(operators: list[Operator], names: Iterable[Any]) -> list[Operator]:
    """The operators needed for these names, in the same order."""
    wanted = set(names)
    kept = []
    for operator in reversed(operators):
        if not wanted.isdisjoint(operator.output_names):
            wanted.update(operator.input_names)
            kept.append(operator)
    return kept[::-1]
