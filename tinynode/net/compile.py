"""compile: a define-by-run function that runs as a net.

Requirement: the compiled function behaves as the eager function does, and costs less Python. It
takes and returns Variables, and is one function in the graph.

The function is recorded once for each *signature*. A signature has the device, shape, dtype and
flag of each Variable, the other arguments by value, and the settings that functions read.
Parameters and other Variables that the function uses are *captured*: they are inputs of the net,
and each call reads their arrays anew.
"""

from __future__ import annotations

import copy
import functools
import gc
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter, eq
from typing import Any, Concatenate, Generic, Never, ParamSpec, Self, TypeVar, overload

from tinynode.configuration import (
    added_settings,
    added_value,
    config,
    noted_reads,
    using_config,
)
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, CurrentDevice, Planner, hidden_axes, supports
from tinynode.errors import TraceError, describe, unknown_keywords
from tinynode.net.commit import Commit
from tinynode.net.making import paused_collector
from tinynode.net.net_op import NetOp
from tinynode.net.operator import Operator
from tinynode.net.owned_memory import lent
from tinynode.net.passes import is_random
from tinynode.net.program import NetFunction, Program
from tinynode.net.recorder import GradientWrite, Write
from tinynode.net.structure import (
    ByIdentity,
    Slot,
    flatten,
    has_only_variables,
    leaves,
    unflatten,
    variables_in,
)
from tinynode.net.surroundings import OutsideValue, places_around
from tinynode.net.trace import Trace, trace_flat
from tinynode.net.tracebacks import hide_own_frames
from tinynode.net.updates import store
from tinynode.nn.module import Wrapper
from tinynode.random import get_generator

P = ParamSpec("P")
More = ParamSpec("More")
R = TypeVar("R")
Instance = TypeVar("Instance")

spec_of = attrgetter("_device", "raw.shape", "raw.dtype", "_requires_grad")
"""``spec_of(x)``: device, shape, dtype and ``requires_grad`` of a Variable, in a tuple. An
AttributeError for other objects, and for an empty Variable. The signature of a compiled call."""
MOST_RECORDINGS = 8
"""The recordings of one signature. The oldest is dropped: a counter from outside fills nothing."""
_known_settings = attrgetter("train", "enable_backprop", "dtype", "device", "recompute_phase")


class CompiledFunction(Wrapper, Generic[P, R]):
    """A function that runs as a net; ``compile`` makes it. It has the types of the function.

    Attributes:
        function: the eager function.
    """

    function: Callable[P, R]

    def __init__(self, function: Callable[P, R], inside_hooks: bool) -> None:
        if not callable(function):
            raise TypeError(f"compile: function must be callable, got {describe(function)}.")
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.inside_hooks = inside_hooks
        self._recordings: dict[Any, list[NetRecording]] = {}
        # signature, recording and treedef of the latest call; no treedef for Variables alone
        self._recent: tuple[Any, NetRecording, Any] | None = None
        self._has_warned = False

    @property
    def recordings(self) -> tuple[NetRecording, ...]:
        """All recordings."""
        return tuple([one for found in self._recordings.values() for one in found])

    def drop(self, key: Any) -> None:
        """Free the recordings of a signature."""
        self._recordings.pop(key, None)
        self._recent = None

    @property
    def title(self) -> str:
        """The name of the eager function, for messages."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        """The results of the function.

        Raises:
            TraceError: a net cannot record an action of the function.
        """
        result: R
        try:
            if (thread_state.hooks or config.debug) and self._runs_eagerly():
                return self.function(*args, **keywords)
            if self._recent is not None:
                signature, recording, treedef = self._recent
                given: Any = args
                if treedef is not None or keywords:
                    given = variables_in((args, keywords), treedef)
                if given is not None and _signature(given) == signature:
                    if recording.is_pure:
                        result = recording.outputs(given)[0]
                        return result
                    if recording.fits(given):
                        result = recording.run(given)
                        return result
            if hidden_axes.stack:  # a vmapped function: a net would mix the Variables' devices
                return self.function(*args, **keywords)
            recording, variables = self._recording(args, keywords)
            result = recording.run(variables)
            return result
        except Exception as error:
            hide_own_frames(error)
            raise

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: CompiledFunction[Concatenate[Instance, More], R],
        instance: Instance,
        owner: type | None = None,
    ) -> Callable[More, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument, compared by identity."""
        return self if instance is None else types.MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction[P, R]:
        """A compiled copy of the function, without recordings.

        A compiled method of a model becomes a method of the model's copy.
        """
        new = type(self).__new__(type(self))
        memo[id(self)] = new  # the model may hold its compiled method
        CompiledFunction.__init__(new, copy.deepcopy(self.function, memo), self.inside_hooks)
        return new

    def __reduce__(self) -> str | tuple[Any, ...]:
        name = getattr(self, "__qualname__", None)
        if name is not None and _found(self.__module__, name) is self:
            return str(name)  # pickled as a reference to the module's function
        return type(self), (self.function, self.inside_hooks)

    def explain(self, *args: Any, **keywords: Any) -> str:
        """The net of a call with such arguments, its gradient net, and the plans of both.

        The function is called twice, since a plan is made after the first run.
        """
        lines: list[str] = []
        for net, title, plan in self.described_plans(*args, **keywords):
            lines += [] if net in lines else [net]
            if plan is not None:
                lines += [f"  {line}" for line in (title, *plan.describe())]
        return "\n".join(lines)

    def described_plans(self, *args: Any, **keywords: Any) -> list[tuple[str, str, Any]]:
        """Net, title and plan of each run of a call with such arguments, and of the gradient.

        The plan is None where a net has no operators. The function is called twice, since a plan
        is made after the first run.
        """
        program = self._recording(args, keywords)[0].program
        before, program.is_differentiated = program.is_differentiated, True
        try:
            for _ in range(2):
                self(*args, **keywords)
        finally:
            program.is_differentiated = before
        recording, variables = self._recording(args, keywords)
        arrays = tuple([x.raw for x in recording.inputs(variables)])
        return list(recording.program.described_plans(arrays, str(recording.trace.net)))

    def _runs_eagerly(self) -> bool:
        """True while a net is recorded, in debug mode, and for hooks inside the function."""
        if is_recording_net() or (self.inside_hooks and thread_state.hooks):
            return True
        if config.debug and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self.title}: debug mode is on, so the compiled function runs eagerly.",
                RuntimeWarning,
                stacklevel=3,
            )
        return config.debug

    def _recording(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[NetRecording, Sequence[Variable]]:
        """The recording that fits a call, made now if there is none; the Variables of the call."""
        variables, treedef = flatten((args, keywords), self.title)
        specs, now = specs_of(variables), settings()  # before the function changes any of them
        key = treedef, specs, now
        for recording in self._recordings.get(key, ()):
            if recording.fits(variables):
                break
        else:
            recording = self._record(variables, treedef, key)
        is_plain = not keywords and all(isinstance(x, Variable) for x in args)
        if is_plain or recording.treedef is not None:
            self._recent = (*specs, now), recording, None if is_plain else recording.treedef
        else:
            self._recent = None
        return recording, variables

    def _record(self, variables: list[Variable], treedef: Any, key: Any) -> NetRecording:
        """A new recording, which is dropped when an argument by identity is freed."""
        places = places_around(self.function)
        with noted_reads() as values, paused_collector():
            found = trace_flat(self.function, variables, treedef)
        places = [place for place in places if place.is_unchanged()]
        recording = NetRecording(found, variables, values, places)
        if has_only_variables(treedef):
            recording.treedef = treedef
        forget = functools.partial(_forget, weakref.ref(self), key)
        for leaf in (*leaves(treedef), *recording.settings.values()):
            if isinstance(leaf, ByIdentity):
                leaf.weaken(forget)
        recordings = self._recordings.setdefault(key, [])
        del recordings[: 1 - MOST_RECORDINGS]
        recordings.append(recording)
        return recording


def _found(module: str, name: str) -> Any:
    """The object with a dotted name in a module; None if there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _signature(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The signature of a call on Variables alone, quickly; None for other arguments."""
    try:
        return *map(spec_of, args), settings()
    except AttributeError:  # another object, or an empty Variable
        return None


def _forget(compiled: weakref.ref[CompiledFunction[..., Any]], key: Any, _: Any) -> None:
    """Drop the recordings for an argument that was freed, such as a method's instance."""
    owner = compiled()
    if owner is not None:
        owner.drop(key)


class NetRecording:
    """The net of one signature, ready to run.

    Args:
        found: the trace of the function.
        variables: the Variables of the recorded call.
        values: the users' settings that the function read, and their values before the call.
        places: the watched places around the function, see ``surroundings.py``.

    Attributes:
        trace: the trace, without its modules.
        program: computes the results and the written arrays.
        modules: the modules whose ``training`` was read, and their values.
        settings: the users' settings that the function read, in a form to compare.
        captured: the captured Variables, and ``captured_specs`` their specs when recorded.
        written_ids: the ids of the captured Variables that get a new array.
        is_pure: True if the arguments are the only inputs, and the function returns the only
            output of the program.
        draws: the operators that draw random numbers. They run before the program, and their
            results are inputs of the program: backward reads the same numbers.
        requires_grad: True if an input requires a gradient.
        saving: True if a run records a graph.
        indexes: the index of each result, among the inputs and outputs of the program.
        writes: the writes, with the index of the written value there; -1 for a cleared gradient.
        results: for each update, the indexes of the parameters' results among the outputs.
        detached: the results that require no gradient.
        treedef: the treedef of the arguments, if it has Variables alone; else None.
        places: the parameters and moments that a run may overwrite, see ``Commit``.
        updated: the indexes of these parameters among the program's inputs.
    """

    treedef: Any = None

    def __init__(
        self,
        found: Trace,
        variables: Sequence[Variable],
        values: dict[str, Any],
        places: list[OutsideValue],
    ) -> None:
        self.places_around = places
        self.settings = {name: _comparable(value) for name, value in values.items()}
        self.modules = [(weakref.ref(module), training) for module, training in found.modules]
        self.trace = found._replace(modules=[])  # an argument of the function must stay freeable
        self.captured = list(found.captured.values())
        self.captured_specs = specs_of(self.captured)
        self.places = {name: at for one in found.updates for name, at in one.places()}
        self.updated = self._indexes_of_updated()
        self.written_ids = frozenset(map(id, found.written_variables()))
        operators = found.net.flattened()
        self.draws = [operator for operator in operators if is_random(operator)]
        known = [*variables, *self.captured]
        names = [*found.inputs, *found.captured]
        devices = {name: x.device for name, x in zip(names, known, strict=True)}
        for update in found.updates:
            devices |= update.input_devices()
        devices |= self._devices_of_draws(found.net.type)
        requires = [x.requires_grad for x in known]
        requires += [False] * (len(devices) - len(known))
        outputs = dict.fromkeys([*found.outputs, *found.written()])
        computed = [name for name in outputs if name not in devices]
        net = NetOp([one for one in operators if not is_random(one)], found.net.type)
        self.program = Program(net, devices, computed, requires, found.specs)
        self.requires_grad = any(requires)
        self.saving = self.requires_grad and config.enable_backprop and not found.updates
        self._needs_active_device = supports(self.program.device.backend, CurrentDevice)
        self._find_indexes([*devices, *computed], computed)
        self.detached = self._detached_results(found, devices) if self.saving else []
        self._has_foreign_arrays = supports(self.program.device.backend, Planner)
        is_single = isinstance(found.result, Slot) and len(computed) == 1 and not self.detached
        # updates and writes need captured Variables, so arguments alone exclude both
        only_arguments = len(devices) == len(variables) and not (self.modules or values or places)
        self.is_pure = only_arguments and is_single and self.indexes == [len(devices)]

    def _find_indexes(self, names: Iterable[str], computed: Collection[str]) -> None:
        """Look up all names once: of the inputs and outputs, and of the outputs alone."""
        found = self.trace
        index = {name: i for i, name in enumerate(names)}
        self.indexes = [index[name] for name in found.outputs]
        self.writes = [(write, index.get(write.name or "", -1)) for write in found.writes]
        self.results = [update.result_indexes(computed) for update in found.updates]

    def _devices_of_draws(self, title: str) -> dict[str, Any]:
        """The device of each random output, by name. Each generator has to come from outside."""
        for operator in self.draws:
            _check_generator(title, operator)
        return {one.output_names[0]: one.attrs["output_device"] for one in self.draws}

    @staticmethod
    def _detached_results(found: Trace, inputs: Collection[str]) -> list[int]:
        """The positions of the results that require no gradient; results that are inputs do."""
        return [
            position
            for position, name in enumerate(found.outputs)
            if name not in inputs and (found.updates or not found.flags[position])
        ]

    def _indexes_of_updated(self) -> list[int]:
        """The indexes of the updated parameters among the program's inputs."""
        names = enumerate(self.trace.captured, len(self.trace.inputs))
        return [index for index, name in names if name in self.places]

    def fits(self, variables: Iterable[Any]) -> bool:
        """True if all from outside matches: Variables, modules, settings, optimizers, places.

        A call with a written Variable among its arguments needs a new recording, which refuses it.
        """
        if self.written_ids and not self.written_ids.isdisjoint(map(id, variables)):
            return False
        for name, value in self.settings.items():
            if _comparable(added_value(name)) != value:
                return False
        for place in self.places_around:
            if not place.is_unchanged():
                return False
        for update in self.trace.updates:
            if not update.fits():
                return False
        for reference, training in self.modules:
            module = reference()
            if module is not None and module.training is not training:
                return False
        return has_specs(self.captured, self.captured_specs)

    def inputs(self, variables: Iterable[Variable]) -> tuple[Variable, ...]:
        """The inputs of the program: arguments, captured Variables, moments, random numbers."""
        if not self.draws and not self.trace.updates:  # the usual net: no look-up costs time
            return (*variables, *self.captured)
        state = [self._variable(array) for array in self._state()]
        return (*variables, *self.captured, *state, *self._drawn())

    def _drawn(self) -> list[Variable]:
        """The random numbers of a run."""
        return [operator.make_node().apply(())[0] for operator in self.draws]

    def _state(self) -> list[Array]:
        """The arrays of the optimizers' numbers and moments."""
        return [array for update in self.trace.updates for array in update.inputs()]

    def run(self, variables: Iterable[Any]) -> Any:
        """The results of the function, nested as the function returned them."""
        try:
            if not self.trace.updates:
                inputs = self.inputs(variables)
                return self._finished(inputs, self.outputs(inputs))
            if self._has_foreign_arrays:  # one by one, so that no second copy of them is needed
                self._has_foreign_arrays = False
                for place in self.places.values():
                    place.own()
            if self._is_watched():  # hooks see the old arrays
                inputs = self.inputs(variables)
                self._release()
                results = self.outputs(inputs)
                self._store([y.raw for y in results])
                return self._finished(inputs, results)
            return self._step(variables)
        except BaseException:
            self._clear_gradients()
            raise

    def _clear_gradients(self) -> None:
        """After an error: clear the gradients of all Variables with a clear in the function."""
        for write, _ in self.writes:
            if isinstance(write, GradientWrite):
                write.variable.grad_var = None

    def _step(self, variables: Iterable[Any]) -> Any:
        """The results of a training step without hooks: arrays go in and out.

        A step of many small parameters would spend its time on Variables around the arrays.
        """
        known = (*variables, *self.captured)
        state = self._state()
        drawn = self._drawn()
        self._release()
        arrays = [*[x.raw for x in known], *state, *[x.raw for x in drawn]]
        for index in self.updated:  # the parameters lend their memory
            arrays[index] = lent(arrays[index])
        commit = Commit(self.places)
        try:
            outputs = NetFunction(self.program, False, commit).forward(tuple(arrays))
            self._store(outputs)
            return self._finished((*known, *state, *drawn), outputs)
        finally:
            commit.end()

    def _release(self) -> None:
        for update in self.trace.updates:
            update.release()

    def _store(self, outputs: Sequence[Array]) -> None:
        """Store the new parameters and moments, from the outputs of the program."""
        for indexes in self.results:
            store(indexes, outputs)

    def _finished(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Repeat the writes; the results, nested as the function returned them.

        Args:
            inputs: of the program, Variables or arrays.
            outputs: of the program, Variables or arrays.
        """
        every = (*inputs, *outputs)
        results = [self._variable(every[index]) for index in self.indexes]
        if self.writes:
            self._repeat_writes(every, [*inputs, *results])
        for position in self.detached:
            results[position] = results[position].detach()
        return unflatten(self.trace.result, results)

    def _repeat_writes(self, every: Sequence[Any], held: Sequence[Any]) -> None:
        """Repeat the writes to Variables, then to gradients; no gradient is a ``held`` array."""
        for write, index in self.writes:
            if isinstance(write, Write):
                write.repeat(self._variable(every[index]))
        taken = {id(_array(x)) for x in held}
        device = self.program.device
        for write, index in self.writes:
            if isinstance(write, GradientWrite):
                write.repeat(None if index < 0 else _array(every[index]), device, taken)

    def _variable(self, value: Any) -> Variable:
        """A Variable unchanged; an array wrapped."""
        if isinstance(value, Variable):
            return value
        return wrap_array(value, self.program.device, False)

    def _is_watched(self) -> bool:
        """True if a run must go through ``apply``: a hook, or a library's current device."""
        return bool(thread_state.hooks) or self._needs_active_device

    def outputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The outputs of the program: as a function in the graph only if someone sees it."""
        if not self.program.outputs:
            return ()
        function = NetFunction(self.program, self.saving)
        if self._is_watched():
            with using_config("enable_backprop", self.saving):
                return function.apply(inputs)
        return function.apply_unchecked(inputs)


def _check_generator(title: str, operator: Operator) -> None:
    """Refuse a generator made by the function: each call of the function would make a new one.

    A generator from outside is known: a module, a closure or another object has it.
    """
    generator = operator.attrs["generator"]
    if generator is get_generator():
        return
    own = (operator.attrs, operator.checked)
    owners = [one for one in gc.get_referrers(generator) if not any(one is each for each in own)]
    if all(isinstance(one, types.FrameType) for one in owners):
        raise TraceError(
            f"{title}: dropout draws from a generator that was made in the function, "
            "and a net would go on with it in each run. Make it outside of the function."
        )


def specs_of(variables: Iterable[Variable]) -> tuple[Any, ...]:
    """Device, shape, dtype and ``requires_grad`` of each Variable.

    Raises:
        TraceError: a Variable is empty.
    """
    try:
        return tuple(map(spec_of, variables))
    except AttributeError:
        raise _empty_variable() from None


def has_specs(variables: Iterable[Variable], specs: Iterable[Any]) -> bool:
    """True if the Variables have the given specs, compared without a tuple of all.

    Raises:
        TraceError: a Variable is empty.
    """
    try:
        return all(map(eq, map(spec_of, variables), specs))
    except AttributeError:
        raise _empty_variable() from None


def _empty_variable() -> TraceError:
    return TraceError("compile: a Variable is empty (no array).")


def _array(value: Any) -> Array:
    """The array of a Variable; an array unchanged."""
    return value.raw if isinstance(value, Variable) else value


def settings() -> tuple[Any, ...]:
    """The settings that functions read while they run, and the number of the users' settings.

    A last part says if a transform is running: ``linearize`` then keeps a graph by default.
    """
    return *_known_settings(config), len(added_settings), thread_state.differentiating > 0


def _comparable(value: Any) -> Any:
    """A setting's value in a form to compare: numbers by type and value, objects by identity."""
    is_plain = type(value) in (bool, int, float, str, type(None))
    return repr(value) if is_plain else ByIdentity(value)


@overload
def compile(function: Callable[P, R], *, inside_hooks: bool = False) -> CompiledFunction[P, R]: ...
@overload
def compile(
    function: None = None, *, inside_hooks: bool = False
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...
def compile(function: Any = None, *, inside_hooks: bool = False, **unknown: Never) -> Any:
    """A function with the same results as ``function``, run as a net.

        >>> @tn.compile
        ... def f(x):
        ...     return F.sum(x * x)
        >>> x = tn.asarray([1.0, 2.0])
        >>> f(x).item()
        5.0
        >>> f(x).backward()
        >>> x.grad.tolist()
        [2.0, 4.0]

    Args:
        function: takes and returns Variables, also in tuples, lists and dicts. Other arguments
            are compared by value; a new value makes a new recording.
        inside_hooks: run the function eagerly while hooks are registered, so that hooks see each
            function inside. By default hooks see the compiled function as one function.

    Use it as ``fast = tn.compile(f)``, or as the decorator ``@tn.compile``.
    """
    if unknown:
        raise unknown_keywords("compile", unknown)
    if function is None:
        return functools.partial(compile, inside_hooks=inside_hooks)
    return CompiledFunction(function, inside_hooks)
