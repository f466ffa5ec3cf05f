"""The steps of a film, with results or with an error.

Requirement: the film of a failing program ends at the failing call, with the operands. A failing
forward, backward or update is a step with "error" and without results. An error of other code is
a step of the kind "error". If the program catches the error, the film goes on. A film shows the
innermost failing function, once.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

from tinynode.core.backprop import Sweep
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook, retained_arrays, thread_state
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Arrays
from tinynode.errors import describe, short_name
from tinynode.show.films.failures import (
    FailedCall,
    failed_call,
    in_one_line,
    inputs_under_way,
    told,
)
from tinynode.show.films.film import Film
from tinynode.show.films.graph import FilmGraph
from tinynode.show.films.nodes import FilmNode
from tinynode.show.films.sources import Place

SHOWN = 20
"""The most functions of a queue, and the most labels in the "ran" of a step."""

Step = dict[str, Any]


class SweepState:
    """A running sweep and the present step.

    Attributes:
        places: the places of user code at the sweep's start.
        function: the function of the step under way.
        step: the step under way; empty if no step is recorded.
        start: the time when the step began.
        given: while a backward runs, the gradients of the outputs.
        table: the film's nodes in the gradient table, in the order of their arrival.
        before: the function's inputs with a gradient before the step.
        had_grad: the reached leaves with a ``grad`` from before the sweep.
        entries: for each of the step's ``grad_inputs`` the VariableNode.
    """

    def __init__(self, sweep: Sweep, places: tuple[Place, ...]) -> None:
        self.sweep = sweep
        self.places = places
        self.function: FunctionNode | None = None
        self.step: Step = {}
        self.start = 0.0
        self.given: tuple[Any, ...] = ()
        self.table: dict[str, None] = {}
        self.before: list[VariableNode] = []
        self.had_grad: set[VariableNode] = set()
        self.entries: list[VariableNode] = []


class StepWriter(FunctionHook):
    """Adds steps to a film; the events of errors.

    Attributes:
        film: gets the steps.
        graph: the film's nodes for the nodes of the graph.
        most: the most steps of the film.
        is_cut: True after the limit.
        companions: further hooks of the film. They end with the film.
    """

    def __init__(self, film: Film, graph: FilmGraph, most: int) -> None:
        self.film = film
        self.graph = graph
        self.most = most
        self.is_cut = False
        self.companions: list[FunctionHook] = []
        self._begun: list[tuple[weakref.ref[FunctionNode], float]] = []
        self._sweeps: list[SweepState] = []
        self._cleared: dict[str, None] = {}
        self._copied: list[str] = []
        self._before_update: list[tuple[int | None, int | None, dict[str, int | None]]] = []

    # --- steps -----------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        """True while the film goes on; the first step above the limit cuts the film."""
        if not self.is_cut and len(self.film) >= self.most:
            self.is_cut = True
            self.film.note = f"Cut: the film holds {self.most} steps, and the code went on."
            for hook in (*self.companions, self):  # the rest runs at its usual speed
                thread_state.hooks.pop(hook.name, None)
        return not self.is_cut

    def _step(
        self,
        kind: str,
        places: tuple[Place, ...],
        shown: FilmNode | None = None,
        function: FunctionNode | None = None,
    ) -> Step:
        user_function = None if function is None else function.user_function
        step = self.film.new_step(kind, places, shown, user_function, len(self._sweeps))
        step["cleared"], self._cleared = list(self._cleared), {}
        step["copied"], self._copied = self._copied, []
        return step

    def _update_step(self, optimizer: Any, places: tuple[Place, ...]) -> Step:
        """A step of an optimizer, without parameters yet."""
        step = self._step("update", places)
        step["class"] = self.film.class_key(type(optimizer))
        self.film.updates[step["class"]] = type(optimizer.update_function())
        step["optimizer"] = repr(optimizer)
        step["rule"] = optimizer.in_numbers
        return step

    def _add(self, step: Step) -> None:
        """Add a step to the film, with the freed nodes and the queue."""
        step["freed"] = list(dict.fromkeys([*step["freed"], *self.graph.pop_freed()]))
        if self._sweeps:
            heap = self._sweeps[-1].sweep.heap
            step["queued"] = len(heap)
            for negative_rank, _, function in nsmallest(SHOWN, heap):
                step["queue"].append([-negative_rank, self.graph.function(function).id])
        self.film.steps.append(step)

    def _values(self, nodes: Sequence[FilmNode], xs: Sequence[Variable | None]) -> list[list[Any]]:
        """``[node, value]`` for each Variable."""
        return [[n.id, self._value(x)] for n, x in zip(nodes, xs, strict=True)]

    def _value(self, x: Variable | None) -> int | None:
        return None if x is None else self.film.values.add(x.raw)

    def _retained_values(self, shown: Sequence[FilmNode], arrays: Arrays) -> list[list[Any]]:
        """``[node, value]``; None for each array that the function did not retain."""
        given = arrays or (None,) * len(shown)
        return [[n.id, self.film.values.add(a)] for n, a in zip(shown, given, strict=True)]

    def _add_retained(
        self, step: Step, function: FunctionNode
    ) -> tuple[list[FilmNode], list[FilmNode]]:
        """Add the retained arrays to a backward step; gives the nodes around the function."""
        ins = [self.graph.variable(node) for node in function.inputs or ()]
        outs = self.graph.outputs[step["function"]]
        input_arrays, output_arrays = retained_arrays(function)
        step["inputs"] = self._retained_values(ins, input_arrays)
        step["outputs"] = self._retained_values(outs, output_arrays)
        return ins, outs

    def _begin_of(self, function: FunctionNode) -> float | None:
        """The start time of a function; later functions without an end have failed."""
        for i in range(len(self._begun) - 1, -1, -1):
            reference, start = self._begun[i]
            if reference() is function:
                del self._begun[i:]
                return start
        return None

    # --- an error in forward or backward ---------------------------------------------------------

    def backward_preprocess(
        self, function: FunctionNode, in_data: Arrays, out_grad: tuple[Any, ...]
    ) -> None:
        """A function's backward begins: an error would show these gradients."""
        if self._sweeps:
            self._sweeps[-1].given = out_grad

    def failed(self, function: FunctionNode, direction: str, error: BaseException) -> None:
        """A forward or backward ended with an exception: the innermost one is a step."""
        if direction == "backward":
            self._backward_failed(function, error)
            return
        start = self._begin_of(function)
        if self._sweeps or self.film.shows(error) or not self._has_room():
            return  # inside of a backward, the outer function fails too
        step = self._application(function, inputs_under_way(function), self.graph.places())
        if start is not None:
            step["seconds"] = time.perf_counter() - start
        self._fail(step, error, function)

    def _backward_failed(self, function: FunctionNode, error: BaseException) -> None:
        state = self._sweeps[-1] if self._sweeps else None
        if state is None or not state.step:
            return
        (step, state.step), (given, state.given) = (state.step, {}), (state.given, ())
        if self.film.shows(error):
            return  # a backward pass inside of this function
        step["seconds"] = time.perf_counter() - state.start
        _, outs = self._add_retained(step, function)
        arrays = given or (None,) * len(outs)
        for shown, gradient in zip(outs, arrays, strict=True):
            step["grad_outputs"].append([shown.id, self.film.values.add(gradient)])
        self._fail(step, error, function)

    def _application(
        self, function: FunctionNode, inputs: Sequence[Any], places: tuple[Place, ...]
    ) -> Step:
        """A step for a function without results, connected with the inputs."""
        operands = [self._operand(x) for x in inputs]
        ins = [node for node, _ in operands]
        rank = max((node.rank for node in ins), default=0)
        shown = self.film.add_function(function.label, rank, "forward", places)
        self.graph.remember(function, shown)
        self.graph.connect(shown, ins, [])
        step = self._step("forward", places, shown, function)
        step["inputs"] = [[node.id, value] for node, value in operands]
        return step

    def _operand(self, x: Any) -> tuple[FilmNode, int | None]:
        """The node and the value of an operand; without a Variable, a description."""
        if not isinstance(x, Variable) or x.raw is None:
            node = self.film.add_variable(None, (short_name(describe(x)),), 0, "forward")
            return node, None
        node = self.graph.node_of(x, 0, "forward")
        has_numbers = "shapes" not in x.device.backend.capabilities
        return node, self._value(x) if has_numbers else None

    def _fail(self, step: Step, error: BaseException, function: FunctionNode | None) -> None:
        """Add a failed step; the box of the function names the error."""
        step["in_graph"] = True  # so the step stays beside the functions before
        self._mark(step, error, function)
        self._add(step)

    def _mark(self, step: Step, error: BaseException, function: FunctionNode | None) -> None:
        self.film.fail(step, error, function)
        shown = None if function is None else self.graph.known(function)
        if shown is not None:
            shown.facts = (*shown.facts, f"! {step['error']['name']}")

    # --- an error that ends the program ----------------------------------------------------------

    def ended_by(self, error: BaseException) -> None:
        """The block of the film ended with an exception: the last step is the failing call."""
        if self.film.shows(error):
            self._drop_ends()
        elif not self.is_cut and self._has_room():
            self._add_last(failed_call(error), error)
        last = self.film.steps[-1:]
        self.film.has_failed = any(step["error"] for step in last)
        self.film.note = f"The recorded code ended with {in_one_line(told(error))}"

    def _drop_ends(self) -> None:
        """Leave out the end of a failed pass: the film ends at the failing call."""
        while self.film.steps[-1]["kind"] == "end":
            self.film.steps.pop()
            self.film.recipes.pop(len(self.film.steps), None)

    def _add_last(self, call: FailedCall, error: BaseException) -> None:
        """Add a step for an error without an event of hooks."""
        is_function = isinstance(call.owner, FunctionNode)
        if is_function and self.graph.known(call.owner) is None:
            step = self._application(call.owner, call.operands, call.places)
            self._fail(step, error, call.owner)
        elif call.owner is not None and not is_function and self._before_update:
            self._fail(self._failed_update(call), error, None)
        elif self.film.steps or call.operands:
            step = self._step("error", call.places)
            step["call"] = short_name(call.name)
            operands = [self._operand(x) for x in call.operands]
            step["inputs"] = [[node.id, value] for node, value in operands]
            self._fail(step, error, None)

    def _failed_update(self, call: FailedCall) -> Step:
        """A step of an optimizer without new parameters."""
        step = self._update_step(call.owner, call.places)
        for slot, before in zip(call.owner.slots, self._before_update, strict=True):
            array, gradient, moments = before
            shown = self.graph.variable(slot.parameter.node, slot.parameter)
            both = [[name, moment, None] for name, moment in moments.items()]
            step["updates"].append([shown.id, array, gradient, None, both])
        return step
