"""The calls of a program that a folded film draws as boxes.

Requirement: a model on scalars runs 5,000 functions for a letter, and a reader wants 30 boxes. The
program's text has the structure: ``times(row, matrix)`` is a call with 16 equal dot products. So
recorded functions are grouped by the calls around them, from the outside to the inside.

A *call* is a row of functions, run by an expression of the program. A call is a box if the
functions are equal parts in a row, or few. A larger call is replaced by the calls inside.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tinynode.show.films.names import SourceNames
from tinynode.show.films.sources import Place

MOST = 100
"""The most functions of a box that has no equal parts."""

FEWEST = 4
"""A call with fewer functions is no box: the functions are drawn."""

Step = dict[str, Any]


@dataclass(eq=False)
class Call:
    """Functions in a row, run by an expression of the program.

    Attributes:
        steps: the forward steps of the functions.
        depth: the number of running expressions around, from the program's first line on.
        parts: the number of equal parts.
    """

    steps: Sequence[Step]
    depth: int
    parts: int

    @property
    def is_box(self) -> bool:
        """True if the call is drawn as a box; else it is a single function."""
        return len(self.steps) >= FEWEST

    @property
    def places(self) -> tuple[Place, ...]:
        """The expression of the call, and the expressions around, the innermost first."""
        places: tuple[Place, ...] = self.steps[0]["places"]
        return places[len(places) - self.depth :]

    @property
    def part(self) -> Sequence[Step]:
        """The steps of the first of the equal parts."""
        return self.steps[: len(self.steps) // self.parts]

    def inside(self) -> list[Call]:
        """The calls in the first of the equal parts."""
        return calls_in(self.part, self.depth)


def calls_in(steps: Sequence[Step], depth: int = 0) -> list[Call]:
    """The calls behind some forward steps: boxes and single functions, in order.

    Args:
        steps: the forward steps in a row, with ``depth`` equal outer expressions.
        depth: the number of these expressions.
    """
    found: list[Call] = []
    waiting = [(steps, depth)]
    while waiting:
        several, outside = waiting.pop()
        inner: list[tuple[Sequence[Step], int]] = []
        for run in _runs(several, outside):
            inner.append((run, outside + 1))
        if len(inner) == 1 and len(several) == len(steps) and _goes_deeper(several, outside + 1):
            waiting.append(inner[0])  # all in one call: the calls inside are the picture
            continue
        for part, level in inner:
            parts = equal_parts(_signatures(part, level))
            is_small = len(part) < FEWEST
            if not is_small and (parts > 1 or len(part) <= MOST):
                found.append(Call(part, level, parts))
            elif not is_small and _goes_deeper(part, level):
                waiting.append((part, level))
            else:
                found += [Call([step], len(step["places"]), 1) for step in part]
    order = {id(step): number for number, step in enumerate(steps)}
    return sorted(found, key=lambda call: order[id(call.steps[0])])


def _runs(steps: Sequence[Step], depth: int) -> list[list[Step]]:
    """The steps, cut where the running expression at a depth changes."""
    runs: list[list[Step]] = []
    for step in steps:
        if runs and _outer(step, depth) == _outer(runs[-1][-1], depth):
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _outer(step: Step, depth: int) -> Place | None:
    """The running expression at a depth, counted from the program's first line."""
    places = step["places"]
    return places[len(places) - 1 - depth] if depth < len(places) else None


def _goes_deeper(steps: Iterable[Step], depth: int) -> bool:
    """True if every step has a further expression inside of some expressions."""
    return all(len(step["places"]) > depth for step in steps)


def _signatures(steps: Iterable[Step], depth: int) -> list[Hashable]:
    """For each step the class and the expressions inside of a call."""
    return [(step["class"], step["places"][: len(step["places"]) - depth]) for step in steps]


def equal_parts(signatures: Sequence[Hashable]) -> int:
    """The largest number of equal parts of a sequence: 3 for ``ababab``."""
    size = len(signatures)
    for length in range(1, size // 2 + 1):
        is_whole = size % length == 0
        if is_whole and signatures[length:] == signatures[:-length]:
            return size // length
    return 1


def name_of_call(call: Call, names: SourceNames) -> str:
    """The label of a box: the called function of the program, else the name of a part."""
    name = names.of_call(call.places[0]) if call.places else ""
    return name or name_of_part(call, names)


def name_of_part(call: Call, names: SourceNames) -> str:
    """The name of an equal part: a function of the program or of tinynode."""
    part = call.part
    if len(part) == 1:
        return str(part[0]["class"])
    depth = call.depth
    name = ""
    while _goes_deeper(part, depth) and len({_outer(step, depth) for step in part}) == 1:
        depth += 1
        places = part[0]["places"]
        name = names.of_call(places[len(places) - depth]) or name
    return name or f"{len(part)} functions"
