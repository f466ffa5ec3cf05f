"""A film as data for JSON: pictures, iterations, values and texts.

Requirement: a film of 1,000 iterations is a page of a few megabytes. So each structure is laid out
once, and an iteration is a row of numbers: the indexes of its values. Of the iterations of a long
film, some keep the elements of their arrays, and the others keep smallest, largest and mean.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinynode.errors import short_name
from tinynode.show.films import text as film_text
from tinynode.show.films.iterations import Segment, segments_of, values_of
from tinynode.show.films.looks import add_looks
from tinynode.show.films.memory_data import Describer, lives_of, memory_data
from tinynode.show.films.memory_growth import growth_of
from tinynode.show.films.names import SourceNames
from tinynode.show.films.nodes import GONE, MAX_PICTURE, FilmNode, Recording, Step
from tinynode.show.films.outside_changes import OutsideChange, outside_changes, sentence_of
from tinynode.show.films.questions import film_questions
from tinynode.show.films.sources import Files, SourceLocation
from tinynode.show.graphs.boxes import curve
from tinynode.show.graphs.diagram_data import DiagramEdge, DiagramNode, group_name
from tinynode.show.graphs.grouping import spread_groups
from tinynode.show.graphs.layout import layout
from tinynode.show.graphs.repeats import with_repeats
from tinynode.show.page.classes import describe_class
from tinynode.show.texts import LONGEST_NOTE, NUMBER_WIDTH, cut

MOST_NUMBERS = 6
"""A box shows the numbers of an array of at most so many elements; else a heat map."""

HEAT_MAP = (150.0, 62.0)
"""Width and height of the heat maps of an array and its gradient in a box, in pixels."""


@dataclass(eq=False)
class Picture:
    """The segments with one structure.

    Attributes:
        number: the index of the picture.
        segments: the segments; the ids of the first segment's nodes stand for all.
        shared: the ids of the nodes that are in several segments, such as parameters.
        labels: the label of each node.
    """

    number: int
    segments: list[Segment] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[FilmNode]:
        """The nodes of the first segment."""
        return self.segments[0].nodes

    def ids_of(self, segment: Segment) -> dict[str, str]:
        """For the ids of a segment's nodes, the ids of the picture's nodes."""
        pairs = zip(self.nodes, segment.nodes, strict=True)
        return {other.id: node.id for node, other in pairs}

    def labels_of(self, segment: Segment) -> dict[str, str]:
        """For the ids of a segment's nodes, the labels."""
        return {other: self.labels[node] for other, node in self.ids_of(segment).items()}


def film_data(film: Recording, *, is_changed: bool = False) -> dict[str, Any]:
    """All of a film, in the types of JSON.

    Args:
        film: the recording.
        is_changed: True for a film of ``what_if``: the reader changed numbers, not the program.
    """
    runs = named_segments(film)
    segments = [segment for segment, _ in runs]
    pictures = list(dict.fromkeys(picture for _, picture in runs))
    files = Files(_locations(film))
    watched, stands_for = film.watched.data()
    iterations = [_iteration(film, segment, picture, stands_for) for segment, picture in runs]
    values = film.values.data(iterations)
    drawn = [_drawn(film, picture, values, files) for picture in pictures]
    data: dict[str, Any] = {
        "version": 2,
        "title": short_name(film.title) or "Forward and backward, step by step",
        "note": _note(film, runs, [] if is_changed else outside_changes(film)),
        # read at call time, since tinynode imports this module
        "tinynode": vars(sys.modules["tinynode"])["__version__"],
        "device": ", ".join(film.devices),
        "pictures": drawn,
        "iterations": iterations,
        "classes": {
            key: describe_class(cls, film.updates.get(key)) for key, cls in film.classes.items()
        },
        "files": files.data,
        "values": values,
        "watched": watched,
        "memory": _memory(film, runs, files),
        "failed": _failed(film, segments),
    }
    if film.folds:
        data["folds"] = _folds(film, data)
        data["memory"] = None  # it counts the recorded steps
    data["questions"] = film_questions(film, segments, data)
    return data


def named_segments(film: Recording) -> list[tuple[Segment, Picture]]:
    """The segments of a film in order, each with its picture: labels, without a layout."""
    segments = segments_of(film, MAX_PICTURE) if film.steps else []
    pictures = _pictures(segments)
    names = SourceNames(film.modules)
    for picture in pictures:
        picture.labels = _labels(film, picture, names)
    picture_of = {segment: picture for picture in pictures for segment in picture.segments}
    return [(segment, picture_of[segment]) for segment in segments]


def _memory(film: Recording, runs: list[tuple[Segment, Picture]], files: Files) -> dict[str, Any]:
    """The memory of a film, with the growth."""
    segments = [segment for segment, _ in runs]
    describer = Describer(film, _all_labels(runs))
    lives = lives_of(film, describer)
    growth = growth_of(film, segments, describer, lives, files)
    return {**memory_data(film, segments, describer, lives, files), "growth": growth}


def _all_labels(runs: list[tuple[Segment, Picture]]) -> dict[str, str]:
    """The label of each node of a film."""
    labels: dict[str, str] = {}
    for segment, picture in runs:
        labels |= picture.labels_of(segment)
    return labels


def _folds(film: Recording, data: dict[str, Any]) -> list[dict[str, Any]]:
    """What the segments of a folded film show. Inner segments have no loss of their own."""
    for one, picture in zip(data["iterations"][1:], data["pictures"][1:], strict=True):
        one["loss"] = None
        for step in picture["steps"]:
            if step["kind"] == "sweep":
                step["title"] = step["title"].replace("Backward starts at", "Backward arrives at")
    return [{"title": fold.title, "box": fold.box, "around": fold.around} for fold in film.folds]


def _locations(film: Recording) -> Iterator[SourceLocation]:
    """The lines of a film: of each step, and of each error."""
    for step in film.steps:
        if step["places"]:
            yield step["places"][0][:2]
        if step["error"] is not None and step["error"]["at"] is not None:
            yield step["error"]["at"]


def _failed(film: Recording, segments: list[Segment]) -> list[int] | None:
    """``[iteration, step]`` of the failing call that ended the program."""
    if not film.has_failed or not segments or segments[-1].missing:
        return None
    return [len(segments) - 1, segments[-1].last - segments[-1].first - 1]


def _note(
    film: Recording, runs: list[tuple[Segment, Picture]], changes: list[OutsideChange]
) -> str | None:
    """The film's note, on segments with too many steps for a picture, and on changes outside."""
    notes = []
    if film.note is not None:
        notes.append(cut(film.note, LONGEST_NOTE))
    missing = sum(segment.missing for segment, _ in runs)
    if missing:
        notes.append(f"Cut: a picture holds {MAX_PICTURE} steps, and {missing} more are left out.")
    for number, (segment, _) in enumerate(runs, 1):
        if changes and segment.first <= changes[0].step < segment.last:
            place = f"step {changes[0].step - segment.first + 1}"
            place = f"iteration {number}, {place}" if len(runs) > 1 else place
            notes.append(sentence_of(changes, _all_labels(runs), place))
    *begin, last = notes or [""]
    return "".join(f"{note.removesuffix('.')}. " for note in begin) + last or None


def _pictures(segments: list[Segment]) -> list[Picture]:
    """The structures of a film, in the order of the first segments."""
    pictures: dict[Any, Picture] = {}
    seen: dict[str, int] = {}
    for segment in segments:
        for node in segment.nodes:
            seen[node.id] = seen.get(node.id, 0) + 1
        picture = pictures.setdefault(segment.structure, Picture(len(pictures)))
        picture.segments.append(segment)
    for picture in pictures.values():
        picture.shared = [node.id for node in picture.nodes if seen[node.id] > 1]
    return list(pictures.values())


# --- names ---------------------------------------------------------------------------------------


def _labels(film: Recording, picture: Picture, names: SourceNames) -> dict[str, str]:
    """The label of each node: own names, names in the program's text, then numbered repeats."""
    found = {node.id: node.label for node in picture.nodes}
    for segment in picture.segments:
        for node, other in zip(picture.nodes, segment.nodes, strict=True):
            if other.is_named and not found[node.id]:
                found[node.id] = other.label
    _name_from_text(film, picture, names, found)
    _number_repeats(picture, found)
    return found


def _number_repeats(picture: Picture, found: dict[str, str]) -> None:
    """Number the variables with the label of an earlier one; no number gives a taken label."""
    variables = [n for n in picture.nodes if n.kind == "variable" and found[n.id] != GONE]
    taken = {found[node.id] for node in variables}
    times: dict[str, int] = {}
    for node in variables:
        label = found[node.id]
        times[label] = times.get(label, 0) + 1
        if times[label] == 1:
            continue
        while f"{label} ({times[label]})" in taken:
            times[label] += 1
        found[node.id] = f"{label} ({times[label]})"
        taken.add(found[node.id])


def _name_from_text(
    film: Recording, picture: Picture, names: SourceNames, found: dict[str, str]
) -> None:
    """Name the nodes without a name from the program's text."""
    outputs: dict[int, list[FilmNode]] = {}
    nodes, segment = picture.nodes, picture.segments[0]
    for source, target in segment.edges:
        if nodes[source].kind == "function":
            outputs.setdefault(source, []).append(nodes[target])
    inputs = {
        step["function"]: [entry[0] for entry in step["inputs"]]
        for step in film.steps[segment.first : segment.last]
        if step["kind"] == "forward"
    }
    firsts, lasts = _ends_of_calls(picture)
    told: dict[str, str] = {}
    for number in sorted(firsts):
        for index, name in enumerate(inputs.get(nodes[number].id, ())):
            told[name] = told.get(name) or names.of_input(nodes[number].places, index)
    for number, node in enumerate(nodes):
        outs = outputs.get(number, [])
        for index, output in enumerate(outs):
            if found[output.id]:
                continue
            name = names.of_output(node.places, index) if number in lasts else ""
            if len(outs) > 1:  # parts = f(x), and elsewhere g(parts[1])
                operand = told.get(output.id, "")
                name = operand if not name or operand.startswith(f"{name}[") else name
            number_of_many = f" {index + 1}" if len(outs) > 1 else ""
            found[output.id] = name or f"{node.label} output{number_of_many}"
    for step in film.steps[segment.first : segment.last]:
        if step["kind"] == "error":
            for index, (name, _) in enumerate(step["inputs"]):
                told[name] = told.get(name) or names.of_input(step["places"], index)
    for node in nodes:
        found[node.id] = found[node.id] or told.get(node.id) or "input"


def _ends_of_calls(picture: Picture) -> tuple[set[int], set[int]]:
    """The numbers of the functions with the operands of a call, and with the result of a call.

    ``y = model(x)`` runs several functions at one place of the program. The first takes ``x``, and
    only the last computes ``y``. A loop runs the functions of the place again. So the functions at
    a place are cut into equal parts, the shortest possible: the first and the last function of
    each part count. A backward pass calls functions without operands in the text.
    """
    at_place: dict[Any, list[int]] = {}
    for number, node in enumerate(picture.nodes):
        if node.kind == "function":
            at_place.setdefault((node.places, node.phase), []).append(number)
    first: set[int] = set()
    last: set[int] = set()
    for (_, phase), numbers in at_place.items():
        words = [picture.nodes[number].label for number in numbers]
        part = next(
            size
            for size in range(1, len(words) + 1)
            if len(words) % size == 0 and words[:size] * (len(words) // size) == words
        )
        last.update(numbers[part - 1 :: part])
        if phase == "forward":
            first.update(numbers[::part])
    return first, last


# --- pictures ------------------------------------------------------------------------------------


def _drawn(
    film: Recording, picture: Picture, values: Sequence[dict[str, Any]], files: Files
) -> dict[str, Any]:
    """A picture with layout, and the steps of its first segment."""
    segment = picture.segments[0]
    births = {
        node.id: 0 if node.id in picture.shared else max(0, node.born - segment.first)
        for node in picture.nodes
    }
    ids = set(births)
    boxes, arrows = _boxes_and_arrows(film, picture, values)
    plan = layout(boxes, arrows)
    edges = []
    for arrow, (source, target, points) in zip(arrows, plan.edges, strict=True):
        born = births[source if source[0] == "f" else target]
        births.setdefault(source, born)  # the leaf drawn again at its first use
        path = [[round(x, 1) for x in one] for one in curve(points, is_down=True)]
        edges.append(
            {"from": source, "to": target, "path": path, "phase": arrow.phase, "born": born}
        )
    steps = film.steps[segment.first : segment.last]
    drawn = {
        "width": round(plan.width, 1),
        "height": round(plan.height, 1),
        "shared": picture.shared,
        "nodes": [_node(box, births[box.id], *plan.position[box.id]) for box in boxes],
        "edges": edges,
        "steps": [
            _step(step, picture.labels, files, ids, cleared)
            for step, cleared in zip(steps, _cleared(film, picture), strict=True)
        ],
    }
    add_looks(drawn)
    return drawn


def _boxes_and_arrows(
    film: Recording, picture: Picture, values: Sequence[dict[str, Any]]
) -> tuple[list[DiagramNode], list[DiagramEdge]]:
    """The boxes with room for numbers, leaves again beside distant uses, and the arrows."""
    texts = _number_texts(film, picture, values)
    boxes = []
    for node in picture.nodes:
        label = picture.labels[node.id]
        box = DiagramNode(node.id, node.kind, label, node.facts, node.rank, node.phase)
        box.room = texts.get(node.id, (0.0, 0.0))
        if node.is_state and "." in label:
            box.group = group_name(label.rpartition(".")[0])
        boxes.append(box)
    arrows = [
        DiagramEdge(boxes[a].id, boxes[b].id, film.edges[boxes[a].id, boxes[b].id])
        for a, b in picture.segments[0].edges
    ]
    spread_groups(boxes, arrows, None)
    return with_repeats(boxes, arrows)


def _node(
    box: DiagramNode, born: int, x: float, y: float, width: float, height: float
) -> dict[str, Any]:
    told = {key: getattr(box, key) for key in ("id", "kind", "label", "rank", "phase", "group")}
    place = {"x": x, "y": y, "w": width, "h": height}
    told |= {key: round(number, 1) for key, number in place.items()}
    return told | {"of": box.repeats, "facts": list(box.facts), "born": born}


def _cleared(film: Recording, picture: Picture) -> list[list[str]]:
    """For each step the nodes with a gradient cleared before the step, in any iteration.

    The first iteration knows no parameter at its first step, and has no gradient to clear.
    """
    first = picture.segments[0]
    found: list[dict[str, None]] = [{} for _ in range(first.last - first.first)]
    for segment in picture.segments:
        names = picture.ids_of(segment)
        for cleared, step in zip(found, film.steps[segment.first : segment.last], strict=True):
            cleared.update((names[name], None) for name in step["cleared"] if name in names)
    return [list(cleared) for cleared in found]


def _step(
    step: Step, labels: dict[str, str], files: Files, ids: set[str], cleared: list[str]
) -> Step:
    """A step with texts in place of what only the recording needs."""
    told = {key: step[key] for key in step if key not in ("places", "in_graph")}
    if step["error"] is not None:
        told["error"] = {**step["error"], "at": files.at(step["error"]["at"])}
    told["cleared"] = cleared
    for key in ("freed", "retained"):
        told[key] = [name for name in step[key] if name in ids]
    if step["seconds"] is not None:
        told["seconds"] = float(f"{step['seconds']:.3g}")
    told["title"] = film_text.sentence(step, labels)
    told["at"] = files.at(step["places"][0][:2] if step["places"] else None)
    return told


def _number_texts(
    film: Recording, picture: Picture, values: Sequence[dict[str, Any]]
) -> dict[str, tuple[float, float]]:
    """The room for numbers in each variable's box: an array, and below the gradient."""
    room: dict[str, tuple[float, float]] = {}
    for segment in picture.segments:
        names = picture.ids_of(segment)
        for step in film.steps[segment.first : segment.last]:
            is_forward = step["kind"] == "forward"
            for entry in (
                [*step["inputs"], *step["outputs"]] if is_forward else step["grad_inputs"]
            ):
                if entry[1] is not None and entry[0] in names:
                    size = _room(values[entry[1]])
                    old = room.get(names[entry[0]], (0.0, 0.0))
                    room[names[entry[0]]] = (max(old[0], size[0]), max(old[1], size[1]))
    return room


def _room(value: dict[str, Any]) -> tuple[float, float]:
    if math.prod(value["shape"]) > MOST_NUMBERS:
        return HEAT_MAP
    text = film_text.numbers_text(value)
    return (len(text) + 2) * NUMBER_WIDTH, 28.0


# --- iterations ----------------------------------------------------------------------------------


def _iteration(
    film: Recording, segment: Segment, picture: Picture, stands_for: Sequence[int]
) -> dict[str, Any]:
    """One run through a picture: the value of each place in its steps, and the seconds.

    ``"optimizers"`` has [settings, rule] of each update; None for those in the picture's step.
    """
    steps = film.steps[segment.first : segment.last]
    of_picture = film.steps[picture.segments[0].first :]
    optimizers = [
        None if settings == (told["optimizer"], told["rule"]) else list(settings)
        for step, told in zip(steps, of_picture, strict=False)
        if step["kind"] == "update"
        for settings in [(step["optimizer"], step["rule"])]
    ]
    return {
        "picture": picture.number,
        "values": [value for step in steps for value in values_of(step)],
        "seconds": [
            None if step["seconds"] is None else float(f"{step['seconds']:.2g}") for step in steps
        ],
        "loss": loss_of(steps),
        "watched": [stands_for[step["watched"]["picture"]] for step in steps if step["watched"]],
        "optimizers": optimizers,
    }


def loss_of(steps: Sequence[Step]) -> int | None:
    """The value of the variable that the first backward pass starts from."""
    seeds = [step["grad_outputs"] for step in steps if step["kind"] == "sweep"]
    if not seeds or not seeds[0]:
        return None
    root = seeds[0][0][0]
    for step in steps:
        for name, value in step["outputs"]:
            if name == root and value is not None:
                return int(value)
    return None
