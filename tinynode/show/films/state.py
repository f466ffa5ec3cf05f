"""The state of a film after each step: born nodes, arrays, gradients.

Requirement: pictures of a film show the same state as the film's page. ``looks.py`` computes the
changes of each step, once; the page's script applies them as this module does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tinynode.show.films.text import steps_of

Step = dict[str, Any]

FACTS = ("born", "value", "kept", "freed", "gradient", "grad")
"""The facts of ``looks.py``."""


@dataclass(eq=False)
class State:
    """The state after a step: for each fact, the nodes with the fact.

    Attributes:
        facts: by fact and node, True or the index of an array in the film's "values".
    """

    facts: dict[str, dict[str, Any]] = field(default_factory=lambda: {fact: {} for fact in FACTS})

    def has(self, fact: str, node: str) -> bool:
        """True if the node has the fact."""
        return node in self.facts[fact]

    def array_of(self, node: str) -> int | None:
        """The array of a variable."""
        return self.facts["value"].get(node)

    def gradient_of(self, node: str) -> int | None:
        """The gradient in the table; without it, ``x.grad``."""
        found = self.facts["gradient"].get(node)
        return self.facts["grad"].get(node) if found is None else found

    def apply(self, step: Step) -> None:
        """Change the state by a step."""
        for fact, node, what in step["changes"]:
            if what is None:
                self.facts[fact].pop(node, None)
            else:
                self.facts[fact][node] = what


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
    brought: dict[str, dict[str, Any]] = {"value": {}, "grad": {}}
    state, iteration, index, shown = State(), -1, 0, 0
    for number, step in steps_of(data):
        if number - 1 != iteration:
            if iteration >= 0:
                _carry(state, data["pictures"][shown]["shared"], brought)
            state, iteration, index = State(), number - 1, 0
            for fact, nodes in brought.items():
                state.facts[fact].update(nodes)
            shown = data["iterations"][iteration]["picture"]
        state.apply(step)
        yield Moment(iteration, index, step, state)
        index += 1


def _carry(state: State, shared: list[str], brought: dict[str, dict[str, Any]]) -> None:
    """Take the arrays and gradients of the shared nodes out of an iteration."""
    for fact, nodes in brought.items():
        for node in shared:
            nodes.pop(node, None)
            if state.has(fact, node):
                nodes[node] = state.facts[fact][node]
