"""The hook of changes: it finds the step of a change, and puts in the number.

Requirement: a changed run follows the branches and loops of the program. So the program runs
again, and a hook changes an element when the recorder reaches the step. The hook is registered
before the recorder. So the film shows the changed arrays.

A change names variables as a film does. ``resolved`` finds the step and the positions in the film
before the change. The hook needs positions only, since a running film has no names yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.configuration import config
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook, thread_hooks
from tinynode.core.variable import Variable, wrap_array
from tinynode.core.variable_node import VariableNode
from tinynode.devices import hidden_axes, to_host
from tinynode.errors import printable, short_name
from tinynode.learn import ENGINE
from tinynode.show.films.changes import Change, number_words
from tinynode.show.films.data import named_segments
from tinynode.show.films.differences import event_of
from tinynode.show.films.film import plural
from tinynode.show.films.iterations import Segment
from tinynode.show.films.nodes import Recording
from tinynode.show.films.recorder import FilmRecorder

Step = dict[str, Any]

LISTS = {
    ("forward", "value"): ("inputs", "outputs"),
    ("update", "value"): ("updates",),
    ("sweep", "gradient"): ("grad_outputs",),
    ("backward", "gradient"): ("grad_inputs", "grad_outputs"),
    ("end", "gradient"): ("grad_inputs",),
    ("update", "gradient"): ("updates",),
}
"""By the kind of a step and the part: the lists of the step with arrays to change."""


@dataclass(frozen=True)
class Target:
    """The place of a change in a recording.

    Attributes:
        change: the change.
        step: the index of the step in the recording.
        place: the iteration and the step in it, from 0.
        kind: the kind of the step.
        title: the label of the function, or the class of the optimizer; else empty.
        entries: the list of the step with the variable; ``"settings"`` for a setting.
        positions: the positions of the variable in the list.
        shape: the shape of the array.
        known: for each entry of the list the index of its array in the film before the change.
    """

    change: Change
    step: int
    place: tuple[int, int]
    kind: str
    title: str
    entries: str
    positions: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    known: tuple[int | None, ...] = ()


# --- the place of a change -----------------------------------------------------------------------


def resolved(film: Recording, change: Change) -> Target:
    """The place of a change in a film.

    Raises:
        ValueError: the film has no such step, the step no such variable, or the array no such
            element; the message says what there is.
    """
    runs = named_segments(film)
    index, place = _place_of([segment for segment, _ in runs], change)
    step = film.steps[index]
    segment, picture = runs[place[0]]
    labels = picture.labels_of(segment)
    title = labels.get(step["function"] or "", "")
    module = getattr(film.classes.get(step["class"] or ""), "__module__", "")
    if module.partition(".")[0] == ENGINE:
        raise ValueError(
            f"{change}: {title} is of the learner's package {ENGINE}, and a change needs a step "
            "of tinynode."
        )
    if step["kind"] == "update":
        title = short_name(film.classes[step["class"]].__name__)
    facts = (change, index, place, step["kind"], title)
    settings = _settings(film, step)
    names = [labels[entry[0]] for entry in step["updates"]]
    if change.part == "setting" or (change.name in settings and change.name not in names):
        if change.name not in settings:
            raise _not_there(change, step, labels, settings)
        if change.index:
            raise ValueError(f"{change}: {change.name} is a setting, so it has no index.")
        return Target(*facts, entries="settings")
    for entries in LISTS.get((step["kind"], change.part), ()):
        arrays = [_value_of(entry, entries, change.part) for entry in step[entries]]
        found = tuple(
            position
            for position, entry in enumerate(step[entries])
            if labels[entry[0]] == change.name and arrays[position] is not None
        )
        if found:
            value = film.values.describe(arrays[found[-1]] or 0)
            _check_element(change, value)
            if change.part == "gradient":  # of other variables, an entry may be a part of a sum
                arrays = [one if i == found[-1] else None for i, one in enumerate(arrays)]
            return Target(*facts, entries, found, tuple(value["shape"]), tuple(arrays))
    raise _not_there(change, step, labels, settings)


def _place_of(segments: Sequence[Segment], change: Change) -> tuple[int, tuple[int, int]]:
    """The index of the step in the recording; the iteration, and the step in it."""
    counts = [segment.last - segment.first for segment in segments]
    number = change.step
    if change.iteration is None:
        iteration = 0
        while iteration < len(counts) - 1 and number > counts[iteration]:
            number -= counts[iteration]
            iteration += 1
        most, where = sum(counts), "the film"
    else:
        iteration = change.iteration - 1
        if iteration >= len(counts):
            raise ValueError(f"{change}: the film has {plural(len(counts), 'iteration')}.")
        most, where = counts[iteration], f"iteration {change.iteration}"
    if number > counts[iteration]:
        raise ValueError(f"{change}: {where} has {most} steps.")
    return segments[iteration].first + number - 1, (iteration, number - 1)


def _settings(film: Recording, step: Step) -> Sequence[str]:
    """The names of the settings of an update's optimizer."""
    if step["kind"] != "update":
        return ()
    return tuple(getattr(film.classes.get(step["class"]), "setting_names", ()))


def _value_of(entry: list[Any], entries: str, part: str) -> int | None:
    """The array of an entry before an update, or after the other steps."""
    index = 1
    if entries == "updates" and part == "gradient":
        index = 2
    elif entries == "grad_inputs" and entry[3] is not None:
        index = 3  # the total
    found: int | None = entry[index]
    return found


def _check_element(change: Change, value: dict[str, Any]) -> None:
    """Refuse an index or a number without a place in the array."""
    shape = tuple(value["shape"])
    if len(change.index) != len(shape):
        raise ValueError(
            f"{change}: {change.name} has shape {shape}, so an index has "
            f"{plural(len(shape), 'number')}."
        )
    for number, size in zip(change.index, shape, strict=True):
        if not -size <= number < size:
            raise ValueError(
                f"{change}: the index {number} is out of range; {change.name} has shape {shape}."
            )
    dtype = value["dtype"]
    if dtype.startswith("complex"):
        raise ValueError(f"{change}: {change.name} is complex, and a change is a real number.")
    if "float" not in dtype and change.to != change.to // 1:
        raise ValueError(f"{change}: {change.name} is {dtype}, so the number must be whole.")
    if dtype == "bool" and change.to not in (0, 1):
        raise ValueError(f"{change}: {change.name} is bool, so the number must be 0 or 1.")


def _not_there(
    change: Change, step: Step, labels: dict[str, str], settings: Sequence[str]
) -> ValueError:
    """The error for a name that the step does not have; lists the names of the step."""
    there = []
    for part, word in (("value", "the arrays"), ("gradient", "the gradients of")):
        found: dict[str, None] = {}
        for entries in LISTS.get((step["kind"], part), ()):
            for entry in step[entries]:
                if _value_of(entry, entries, part) is not None:
                    found[labels[entry[0]]] = None
        if found:
            there.append(f"{word} {', '.join(found)}")
    if settings:
        there.append(f"the settings {', '.join(settings)}")
    event = event_of(step["kind"], labels.get(step["function"] or "", step["class"] or ""))
    what = f"the gradient of {change.name}" if change.part == "gradient" else change.name
    has = "; ".join(there) or "nothing to change"
    return ValueError(printable(f"{change}: {event} does not have {what}. It has {has}."))


# --- the hook ------------------------------------------------------------------------------------


class ChangeHook(FunctionHook):
    """Makes changes when the recorder reaches their steps; register it before the recorder.

    Attributes:
        waiting: the targets still to come.
        was: for each made change the number before.
        seen: for each made change, the arrays before the change, as indexes into the values of
            the film.
        problems: the reasons why a change was not possible.
    """

    name = "changes of a film"

    def __init__(self, targets: Iterable[Target]) -> None:
        self.waiting = list(targets)
        self.was: dict[Target, Any] = {}
        self.seen: dict[Target, tuple[int | None, ...]] = {}
        self.problems: list[str] = []
        self._film: Recording | None = None
        self._depth = 0
        self._nodes: list[VariableNode | None] = []
        self._arrays: list[tuple[Variable, Any, Any]] = []  # with the new array, and the old
        self._settings: list[tuple[Any, str, Any, Any]] = []  # the same of optimizers

    # --- forward ---------------------------------------------------------------------------------

    def before_forward(self, function: FunctionNode, inputs: tuple[Variable, ...]) -> None:
        """Change an operand."""
        is_connected = config.enable_backprop and any(x.requires_grad for x in inputs)
        if self.waiting and (not self._depth or is_connected):  # else no step
            for target in self._due("forward", function.label, "inputs"):
                self._change_variables(target, inputs)

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        """Change a result."""
        if self.waiting and (not self._depth or function.inputs is not None):
            for target in self._due("forward", function.label, "outputs"):
                self._change_variables(target, outputs)

    # --- backward --------------------------------------------------------------------------------

    def sweep_began(self, sweep: Any) -> None:
        """Change a seed."""
        self._depth += 1
        for target in self._due("sweep", "", "grad_outputs"):
            self._change_gradient(target, sweep.table.gradients, list(sweep.table.gradients))

    def before_backward(self, sweep: Any, function: FunctionNode) -> None:
        """Change the gradient of an output."""
        for target in self._due("backward", function.label, "grad_outputs"):
            nodes = [reference() for reference in function.outputs or ()]
            self._change_gradient(target, sweep.table.gradients, nodes)

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        """Note the nodes of the gradients."""
        nodes = function.inputs or ()
        self._nodes = [nodes[index] for index in target_input_indexes]

    def after_accumulate(self, sweep: Any, function: FunctionNode) -> None:
        """Change a gradient given by the step."""
        for target in self._due("backward", function.label, "grad_inputs"):
            self._change_gradient(target, sweep.table.gradients, self._nodes)

    def sweep_ended(self, sweep: Any, error: BaseException | None) -> None:
        """Change a gradient written or returned by the pass."""
        for target in self._due("end", "", "grad_inputs"):
            alive = [node for node in sweep.results if node.get_variable_or_none() is not None]
            gradients = [sweep.results[node] for node in alive]
            self._change_variables(target, gradients)
        self._depth -= 1

    # --- updates ---------------------------------------------------------------------------------

    def update_requested(self, optimizer: Any, parameters: Sequence[Any]) -> bool:
        """Change a parameter, its gradient or a setting before an update."""
        title = type(optimizer).__name__
        for target in self._due("update", title, "settings"):
            self._change_setting(target, optimizer)
        for target in self._due("update", title, "updates"):
            shown = [slot.parameter for slot in parameters if slot.parameter.grad_var is not None]
            if target.change.part == "gradient":
                shown = [parameter.grad_var for parameter in shown]
            self._change_variables(target, shown)
        return False

    def _change_setting(self, target: Target, optimizer: Any) -> None:
        name, to = target.change.name, target.change.to
        old = getattr(optimizer, name)
        if type(old) not in (int, float):
            self._refuse(target, f"{name} is {old!r}, and a change is a single number")
            return
        try:
            for one in dict.fromkeys((optimizer, *(optimizer.groups if name != "lr" else ()))):
                self._settings.append((one, name, to, getattr(one, name)))
                setattr(one, name, to)
                one.check_settings()
        except (TypeError, ValueError) as error:
            setattr(optimizer, name, old)
            self._refuse(target, str(error))
            return
        self._note(target, old, ())

    # --- all kinds of steps ----------------------------------------------------------------------

    def _due(self, kind: str, title: str, entries: str) -> list[Target]:
        """The targets for the next step of the film."""
        if not self.waiting:
            return []
        if self._film is None:
            self._film = _running_film()
        if self._film is None:
            return []
        facts = (len(self._film.steps), kind, short_name(title), entries)
        return [
            target
            for target in self.waiting
            if (target.step, target.kind, target.title, target.entries) == facts
        ]

    def _change_variables(self, target: Target, variables: Sequence[Variable]) -> None:
        """Give the Variables at the target's positions a changed array."""
        if max(target.positions) >= len(variables):
            return
        chosen = {id(variables[position]): variables[position] for position in target.positions}
        try:
            changed = [(x, *_with_number(x, target)) for x in chosen.values()]
        except ValueError as error:
            self._refuse(target, str(error))
            return
        self._note(target, changed[0][2], variables)
        for x, array, _ in changed:
            self._replace(x, array)

    def _replace(self, x: Variable, array: Any) -> None:
        self._arrays.append((x, array, x.raw))
        x.replace_array(array, x.device)

    def restore(self) -> None:
        """Give Variables and optimizers the old numbers, if the program gave them no others.

        They may come from outside of the program.
        """
        for x, array, old in reversed(self._arrays):
            if x.raw is array:
                x.replace_array(old, x.device)
        for one, name, to, before in reversed(self._settings):
            if getattr(one, name) == to:
                setattr(one, name, before)

    def _change_gradient(
        self,
        target: Target,
        gradients: MutableMapping[VariableNode, Any],
        nodes: Sequence[VariableNode | None],
    ) -> None:
        """Put a changed gradient into the table of a sweep."""
        if max(target.positions) >= len(nodes):
            return
        node = nodes[target.positions[0]]
        if node is None or node not in gradients:
            return
        gradient = gradients[node]
        try:
            array, was = _with_number(gradient, target)
        except ValueError as error:
            self._refuse(target, str(error))
            return
        self._note(target, was, [None if one is None else gradients.get(one) for one in nodes])
        if gradient.creator_node is None:
            gradients[node] = wrap_array(array, gradient.device, gradient.requires_grad)
        elif sum(one is gradient for one in gradients.values()) == 1:
            self._replace(gradient, array)  # stays in the graph of the gradients
        else:
            self._refuse(target, "another variable has the same gradient, in one graph")

    def _note(self, target: Target, was: Any, variables: Sequence[Variable | None]) -> None:
        """Note the number and the arrays before the change."""
        self.waiting.remove(target)
        self.was[target] = was
        if self._film is not None:
            add = self._film.values.add
            self.seen[target] = tuple(None if x is None else add(x.raw) for x in variables)

    def _refuse(self, target: Target, reason: str) -> None:
        if target in self.waiting:
            self.waiting.remove(target)
        self.problems.append(printable(f"{target.change}: {reason.removesuffix('.')}."))

    def check(self) -> None:
        """Refuse a run without one of the changes.

        Raises:
            ValueError: the message says why.
        """
        if self.problems:
            raise ValueError(self.problems[0])
        if not self.waiting:
            return
        target = self.waiting[0]
        wanted = event_of(target.kind, target.title)
        raise ValueError(
            printable(
                f"{target.change}: the second run has no such step of tinynode: {wanted}. If the "
                "program is not the same each time, set a seed: tn.seed(0), "
                "np.random.default_rng(0)."
            )
        )


def _running_film() -> Recording | None:
    """The film of the first recorder of this thread."""
    for hook in thread_hooks():
        if isinstance(hook, FilmRecorder):
            return hook.film
    return None


def _with_number(x: Variable, target: Target) -> tuple[Any, Any]:
    """The Variable's array with the changed element, and the number before.

    Raises:
        ValueError: the array has another shape, or its dtype does not hold the number.
    """
    if hidden_axes.stack:
        raise ValueError("inside of vmap an array has hidden axes, and no change is possible")
    changed = numpy.array(to_host(x.raw))
    if changed.shape != target.shape:
        raise ValueError(f"in the second run the array has shape {changed.shape}")
    index, to = target.change.index, target.change.to
    was = changed[index].item()
    try:
        with numpy.errstate(all="ignore"):
            changed[index] = to
    except OverflowError:
        raise ValueError(f"{number_words(to)} is out of range for {changed.dtype}") from None
    if changed.dtype.kind == "f" and math.isfinite(to) and not numpy.isfinite(changed[index]):
        raise ValueError(f"{number_words(to)} is too large for {changed.dtype}")
    return x.device.from_host(changed), was
