"""The looks of a picture at each step: the direction, the changes, the parts, the lit edges.

Requirement: the page and the pictures of a film agree. So the looks are computed here, once for
each picture, and stand in the film's data. The page's script and ``frame_drawing`` draw the looks.

A step gets four entries:

    direction   "forward", "backward", "update", "watch" or "error"
    changes     [fact, node, what]: the state of the node's fact from this step on
    roles       node -> "lit" for the function that runs, "input" or "output"
    lit         the indexes of the edges with moving arrays or gradients

A node gets ``takes_gradient``: True if the variable has a gradient at some step of the picture.

The facts are "born", "kept" (an array retained for backward), "freed" (without its array), "value"
(the array), "gradient" (in the gradient table) and "grad" (``x.grad``). ``what`` is True, or None
at the end of a fact, or an integer: a place in the values of the step, as in ``values_of``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from tinynode.show.films.iterations import with_values
from tinynode.show.films.nodes import Step

Change: TypeAlias = list[Any]
"""``[fact, node, what]``"""

DIRECTIONS = {
    "forward": "forward",
    "backward": "backward",
    "sweep": "backward",
    "end": "backward",
    "update": "update",
    "watch": "watch",
    "error": "error",
}
"""By the kind of a step."""


def add_looks(picture: dict[str, Any]) -> None:
    """Add the entries to each step and node of a picture."""
    steps = picture["steps"]
    births = _births(picture["nodes"], len(steps))
    between = _edges_between(picture)
    freed: set[str] = set()
    for step, born in zip(steps, births, strict=True):
        step["direction"] = DIRECTIONS[step["kind"]]
        step["changes"] = _changes(step, born, freed)
        step["roles"] = _roles(step)
        lit = [between.get(pair, []) for pair in _moves(step)]
        step["lit"] = sorted(itertools.chain.from_iterable(lit))
    entries = [entry for step in steps for entry in (*step["grad_inputs"], *step["table"]["set"])]
    takers = {entry[0] for entry in entries}
    for node in picture["nodes"]:
        node["takes_gradient"] = node["id"] in takers


def _births(nodes: Sequence[dict[str, Any]], count: int) -> list[list[str]]:
    """The new nodes of each step, without repeated boxes."""
    found: list[list[str]] = [[] for _ in range(count)]
    for node in nodes:
        if found and node["of"] is None:
            found[min(node["born"], count - 1)].append(node["id"])
    return found


def _changes(step: Step, born: Iterable[str], freed: set[str]) -> list[Change]:
    """The changes of a step. ``freed`` has the nodes without an array, before and after."""
    numbered = with_values(step, itertools.count())
    changes: list[Change] = [["born", node, True] for node in born]
    changes += [["grad", node, None] for node in step["cleared"]]
    if step["kind"] in ("forward", "error"):
        places = (*numbered["inputs"], *numbered["outputs"])
        known = (*step["inputs"], *step["outputs"])
        for (node, place), (_, value) in zip(places, known, strict=True):
            if value is not None:
                changes.append(["value", node, place])
            if node in freed:
                freed.remove(node)
                changes.append(["freed", node, None])
    for (node, _, _, after, _), (*_, value, _) in zip(
        numbered["updates"], step["updates"], strict=True
    ):
        if value is not None:  # else the update has failed
            changes.append(["value", node, after])
    changes += [["kept", node, True] for node in step["retained"]]
    removed = step["table"]["removed"]
    for node in step["freed"]:
        if node not in removed:
            freed.add(node)
            changes += [["kept", node, None], ["freed", node, True]]
    changes += [["gradient", node, None] for node in removed]
    changes += [["gradient", node, place] for node, place in numbered["table"]["set"]]
    if step["kind"] == "end":
        results = numbered["grad_inputs"]
        changes += [["grad", node, total] for node, _, how, total in results if how != "none"]
    return changes


def _roles(step: Step) -> dict[str, str]:
    """The part of each node in a step. An input comes before an output."""
    outputs = (*step["outputs"], *step["grad_outputs"], *step["updates"])
    found = dict.fromkeys([entry[0] for entry in outputs], "output")
    inputs = (*step["inputs"], *step["grad_inputs"])
    found |= dict.fromkeys([entry[0] for entry in inputs], "input")
    if step["function"] is not None:
        found[step["function"]] = "lit"
    return found


def _moves(step: Step) -> set[tuple[str, str]]:
    """Source and target of the edges with moving arrays or gradients."""
    function = step["function"]
    if function is None:
        return set()
    if step["direction"] == "backward":
        given = {(function, node) for node, value in step["grad_outputs"] if value is not None}
        got = {(node, function) for node, _, how, _ in step["grad_inputs"] if how != "none"}
        return given | got
    inputs = {(node, function) for node, _ in step["inputs"]}
    return inputs | {(function, node) for node, _ in step["outputs"]}


def _edges_between(picture: dict[str, Any]) -> dict[tuple[str, str], list[int]]:
    """The indexes of the edges by source and target; a repeated box counts as the node."""
    node_of = {node["id"]: node["of"] or node["id"] for node in picture["nodes"]}
    found: dict[tuple[str, str], list[int]] = {}
    for index, edge in enumerate(picture["edges"]):
        pair = node_of[edge["from"]], node_of[edge["to"]]
        found.setdefault(pair, []).append(index)
    return found
