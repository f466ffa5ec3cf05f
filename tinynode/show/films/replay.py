"""The replay of a film: a result in words, with disagreements and steps left out.

Requirement: a film proves itself. ``film.replay()`` computes each step again from the recorded
inputs, and names the first disagreement. A step left out has a reason, and never counts as
computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tinynode.errors import joined
from tinynode.functions.operands import as_number
from tinynode.show.films.differences import Difference, event_of
from tinynode.show.films.nodes import Recording
from tinynode.show.films.replayed_steps import StepReplayer
from tinynode.show.films.text import printable_lines

SHOWN = 8
"""The most numbers of steps in a line."""


class LeftOut(NamedTuple):
    """A step left out: not computed again.

    Attributes:
        step: the number of the step, from 1.
        event: such as ``"forward of DropoutMask"``.
        reason: such as ``"it draws random numbers"``.
    """

    step: int
    event: str
    reason: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.event}: {self.reason}"


@dataclass(frozen=True)
class Replay:
    """The steps of a film, computed again; ``print`` names the first disagreement.

    Attributes:
        steps: the number of steps of the film.
        computed: the numbers of the steps computed again, from 1.
        differences: the disagreements of recorded values, in the order of the steps.
        rounded: the agreements up to rounding, and not to the last bit.
        left_out: the steps left out, each with the reason.
    """

    steps: int
    computed: list[int] = field(repr=False)
    differences: list[Difference] = field(repr=False)
    rounded: list[Difference] = field(repr=False)
    left_out: list[LeftOut] = field(repr=False)

    @property
    def first(self) -> Difference | None:
        """The first disagreement, or None."""
        return self.differences[0] if self.differences else None

    @property
    def agrees(self) -> bool:
        """True if a step was computed again, and no step disagrees."""
        return bool(self.computed) and not self.differences

    def __bool__(self) -> bool:
        """``agrees``."""
        return self.agrees

    def __str__(self) -> str:
        lines = [] if self.first is None else [f"first disagreement: {self.first}"]
        counts = f"{len(self.computed)} of {self.steps} steps computed again"
        lines.append(f"{counts}: {self._verdict()}" if self.computed else counts)
        by_reason: dict[str, list[int]] = {}
        for one in self.left_out:
            by_reason.setdefault(one.reason, []).append(one.step)
        lines += [f"left out: {_numbers(found)}: {why}" for why, found in by_reason.items()]
        return printable_lines("\n".join(lines))

    def _verdict(self) -> str:
        """Whether the steps agree, in words."""
        if self.differences:
            wrong = sorted({one.steps[0] or 0 for one in self.differences})
            verb = "disagrees" if len(wrong) == 1 else "disagree"
            return f"{_numbers(wrong)} {verb}"
        if self.rounded:
            largest = max(one.size for one in self.rounded)
            return f"all agree, up to rounding of at most {largest:.2g}"
        return "all agree, to the last bit"


def replay(film: Recording, tolerance: float | None = None) -> Replay:
    """The work of ``Film.replay``."""
    if tolerance is not None:
        tolerance = as_number("Film.replay", "tolerance", tolerance)
        if not 0.0 <= tolerance < math.inf:
            raise ValueError(f"Film.replay: tolerance must be 0 or more, got {tolerance}.")
    steps = StepReplayer(film, tolerance)
    steps.run()
    functions = {node.id: node.label for node in film.nodes}
    events = [
        event_of(
            step["kind"], functions.get(step["function"], "") or step["class"] or step["call"]
        )
        for step in film.steps
    ]
    labels = _labels(film) if steps.findings else []
    found = []
    for one in steps.findings:
        part = one.part.replace("{}", labels[one.step].get(one.node or "", ""))
        found.append(one.difference(events[one.step], part))
    return Replay(
        steps=len(film.steps),
        computed=[index + 1 for index in steps.computed],
        differences=[one for one in found if one.differs],
        rounded=[one for one in found if not one.differs],
        left_out=[
            LeftOut(index + 1, events[index], reason) for index, reason in steps.left_out.items()
        ],
    )


def _numbers(steps: Sequence[int]) -> str:
    """``step 3`` or ``steps 3, 7 and 9``; of many steps, the first numbers."""
    words = [str(step) for step in steps[:SHOWN]]
    if len(steps) > SHOWN:
        words.append(f"{len(steps) - SHOWN} more")
    return f"step{'' if len(words) == 1 else 's'} {joined(words)}"


def _labels(film: Recording) -> list[dict[str, str]]:
    """For each step, the labels of the nodes in the step's picture, as in the film's texts."""
    # here, since a replay without findings needs no names
    from tinynode.show.films.data import named_segments

    labels = [{node.id: node.label for node in film.nodes}] * len(film.steps)
    for segment, picture in named_segments(film):
        length = segment.last - segment.first
        labels[segment.first : segment.last] = [picture.labels_of(segment)] * length
    return labels
