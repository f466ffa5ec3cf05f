"""Growth: memory that a loop makes in each iteration and never frees.

Requirement: before a loop runs out of memory, a film shows the cause. So a *round* goes from the
start of a backward pass to the next start at the same place. In a loop without a backward pass, a
round is an iteration of the film. Growth is arrays of one line, made in at least half of the
rounds, and alive at the start of the last round. Arrays of the last round do not count: the next
round may free these arrays. Data of the program count if a
function of a graph holds them.

Rounds are not the iterations of the film: a graph without a cut is a single iteration.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tinynode.hooks.memory import SIZE_OF_UNIT, in_unit
from tinynode.hooks.table import fitting_unit
from tinynode.show.films.iterations import Segment
from tinynode.show.films.memory import FUNCTION, VARIABLE
from tinynode.show.films.memory_data import (
    ARRAYS,
    DATA,
    GRADIENTS,
    KINDS,
    RETAINED,
    VARIABLES,
    Describer,
    Life,
    Origin,
    State,
)
from tinynode.show.films.nodes import Recording
from tinynode.show.films.sources import Files, SourceLocation, last_part

FEWEST = 4
"""The fewest backward passes, or iterations, with a word on growth."""

SHOWN = 4
"""The most groups of a growth in words."""


@dataclass(eq=False)
class _Group:
    """Arrays of one line, never freed.

    Attributes:
        kind: the kind that the arrays count for.
        origin: name, function and line of the first array.
        holder: the first holder, if it has a line.
        bytes: of all arrays.
        rounds: the rounds with an array of the group.
        keepers: the ids of the living results with the functions in the graphs.
    """

    kind: int
    origin: Origin
    holder: Origin | None
    bytes: int = 0
    rounds: set[int] = field(default_factory=set)
    keepers: dict[str, None] = field(default_factory=dict)


def growth_of(
    film: Recording,
    segments: Sequence[Segment],
    describer: Describer,
    lives: Sequence[Life],
    files: Files,
) -> dict[str, Any] | None:
    """The growth per round, for JSON; None without growth.

    The parts are ``bytes`` per round, the number of ``rounds``, a ``sentence``, and ``groups``. A
    group has ``bytes`` per round, ``kind``, ``name``, ``function``, ``at`` and ``kept_by``. The
    last part has the number of results behind the arrays, the name of the first, and the line.
    """
    starts = _starts_of_rounds(film, segments)
    if len(starts) < FEWEST:
        return None
    rounds = len(starts) - 2
    groups = []
    for group in _groups(starts, film, describer, lives).values():
        if 2 * len(group.rounds) >= rounds and len(group.rounds) > 1:
            groups.append(group)
    if not groups:
        return None
    groups.sort(key=_bytes, reverse=True)
    keepers = {group: _keeper(group, rounds, describer) for group in groups}
    total = sum(group.bytes for group in groups) // rounds
    told = [_told(group, keepers[group], rounds, files) for group in groups]
    sentence = _sentence(total, rounds, groups, keepers)
    return {"bytes": total, "rounds": rounds, "sentence": sentence, "groups": told}


def _starts_of_rounds(film: Recording, segments: Sequence[Segment]) -> list[int]:
    """The steps at which a round begins."""
    outer = [
        i for i, step in enumerate(film.steps) if step["kind"] == "sweep" and step["depth"] == 1
    ]
    places = Counter(film.steps[i]["places"] for i in outer)
    if places:
        place = places.most_common(1)[0][0]
        return [i for i in outer if film.steps[i]["places"] == place]
    structures = Counter(segment.structure for segment in segments).most_common(1)
    return [one.first for one in segments if one.structure == structures[0][0]]


def _groups(
    starts: Sequence[int], film: Recording, describer: Describer, lives: Sequence[Life]
) -> dict[Any, _Group]:
    """The arrays without an end, by kind and lines."""
    found: dict[Any, _Group] = {}
    for life in lives:
        number = _round_of(life.buffer.made, starts, film)
        is_made_in_round = 1 <= number <= len(starts) - 2
        is_alive = life.freed is None or life.freed > starts[-1]
        state = _state_at(life, starts[-1])
        if not is_made_in_round or not is_alive or state is None:
            continue
        if life.buffer.is_given and not any(sort == FUNCTION for sort, _, _ in state.holders):
            continue  # data that the program brought, and that no graph holds
        origin = describer.of_buffer(life.buffer)
        holder = describer.of_holder(state.holders[0]) if state.holders else None
        key = (state.kind, origin[1:], None if holder is None else holder[1:])
        group = found.setdefault(key, _Group(state.kind, origin, holder))
        group.bytes += life.buffer.bytes
        group.rounds.add(number)
        for sort, node, _ in state.holders:
            if sort == FUNCTION and node in film.memory_log.kept_by:
                group.keepers[film.memory_log.kept_by[node]] = None
            elif sort == VARIABLE and state.kind == VARIABLES:
                group.keepers[node] = None
    return found


def _round_of(made: int, starts: Sequence[int], film: Recording) -> int:
    """The number of the round with a step; 0 before the first round.

    The first step of an iteration makes an array of the iteration. The start of a backward pass
    belongs to the round before: the arrays of a forward pass stand in front.
    """
    is_sweep = film.steps[starts[0]]["kind"] == "sweep"
    return bisect_left(starts, made) if is_sweep else bisect_right(starts, made)


def _state_at(life: Life, step: int) -> State | None:
    states = [state for state in life.states if state.step <= step]
    return states[-1] if states else None


def _bytes(group: _Group) -> int:
    return group.bytes


@dataclass(frozen=True)
class _Keeper:
    """The results behind the arrays of a group.

    Attributes:
        name: the name of the first result.
        location: the line of the first result.
        is_one: True if the graphs of a few results have the functions of many rounds.
    """

    name: str
    location: SourceLocation | None
    is_one: bool


def _keeper(group: _Group, rounds: int, describer: Describer) -> _Keeper | None:
    if not group.keepers:
        return None
    name, _, location = describer.of_holder((VARIABLE, next(iter(group.keepers)), ""))
    return _Keeper(name, location, 2 * len(group.keepers) < rounds)


def _told(group: _Group, keeper: _Keeper | None, rounds: int, files: Files) -> dict[str, Any]:
    name, function, location = group.origin
    kept_by = None
    if keeper is not None:
        kept_by = [len(group.keepers), keeper.name, files.at(keeper.location)]
    return {
        "bytes": group.bytes // rounds,
        "kind": KINDS[group.kind],
        "name": name,
        "function": function,
        "at": files.at(location),
        "kept_by": kept_by,
    }


# --- in words ------------------------------------------------------------------------------------


def _sentence(
    total: int,
    rounds: int,
    groups: Sequence[_Group],
    keepers: dict[_Group, _Keeper | None],
) -> str:
    """The growth in words; groups with the same words are one."""
    sizes: dict[str, int] = {}
    for group in groups:
        words = _words(group, keepers[group])
        sizes[words] = sizes.get(words, 0) + group.bytes
    parts = [f"{bytes_text(size // rounds)} {words}" for words, size in sizes.items()]
    more = len(parts) - SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return (
        f"Memory grows by {bytes_text(total)} per iteration, and is never freed: "
        f"{'; '.join(parts[:SHOWN])}{rest}."
    )


def _words(group: _Group, keeper: _Keeper | None) -> str:
    """The arrays of a group and the keeper."""
    if group.kind == RETAINED and keeper is not None:
        result = f"{keeper.name}{_at_line(keeper.location)}"
        if keeper.is_one:
            return (
                f"retained by the graph of {result}, which goes back through the iterations "
                "(unchain_backward() cuts it)"
            )
        return f"retained by the graphs of results that the program keeps: {result}"
    name, function, location = group.origin
    made = f"{name}{_at_line(location)}"
    if group.kind == DATA:
        return f"of data that graphs keep: {name}"
    if group.kind == RETAINED:
        holder = group.holder
        by = function if holder is None else f"{holder[0]}{_at_line(holder[2])}"
        return f"retained by {by}"
    if group.kind == VARIABLES:
        return f"in results that the program keeps: {made}"
    if group.kind == GRADIENTS:
        return f"in gradients that the program keeps: {made}"
    if group.kind == ARRAYS:
        return f"in plain arrays that the program keeps: {made}"
    return f"in {KINDS[group.kind]}: {made}"


def _at_line(location: SourceLocation | None) -> str:
    if location is None:
        return ""
    return f", made at {last_part(location[0])}:{location[1]}"


def bytes_text(size: int) -> str:
    """A number of bytes with a fitting unit."""
    return in_unit(size, fitting_unit(size, SIZE_OF_UNIT))
