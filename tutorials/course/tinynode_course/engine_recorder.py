"""Films of an engine that a learner wrote: the package ``mynode`` of the course.

Requirement: a learner sees the own engine at work, at any stage and with own mistakes. So the
recorder knows only what all stages have: ``FunctionNode.apply``, ``backward`` of a function,
``Variable.backward``, ``Variable.cleargrad``. While a film is recorded, the recorder stands in
front of these methods, and then calls them. The engine computes as without a film.

Up to step 6, a graph holds Variables, and a gradient is in ``Variable.grad``. From step 11 on, a
graph holds VariableNodes, and a table has the gradients. The recorder reads ``grad`` where there
is one, and adds up the table's gradients itself.
"""

from __future__ import annotations

import contextlib
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy

from tinynode.learn import ENGINE
from tinynode.show.films.failures import told
from tinynode.show.films.nodes import FilmNode, Recording
from tinynode.show.films.sources import script_names, user_frame, user_places

MAX_STEPS = 3_000
"""The most steps of an engine in a film; steps after that are not recorded."""

SHOWN = 20
"""The most functions of a queue."""

Step = dict[str, Any]

Nodes = dict[int, tuple[weakref.ref[Any], FilmNode]]
"""The film's nodes of objects, by the id of each, with a reference to the object."""


@contextlib.contextmanager
def filmed(film: Recording, most: int) -> Iterator[EngineRecorder]:
    """Record the learner's package, if it is imported, or as soon as ``found`` names it."""
    recorder = EngineRecorder(film)
    recorder.most = min(most, MAX_STEPS)
    recorders.append(recorder)
    try:
        if ENGINE in sys.modules:
            recorder.attach(sys.modules[ENGINE])
        yield recorder
    finally:
        recorders.remove(recorder)
        recorder.detach()


recorders: list[EngineRecorder] = []
"""The running recorders; the newest is the last."""


def found(package: ModuleType) -> None:
    """Tell the running recorders that the learner's package was imported."""
    for recorder in recorders:
        recorder.attach(package)


class EngineRecorder:
    """Writes the steps of the learner's package into a film."""

    def __init__(self, film: Recording) -> None:
        self.film = film
        self._package: ModuleType | None = None
        self._originals: list[tuple[type, str, Any]] = []
        self._known: Nodes = {}
        self._functions: Nodes = {}
        self._outputs: dict[str, list[FilmNode]] = {}
        self._freed: list[str] = []
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._cleared: list[str] = []
        self._sums: dict[str, Any] = {}
        self._creators: dict[str, FilmNode] = {}
        self._waiting: dict[str, FilmNode] = {}
        self._has_ranks = False
        self._open: tuple[Step, list[tuple[Any, FilmNode, str]]] | None = None
        self._depth = 0
        self._steps = 0
        self.most = MAX_STEPS

    # --- standing in front of methods ------------------------------------------------------------

    def attach(self, package: ModuleType) -> None:
        """Stand in front of the package's methods."""
        self.detach()
        self._package = package
        function_node = getattr(package, "FunctionNode", None)
        variable = getattr(package, "Variable", None)
        if function_node is None or variable is None:
            return  # the package is not that far
        self._replace(function_node, "apply", self._apply)
        self._replace(variable, "backward", self._sweep)
        self._replace(variable, "cleargrad", self._clear)

    def detach(self) -> None:
        """Put the methods back."""
        self._finish()
        for owner, name, original in reversed(self._originals):
            setattr(owner, name, original)
        self._originals.clear()

    def _replace(self, cls: type, name: str, record: Callable[..., Any]) -> None:
        """Let ``record(original, *arguments)`` stand in front of a method, if there is one."""
        owner = next((one for one in cls.__mro__ if name in vars(one)), None)
        if owner is None or any(o is owner and n == name for o, n, _ in self._originals):
            return
        original = vars(owner)[name]

        def method(*arguments: Any, **options: Any) -> Any:
            return record(original, *arguments, **options)

        self._originals.append((owner, name, original))
        setattr(owner, name, method)

    # --- events ----------------------------------------------------------------------------------

    def _apply(self, original: Callable[..., Any], function: Any, inputs: Any) -> Any:
        self._finish()
        start = time.perf_counter()
        try:
            outputs = original(function, inputs)
        except BaseException as error:
            self._apply_failed(function, inputs, error)
            raise
        seconds = time.perf_counter() - start
        if not self._has_room() or not isinstance(outputs, tuple):
            return outputs
        self._replace(type(function), "backward", self._backward)
        step, shown, ins = self._application(function, inputs)
        outs = [self._variable(y, shown.rank + 1, is_output=True) for y in outputs]
        self._outputs[shown.id] = outs
        for node in outs:
            self.film.connect(shown, node, "forward")
            self._creators[node.id] = shown
        self._has_ranks = hasattr(function, "rank")
        step["outputs"] = self._values(outs, [y.array for y in outputs])
        step["seconds"] = seconds
        step["in_graph"] = getattr(function, "inputs", None) is not None
        if step["in_graph"]:
            for kind, nodes in (("input", ins), ("output", outs)):
                indexes = getattr(function, f"_retained_{kind}_indexes", ())
                step["retained"] += [nodes[i].id for i in indexes]
        else:
            shown.facts = ("no graph",)
        self._add(step)
        return outputs

    def _application(self, function: Any, inputs: Any) -> tuple[Step, FilmNode, list[FilmNode]]:
        """A step of a function with the inputs; then the nodes of the function and the inputs."""
        ins = [self._variable(x) for x in inputs]
        rank = max((node.rank for node in ins), default=0)
        places = self._places()
        shown = self.film.add_function(type(function).__name__, rank, "forward", places)
        self._functions[id(function)] = (weakref.ref(function), shown)
        for node in ins:
            self.film.connect(node, shown, "forward")
        step = self._step("forward", places, shown, function)
        step["inputs"] = self._values(ins, [getattr(x, "array", None) for x in inputs])
        return step, shown, ins

    def _apply_failed(self, function: Any, inputs: Any, error: BaseException) -> None:
        """A function raised: the innermost function is a step with the inputs and the error."""
        if self._depth or self.film.shows(error) or not self._has_room():
            return
        step, shown, _ = self._application(function, inputs if isinstance(inputs, tuple) else ())
        step["in_graph"] = True
        self._outputs[shown.id] = []
        self._fail(step, shown, error, function)

    def _fail(self, step: Step, shown: FilmNode, error: BaseException, function: Any) -> None:
        self.film.fail(step, error, function)
        shown.facts = (*shown.facts, f"! {step['error']['name']}")
        self._add(step)

    def _sweep(self, original: Callable[..., Any], y: Any, *rest: Any, **options: Any) -> Any:
        """Record ``y.backward()``: the seed, and at the end the gradients of the leaves."""
        self._finish()
        places = self._places()
        if self._has_room():
            step = self._step("sweep", places, depth=1)
            seed = numpy.ones_like(y.array) if y.grad is None else _array(y.grad)
            name = self._variable(y).id
            step["grad_outputs"].append([name, self._value(seed)])
            step["table"]["set"] = list(step["grad_outputs"])
            self._sums, self._waiting = {}, {}
            self._sum_up(name, seed)
            self._add(step)
        self._depth += 1
        problem = None
        try:
            return original(y, *rest, **options)
        except BaseException as error:
            problem = error
            raise
        finally:
            self._finish()
            self._end(places, problem)
            self._depth -= 1

    def _end(self, places: Any, problem: BaseException | None) -> None:
        if not self._has_room():
            return
        step = self._step("end", places, depth=1)
        step["error"] = None if problem is None else told(problem)
        step["table"]["removed"] = list(self._sums)
        for reference, shown in list(self._known.values()):
            x = _holder(reference())
            gradient = self._sums.get(shown.id)
            if x is not None and gradient is not None and x.creator_node is None:
                total = None if x.grad is None else self._value(x.grad)
                how = "none" if total is None else "first"
                step["grad_inputs"].append([shown.id, self._value(gradient), how, total])
        self._sums = {}
        self._add(step)

    def _clear(self, original: Callable[..., Any], x: Any) -> Any:
        self._finish()
        self._cleared.append(self._variable(x).id)
        return original(x)

    def _backward(
        self, original: Callable[..., Any], function: Any, targets: Any, grad_outputs: Any
    ) -> Any:
        """Record a function's backward; the sums are read before the next event."""
        self._finish()
        start = time.perf_counter()
        try:
            grad_inputs = original(function, targets, grad_outputs)
        except BaseException as error:
            self._backward_failed(function, grad_outputs, error)
            raise
        seconds = time.perf_counter() - start
        shown = _find(self._functions, function)
        if shown is None or not isinstance(grad_inputs, tuple) or not self._has_room():
            return grad_inputs
        step = self._step("backward", shown.places, shown, function, depth=1)
        step["seconds"] = seconds
        ins = [self._variable(thing) for thing in function.inputs or ()]
        outs = self._outputs[shown.id]
        step["inputs"] = self._kept(function, "input", ins)
        step["outputs"] = self._kept(function, "output", outs)
        step["grad_outputs"] = self._values(outs, grad_outputs)
        entries: list[tuple[Any, FilmNode, str]] = []
        for i in targets:
            gradient = grad_inputs[i] if i < len(grad_inputs) else None
            how = "none" if gradient is None else self._how(ins[i], entries)
            step["grad_inputs"].append([ins[i].id, self._value(gradient), how, None])
            entries.append((function.inputs[i], ins[i], how))
            if gradient is not None:
                self._sum_up(ins[i].id, _array(gradient))
        self._waiting.pop(shown.id, None)
        self._open = (step, entries)
        return grad_inputs

    def _backward_failed(self, function: Any, grad_outputs: Any, error: BaseException) -> None:
        shown = _find(self._functions, function)
        if shown is None or self.film.shows(error) or not self._has_room():
            return
        step = self._step("backward", shown.places, shown, function, depth=1)
        ins = [self._variable(thing) for thing in function.inputs or ()]
        outs = self._outputs[shown.id]
        step["inputs"] = self._kept(function, "input", ins)
        step["outputs"] = self._kept(function, "output", outs)
        step["grad_outputs"] = self._values(outs, grad_outputs)
        self._waiting.pop(shown.id, None)
        self._fail(step, shown, error, function)

    def _how(self, shown: FilmNode, entries: list[tuple[Any, FilmNode, str]]) -> str:
        """``"added"`` if the variable has a gradient of this sweep already, else "first"."""
        again = shown.id in self._sums or any(node is shown for _, node, _ in entries)
        return "added" if again else "first"

    def _sum_up(self, name: str, gradient: Any) -> None:
        """Add a gradient; the variable's creator waits for its turn from now on."""
        before = self._sums.get(name)
        self._sums[name] = gradient if before is None else before + gradient
        if name in self._creators:
            creator = self._creators[name]
            self._waiting[creator.id] = creator

    def _finish(self) -> None:
        """End the backward step under way, with the sums as the engine has them now."""
        if self._open is None:
            return
        (step, entries), self._open = self._open, None
        for entry, (thing, shown, how) in zip(step["grad_inputs"], entries, strict=True):
            if how == "none":
                continue
            total = self._sums.get(shown.id)
            if not _is_node(thing) and self._depth:
                total = thing.grad  # the engine's own sum, right or wrong
                self._sums[shown.id] = total
            entry[3] = self._value(total)
            step["table"]["set"].append([shown.id, entry[3]])
        for shown in self._outputs[step["function"]]:
            if any(_is_node(thing) for thing, _, _ in entries) and shown.id in self._sums:
                del self._sums[shown.id]
                step["table"]["removed"].append(shown.id)
                step["freed"].append(shown.id)
        self._add(step)

    # --- nodes -----------------------------------------------------------------------------------

    def _variable(self, x: Any, rank: int = 0, *, is_output: bool = False) -> FilmNode:
        """The film's node of a Variable or VariableNode."""
        key = getattr(x, "node", x)
        shown = _find(self._known, key)
        holder = _holder(key) if _holder(x) is None else _holder(x)
        if shown is None or is_output:
            array = getattr(holder, "array", None)
            facts = [] if array is None else [_label(numpy.asarray(array))]
            if getattr(key, "requires_grad", True) is False:
                facts.append("no gradient")
            self.film.devices["numpy"] = None
            name = getattr(key, "name", None)
            shown = self.film.add_variable(name, tuple(facts), rank, "forward")
            self._known[id(key)] = (weakref.ref(key), shown)
            self._watch(array, shown.id)
        elif not shown.is_named and getattr(holder, "name", None):
            shown.label, shown.is_named = str(getattr(holder, "name", "")), True
        return shown

    def _watch(self, array: Any, name: str) -> None:
        """Note the name when the array is freed."""
        if not isinstance(array, numpy.ndarray):
            return
        freed = self._freed

        def is_freed(reference: weakref.ref[Any]) -> None:
            freed.append(name)

        self._arrays[id(array)] = weakref.ref(array, is_freed)

    def _places(self) -> Any:
        """The places of the user's code; names in the code become names of nodes."""
        frame = user_frame()
        variable = getattr(self._package, "Variable", ())
        for name, value in () if frame is None else script_names(frame):
            if isinstance(value, variable):
                shown = _find(self._known, getattr(value, "node", value))
                if shown is not None and not shown.is_named:
                    shown.label, shown.is_named = value.name or name, True
            elif isinstance(value, ModuleType):
                self.film.modules.add(name)
        return user_places()

    # --- steps -----------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        if self._steps >= self.most:
            self.film.note = (
                f"Cut: the film holds {self.most} steps of {ENGINE}; the code went on."
            )
        return self._steps < self.most

    def _step(
        self, kind: str, places: Any, shown: FilmNode | None = None,
        function: Any = None, depth: int = 0,
    ) -> Step:  # fmt: skip
        step = self.film.new_step(kind, places, shown, function, depth)
        step["cleared"], self._cleared = self._cleared, []
        return step

    def _add(self, step: Step) -> None:
        freed, self._freed[:] = list(self._freed), []
        step["freed"] = list(dict.fromkeys([*step["freed"], *freed]))
        if self._depth or step["kind"] == "sweep":
            self._add_queue(step)
        self.film.steps.append(step)
        self._steps += 1

    def _add_queue(self, step: Step) -> None:
        """The waiting functions: by rank, or the newest first in an engine without ranks."""
        waiting = list(self._waiting.values())[::-1]
        if self._has_ranks:
            waiting.sort(key=attrgetter("rank"), reverse=True)
        step["queued"] = len(waiting)
        step["queue"] = [[node.rank, node.id] for node in waiting[:SHOWN]]

    def _values(self, nodes: list[FilmNode], arrays: Any) -> list[list[Any]]:
        return [[n.id, self._value(array)] for n, array in zip(nodes, arrays, strict=True)]

    def _value(self, array: Any) -> int | None:
        if array is None:
            return None
        return self.film.values.add(numpy.asarray(_array(array)))

    def _kept(self, function: Any, kind: str, nodes: list[FilmNode]) -> list[list[Any]]:
        """``[node, value]`` of what backward has: None for an array that was not kept."""
        kept = getattr(function, f"_{kind}_arrays", None)
        if kept is None and kind == "input":
            kept = getattr(function, "input_arrays", None)
        if kept is None:
            things = function.inputs if kind == "input" else function.outputs
            kept = [getattr(thing, "array", None) for thing in things]
        return self._values(nodes, kept)


def _array(gradient: Any) -> Any:
    """The array of a gradient: from step 22 on, a gradient may be a Variable."""
    return getattr(gradient, "array", gradient)


def _find(nodes: Nodes, thing: Any) -> FilmNode | None:
    """The film's node of an object; an id may come again after the object was freed."""
    reference, shown = nodes.get(id(thing), (None, None))
    return shown if reference is not None and reference() is thing else None


def _is_node(thing: Any) -> bool:
    """True for a VariableNode: it has no array."""
    return not hasattr(thing, "array")


def _holder(thing: Any) -> Any:
    """The Variable of a node, while somebody holds it, or the Variable itself; else None."""
    find = getattr(thing, "get_variable_or_none", None)
    if find is not None:
        return find()
    return thing if hasattr(thing, "array") else None


def _label(array: Any) -> str:
    """``(2, 3), float32``, or ``float32`` for an array without axes."""
    return f"{array.shape}, {array.dtype}" if array.shape else str(array.dtype)
