"""The steps of two films: pairs by structure, and the arrays that differ in a pair.

Requirement: "where do these two runs part?" has an answer that points at a step, a function and an
array. So the steps of both films are aligned by structure. The values of a pair of steps are
compared in the order of the computation: operands, results, gradients, updates.

Steps with the same kind, depth and function are a pair. A step that has no partner is a difference
too, except a compiled function in place of steps: there the results are compared. Of an array with
more than 256 elements, a film has some elements, the extremes and the mean.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode.net.program import NetFunction
from tinynode.show.films.nodes import Recording
from tinynode.show.films.text import Step
from tinynode.show.films.values import Content

Pair: TypeAlias = tuple[int, int] | tuple[int, None] | tuple[None, int]
"""The indexes of a step in both films; None for a film without the step."""

MOST_UNPAIRED = 3_000
"""Between the common steps at the start and at the end, so many steps of a film are aligned."""


RESULT = "result "
RETAINED = "retained "
"""The names of a function's results, and of retained arrays, begin with these words."""


class Part(NamedTuple):
    """An array, or a setting, of a step.

    Attributes:
        name: such as ``"gradient of w"``.
        node: the id of the node in the film, or None.
        value: the index of the array in the film's values, or None.
        setting: the text of a setting.
    """

    name: str
    node: str | None
    value: int | None
    setting: str = ""


@dataclass(frozen=True)
class Difference:
    """A part of a step that differs between two films.

    Attributes:
        steps: the step's numbers in both films, from 1; None for a step without a partner.
        event: such as ``"backward of Tanh"``.
        part: such as ``"gradient of w"``; empty for a step without a partner.
        size: the largest distance of two elements; infinity for other shapes, for NaN beside a
            number and for a step without a partner.
        values: the indexes of the arrays in the values of both films.
        note: a difference without a number, such as two shapes.
        node: the id of the node in the picture of the second film, or None.
        differs: False for a distance within the tolerance.
        is_sampled: True if a film has a sample of the array: see ``record(arrays=True)``.
        dtypes: such as ``"float32 and float64"`` for arrays of two dtypes; else empty.
    """

    steps: tuple[int | None, int | None]
    event: str
    part: str
    size: float
    values: tuple[int | None, int | None] = (None, None)
    note: str = ""
    node: str | None = None
    differs: bool = True
    is_sampled: bool = False
    dtypes: str = ""

    def __str__(self) -> str:
        one, other = self.steps
        if one is None or other is None:
            number = f"step {one if one is not None else other}"
            which = "second" if one is None else "first"
            return f"{number} of the {which} film, {self.event}{self.note}"
        return f"{self.where}, {self.words}"

    @property
    def where(self) -> str:
        """The step and the part, such as ``"step 3, backward of Tanh, gradient of w"``."""
        one, other = self.steps
        second = "" if one == other else f" ({other} in the second film)"
        return f"step {one}{second}, {self.event}, {self.part}"

    @property
    def words(self) -> str:
        """The note, or else the size."""
        return self.note or f"{self.size:.2g}"


def instead(pairs: Sequence[Pair], place: int, other: Side) -> str:
    """For a step of the first film alone: the step that the second film has in its place."""
    begins = place == 0 or pairs[place - 1][1] is not None
    if not begins:
        return ""
    after = place
    while after < len(pairs) and pairs[after][1] is None:
        after += 1
    if after == place or after == len(pairs) or pairs[after][0] is not None:
        return ""
    return f", where the second film has {other.events[pairs[after][1] or 0]}"


def number_of(index: int | None) -> int | None:
    return None if index is None else index + 1


class Side:
    """The steps of a film, in the order of the film.

    Attributes:
        values: the film's values.
        keys: for each step the kind, the depth and the function; a partner has the same.
        events: the step in words, such as ``"forward of Tanh"``.
        parts: the arrays of each step.
        compiled: for each step True if a compiled function runs.
    """

    def __init__(self, film: Recording) -> None:
        # here, since recording needs no names
        from tinynode.show.films.data import named_segments

        self.values = film.values
        self.keys: list[Any] = []
        self.events: list[str] = []
        self.parts: list[list[Part]] = []
        self.compiled: list[bool] = []
        for segment, picture in named_segments(film):
            names, ids = picture.labels_of(segment), picture.ids_of(segment)
            for step in film.steps[segment.first : segment.last]:
                self._add(step, names, ids)
                cls = film.classes.get(step["class"] or "")
                self.compiled.append(cls is NetFunction)

    def _add(self, step: Step, names: Mapping[str, str], ids: Mapping[str, str]) -> None:
        function = names.get(step["function"] or "", step["class"] or "")
        error = step["error"] and step["error"]["name"]
        self.keys.append((step["kind"], step["depth"], function, error))
        fails = f", which fails with {error}" if error else ""
        self.events.append(event_of(step["kind"], function or step["call"]) + fails)
        parts = _parts(step, names)
        self.parts.append([part._replace(node=ids.get(part.node or "")) for part in parts])

    def results_of(self, steps: Sequence[int]) -> list[tuple[int, Part]]:
        """The results of the forward steps of some, each with its step."""
        return [
            (step, part)
            for step in steps
            if self.keys[step][0] == "forward"
            for part in self.parts[step]
            if part.name.startswith(RESULT)
        ]

    def content(self, part: Part, *, is_whole: bool) -> Content | None:
        """The array of a part; None for a whole array of which the film has a sample."""
        if part.value is None:
            return None
        return self.values.whole(part.value) if is_whole else self.values.content(part.value)


def event_of(kind: str, function: str) -> str:
    """A step in words, such as ``"forward of Tanh"``."""
    if kind == "error":
        return f"call of {function}" if function else "line of the program"
    if kind == "sweep":
        return "start of backward"
    if kind == "end":
        return "end of backward"
    if kind == "update":
        return f"update of {function}"
    return f"{kind} of {function}" if function else kind


def _parts(step: Step, labels: Mapping[str, str]) -> Iterator[Part]:
    """The arrays of a step, in the order of the computation."""
    kind = step["kind"]
    if kind in ("forward", "error"):
        yield from (Part(f"operand {labels[node]}", node, value) for node, value in step["inputs"])
        yield from (Part(RESULT + labels[node], node, value) for node, value in step["outputs"])
        return
    for node, value, *_ in step["grad_outputs"]:
        yield Part(f"gradient of {labels[node]}", node, value)
    if kind == "backward":
        for node, value in (*step["inputs"], *step["outputs"]):
            yield Part(RETAINED + labels[node], node, value)
    for node, value, how, total in step["grad_inputs"]:
        is_sum = how == "added"
        given = value if is_sum or total is None else total  # a change may have another total
        yield Part(f"gradient of {labels[node]}", node, given)
        if is_sum:
            yield Part(f"sum of the gradients of {labels[node]}", node, total)
    if step["updates"]:
        yield Part("settings", None, None, str(step["optimizer"]))
    for node, before, gradient, after, moments in step["updates"]:
        label = labels[node]
        yield Part(f"{label} before", node, before)
        yield Part(f"gradient of {label}", node, gradient)
        yield from (Part(f"{name} of {label}", node, new) for name, _, new in moments)
        yield Part(f"{label} after", node, after)


# --- pairs of steps ------------------------------------------------------------------------------


def aligned(one: Sequence[Any], other: Sequence[Any]) -> list[Pair]:
    """The pairs of steps with equal keys, and the steps without a partner, in order."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    pairs: list[Pair] = [(i, i) for i in range(start)]
    rest = one[start : len(one) - end], other[start : len(other) - end]
    matcher = difflib.SequenceMatcher(
        None, rest[0][:MOST_UNPAIRED], rest[1][:MOST_UNPAIRED], autojunk=False
    )
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            pairs += [(start + i + k, start + j + k) for k in range(i_end - i)]
            continue
        pairs += [(start + k, None) for k in range(i, i_end)]
        pairs += [(None, start + k) for k in range(j, j_end)]
    pairs += [(k, None) for k in range(start + MOST_UNPAIRED, len(one) - end)]
    pairs += [(None, k) for k in range(start + MOST_UNPAIRED, len(other) - end)]
    pairs += [(len(one) - k, len(other) - k) for k in range(end, 0, -1)]
    return pairs


def compiled_runs(
    pairs: Sequence[Pair], one: Side, other: Side
) -> dict[int, tuple[list[int], list[int]]]:
    """Steps of one film with a compiled function of the other film in their place.

    By the place of the last pair in ``pairs``: the steps of both films.
    """
    found = {}
    first: list[int] = []
    second: list[int] = []
    for place, (i, j) in enumerate((*pairs, (0, 0))):
        if i is not None and j is not None:
            is_compiled = {one.compiled[step] for step in first}
            is_plain = {not other.compiled[step] for step in second}
            if is_compiled == is_plain and len(is_compiled) == 1:
                found[place - 1] = first, second
            first, second = [], []
        elif i is not None:
            first.append(i)
        elif j is not None:
            second.append(j)
    return found


def compare_results(
    one: Side, other: Side, first: list[int], second: list[int], tolerance: float | None
) -> Iterator[Difference]:
    """The results of a compiled function, and of the steps in its place.

    Each result of the compiled function is looked for among the results of the steps. If none is
    equal, the result is a difference from the last other one of the same shape.
    """
    is_first = one.compiled[first[0]]
    results, others = one.results_of(first), other.results_of(second)
    compiled, rest = (results, others) if is_first else (others, results)
    missing = []
    for result in compiled:
        found = [_beside(one, other, result, eager, is_first, tolerance) for eager in rest]
        equal = [number for number, difference in enumerate(found) if not difference.differs]
        if equal:
            yield found[equal[-1]]
            del rest[equal[-1]]
        else:
            missing.append(result)
    for result in missing:
        found = [_beside(one, other, result, eager, is_first, tolerance) for eager in rest]
        found.sort(key=lambda difference: not difference.note)  # another shape has a note
        if found:
            yield found[-1]


def _beside(
    one: Side,
    other: Side,
    compiled: tuple[int, Part],
    eager: tuple[int, Part],
    is_first: bool,
    tolerance: float | None,
) -> Difference:
    """The distance of a result of a compiled function and a result of a step."""
    (i, a), (j, b) = (compiled, eager) if is_first else (eager, compiled)
    (found,) = compare_parts((i + 1, j + 1), one.events[i], one, a, other, b, tolerance)
    return found


def compare_steps(
    one: Side, i: int, other: Side, j: int, tolerance: float | None
) -> Iterator[Difference]:
    """The parts of a pair of steps, and the distances."""
    steps, event = (i + 1, j + 1), one.events[i]
    if len(one.parts[i]) != len(other.parts[j]):
        counts = f"{len(one.parts[i])} and {len(other.parts[j])} arrays"
        yield Difference(steps, event, "number of arrays", math.inf, note=counts)
        return
    for a, b in zip(one.parts[i], _in_order(other.parts[j], one, i), strict=True):
        yield from compare_parts(steps, event, one, a, other, b, tolerance)


def _in_order(parts: list[Part], like: Side, step: int) -> list[Part]:
    """The parts of an update, or of the end of backward, in the order of another film."""
    if like.keys[step][0] not in ("update", "end"):
        return parts
    by_name = {part.name: part for part in parts}
    names = [part.name for part in like.parts[step]]
    if len(by_name) < len(parts) or by_name.keys() != set(names):
        return parts
    return [by_name[name] for name in names]


def compare_parts(
    steps: tuple[int, int],
    event: str,
    one: Side,
    a: Part,
    other: Side,
    b: Part,
    tolerance: float | None,
) -> Iterator[Difference]:
    """The distance of two arrays, or two settings."""
    if a.setting != b.setting:
        note = f"{a.setting} and {b.setting}"
        yield Difference(steps, event, a.name, math.inf, note=note)
    if a.value is None or b.value is None:
        is_kept_by_one = a.name.startswith(RETAINED)  # a matter of memory, not of values
        if a.value is not b.value and not is_kept_by_one:
            which = "second" if b.value is None else "first"
            note = f"missing in the {which} film"
            values = a.value, b.value
            yield Difference(steps, event, a.name, math.inf, values, note, b.node)
        return
    first, second = (one.content(a, is_whole=True), other.content(b, is_whole=True))
    is_sampled = first is None or second is None
    if first is None or second is None:
        first, second = one.values.content(a.value), other.values.content(b.value)
    size, note = distance(first, second)
    differs = bool(note) or size > limit_of(first, second, tolerance)
    values = a.value, b.value
    names = [content.dtype.name for content in (first, second)]
    dtypes = "" if names[0] == names[1] else " and ".join(names)
    yield Difference(steps, event, a.name, size, values, note, b.node, differs, is_sampled, dtypes)


# --- pairs of arrays -----------------------------------------------------------------------------


def distance(one: Content, other: Content) -> tuple[float, str]:
    """The largest distance of two elements, and a note in place of numbers.

    Infinity for NaN or infinity beside another element, and for other shapes.
    """
    if one == other:
        return 0.0, ""
    if one.shape != other.shape:
        return math.inf, f"shapes {one.shape} and {other.shape}"
    if one.bad != other.bad:
        return math.inf, f"{one.bad} and {other.bad} elements that are not finite"
    if one.dtype.kind in "biu" and other.dtype.kind in "biu":
        integers = [numpy.frombuffer(x.cells, x.dtype).astype(object) for x in (one, other)]
        gap = max((abs(int(x) - int(y)) for x, y in zip(*integers, strict=True)), default=0)
        return float(gap), ""
    a, b = one.numbers(), other.numbers()
    if not a.size:
        return 0.0, ""
    with numpy.errstate(all="ignore"):
        gaps = numpy.abs(a - b)
    gaps[(a == b) | ((a != a) & (b != b))] = 0.0
    gaps[numpy.isnan(gaps)] = math.inf
    return float(gaps.max()), ""


def limit_of(one: Content, other: Content, tolerance: float | None) -> float:
    """The largest distance that is no difference."""
    kinds = one.dtype.kind + other.dtype.kind
    if tolerance is None:
        if not set(kinds) & set("fc"):
            return 0.0
        floating = [dtype for dtype in (one.dtype, other.dtype) if dtype.kind in "fc"]
        tolerance = max(float(numpy.finfo(dtype).eps) for dtype in floating) ** 0.75
    sizes = numpy.abs(numpy.concatenate([one.numbers(), other.numbers()]))
    finite = sizes[numpy.isfinite(sizes)]
    return tolerance * float(finite.max()) if finite.size else 0.0
