"""The watched pictures of a film: a decision border in the plane, or the classes of images.

Requirement: a film of 1,000 iterations is a page of a few megabytes, and watches a model in each
iteration. So the first call of a name fixes the examples, and the film stores the examples once.
A picture is a short text: letters for the classes of a grid, or a class and a score for each
image. Of many pictures, a film keeps every second, third, and so on.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from tinynode.configuration import config
from tinynode.errors import short_name

GRID = 40
"""The rows and the columns of the grid of a decision border."""

MOST_POINTS = 300
"""The most points of a subject."""

MOST_IMAGES = 12
"""The most images of a subject."""

SIDE = (5, 32)
"""The smallest and the largest side of an image; of a larger image, every k-th row and column."""

LEVELS = 4
"""The shades of each sign, for a model with one score."""

MOST_TEXT = 400_000
"""The most characters of all pictures of a film."""

LETTERS = string.ascii_letters
"""The letters of the classes 0 to 51 in the grid of a border."""

UNKNOWN = "."
"""The letter of a cell whose scores are nan."""

_DIGITS = string.digits + string.ascii_lowercase
"""The brightness of a pixel, from 0 to 35."""


@dataclass(eq=False)
class Subject:
    """What a film watches under a name.

    Attributes:
        number: the index in the film.
        name: the user's name.
        kind: ``"border"`` or ``"images"``.
        form: the shape of one example, as the program gives it.
        inputs: what the model predicts: the grid and the points, or the images.
        labels: the class of each point or image, or None.
        data: the examples, in the types of JSON.
        calls: the number of calls so far.
        latest: the index of the latest picture.
    """

    number: int
    name: str
    kind: str
    form: tuple[int, ...]
    inputs: Any
    labels: list[int] | None
    data: dict[str, Any]
    calls: int = 0
    latest: int = 0

    @property
    def about(self) -> str:
        """The contents of the picture, in words."""
        if self.kind == "border":
            return f"{self.name}: the decision border and {len(self.data['points'])} points"
        return f"{self.name}: the classes of {len(self.data['images'])} images"


@dataclass(eq=False)
class Watched:
    """The subjects and the pictures of a film.

    Attributes:
        subjects: by name.
        pictures: for each picture the number of the subject, and the contents.
    """

    subjects: dict[str, Subject] = field(default_factory=dict)
    pictures: list[tuple[int, list[Any]]] = field(default_factory=list)

    def subject(self, name: str, host: Any, labels: Any) -> Subject:
        """The subject of a name; the first call of the name fixes the examples.

        Raises:
            ValueError: the inputs are no points and no images, or differ in shape from those of
                an earlier call.
        """
        name = short_name(name)
        known = self.subjects.get(name)
        if known is None:
            known = _new_subject(len(self.subjects), name, host, labels)
            self.subjects[name] = known
        elif known.form != host.shape[1:]:
            raise ValueError(
                f"watch: {name!r} watches examples of shape {known.form}, got {host.shape[1:]}: "
                "give another name."
            )
        return known

    def add(self, subject: Subject, scores: Any) -> None:
        """Keep the picture of a model's scores.

        Raises:
            ValueError: the shape of the scores does not fit.
        """
        host = _checked_scores(subject, scores)
        make = _border if subject.kind == "border" else _classes_of_images
        subject.latest = len(self.pictures)
        self.pictures.append((subject.number, make(subject, host)))

    def forget(self) -> None:
        """Let the examples go; their numbers and texts stay."""
        for subject in self.subjects.values():
            subject.inputs = subject.inputs[:0]

    def data(self) -> tuple[dict[str, Any], list[int]]:
        """All for JSON, and for each picture the index of the kept picture that stands for it.

        ``"distance"`` is 1 if all pictures are kept, 2 if every second, and so on. The last
        picture of each subject is kept.
        """
        sizes = [len(str(contents)) for _, contents in self.pictures]
        last = {subject: number for number, (subject, _) in enumerate(self.pictures)}
        distance, kept = 0, list(range(len(sizes)))
        while distance == 0 or (
            sum(sizes[number] for number in kept) > MOST_TEXT and distance < len(sizes)
        ):
            distance += 1
            kept = self._at_distance(distance, set(last.values()))
        shown: dict[int, int] = {}
        stands_for = []
        new = {number: index for index, number in enumerate(kept)}
        for number, (subject, _) in enumerate(self.pictures):
            shown[subject] = new.get(number, shown.get(subject, 0))
            stands_for.append(shown[subject])
        subjects = [
            {"name": one.name, "kind": one.kind, **one.data} for one in self.subjects.values()
        ]
        pictures = [self.pictures[number][1] for number in kept]
        return {"subjects": subjects, "pictures": pictures, "distance": distance}, stands_for

    def _at_distance(self, distance: int, last: set[int]) -> list[int]:
        """Every k-th picture of each subject, and the last pictures."""
        counts: dict[int, int] = {}
        kept = []
        for number, (subject, _) in enumerate(self.pictures):
            count = counts.get(subject, 0)
            counts[subject] = count + 1
            if count % distance == 0 or number in last:
                kept.append(number)
        return kept


# --- the examples --------------------------------------------------------------------------------


def _new_subject(number: int, name: str, host: Any, labels: Any) -> Subject:
    if host.ndim < 2 or not host.size or host.dtype.kind not in "fiub":
        raise ValueError(f"watch: inputs must be points or images, got {_kind(host)}. {_KINDS}")
    classes = None if labels is None else _checked_labels(labels, len(host))
    if host.shape[1:] == (2,):
        return _points(number, name, host, classes)
    images = _as_images(host)
    if images is None:
        raise ValueError(f"watch: inputs must be points or images, got {_kind(host)}. {_KINDS}")
    chosen = _chosen(len(host), MOST_IMAGES)
    classes = None if classes is None else classes[chosen]
    given = None if classes is None else classes.tolist()
    data = {**_pixels(images[chosen]), "labels": given, "is_score": False}
    return Subject(number, name, "images", host.shape[1:], host[chosen].copy(), given, data)


_KINDS = (
    "Points have the shape (n, 2). Images have the shape (n, h, w), (n, 1, h, w), (n, 3, h, w), "
    f"or (n, k * k) with k from {SIDE[0]} to {SIDE[1]}."
)


def _kind(host: Any) -> str:
    return f"shape {host.shape} and dtype {host.dtype}"


def _chosen(count: int, most: int) -> Any:
    """The indexes of the examples: all, or a random choice, the same at each run."""
    if count <= most:
        return numpy.arange(count)
    return numpy.sort(numpy.random.default_rng(0).permutation(count)[:most])


def _checked_labels(labels: Any, count: int) -> Any:
    """The class of each example, as int64; classes -1 and 1 are 0 and 1."""
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,):
        raise ValueError(
            f"watch: labels has shape {labels.shape}, expected ({count},): a class for each input."
        )
    whole = labels.astype(numpy.int64)
    if labels.dtype.kind not in "fiub" or not numpy.array_equal(whole, labels):
        raise ValueError("watch: labels must be whole numbers, the class of each input.")
    if set(numpy.unique(whole).tolist()) <= {-1, 1}:
        whole = (whole + 1) // 2
    if whole.min() < 0:
        raise ValueError(f"watch: a label is {whole.min()}: classes begin at 0, or are -1 and 1.")
    return whole


def _points(number: int, name: str, host: Any, classes: Any) -> Subject:
    chosen = _chosen(len(host), MOST_POINTS)
    chosen = chosen[numpy.isfinite(host[chosen]).all(axis=1)]
    if not len(chosen):
        raise ValueError("watch: inputs has no finite point.")
    dtype = host.dtype if host.dtype.kind == "f" else numpy.dtype(config.dtype)
    points = host[chosen].astype(dtype)
    (left, right), (low, high) = (_range(points[:, axis].astype(float)) for axis in (0, 1))
    middles = (numpy.arange(GRID) + 0.5) / GRID
    x, y = numpy.meshgrid(left + middles * (right - left), high - middles * (high - low))
    grid = numpy.stack([x.ravel(), y.ravel()], axis=1).astype(dtype)
    given = None if classes is None else classes[chosen].tolist()
    data = {
        "size": GRID,
        "levels": LEVELS,
        "range": [_short(bound) for bound in (left, right, low, high)],
        "points": [[_short(a), _short(b)] for a, b in points.tolist()],
        "labels": given,
        "is_score": False,
    }
    return Subject(number, name, "border", (2,), numpy.concatenate([grid, points]), given, data)


def _range(numbers: Any) -> tuple[float, float]:
    """The smallest and the largest number, and 10 % more on both sides."""
    low, high = float(numbers.min()), float(numbers.max())
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room


def _short(number: float) -> float:
    return float(f"{number:.3g}")


def _as_images(host: Any) -> Any:
    """Images of shape (n, channels, rows, columns), or None: the inputs are no images."""
    shape = host.shape
    if len(shape) == 2:
        side = math.isqrt(shape[1])
        is_square = side * side == shape[1] and SIDE[0] <= side <= SIDE[1]
        return host.reshape((-1, 1, side, side)) if is_square else None
    if len(shape) == 3:
        host = host[:, None]
    if host.ndim != 4 or min(host.shape[2:]) < SIDE[0] or host.shape[1] not in (1, 3):
        return None
    return host


def _pixels(images: Any) -> dict[str, Any]:
    """The images as texts: a digit in base 36 for each pixel and channel."""
    k = math.ceil(max(images.shape[2:]) / SIDE[1])
    images = images[:, :, ::k, ::k].astype(numpy.float64)
    finite = images[numpy.isfinite(images)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scaled = (numpy.nan_to_num(images, nan=low) - low) / ((high - low) or 1.0)
    levels = numpy.rint(35 * numpy.clip(scaled, 0, 1)).astype(int).transpose(0, 2, 3, 1)
    texts = ["".join(_DIGITS[level] for level in one.ravel().tolist()) for one in levels]
    rows, columns, channels = levels.shape[1:]
    return {"rows": rows, "columns": columns, "channels": channels, "images": texts}


# --- the pictures --------------------------------------------------------------------------------


def _checked_scores(subject: Subject, scores: Any) -> Any:
    """Scores of shape (n, classes); of shape (n, 1) for a model with one score."""
    count = len(subject.inputs)
    host = scores[:, None] if scores.shape == (count,) else scores
    if host.ndim != 2 or len(host) != count or not host.shape[1] or host.dtype.kind not in "fiub":
        raise ValueError(
            f"watch: for {count} inputs, predict must give scores of shape ({count}, classes), "
            f"({count}, 1) or ({count},), got {_kind(scores)}."
        )
    if subject.kind == "border" and host.shape[1] > len(LETTERS):
        raise ValueError(
            f"watch: a decision border has at most {len(LETTERS)} classes, got {host.shape[1]}."
        )
    subject.data["is_score"] = host.shape[1] == 1
    return host


def _classes(host: Any) -> Any:
    """The class of the largest score; above 0, class 1 of a single score; -1 for nan."""
    one = host.shape[1] == 1
    best = (host[:, 0] > 0).astype(int) if one else host.argmax(axis=1)
    return numpy.where(numpy.isnan(host).any(axis=1), -1, best)


def _right(subject: Subject, classes: Sequence[int]) -> int | None:
    """The number of examples with the right class."""
    if subject.labels is None:
        return None
    return sum(a == b for a, b in zip(classes, subject.labels, strict=True))


def _border(subject: Subject, host: Any) -> list[Any]:
    """``[text of the cells, number of right points]``; the cells row by row, from above."""
    classes = _classes(host)
    cells = classes[: GRID * GRID]
    if host.shape[1] == 1:
        cells = _levels(host[: GRID * GRID, 0].astype(float))
    return [_text_of(cells.tolist()), _right(subject, classes[GRID * GRID :].tolist())]


def _levels(scores: Any) -> Any:
    """The shades of scores: 0 to 3 for class 0, the strongest first; 5 to 8 for class 1."""
    sizes = numpy.abs(numpy.nan_to_num(scores, nan=0.0, posinf=1e300, neginf=-1e300))
    shades = numpy.ceil(sizes / (sizes.max() or 1.0) * LEVELS).clip(1, LEVELS).astype(int)
    levels = LEVELS + numpy.where(scores > 0, shades, -shades)
    return numpy.where(numpy.isnan(scores), -1, levels)


def _text_of(cells: list[int]) -> str:
    """Runs of equal cells: a letter, and the length if the length is not 1."""
    text, start = "", 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end] != cells[start]:
            letter = LETTERS[cells[start]] if cells[start] >= 0 else UNKNOWN
            text += letter + (str(end - start) if end - start > 1 else "")
            start = end
    return text


def cells_of(text: str) -> Iterator[int]:
    """The cells of a text: the inverse of the text's making; -1 for an unknown cell."""
    for letter, count in re.findall(r"(\D)(\d*)", text):
        for _ in range(int(count or 1)):
            yield LETTERS.find(letter)


def _classes_of_images(subject: Subject, host: Any) -> list[Any]:
    """``[classes, scores, number of right images]``; None for nan."""
    classes = _classes(host).tolist()
    best = host[:, 0] if host.shape[1] == 1 else host.max(axis=1)
    scores = [
        _short(score) if math.isfinite(score) else None for score in best.astype(float).tolist()
    ]
    known = [None if one < 0 else one for one in classes]
    return [known, scores, _right(subject, classes)]


# --- in words ------------------------------------------------------------------------------------


def in_words(subject: dict[str, Any], picture: list[Any]) -> str:
    """A picture as a line of text."""
    if subject["kind"] == "border":
        return "; ".join([*_right_in_words(subject, picture, "points"), _areas(subject, picture)])
    found = []
    for number, (one, score) in enumerate(zip(*picture[:2], strict=True)):
        text = f"{'nan' if one is None else one} (score {'nan' if score is None else score}"
        if subject["labels"] is not None:
            label = subject["labels"][number]
            text += ", right" if one == label else f", wrong: {label}"
        found.append(f"{text})")
    return "; ".join([*_right_in_words(subject, picture, "images"), ", ".join(found)])


def _right_in_words(subject: dict[str, Any], picture: list[Any], things: str) -> list[str]:
    if picture[-1] is None:
        return []
    return [f"{picture[-1]} of {len(subject['labels'])} {things} right"]


def _areas(subject: dict[str, Any], picture: list[Any]) -> str:
    """The share of each class in the plane."""
    counts: dict[str, int] = {}
    for cell in cells_of(picture[0]):
        number = int(cell > subject["levels"]) if subject["is_score"] and cell >= 0 else cell
        name = f"class {number}" if number >= 0 else "nan"
        counts[name] = counts.get(name, 0) + 1
    whole = sum(counts.values())
    return ", ".join(f"{name} fills {counts[name] / whole:.0%}" for name in sorted(counts))
