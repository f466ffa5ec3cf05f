"""The state of a film after each step: born nodes, arrays, gradients.

Requirement: pictures of a film show the same state as the film's page. The page's script has the
same rules (``recordChanges`` and ``startOf`` in ``page/files/film.js``); a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tinynode.show.films.text import steps_of

Step = dict[str, Any]


@dataclass(eq=False)
class State:
    """The state after a step. Arrays are indexes into the film's "values".

    Attributes:
        born: the nodes and functions that exist.
        value: the array of each variable.
        kept: the variables with an array retained for backward.
        freed: the variables without their array.
        gradient: the gradients in the gradient table.
        grad: the gradients of the user, ``x.grad``.
    """

    born: set[str] = field(default_factory=set)
    value: dict[str, int] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    freed: set[str] = field(default_factory=set)
    gradient: dict[str, int] = field(default_factory=dict)
    grad: dict[str, int] = field(default_factory=dict)

    def gradient_of(self, node: str) -> int | None:
        """The gradient in the table; without it, ``x.grad``."""
        found = self.gradient.get(node)
        return self.grad.get(node) if found is None else found


@dataclass(eq=False)
class Moment:
    """A step with the state after the step.

    Attributes:
        iteration: the index of the iteration.
        index: the index of the step in the iteration.
        step: the step, with the values of the iteration.
        state: the state; the next moment changes it.
    """

    iteration: int
    index: int
    step: Step
    state: State


def moments(data: dict[str, Any]) -> Iterator[Moment]:
    """All steps of a film in order, from ``Film.data()``, each with the state after it."""
    births = [_births(picture) for picture in data["pictures"]]
    brought: dict[str, tuple[int | None, int | None]] = {}
    state, iteration, index, shown = State(), -1, 0, 0
    for number, step in steps_of(data):
        if number - 1 != iteration:
            if iteration >= 0:
                for node in data["pictures"][shown]["shared"]:
                    brought[node] = (state.value.get(node), state.grad.get(node))
            state, iteration, index = _start(brought), number - 1, 0
            shown = data["iterations"][iteration]["picture"]
        state.born.update(births[shown][index])
        _apply(state, step)
        yield Moment(iteration, index, step, state)
        index += 1


def _births(picture: dict[str, Any]) -> list[list[str]]:
    """The nodes that come with each step of a picture."""
    found: list[list[str]] = [[] for _ in picture["steps"]]
    for node in picture["nodes"]:
        if found:
            found[min(max(node["born"], 0), len(found) - 1)].append(node["id"])
    return found


def _start(brought: dict[str, tuple[int | None, int | None]]) -> State:
    """The state before an iteration: the arrays and gradients of shared nodes."""
    state = State()
    for node, (value, grad) in brought.items():
        if value is not None:
            state.value[node] = value
        if grad is not None:
            state.grad[node] = grad
    return state


def _apply(state: State, step: Step) -> None:
    """Change the state by a step, in the order of the page."""
    for node in step["cleared"]:
        state.grad.pop(node, None)
    if step["kind"] == "forward":
        for node, value in [*step["inputs"], *step["outputs"]]:
            if value is not None:
                state.value[node] = value
            state.freed.discard(node)
    for node, _, _, value, _ in step["updates"]:
        state.value[node] = value
    state.kept.update(step["retained"])
    removed = step["table"]["removed"]
    for node in step["freed"]:
        if node not in removed:
            state.kept.discard(node)
            state.freed.add(node)
    for node in removed:
        state.gradient.pop(node, None)
    state.gradient.update(step["table"]["set"])
    if step["kind"] == "end":
        for node, _, how, total in step["grad_inputs"]:
            if how != "none":
                state.grad[node] = total
