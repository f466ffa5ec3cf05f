"""Two films laid on each other: where they part, in words and as a page.

The page is that of the second film. Its data has a part "compared":

    sentence    where the films part
    titles      of both films
    first       [iteration, step] of the first difference in the second film, from 0
    way         the nodes on the way from a first difference in forward to the loss, in order
    steps       [iteration, step, differences]
    missing     [iteration, step, words]: steps that the first film alone has, before a step

A comparison of ``what_if`` has these parts too:

    changes     [iteration, step, words, the change as ``changes.from_json`` reads it]
    losses      the name, and the losses of each iteration of both films; or None
    note        a sentence if the program is not the same without the change

A difference is [part, node, here, there, gap, words]. ``here``, ``there`` and ``gap`` are indexes
into "values", or None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from tinynode.atomic_file import replace_file
from tinynode.errors import describe
from tinynode.functions.operands import as_number
from tinynode.safe_files import checked_path
from tinynode.show.films.changes import Made, to_json
from tinynode.show.films.differences import (
    Difference,
    Pair,
    Side,
    aligned,
    compare_results,
    compare_steps,
    compiled_runs,
    instead,
    number_of,
)
from tinynode.show.films.film import framed, plural
from tinynode.show.films.nodes import Recording
from tinynode.show.films.text import cell_text, printable_lines, steps_of
from tinynode.show.films.values import describe_gap


@dataclass(frozen=True)
class Losses:
    """The loss of each iteration of two films.

    Attributes:
        name: the name of the variable.
        before: the losses of the first film, as numbers for JSON; "none" for no loss.
        after: the losses of the second film.
    """

    name: str
    before: list[Any]
    after: list[Any]

    def words(self, iteration: int) -> list[str]:
        """The losses of an iteration and of the last one, in words."""
        before, after = self.before, self.after
        if len(before) == len(after) == 1:
            return [f"{self.name}: {_before_and_after(before[0], after[0])}"]
        lines = []
        if iteration < min(len(before), len(after)) - 1:
            here = _before_and_after(before[iteration], after[iteration])
            lines = [f"{self.name} in iteration {iteration + 1}: {here}"]
        numbers = " and ".join(map(str, dict.fromkeys((len(before), len(after)))))
        last = _before_and_after(before[-1], after[-1])
        return [*lines, f"{self.name} in the last iteration, {numbers}: {last}"]


def _before_and_after(before: Any, after: Any) -> str:
    return f"{cell_text(before)} before, {cell_text(after)} after"


MOST_ARRAYS = 600
"""The differences whose arrays are in the page, the first ones; of the others, the size."""


@dataclass(frozen=True)
class Comparison:
    """The pairs of steps of two films, and the differences; ``print`` names the first one.

    Attributes:
        titles: the titles of the films.
        pairs: the numbers of the steps of both films, in order, from 1; None where a film lacks
            the step.
        differences: the parts that differ, in the order of the steps.
        largest: the largest distance of two elements that counts as no difference.
        films: the films.
        replaced: the number of steps in both films that stand for each other: a compiled function,
            and the steps in place of the function.
        sampled: the number of arrays that were compared by a sample.
        retyped: the parts of common steps whose arrays have other dtypes. The dtype alone is no
            difference.
        changes: for ``what_if``, the changes of the second film.
        losses: for ``what_if``, the losses of both films, if there are any.
        note: for ``what_if``, a sentence if the program is not the same without the change.
    """

    titles: tuple[str, str]
    pairs: list[tuple[int | None, int | None]] = field(repr=False)
    differences: list[Difference] = field(repr=False)
    largest: float
    films: tuple[Recording, Recording] = field(repr=False)
    replaced: tuple[int, int] = (0, 0)
    sampled: int = 0
    retyped: list[Difference] = field(default_factory=list, repr=False)
    changes: tuple[Made, ...] = ()
    losses: Losses | None = field(default=None, repr=False)
    note: str = ""

    @property
    def first(self) -> Difference | None:
        """The first difference, or None."""
        return self.differences[0] if self.differences else None

    def __bool__(self) -> bool:
        """True if the films differ."""
        return bool(self.differences)

    def __str__(self) -> str:
        lines = [f"changed: {one}" for one in self.changes]
        if self.losses is not None:
            lines += self.losses.words(min(one.place[0] for one in self.changes))
        if self.changes and self.films[1].note:
            lines.append(self.films[1].note)
        lines += [self.note] if self.note else []
        return printable_lines("\n".join([*lines, self.sentence]))

    @property
    def sentence(self) -> str:
        """Where the films differ first, and how many steps differ."""
        shared = sum(None not in pair for pair in self.pairs)
        if self.first is None:
            rest = f", up to {self.largest:.2g}" if self.largest else ""
            return "\n".join(
                [f"no difference in {plural(shared, 'step')}{rest}", *self._remarks()]
            )
        differ = {one.steps for one in self.differences if None not in one.steps}
        lines = [
            f"first difference: {self.first}",
            f"{len(differ)} of {plural(shared, 'common step')} differ",
        ]
        for which, word in ((0, "first"), (1, "second")):
            own = sum(pair[1 - which] is None for pair in self.pairs) - self.replaced[which]
            if own:
                lines.append(f"only in the {word} film: {plural(own, 'step')}")
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> list[str]:
        """Lines on compiled functions, on dtypes and on samples, if there are any."""
        one, other = self.replaced
        lines = []
        if one:
            first, second = plural(one, "step"), plural(other, "step")
            lines = [f"compiled: {first} of the first film are {second} of the second film"]
        if self.retyped:
            part, count = self.retyped[0], plural(len(self.retyped), "array")
            lines.append(f"other dtypes of {count}, first {part.where}, {part.dtypes}")
        if self.sampled:
            cure = "record(arrays=True) keeps whole arrays"
            lines.append(f"{self.sampled} large arrays were compared by samples; {cure}")
        return lines

    # --- formats ---------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """The second film for JSON, with the arrays of the first one beside what differs."""
        return _data(self)

    def save(self, path: str | Path) -> None:
        """Write a page: the second film, which begins at the first difference.

        Each step shows what differs: the array of both films, and the difference as a picture.

        Raises:
            ValueError: the path does not end in ``.html``.
        """
        path = checked_path("Comparison.save", path)
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"Comparison.save: the path must end in .html, got {str(path)!r}.")
        replace_file(path, self._page().encode("utf-8", "replace"))

    def _page(self) -> str:
        from tinynode.show.page.document import page  # here, since recording needs no page

        return page(self.data())

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        return framed(self.data())


def compare(film_a: Recording, film_b: Recording, *, tolerance: float | None = None) -> Comparison:
    """Lay two films on each other, and find the first step whose values differ.

        >>> def run(rate):
        ...     with tn.show.record() as film:
        ...         w = tn.asarray([1.0, 2.0], requires_grad=True)
        ...         F.sum(w * rate).backward()
        ...     return film
        >>> print(tn.show.compare(run(0.1), run(0.2)).first)
        step 1, forward of Multiply, operand rate, 0.1

    Args:
        film_a: a film of ``tn.show.record``.
        film_b: another one, such as of another device, dtype or seed, or of an edited program.
        tolerance: two numbers differ if their distance is above tolerance times the largest number
            of the two arrays. By default eps^(3/4) of the coarser dtype: 6e-6 for float32, 2e-12
            for float64. Integers and bools are compared exactly.

    Raises:
        TypeError: an argument is no film.
        ValueError: a film has no steps.
    """
    for name, film in (("film_a", film_a), ("film_b", film_b)):
        if not isinstance(film, Recording):
            raise TypeError(
                f"compare: {name} must be a film of tn.show.record(), got {describe(film)}."
            )
        if not film.steps:
            raise ValueError(f"compare: {name} has no steps: its block ran nothing of tinynode.")
    if tolerance is not None:
        tolerance = as_number("compare", "tolerance", tolerance)
        if not 0.0 <= tolerance < math.inf:
            raise ValueError(f"compare: tolerance must be 0 or more, got {tolerance}.")
    one, other = Side(film_a), Side(film_b)
    pairs = aligned(one.keys, other.keys)
    runs = compiled_runs(pairs, one, other)
    replaced = [[i for run in runs.values() for i in run[side]] for side in (0, 1)]
    found = _all_differences(one, other, pairs, runs, tolerance)
    differences = [one for one in found if one.differs]
    largest = max([one.size for one in found if not one.differs], default=0.0)
    titles = (film_a.title or "", film_b.title or "")
    numbers = [(number_of(i), number_of(j)) for i, j in pairs]
    films = film_a, film_b
    return Comparison(
        titles,
        numbers,
        differences,
        largest,
        films,
        replaced=(len(replaced[0]), len(replaced[1])),
        sampled=sum(one.is_sampled for one in found),
        retyped=[one for one in found if one.dtypes],
    )


def _all_differences(
    one: Side,
    other: Side,
    pairs: Sequence[Pair],
    runs: Mapping[int, tuple[list[int], list[int]]],
    tolerance: float | None,
) -> list[Difference]:
    """The distances of all pairs, in order, and the steps without a partner."""
    standing: set[Pair] = set()
    for first, second in runs.values():
        standing.update((i, None) for i in first)
        standing.update((None, j) for j in second)
    found: list[Difference] = []
    for place, (i, j) in enumerate(pairs):
        if place in runs:
            found += compare_results(one, other, *runs[place], tolerance)
        elif (i, j) in standing:
            continue
        elif i is None or j is None:
            event = other.events[j or 0] if i is None else one.events[i]
            note = instead(pairs, place, other)
            found.append(Difference((number_of(i), number_of(j)), event, "", math.inf, note=note))
        else:
            found += compare_steps(one, i, other, j, tolerance)
    return found


# --- the page ------------------------------------------------------------------------------------


def _data(found: Comparison) -> dict[str, Any]:
    """The second film for JSON, with the part "compared"."""
    # here, since recording needs no layout
    from tinynode.show.films.data import film_data

    data = film_data(found.films[1], is_changed=bool(found.changes))
    places = _places(data)
    next_steps = _next_steps(found)
    arrays = _Arrays(found, data["values"])
    steps: dict[tuple[int, int], list[Any]] = {}
    missing: dict[tuple[int, int], list[str]] = {}
    for one in found.differences:
        number = one.steps[1]
        if number is None:
            place = places[min(next_steps[one.steps], len(places)) - 1]
            missing.setdefault(place, []).append(one.event)
            continue
        steps.setdefault(places[number - 1], []).append(arrays.row(one))
    first = min([*steps, *missing], default=None)
    if found.changes:
        data["title"] = f"{data['title']}, changed"
    elif all(found.titles):
        data["title"] = f"{found.titles[1]}, compared with {found.titles[0]}"
    data["compared"] = {
        "sentence": found.sentence,
        "titles": list(found.titles),
        "first": None if first is None else list(first),
        "way": [] if first is None else _way_to_loss(data, *first),
        "steps": [[*place, rows] for place, rows in sorted(steps.items())],
        "missing": [[*place, words] for place, words in sorted(missing.items())],
    }
    if found.changes:
        losses = found.losses
        data["compared"] |= {
            "changes": [[*one.place, str(one), to_json(one.change)] for one in found.changes],
            "losses": losses and [losses.name, losses.before, losses.after],
            "note": found.note,
        }
    return data


def _way_to_loss(data: dict[str, Any], iteration: int, index: int) -> list[str]:
    """The nodes from a forward step to the start of the next backward pass; else none."""
    picture = data["pictures"][data["iterations"][iteration]["picture"]]
    steps = picture["steps"]
    seeds = [step["grad_outputs"] for step in steps[index:] if step["kind"] == "sweep"]
    if steps[index]["kind"] != "forward" or not seeds or not seeds[0]:
        return []
    edges = [(edge["from"], edge["to"]) for edge in picture["edges"] if edge["phase"] == "forward"]
    loss = seeds[0][0][0]
    behind = _reached(edges, steps[index]["function"])
    before = _reached([(b, a) for a, b in edges], loss)
    by_rank = sorted(picture["nodes"], key=itemgetter("rank"))
    return [node["id"] for node in by_rank if node["id"] in behind and node["id"] in before]


def _reached(edges: Sequence[tuple[str, str]], start: str) -> set[str]:
    """The nodes that edges lead to, with the start."""
    targets: dict[str, list[str]] = {}
    for source, target in edges:
        targets.setdefault(source, []).append(target)
    found = {start}
    waiting = [start]
    while waiting:
        for target in targets.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _places(data: dict[str, Any]) -> list[tuple[int, int]]:
    """The iteration and the step in it, from 0, of each step of the film."""
    found: list[tuple[int, int]] = []
    for iteration, _ in steps_of(data):
        is_next = not found or found[-1][0] != iteration - 1
        found.append((iteration - 1, 0 if is_next else found[-1][1] + 1))
    return found


def _next_steps(found: Comparison) -> dict[tuple[int | None, int | None], int]:
    """By pair, the number of the step of the second film in it, or else of the one after it."""
    steps = {}
    after = len(found.pairs)
    for pair in reversed(found.pairs):
        if pair[1] is not None:
            after = pair[1]
        steps[pair] = after
    return steps


class _Arrays:
    """Adds the arrays of differences to the values of a page.

    Attributes:
        values: the values of the page.
    """

    def __init__(self, found: Comparison, values: list[dict[str, Any]]) -> None:
        self.films = found.films
        self.values = values
        self._added = 0
        self._of_first: dict[int, int] = {}

    def row(self, one: Difference) -> list[Any]:
        """A difference, with the indexes of its arrays."""
        there, here = one.values
        words = one.words if one.part else ""
        if words and not one.note:
            words = f"largest difference {words}"
        if self._added >= MOST_ARRAYS or there is None or here is None:
            return [one.part, one.node, here, None, None, words]
        self._added += 1
        first, second = [film.values for film in self.films]
        gap = describe_gap(first.content(there), second.content(here))
        if there not in self._of_first:
            self._of_first[there] = self._add(first.describe(there))
        gap_index = None if gap is None else self._add(gap)
        return [one.part, one.node, here, self._of_first[there], gap_index, words]

    def _add(self, value: dict[str, Any]) -> int:
        self.values.append(value)
        return len(self.values) - 1
