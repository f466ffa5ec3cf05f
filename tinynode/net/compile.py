"""compile: a define-by-run function that runs as a net.

Requirement: the compiled function behaves as the eager one does, and costs less Python. It takes
and gives Variables, and is one function in the graph. It is recorded once for each *signature*:
the devices, shapes, dtypes and flags of the Variables, the other arguments by value, and the
settings that functions read. Parameters and other Variables that the function brings along are
inputs of the net: their arrays are read anew at each call.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from tinynode.configuration import config, no_backprop_mode
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.variable import Variable
from tinynode.devices import Device
from tinynode.errors import TraceError, describe
from tinynode.net.net_op import NetOp
from tinynode.net.operator import Operator
from tinynode.net.passes import is_random
from tinynode.net.program import NetFunction, Program
from tinynode.net.structure import Identity, join, leaves, split
from tinynode.net.trace import Trace, trace_split
from tinynode.net.updates import Update
from tinynode.nn.module import Wrapper

_HELD_BY_ATTRS = 2
"""References to a value that only a dict holds, as ``sys.getrefcount`` counts them."""


class _Entry(NamedTuple):
    """What was recorded for one signature."""

    trace: Trace
    modules: list[tuple[weakref.ref[Any], bool]]
    program: Program
    captured: list[Variable]
    captured_forms: list[Any]
    draws: list[Operator]
    needs_gradient: bool

    def fits(self) -> bool:
        """Whether what the function brings along is as it was."""
        if not all(update.fits() for update in self.trace.updates):
            return False
        for reference, training in self.modules:
            module = reference()
            if module is not None and module.training is not training:
                return False
        return [form(x) for x in self.captured] == self.captured_forms


class CompiledFunction(Wrapper):
    """A function that runs as a net; ``compile`` makes it.

    Attributes:
        function: the eager function.
    """

    def __init__(self, function: Callable[..., Any], inside_hooks: bool = False) -> None:
        if not callable(function):
            raise TypeError(f"compile: function must be callable, got {describe(function)}.")
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.inside_hooks = inside_hooks
        self._entries: dict[Any, list[_Entry]] = {}
        self._has_warned = False

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """What the function gives.

        Raises:
            TraceError: the function does what a net cannot record.
        """
        if is_recording_net() or (self.inside_hooks and thread_state.hooks):
            return self.function(*args, **keywords)
        if config.debug:
            self._warn()
            return self.function(*args, **keywords)
        variables, skeleton = split((args, keywords), self._title())
        entry = self._entry(variables, skeleton)
        return self._run(entry, variables)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument. It is told apart by its identity."""
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        """One that has recorded nothing: a method of a model becomes that of the model's copy."""
        new = type(self).__new__(type(self))
        memo[id(self)] = new  # the model may hold its compiled method
        CompiledFunction.__init__(new, copy.deepcopy(self.function, memo), self.inside_hooks)
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function, self.inside_hooks)

    def explain(self, *args: Any, **keywords: Any) -> str:
        """What a call with such arguments runs: the net, its gradient net, and both plans.

        It calls the function twice, as a plan is made after the first run.
        """
        variables, skeleton = split((args, keywords), self._title())
        program = self._entry(variables, skeleton).program
        before, program.is_differentiated = program.is_differentiated, True
        try:
            for _ in range(2):
                self(*args, **keywords)
        finally:
            program.is_differentiated = before
        entry = self._entry(variables, skeleton)
        arrays = tuple([x.raw for x in self._inputs(entry, variables)])
        return "\n".join(entry.program.describe(arrays, str(entry.trace.net)))

    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self._title()}: debug mode is on, so the compiled function runs eagerly.",
                RuntimeWarning,
                stacklevel=3,
            )

    def _entry(self, variables: list[Variable], skeleton: Any) -> _Entry:
        """What was recorded for such a call; it is recorded now if nothing was."""
        key = (skeleton, tuple([form(x) for x in variables]), settings())
        for entry in self._entries.get(key, ()):
            if entry.fits():
                return entry
        entry = self._record(variables, skeleton)
        forget = functools.partial(_forget, weakref.ref(self), key)
        for leaf in leaves(skeleton):
            if isinstance(leaf, Identity):
                leaf.weaken(forget)
        self._entries.setdefault(key, []).append(entry)
        return entry

    def _record(self, variables: list[Variable], skeleton: Any) -> _Entry:
        found = trace_split(self.function, variables, skeleton)
        captured = list(found.captured.values())
        devices: dict[str, Device] = {}
        state = _state_of(found.updates)
        known = [*variables, *captured, *state.values()]
        for name, x in zip([*found.inputs, *found.captured, *state], known, strict=True):
            devices[name] = x.device
        requires = [x.requires_grad for x in known]
        flat = found.net.flattened()
        draws = [operator for operator in flat if is_random(operator)]
        for operator in draws:
            self._check_generator(operator.attrs)
            # what is drawn is an input, so that backward sees the same
            devices[operator.output_names[0]] = operator.attrs["output_device"]
            requires.append(False)
        rest = [operator for operator in flat if not is_random(operator)]
        given = set(devices)
        outputs = [name for name in (*found.outputs, *found.written()) if name not in given]
        net = NetOp(rest, found.net.type)
        program = Program(net, devices, list(dict.fromkeys(outputs)), requires)
        forms = [form(x) for x in captured]
        modules = [(weakref.ref(module), training) for module, training in found.modules]
        found = found._replace(modules=[])  # they may be what the net is recorded for
        return _Entry(found, modules, program, captured, forms, draws, any(requires))

    def _check_generator(self, attrs: dict[str, Any]) -> None:
        """Refuse to draw from a generator that the function made, and would make anew."""
        if sys.getrefcount(attrs["generator"]) <= _HELD_BY_ATTRS:
            raise TraceError(
                f"{self._title()}: dropout draws from a generator that was made in the function, "
                "and a net would go on with it in each run. Make it outside of the function."
            )

    def _inputs(self, entry: _Entry, variables: list[Variable]) -> tuple[Variable, ...]:
        """What a run of the net reads, as it is now."""
        state = _state_of(entry.trace.updates).values()
        drawn = [operator.make_node().apply(())[0] for operator in entry.draws]
        return (*variables, *entry.captured, *state, *drawn)

    def _run(self, entry: _Entry, variables: list[Variable]) -> Any:
        """Apply the net, and put the results into the form that the function returned."""
        found, program = entry.trace, entry.program
        inputs = self._inputs(entry, variables)
        for update in found.updates:
            update.release()
        values = dict(zip(program.inputs, inputs, strict=True))
        computed = {}
        if program.outputs:
            # after an update, nobody differentiates the loss of before
            is_final = bool(found.updates)
            saving = entry.needs_gradient and config.enable_backprop and not is_final
            with no_backprop_mode() if is_final else contextlib.nullcontext():
                outputs = NetFunction(program, saving).apply(inputs)
            computed = dict(zip(program.outputs, outputs, strict=True))
            values.update(computed)
        for one in (*found.updates, *found.writes):
            one.repeat(values)
        results = [values[name] for name in found.outputs]
        for place, name in enumerate(found.outputs):
            if name in computed and (found.updates or not found.flags[place]):
                results[place] = results[place].detach()
        return join(found.result, results.__getitem__)


def _state_of(updates: list[Update]) -> dict[str, Variable]:
    """What optimizers have beside parameters and gradients, by name."""
    return {name: x for update in updates for name, x in update.inputs().items()}


def _forget(compiled: weakref.ref[CompiledFunction], key: Any, _: Any) -> None:
    """Drop what was recorded for an argument that is no more, such as a method's instance."""
    owner = compiled()
    if owner is not None:
        owner._entries.pop(key, None)


def form(x: Variable) -> tuple[Any, ...]:
    """What a net depends on, of a Variable: everything but the values."""
    array = x.raw
    if array is None:
        raise TraceError("compile: a Variable is empty (no array).")
    return x.device, array.shape, array.dtype, x.requires_grad


def settings() -> tuple[Any, ...]:
    """The settings that functions read while they run."""
    return config.train, config.enable_backprop, config.dtype, config.device


def compile(function: Callable[..., Any] | None = None, *, inside_hooks: bool = False) -> Any:
    """A function that does the same as ``function``, run as a net.

    Args:
        function: takes and returns Variables, also in tuples, lists and dicts. Other arguments are
            compared by value, and a new value is recorded anew.
        inside_hooks: while there are hooks, run the function eagerly, so that they see every
            function in it; otherwise they see the compiled one as one function.

    Use it as ``fast = tn.compile(f)``, or as the decorator ``@tn.compile``.
    """
    if function is None:
        return functools.partial(compile, inside_hooks=inside_hooks)
    return CompiledFunction(function, inside_hooks)
