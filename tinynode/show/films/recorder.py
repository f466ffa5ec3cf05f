"""The recorder of films: a hook for all steps.

Requirement: a film shows the real computation. So the recorder observes function applications and
sweeps, and has no second way to run functions. Results are the same with and without a recorder.
A recorder holds arrays, Variables and the graph by weak references. A film holds only texts,
numbers and classes.

A function applied outside of a sweep is a step. Inside of a sweep, a function connected to a graph
(double backprop) is a step of phase "backward". Other functions inside of a sweep are only labels
in the running step ("ran").
"""

from __future__ import annotations

import re
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinynode.core.backprop import Sweep
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import retained_indexes
from tinynode.core.variable import Variable
from tinynode.core.variable_node import VariableNode
from tinynode.devices import Arrays, HostCopy
from tinynode.errors import describe, short_name
from tinynode.hooks.origins import OriginFinder
from tinynode.learn import filmed_engine
from tinynode.nn.module import Module
from tinynode.show.films.failures import told
from tinynode.show.films.film import Film
from tinynode.show.films.graph import FilmGraph
from tinynode.show.films.memory import MemoryWatch
from tinynode.show.films.nodes import MAX_PICTURE, FilmNode
from tinynode.show.films.recipes import RecipeKeeper
from tinynode.show.films.step_writer import SHOWN, Step, StepWriter, SweepState

MAX_STEPS = 30_000
"""The most steps of a film."""


@contextmanager
def record(
    title: str | None = None,
    *,
    model: Module | None = None,
    most: int | None = None,
    arrays: bool = False,
    fold: bool = False,
) -> Iterator[Film]:
    """Film every forward and backward step of this thread inside of a ``with`` block.

        with tn.show.record() as film:
            loss = net(x)
            loss.backward()
        film.save("film.html")

    Recording changes no result. A film holds small summaries of arrays, never the arrays. After
    30,000 steps, or after ``most``, the film ends, with a warning. An error in the block ends the
    film, and is raised as usual.

    A Variable's label is the ``name``, else the name in the script or notebook, else the name or
    the expression in the program's text.

    Args:
        title: shown above the film.
        model: gives names to parameters, and its modules are drawn as groups.
        most: the most steps of the film; at most 30,000.
        arrays: True to keep whole arrays as copies on the host, for ``film.replay()``: at most
            1 GiB. Without it, arrays of more than 256 elements are sampled.
        fold: draw calls of the program as boxes, and scalars of a box as one variable. A press
            opens a box. For a single pass forward and backward; updates are left out.

    Raises:
        TypeError: ``model`` is not a Module, or ``arrays`` or ``fold`` is not a bool.
        ValueError: ``most`` is not an integer of 1 or more.
    """
    if model is not None and not isinstance(model, Module):
        raise TypeError(f"record: model must be a tinynode.nn.Module, got {describe(model)}.")
    if most is not None and (type(most) is not int or most < 1):
        raise ValueError(f"record: most must be an integer, 1 or more, got {most!r}.")
    film = Film(title)
    film.values.keeps_whole = as_flag("record", "arrays", arrays)
    film.is_folded = as_flag("record", "fold", fold)
    recorder = FilmRecorder(film, model, MAX_STEPS if most is None else min(most, MAX_STEPS))
    recipes = RecipeKeeper(film)
    recorder.companions = [recorder.origins, recipes]
    try:
        with recorder.origins, recipes, recorder, filmed_engine(film, recorder.most):
            yield film
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code:
            recorder.ended_by(error)
        raise
    finally:
        recorder.forget()
        recipes.forget()
    if recorder.is_cut:
        # not at the step itself: where warnings are errors, that would end the user's code
        warnings.warn(f"record: {film.note}", stacklevel=3)


def _has_grad(node: VariableNode) -> bool:
    variable = node.get_variable_or_none()
    return variable is not None and variable.grad_var is not None


class FilmRecorder(StepWriter):
    """Writes the steps of this thread into a film.

    A function is a step only if hooks saw the start of the forward. Hooks do not see the functions
    run during the construction of a net: the user did not call these functions.

    Attributes:
        origins: the hook that follows NaN and inf; it hears each event before the recorder.
    """

    def __init__(self, film: Film, model: Module | None, most: int) -> None:
        super().__init__(film, FilmGraph(film, model), most)
        self.memory = MemoryWatch(film.steps, film.memory_log)
        self.name = f"film {id(film)}"
        self.origins = OriginFinder()
        self.origins.name = f"origins of {self.name}"
        self._explained = 0

    def forget(self) -> None:
        """Drop all references; the film is over."""
        self.graph.forget()
        self.memory.end()
        self._begun.clear()
        self._sweeps.clear()
        self.film.watched.forget()

    # --- forward ---------------------------------------------------------------------------------

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        """Called before a function's forward."""
        self._begun.append((weakref.ref(function), time.perf_counter()))

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """A function was applied: a step, except inside of a sweep without a graph."""
        now = time.perf_counter()
        start = self._begin_of(function)
        if start is None:
            return
        if self._sweeps and function.inputs is None:
            self._note_ran(function)
        elif self._has_room():
            self._add_application(function, inputs, outputs, now - start)

    def _note_ran(self, function: FunctionNode) -> None:
        ran = self._sweeps[-1].step.get("ran")
        if ran is not None and len(ran) < SHOWN:
            ran.append(short_name(function.label))

    def _add_application(
        self,
        function: FunctionNode,
        inputs: tuple[Variable, ...],
        outputs: tuple[Variable, ...],
        seconds: float,
    ) -> None:
        phase = "backward" if self._sweeps else "forward"
        ins = [self.graph.node_of(x, 0, phase) for x in inputs]
        rank = max((node.rank for node in ins), default=0)
        places = self.graph.places()
        shown = self.film.add_function(function.label, rank, phase, places)
        outs = [self.graph.node_of(y, rank + 1, phase, is_output=True) for y in outputs]
        self.graph.connect(shown, ins, outs)
        step = self._step("forward", places, shown, function)
        step["inputs"] = self._values(ins, inputs)
        step["outputs"] = self._values(outs, outputs)
        step["seconds"] = seconds
        step["not_finite"] = self._words(self.origins.words_of_forward(function), shown, "first")
        if function.inputs is None:
            shown.facts = ("no graph",)
        else:
            step["in_graph"] = True
            self.graph.remember(function, shown)
            input_indexes, output_indexes = retained_indexes(function)
            retained = [ins[i].id for i in input_indexes] + [outs[i].id for i in output_indexes]
            step["retained"] = list(dict.fromkeys(retained))
        given = [node.id for node in ins], inputs
        made = [node.id for node in outs], outputs
        self.memory.applied(function, shown.id, given, made, is_inner=phase == "backward")
        self._add(step)

    # --- backward --------------------------------------------------------------------------------

    def sweep_began(self, sweep: Sweep) -> None:
        """A sweep has begun, with the seeds in the gradient table."""
        state = SweepState(sweep, self.graph.places())
        self._sweeps.append(state)
        if not self._has_room():
            return
        self.graph.add_behind([function for _, _, function in sweep.heap], MAX_PICTURE)
        step = self._step("sweep", state.places)
        for node, gradient in sweep.table.gradients.items():
            shown = self.graph.variable(node)
            state.table[shown.id] = None
            self.memory.gradient(gradient, shown.id)
            step["grad_outputs"].append([shown.id, self._value(gradient)])
        step["table"]["set"] = list(step["grad_outputs"])
        self._add(step)

    def before_backward(self, sweep: Sweep, function: FunctionNode) -> None:
        """A function's backward is about to run."""
        state = self._state_of(sweep)
        if state is None:
            return
        state.step, state.function = {}, function
        state.had_grad.update(filter(_has_grad, function.inputs or ()))
        if self._has_room():
            shown = self.graph.function(function)
            state.step = self._step("backward", shown.places, shown, function)
            state.before = [
                node for node in function.inputs or () if node in sweep.table.gradients
            ]
            state.start = time.perf_counter()

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        """A function's backward has run; its gradients are not in the table yet."""
        now = time.perf_counter()
        state = self._sweeps[-1] if self._sweeps else None
        if state is None or not state.step:
            return
        state.given = ()
        step, nodes = state.step, function.inputs or ()
        facts = self.origins.words_of_step(grad_outputs)
        step["not_finite"] = self._words(facts, self.graph.function(function), "backward:")
        step["seconds"] = now - state.start
        ins, outs = self._add_retained(step, function)
        step["grad_outputs"] = self._values(outs, grad_outputs)
        reached, state.entries = set(state.before), []
        for i, gx in zip(target_input_indexes, grad_inputs, strict=True):
            how = "none" if gx is None else "added" if nodes[i] in reached else "first"
            value = self._value(gx)
            total = value if how == "first" else None
            step["grad_inputs"].append([ins[i].id, value, how, total])
            state.entries.append(nodes[i])
            if gx is not None:
                reached.add(nodes[i])

    def after_accumulate(self, sweep: Sweep, function: FunctionNode) -> None:
        """The gradients are in the table: note the changes and the waiting functions."""
        state = self._state_of(sweep)
        if state is not None and state.step:
            self._end_step(sweep, state)

    def _end_step(self, sweep: Sweep, state: SweepState) -> None:
        """Add the step under way to the film."""
        step, state.step = state.step, {}
        table = step["table"]
        new: dict[str, int | None] = {}
        last: dict[str, list[Any]] = {}
        for entry, node in zip(step["grad_inputs"], state.entries, strict=True):
            if entry[2] != "none" and node in sweep.table.gradients:
                gradient = sweep.table.gradients[node]
                new[entry[0]] = self._value(gradient)
                for one in (gradient, *sweep.table.waiting.get(node, ())):
                    self.memory.gradient(one, entry[0])
                if node not in sweep.table.waiting:
                    last[entry[0]] = entry  # of a variable at several positions
        for name, entry in last.items():
            entry[3] = new[name]
        table["set"] = [list(item) for item in new.items()]
        state.table.update(dict.fromkeys(new))
        kept = {shown.id for shown in map(self.graph.variable, sweep.table.kept)}
        for shown in self.graph.outputs[step["function"]]:
            if shown.id in state.table:
                table["removed"].append(shown.id)
                del state.table[shown.id]
                if shown.id not in kept:
                    step["freed"].append(shown.id)
        state.entries, state.before, state.function = [], [], None
        self._add(step)

    def sweep_ended(self, sweep: Sweep, error: BaseException | None) -> None:
        """A sweep has ended: note the gradients, or the error."""
        state = self._state_of(sweep)
        if state is None:
            return
        if error is not None and state.step:  # raised between a backward and the next one
            self._mark(state.step, error, state.function)
            self._end_step(sweep, state)
        if self._has_room():
            step = self._step("end", state.places)
            step["table"]["removed"] = list(state.table)
            for node, gradient in sweep.results.items():
                self._add_result(step, state, node, gradient)
            step["error"] = None if error is None else told(error)
            self._add(step)
        del self._sweeps[self._sweeps.index(state) :]

    def _add_result(
        self, step: Step, state: SweepState, node: VariableNode, gradient: Variable
    ) -> None:
        """``[node, gradient of this sweep, how, grad]``; "none": the sweep wrote no grad."""
        found = state.sweep.table.gradients.get(node, gradient)
        variable = node.get_variable_or_none()
        if variable is None:
            return  # freed, so no grad was written
        how = "none"
        if variable.grad_var is gradient:
            # the sweep may also write a copy of what it found
            is_added = found is not gradient and node in state.had_grad
            how = "added" if is_added else "first"
        shown = self.graph.variable(node)
        self.memory.gradient(gradient, shown.id)
        total = None if how == "none" else self._value(gradient)
        step["grad_inputs"].append([shown.id, self._value(found), how, total])

    # --- optimizers ------------------------------------------------------------------------------

    def gradient_cleared(self, variable: Variable) -> None:
        """``cleargrad()`` was called: the next step shows no gradient."""
        node = variable.node_or_none
        shown = None if node is None else self.graph.known(node)
        if shown is not None:
            self._cleared[shown.id] = None

    def update_requested(self, optimizer: Any, parameters: Sequence[Any]) -> bool:
        """An optimizer is about to update parameters: note arrays, gradients and moments."""
        self._before_update = []
        if self._has_room():
            for slot in parameters:
                p = slot.parameter
                moments = {name: self.film.values.add(m) for name, m in slot.moments.items()}
                self._before_update.append((self._value(p), self._value(p.grad_var), moments))
        return False

    def updated(self, optimizer: Any, parameters: Sequence[Any]) -> None:
        """An optimizer has updated parameters: a step."""
        if not self._before_update or not self._has_room():
            return
        step = self._update_step(optimizer, self.graph.places())
        for slot, (old, gradient, moments) in zip(parameters, self._before_update, strict=True):
            p = slot.parameter
            if gradient is None:
                continue  # the optimizer left out this parameter
            shown = self.graph.variable(p.node, p)
            self.memory.updated(p, shown.id, slot.moments)
            both = [[name, old_moment, self.film.values.add(slot.moments[name])]
                    for name, old_moment in moments.items()]  # fmt: skip
            step["updates"].append([shown.id, old, gradient, self._value(p), both])
        self._before_update = []
        self._add(step)

    # --- other arrays of a Variable --------------------------------------------------------------

    def detached(self, source: Variable, copy: Variable) -> None:
        """``x.detach()`` made a second Variable on an array."""
        self.memory.detached(source, copy)

    def array_assigned(self, variable: Variable) -> None:
        """``x.array = y`` is about to replace an array."""
        self.memory.array_assigned(variable)

    # --- copies from the host --------------------------------------------------------------------

    def copied_from_host(self, host_copy: HostCopy) -> None:
        """An array of NumPy was copied to a device: the next step says so."""
        if len(self._copied) < SHOWN:
            words = f"{host_copy.nbytes:,} bytes to {host_copy.device}"
            self._copied.append(f"{host_copy.function}: {words}")

    # --- watched pictures ------------------------------------------------------------------------

    def diagnosed(self, diagnosis: Any) -> None:
        """Write the words of findings into the boxes of the picture."""
        for node, words in diagnosis.marks().items():
            shown = self.graph.known(node)
            if shown is not None and f"! {words}" not in shown.facts:
                shown.facts = (*shown.facts, f"! {words}")

    def watched(self, subject: int, picture: int, about: str) -> None:
        """``tinynode.show.watch`` was called: a step."""
        if self._has_room():
            step = self._step("watch", self.graph.places())
            step["watched"] = {"subject": subject, "picture": picture, "about": about}
            self._add(step)

    def _words(self, facts: str, shown: FilmNode, when: str) -> str:
        """The facts of a NaN or inf, which the box of the function names too.

        "" after many, since each makes a picture of its own.
        """
        self._explained += bool(facts)
        if not facts or self._explained > SHOWN:
            return ""
        is_nan = re.search(r"First, [^.]* is \S*nan", facts) is not None
        shown.facts = (*shown.facts, f"! {when} {'NaN' if is_nan else 'inf'}")
        return facts

    def _state_of(self, sweep: Sweep) -> SweepState | None:
        for state in self._sweeps:
            if state.sweep is sweep:
                return state
        return None
