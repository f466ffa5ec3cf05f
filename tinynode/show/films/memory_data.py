"""The memory of a film as data for JSON: arrays, holders and growth.

Requirement: a page of 300 iterations stays small, and the page, the terminal and tests read the
same numbers. So equal texts are written once. Equal lives of arrays are written once too: the
iterations of a loop repeat lives.

The parts of ``data["memory"]``:

    kinds     the names of ``KINDS``: of several holders, the first kind counts
    holders   ``[kind, name, function, at]``: what holds an array, and where it was made
    arrays    ``[bytes, name, function, at]``
    lives     ``[array, parts]``; a part is ``[times, states]``: so often come these states. A
              state is ``[distance, kind, holders]``: from so many steps after the state before on,
              the array counts for this kind. ``[distance]`` is the end.
    starts    rows of arrays: for each array its step in the iteration, and its life
    rows      for each iteration the number of its row in ``starts``
    growth    see ``memory_growth.py``

The memory of a step is the memory at the end of the step. There, the running function still holds
the arguments. Events after the last step count as a further step.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from tinynode.show.films.iterations import Segment
from tinynode.show.films.memory import FREED, FUNCTION, GRADIENT, MOMENT, VARIABLE, Buffer, Holder
from tinynode.show.films.nodes import Recording
from tinynode.show.films.sources import Files, SourceLocation

PARAMETERS, DATA, VARIABLES, GRADIENTS, OPTIMIZER, RETAINED, ARRAYS = range(7)

KINDS = ("parameters", "data", "results", "gradients", "optimizer", "retained", "plain arrays")
"""The kinds of memory, in the order of the rule: an array counts for the first fitting kind."""

LONGEST_PART = 8
"""The most states of an array in a repeated part."""

_KIND_OF = {
    VARIABLE: VARIABLES,
    GRADIENT: GRADIENTS,
    MOMENT: OPTIMIZER,
    FUNCTION: RETAINED,
}

Origin: TypeAlias = tuple[str, str, SourceLocation | None]
"""A name, the function behind or "", and the line of the program."""


@dataclass(frozen=True)
class State:
    """The kind and the holders of a buffer, from a step on; the main holder comes first."""

    step: int
    kind: int
    holders: tuple[Holder, ...]


@dataclass(eq=False)
class Life:
    """A buffer with its states.

    Attributes:
        buffer: the buffer.
        states: the states; each lasts until the next.
        freed: the step in which the buffer was freed, or None.
    """

    buffer: Buffer
    states: list[State]
    freed: int | None


class Describer:
    """Finds names and lines of buffers and holders.

    Args:
        film: the recording.
        labels: the labels of the film's nodes.
    """

    def __init__(self, film: Recording, labels: Mapping[str, str]) -> None:
        self._film = film
        self._labels = labels
        self._nodes = {node.id: node for node in film.nodes}
        self._made: dict[str, int] = {}
        self.parameters = {node.id for node in film.nodes if node.is_state}
        for number, step in enumerate(film.steps):
            self.parameters.update(entry[0] for entry in step["updates"])
            if step["kind"] == "forward":
                for entry in step["outputs"]:
                    self._made.setdefault(entry[0], number)

    def label(self, node: str) -> str:
        """The name of a node, without the number of equal names in a picture."""
        label = self._labels.get(node) or self._nodes[node].label or "a value"
        return re.sub(r" \(\d+\)$", "", label)

    def name(self, holder: Holder) -> str:
        """The name of a holder: ``x``, ``gradient of x``, ``m of w`` or the name of a function."""
        sort, node, moment = holder
        if sort == GRADIENT:
            return f"gradient of {self.label(node)}"
        return f"{moment} of {self.label(node)}" if sort == MOMENT else self.label(node)

    def of_holder(self, holder: Holder) -> Origin:
        """Name, function and line of a holder."""
        sort, node, _ = holder
        name = self.name(holder)
        if sort == FUNCTION:
            places = self._nodes[node].places
            return name, name, places[0][:2] if places else None
        number = self._made.get(node) if sort == VARIABLE else None
        return (name, "", None) if number is None else (name, *self._maker(number))

    def of_buffer(self, buffer: Buffer) -> Origin:
        """Name, function and line of a buffer, from the step of the first sight."""
        name = self.name(buffer.first)
        return (name, "", None) if buffer.is_given else (name, *self._maker(buffer.made))

    def _maker(self, number: int) -> tuple[str, SourceLocation | None]:
        """The function of a step, and its line."""
        if number >= len(self._film.steps):
            return "", None
        step = self._film.steps[number]
        known = step["function"]
        function = str(step["class"] or "") if known is None else self.label(known)
        return function, step["places"][0][:2] if step["places"] else None


def lives_of(film: Recording, describer: Describer) -> list[Life]:
    """The life of each buffer, in the order of appearance."""
    buffers = film.memory_log.buffers
    events: list[list[tuple[int, Holder, bool]]] = [[] for _ in buffers]
    for step, number, holder, is_begin in film.memory_log.events:
        events[number].append((step, holder, is_begin))
    return [
        _life(buffer, of_buffer, describer)
        for buffer, of_buffer in zip(buffers, events, strict=True)
    ]


def _life(
    buffer: Buffer, events: Sequence[tuple[int, Holder, bool]], describer: Describer
) -> Life:
    """Replay the events of a buffer, and note the state after each step."""
    life = Life(buffer, [], None)
    holding: dict[Holder, int] = {}
    for number, (step, holder, is_begin) in enumerate(events):
        if holder == FREED:
            life.freed = step
            break
        holding[holder] = holding.get(holder, 0) + (1 if is_begin else -1)
        if holding[holder] == 0:
            del holding[holder]
        is_last_of_step = number + 1 == len(events) or events[number + 1][0] != step
        if is_last_of_step:
            state = _state(step, buffer, holding, describer)
            last = life.states[-1] if life.states else None
            if last is None or (last.kind, last.holders) != (state.kind, state.holders):
                life.states.append(state)
    return life


def _state(
    step: int, buffer: Buffer, holding: Mapping[Holder, int], describer: Describer
) -> State:
    """The state of a buffer: of each kind, the oldest holder."""
    first: dict[int, Holder] = {}
    for holder in holding:
        kind = _KIND_OF[holder[0]]
        if kind == VARIABLES and holder[1] in describer.parameters:
            kind = PARAMETERS
        first.setdefault(kind, holder)
    kinds = sorted(first)
    kind = kinds[0] if kinds else ARRAYS
    if buffer.is_given and buffer.first[1] not in describer.parameters:
        kind = DATA
    return State(step, kind, tuple([first[one] for one in kinds]))


def memory_data(
    film: Recording,
    segments: Sequence[Segment],
    describer: Describer,
    lives: Sequence[Life],
    files: Files,
) -> dict[str, Any]:
    """The memory of a film, in the types of JSON, without the growth.

    Args:
        film: the recording.
        segments: the iterations; some may have fewer steps than the recording.
        describer: gives names and lines.
        lives: the lives of all buffers.
        files: gives the places of lines on the page.
    """
    writer = _Writer(describer, files, _shown_steps(len(film.steps), segments))
    sizes = [one.last - one.first for one in segments]
    firsts = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    starts: list[list[int]] = [[] for _ in firsts]
    for life in lives:
        made = writer.shown[life.buffer.made]
        number = bisect_right(firsts, made) - 1
        starts[number] += [made - firsts[number], writer.number_of(life)]
    rows: dict[tuple[int, ...], int] = {}
    numbers_of_rows = [rows.setdefault(tuple(row), len(rows)) for row in starts]
    return {
        "kinds": list(KINDS),
        "holders": [_listed(holder) for holder in writer.holders],
        "arrays": [_listed(array) for array in writer.arrays],
        "lives": [[array, _folded(states)] for array, *states in writer.lives],
        "starts": [list(row) for row in rows],
        "rows": numbers_of_rows,
    }


class _Writer:
    """Numbers the different holders, arrays and lives.

    Args:
        describer: gives names and lines.
        files: gives the places of lines on the page.
        shown: for each recorded step, the number among the steps of the data.

    Attributes:
        holders, arrays, lives: the numbers of the parts of the data.
    """

    def __init__(self, describer: Describer, files: Files, shown: Sequence[int]) -> None:
        self._describer = describer
        self._files = files
        self.shown = shown
        self.holders: dict[tuple[Any, ...], int] = {}
        self.arrays: dict[tuple[Any, ...], int] = {}
        self.lives: dict[tuple[Any, ...], int] = {}

    def number_of(self, life: Life) -> int:
        """The number of a life; equal lives have one number."""
        origin = self._plain(self._describer.of_buffer(life.buffer))
        array = self.arrays.setdefault((life.buffer.bytes, *origin), len(self.arrays))
        states: list[tuple[Any, ...]] = []
        before = self.shown[life.buffer.made]
        for state in life.states:
            numbers = tuple([self._number_of_holder(holder) for holder in state.holders])
            states.append((self.shown[state.step] - before, state.kind, numbers))
            before = self.shown[state.step]
        if life.freed is not None:
            states.append((self.shown[life.freed] - before,))
        return self.lives.setdefault((array, *states), len(self.lives))

    def _number_of_holder(self, holder: Holder) -> int:
        told = (_KIND_OF[holder[0]], *self._plain(self._describer.of_holder(holder)))
        return self.holders.setdefault(told, len(self.holders))

    def _plain(self, origin: Origin) -> tuple[Any, ...]:
        """Name, function, and the line as the page finds it."""
        name, function, location = origin
        at = self._files.at(location)
        return name, function, None if at is None else tuple(at)


def _folded(states: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """The states in parts: a loop gives the same states to an array in each iteration."""
    parts: list[list[Any]] = []
    start = 0
    while start < len(states):
        length, times = 1, 1
        for longer in range(1, LONGEST_PART + 1):
            found = _times(states, start, longer)
            if found > 1 and found * longer > times * length:
                length, times = longer, found
        part = [_listed(state) for state in states[start : start + length]]
        if times == 1 and parts and parts[-1][0] == 1:
            parts[-1][1] += part
        else:
            parts.append([times, part])
        start += times * length
    return parts


def _times(states: Sequence[tuple[Any, ...]], start: int, length: int) -> int:
    """How often the states from ``start`` on come in a row."""
    part = states[start : start + length]
    end = start + length
    while states[end : end + length] == part:
        end += length
    return (end - start) // length


def _listed(told: tuple[Any, ...]) -> list[Any]:
    return [list(one) if isinstance(one, tuple) else one for one in told]


def _shown_steps(count: int, segments: Sequence[Segment]) -> list[int]:
    """For each recorded step, and for the end, the number among the steps of the data.

    A step that was cut off counts with the step behind.
    """
    shown: list[int] = []
    number = 0
    for segment in segments:
        shown += range(number, number + segment.last - segment.first)
        number += segment.last - segment.first
        shown += [number] * segment.missing
    return [*shown, *([number] * (count + 1 - len(shown)))]
