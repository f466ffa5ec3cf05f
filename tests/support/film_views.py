"""The parts of a film's data for tests: all nodes, all edges, and all steps with their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.show.films.text import steps_of

Data = dict[str, Any]


def all_nodes(data: Data) -> list[Data]:
    """The nodes of all pictures, each id once."""
    nodes = {node["id"]: node for picture in data["pictures"] for node in picture["nodes"]}
    return list(nodes.values())


def all_edges(data: Data) -> list[Data]:
    """The edges of all pictures."""
    return [edge for picture in data["pictures"] for edge in picture["edges"]]


def all_steps(data: Data) -> list[Data]:
    """The steps of all iterations, with the values of the iteration."""
    return [step for _, step in steps_of(data)]


def labels(data: Data) -> dict[str, str]:
    """The label of each node."""
    return {node["id"]: node["label"] for node in all_nodes(data)}


def steps(data: Data, kind: str) -> list[Data]:
    """The steps of one kind, of all iterations."""
    return [step for step in all_steps(data) if step["kind"] == kind]


def functions(data: Data, kind: str) -> list[str]:
    """The labels of the functions of the steps of one kind."""
    return [labels(data)[step["function"]] for step in steps(data, kind)]


def cells(data: Data, value: int | None) -> list[Any] | None:
    """The elements of a value; None for no value."""
    return None if value is None else data["values"][value]["cells"]


def named(data: Data, entries: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Entries of a step, with labels for ids and cells for values."""
    names = labels(data)
    return [
        (names[e[0]], cells(data, e[1]), *e[2:3], *(cells(data, t) for t in e[3:]))
        for e in entries
    ]


def tables(data: Data) -> list[dict[str, int | None]]:
    """The gradient table after each step."""
    table: dict[str, int | None] = {}
    found = []
    for step in all_steps(data):
        for node in step["table"]["removed"]:
            del table[node]  # a KeyError where it was not there
        table.update(dict(step["table"]["set"]))
        found.append(dict(table))
    return found


def rounded(array: Any) -> list[float]:
    """The elements of an array with the digits of a film."""
    return [float(f"{x:.4g}") for x in np.ravel(array).tolist()]
