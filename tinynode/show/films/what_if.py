"""What a program would have computed with another number: the program runs again with a change.

Requirement: "what would the loss be with weight 0?" has an answer for any program, with
branches and all later iterations. So the program runs from the start, and a hook makes the change
at the step. The result is a comparison of the film without changes and the film with all changes.

Each change names a step of the film with the changes before. A second run without changes tells
whether the program is the same twice. So n changes need n + 2 runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinynode.safe_files import checked_path
from tinynode.show.films.changes import Change, Made, checked_changes
from tinynode.show.films.comparison import Comparison, Losses, compare
from tinynode.show.films.data import loss_of, named_segments
from tinynode.show.films.differences import distance, event_of, limit_of
from tinynode.show.films.film import Film
from tinynode.show.films.interventions import ChangeHook, Target, resolved
from tinynode.show.films.iterations import values_of
from tinynode.show.films.nodes import Recording
from tinynode.show.films.random_states import RandomStates
from tinynode.show.films.recorder import record
from tinynode.show.films.scripts import Script, film_of_script


def what_if(
    program: Callable[[], object] | str | Path,
    change: Change | str | Sequence[Change | str],
    *,
    arguments: Sequence[str] = (),
) -> Comparison:
    """Run a program again with another number at a step, and compare both films.

        >>> def program():
        ...     w = tn.asarray([3.0, -2.0], requires_grad=True)
        ...     w.name = "w"
        ...     loss = F.sum(w * w)
        ...     loss.backward()
        >>> print(tn.show.what_if(program, tn.show.Change(step=1, name="w", index=(0,), to=0.0)))
        changed: step 1: w[0] = 0, was 3
        loss: 13 before, 4 after
        first difference: step 1, forward of Multiply, operand w, 3
        4 of 6 common steps differ

    All runs start with the same state of the random generators of tinynode, NumPy and Python. The
    program runs twice without changes. If the runs differ, ``Comparison.note`` says so.

    Args:
        program: a function without arguments, or the path of a script.
        change: a ``Change``, a text such as ``"3: w[0, 1] = 0"``, or several in turn. Each names a
            step of the film with the changes before.
        arguments: the arguments of a script.

    Returns:
        The comparison of the film without changes and the film with them. A notebook shows it.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: a step, a variable or an element does not exist, the dtype does not hold the
            number, or a run misses the step.
    """
    changes = checked_changes("what_if", change)
    if callable(program):
        return rerun(FunctionRuns(program), changes)
    path = checked_path("what_if", program)
    if not os.path.isfile(path):
        raise ValueError(f"what_if: program must be a function or a script, got {str(path)!r}.")
    return rerun(ScriptRuns(str(path), arguments), changes)


class FunctionRuns:
    """Films a function, once at each call."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self._has_run = False

    def __call__(self) -> Film:
        """The film of a run. An error of a later run, with changes, ends the film."""
        title = getattr(self.function, "__name__", None)
        film = Film()
        try:
            with record(title) as film:
                self.function()
        except Exception:
            if not self._has_run or not len(film):
                raise
        self._has_run = True
        return film


class ScriptRuns:
    """Films a script, once at each call; each run imports the modules beside the script anew.

    Attributes:
        status: the exit status of the last run.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        script: str | Script,
        arguments: Sequence[str],
        text: str | None = None,
        most: int | None = None,
    ) -> None:
        self.script = script if isinstance(script, Script) else Script.at(script, text)
        self.arguments = arguments
        self.most = most
        self.status = 0

    def __call__(self) -> Film:
        """The film of a run; after an error, up to the error."""
        before = set(sys.modules)
        film, self.status = film_of_script(self.script, self.arguments, most=self.most)
        self.script.enter_folder()
        folder = os.path.dirname(self.script.file) + os.sep
        for name in set(sys.modules) - before:
            file = str(getattr(sys.modules[name], "__file__", None) or "")
            is_beside = file.startswith(folder) and "site-packages" not in file
            top = name.partition(".")[0]
            if is_beside and top not in before and not top.startswith("tinynode"):
                del sys.modules[name]
        return film


def rerun(run: Callable[[], Film], changes: Sequence[Change]) -> Comparison:
    """Run a program twice without changes, then with one change more at a time.

    Args:
        run: runs the program, and returns the film.
        changes: the changes, each in the film with the changes before.

    Raises:
        ValueError: a change is not possible, or the program has no steps.
    """
    states = RandomStates.now()
    first = _film_of(run)
    last = first
    not_twice = ""
    targets: list[Target] = []
    note = ""
    hook = ChangeHook(())
    for change in changes:
        targets.append(resolved(last, change))  # a wrong change ends here, before a second run
        if last is first:
            states.restore()
            not_twice = _other_twice(first, _film_of(run))
        states.restore()
        hook = ChangeHook(targets)
        try:
            with hook:
                film = _film_of(run)
        finally:
            hook.restore()
        note = note or _other_before(last, film, targets[-1], hook)
        if not note or hook.problems:
            hook.check()
        elif hook.waiting:
            raise ValueError(f"{change}: {note}")
        last = film
    made = tuple(Made(one.change, one.place, hook.was[one]) for one in targets)
    found = compare(first, last)
    return replace(found, changes=made, losses=_losses_of(first, last), note=note or not_twice)


def _film_of(run: Callable[[], Film]) -> Film:
    film = run()
    if not len(film):
        raise ValueError("what_if: the program ran nothing of tinynode: there is no step.")
    return film


# --- the loss ------------------------------------------------------------------------------------


def _losses_of(one: Recording, other: Recording) -> Losses | None:
    """The loss of each iteration of both films; None if a film has none.

    The loss is the variable that the first backward pass starts from. A film without a backward
    pass has the last result of one element instead.
    """
    (name, before), (_, after) = _losses(one), _losses(other)
    return Losses(name, before, after) if before and after else None


def _losses(film: Recording) -> tuple[str, list[Any]]:
    found: list[Any] = []
    name = ""
    runs = named_segments(film)
    steps_of = [film.steps[segment.first : segment.last] for segment, _ in runs]
    losses = [loss_of(steps) for steps in steps_of]
    for (segment, picture), steps, value in zip(runs, steps_of, losses, strict=True):
        if value is not None:
            name = "loss"
        elif not any(loss is not None for loss in losses):
            labels = picture.labels_of(segment)
            results = [step["outputs"][0] for step in steps if step["kind"] == "forward"]
            for node, index in results:
                if index is not None and film.values.content(index).shape == ():
                    name, value = labels[node], index
        cells = [] if value is None else film.values.describe(value)["cells"]
        found.append(cells[0] if len(cells) == 1 else "none")
    has_numbers = any(one != "none" for one in found)
    return name, found if has_numbers else []


# --- programs that are not the same twice --------------------------------------------------------

SEED = "Set a seed in the program: tn.seed(0), np.random.default_rng(0)."
"""How a program becomes the same twice."""


def _other_twice(one: Recording, other: Recording) -> str:
    """A sentence if two runs without changes compute something else; else empty."""
    most = max(len(one.steps), len(other.steps))
    for index in range(most):
        is_in_both = index < min(len(one.steps), len(other.steps))
        if is_in_both and _are_equal(one, other, index):
            continue
        film = one if index < len(one.steps) else other
        return (
            "The program is not the same twice: two runs without changes differ in "
            f"{_at(index, film)}. So the change may not be the reason of a difference. {SEED}"
        )
    return ""


def _other_before(one: Recording, other: Recording, target: Target, hook: ChangeHook) -> str:
    """A sentence if the second run computes something else before the change; else empty."""
    for index in range(target.step):
        if index >= len(other.steps) or not _are_equal(one, other, index):
            return _not_the_same(index, one)
    pairs = zip(target.known, hook.seen.get(target, ()), strict=False)
    if not all(_is_equal(one, other, pair) for pair in pairs):
        return _not_the_same(target.step, one)
    return ""


def _not_the_same(index: int, film: Recording) -> str:
    return (
        "The program is not the same before the change: the runs differ in "
        f"{_at(index, film)}. {SEED}"
    )


def _at(index: int, film: Recording) -> str:
    """A step in words: ``step 1, forward of Multiply``."""
    step = film.steps[index]
    title = next((node.label for node in film.nodes if node.id == step["function"]), "")
    return f"step {index + 1}, {event_of(step['kind'], title or step['class'] or '')}"


def _are_equal(one: Recording, other: Recording, index: int) -> bool:
    first, second = one.steps[index], other.steps[index]
    if (first["kind"], first["class"]) != (second["kind"], second["class"]):
        return False
    values = list(values_of(first)), list(values_of(second))
    if len(values[0]) != len(values[1]):
        return False
    return all(_is_equal(one, other, pair) for pair in zip(*values, strict=True))


def _is_equal(one: Recording, other: Recording, pair: tuple[int | None, int | None]) -> bool:
    """True if two arrays are equal up to rounding; an array beside None counts as unknown."""
    if pair[0] is None or pair[1] is None:
        return True
    first, second = one.values.content(pair[0]), other.values.content(pair[1])
    if first == second:
        return True
    size, note = distance(first, second)
    return not note and size <= limit_of(first, second, None)
