"""The iterations of a film: parts of the program that run again at the same place.

Requirement: a training loop is shown as a single picture with changing numbers. So a film is cut
into *segments*. Two segments with equal structure share a picture: the same functions at the same
places of the program, with the same shapes.

A *clean cut* lies between two steps. No function has steps on both sides of a clean cut, and no
graph leads across. So a recurrent network inside of an iteration stays in a single segment. A cut
is not clean inside of a call that runs several functions, such as ``y = model(x)``. The segments
of a loop begin at clean cuts with the same step: the same kind, class and place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeAlias

from tinynode.show.films.nodes import FilmNode, Recording, Step

Signature: TypeAlias = tuple[Any, ...]
"""Kind, class and places of a step: equal for steps at one place of the program."""


@dataclass(eq=False)
class Segment:
    """A part of a film.

    Attributes:
        first: the index of the first step.
        last: the index behind the last step.
        nodes: the nodes, in the order of their first appearance in the steps.
        edges: the edges between the nodes, as numbers of ``nodes``.
        structure: equal for segments with equal pictures and steps.
        missing: the number of steps that were cut off.
    """

    first: int
    last: int
    nodes: list[FilmNode] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    structure: Signature = ()
    missing: int = 0


def segments_of(film: Recording, limit: int) -> list[Segment]:
    """The segments of a film in order; a film without a loop is a single segment.

    Args:
        film: the recording, with at least a step.
        limit: the most steps of a segment; further steps are cut off.
    """
    found = [] if film.cuts else _found_in_loops(film)
    for first, last in zip(film.cuts, [*film.cuts[1:], len(film.steps)], strict=False):
        found.append(Segment(first, last))
    segments = sorted(found, key=attrgetter("first"))
    by_id = {node.id: node for node in film.nodes}
    born: dict[int, list[FilmNode]] = {}
    for node in film.nodes:
        born.setdefault(node.born, []).append(node)
    edges = _edges_by_function(film)
    for segment in segments:
        segment.missing = max(0, segment.last - segment.first - limit)
        segment.last -= segment.missing
        _describe(film, segment, by_id, born, edges)
        if film.cuts:  # each has a picture of its own
            segment.structure = (segment.first,)
    return segments


def _found_in_loops(film: Recording) -> list[Segment]:
    """The segments of the loops of a program."""
    signatures = [(step["kind"], step["class"], step["places"]) for step in film.steps]
    clean = _clean_cuts(film)
    waiting = [(0, len(film.steps))]
    found = []
    while waiting:
        first, last = waiting.pop()
        pieces = _split(signatures, clean, first, last)
        if len(pieces) == 1:
            found.append(Segment(first, last))
        else:
            waiting += pieces
    return found


def _clean_cuts(film: Recording) -> list[bool]:
    """For each step, True if the film can be cut before the step."""
    steps = film.steps
    change = [0] * (len(steps) + 1)  # the number of things that span a cut, as differences
    since: dict[str, int] = {}
    made: dict[str, int] = {}
    for number, step in enumerate(steps):
        connected = [entry[0] for entry in step["grad_outputs"] if entry[0] in made]
        if step["in_graph"]:
            connected += [entry[0] for entry in step["inputs"] if entry[0] in made]
        begins = [made[name] for name in connected]
        if step["function"] is not None:
            begins.append(since.setdefault(step["function"], number))
        for begin in begins:
            change[begin + 1] += 1
            change[number + 1] -= 1
        if step["kind"] == "forward" and step["in_graph"]:
            made.update((entry[0], number) for entry in step["outputs"])
        if number and _go_on(steps[number - 1], step):
            change[number] += 1
            change[number + 1] -= 1
    clean, spanning = [], 0
    for number, step in enumerate(steps):
        spanning += change[number]
        outside = step["depth"] == (1 if step["kind"] == "sweep" else 0)
        clean.append(spanning == 0 and outside)
    return clean


def _go_on(before: Step, step: Step) -> bool:
    """True if a step goes on with a result of the step before, at the same place."""
    if step["places"] != before["places"]:
        return False
    results = {entry[0] for entry in before["outputs"]}
    return any(entry[0] in results for entry in step["inputs"])


def _split(
    signatures: list[Signature], clean: list[bool], first: int, last: int
) -> list[tuple[int, int]]:
    """A part of the film, cut where the most frequent step at a clean cut begins again."""
    places = [i for i in range(first, last) if i == first or clean[i]]
    counts = Counter(signatures[i] for i in places)  # in the order of the first places
    anchor = counts.most_common(1)[0][0] if counts else None
    starts = [i for i in places if signatures[i] == anchor]
    if len(starts) < 2:
        return [(first, last)]
    cuts = [first] * (starts[0] > first) + starts
    pieces = list(zip(cuts, [*cuts[1:], last], strict=True))
    bodies = Counter(tuple(signatures[a:b]) for a, b in pieces[starts[0] > first :])
    most = max(bodies.values())
    body = min((one for one, count in bodies.items() if count == most), key=len)
    result = []
    for begin, end in pieces:
        behind = begin + len(body)
        if behind < end and clean[behind] and tuple(signatures[begin:behind]) == body:
            result += [(begin, behind), (behind, end)]  # the steps after the loop
        else:
            result.append((begin, end))
    return result


def _edges_by_function(film: Recording) -> dict[str, list[tuple[str, str]]]:
    """The edges of each function, in the order of the arguments and outputs."""
    found: dict[str, list[tuple[str, str]]] = {}
    for source, target in film.edges:
        found.setdefault(source if source[0] == "f" else target, []).append((source, target))
    return found


def _describe(
    film: Recording,
    segment: Segment,
    by_id: dict[str, FilmNode],
    born: dict[int, list[FilmNode]],
    edges: dict[str, list[tuple[str, str]]],
) -> None:
    """Find the nodes, the edges and the structure of a segment."""
    number: dict[str, int] = {}
    shapes = []
    for index in range(segment.first, segment.last):
        step = film.steps[index]
        for name in _names_in(step):
            number.setdefault(name, len(number))
        shapes.append(_shape_of(step, number))
    for index in range(segment.first, segment.last):
        for node in born.get(index, ()):
            number.setdefault(node.id, len(number))
    for name in [name for name in number if name[0] == "f"]:
        for source, target in edges.get(name, ()):
            number.setdefault(source, len(number))
            number.setdefault(target, len(number))
            segment.edges.append((number[source], number[target]))
    segment.nodes = [by_id[name] for name in number]
    facts = tuple((node.kind, node.facts, node.phase) for node in segment.nodes)
    segment.structure = (tuple(shapes), facts, tuple(segment.edges))


def _names_in(step: Step) -> Iterator[str]:
    """The ids of a step's nodes, in a fixed order."""
    if step["function"] is not None:
        yield step["function"]
    for key in ("inputs", "outputs", "grad_outputs", "grad_inputs", "updates"):
        for entry in step[key]:
            yield entry[0]
    for _, name in step["queue"]:
        yield name
    for entry in step["table"]["set"]:
        yield entry[0]
    yield from step["table"]["removed"]


def _shape_of(step: Step, number: dict[str, int]) -> Signature:
    """A step without numbers: nodes by number, and for each value True if there is an array."""
    return (
        (
            step["kind"],
            step["class"],
            step["places"],
            step["error"] and tuple(step["error"].values()),
            step["call"],
            tuple(step["axes"] or ()),
            step["not_finite"],
            tuple(step["ran"]),
            tuple(step["copied"]),
        ),
        tuple(number[name] for name in _names_in(step)),
        tuple(number[name] for name in step["retained"] if name in number),
        tuple(entry[2] for entry in step["grad_inputs"]),
        tuple(value is not None for value in values_of(step)),
        None if step["watched"] is None else step["watched"]["subject"],
    )


def values_of(step: Step) -> Iterator[int | None]:
    """The values of a step, in a fixed order; the page's script reads the same order."""
    for key in ("inputs", "outputs", "grad_outputs"):
        for entry in step[key]:
            yield entry[1]
    for entry in step["grad_inputs"]:
        yield entry[1]
        yield entry[3]
    for entry in step["table"]["set"]:
        yield entry[1]
    for _, *three, moments in step["updates"]:
        yield from three
        for _, before, after in moments:
            yield before
            yield after


def with_values(step: Step, values: Iterator[int | None]) -> Step:
    """A copy of a step with other values, in the order of ``values_of``."""
    told = dict(step)
    for key in ("inputs", "outputs", "grad_outputs"):
        told[key] = [[entry[0], next(values)] for entry in step[key]]
    told["grad_inputs"] = [
        [entry[0], next(values), entry[2], next(values)] for entry in step["grad_inputs"]
    ]
    changed = [[entry[0], next(values)] for entry in step["table"]["set"]]
    told["table"] = {**step["table"], "set": changed}
    told["updates"] = [
        [
            *(entry[0], next(values), next(values), next(values)),
            [[name, next(values), next(values)] for name, _, _ in entry[4]],
        ]
        for entry in step["updates"]
    ]
    return told
