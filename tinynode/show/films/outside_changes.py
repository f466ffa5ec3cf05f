"""Weights that the program changes itself: no step of a film shows such an update.

Requirement: a hand-written update, such as ``w.array -= 0.1 * w.grad``, runs no function and no
optimizer. So the film says which weights changed between two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tinynode.errors import joined
from tinynode.show.films.nodes import Recording

SHOWN = 3
"""The most weights in the sentence."""


class OutsideChange(NamedTuple):
    """A weight with another array than at the last step with the weight.

    Attributes:
        step: the index of the first step with the new array.
        node: the id of the weight's node.
    """

    step: int
    node: str


def outside_changes(film: Recording) -> list[OutsideChange]:
    """The first such change of each weight; a weight has a gradient at the end of a pass."""
    found: dict[str, OutsideChange] = {}
    last: dict[str, int] = {}
    has_gradient: set[str] = set()
    for index, step in enumerate(film.steps):
        if step["kind"] == "forward":
            for node, value in step["inputs"]:
                is_other = node in last and value is not None and last[node] != value
                if is_other and node in has_gradient:
                    found.setdefault(node, OutsideChange(index, node))
                if value is not None:
                    last[node] = value
        elif step["kind"] == "end":
            has_gradient.update(entry[0] for entry in step["grad_inputs"] if entry[2] != "none")
        for node, _, _, after, _ in step["updates"]:
            if after is not None:
                last[node] = after
    return list(found.values())


def sentence_of(found: list[OutsideChange], labels: Mapping[str, str], place: str) -> str:
    """The changes in a sentence.

    Args:
        found: the changes, at least one.
        labels: the name of each node.
        place: the step of the first change, such as ``"iteration 2, step 1"``.
    """
    names = list(dict.fromkeys(labels[one.node] for one in found if one.node in labels))
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return (
        f"The program itself changes {joined([*names[:SHOWN], *more])}, first before {place}. "
        "No step of the film shows this change."
    )
