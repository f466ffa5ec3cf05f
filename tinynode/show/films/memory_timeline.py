"""MemoryTimeline: the bytes alive at each step of a film, by holder, for programs and terminals.

Requirement: a program, a test and a terminal read the numbers of the page. So the timeline reads
the film's data, as the page does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from tinynode.hooks.table import format_table
from tinynode.show.films.memory_growth import bytes_text
from tinynode.show.films.text import printable_lines

BAR = 40
"""The letters of the longest bar."""

MOST_ROWS = 24
"""The most rows of a table of arrays."""

MOST_BARS = 48
"""The most bars of steps or iterations."""

LETTERS = "PDRGO#A"
"""A letter of a bar for each kind; ``#`` is retained for backward."""


@dataclass(frozen=True)
class HeldArray:
    """An array, alive at a step.

    Attributes:
        bytes: the size; of a view, the size of the array behind.
        kind: a name of ``MemoryTimeline.kinds``; the array counts for this kind.
        name: the name of the array.
        made_by: the function behind the array; "" if the program brought the array.
        line: ``script.py:12``, where the array was made, or "".
        holders: the holders in words, the main holder first.
        made: the number of the step with the first sight of the array, from 0.
        freed: the number of the step with the end of the array, or None.
    """

    bytes: int
    kind: str
    name: str
    made_by: str
    line: str
    holders: tuple[str, ...]
    made: int
    freed: int | None


@dataclass(eq=False)
class _Array:
    """An array of the data.

    Attributes:
        origin: bytes, name, function and line.
        made: the number of the step with the first sight.
        states: step, kind and holders.
        freed: the step with the end of the array, or None.
    """

    origin: list[Any]
    made: int
    states: list[tuple[int, int, list[int]]]
    freed: int | None


class MemoryTimeline:
    """The bytes alive at the end of each step of a film; ``film.memory()`` makes one.

    All views of an array are one array. An array counts once, for the first fitting kind:
    parameters; data, for arrays that the program brought; results, held by Variables; gradients;
    optimizer; retained, held by functions only; plain arrays, without a known holder.
    ``print`` shows the peak, the holders there, the growth and a table.

    ``len(memory)`` is the number of steps. A step is a number from 0; the number ``len(memory)``
    is the end of the recording.

    Attributes:
        kinds: the names of the kinds.
        growth: the growth per iteration, or None: a dict with ``bytes``, ``rounds``, ``sentence``
            and ``groups``.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._files = data["files"]
        self._sizes = [len(one["seconds"]) for one in data["iterations"]]
        self._titles = [
            [step["title"] for step in data["pictures"][one["picture"]]["steps"]]
            for one in data["iterations"]
        ]
        self._memory = data["memory"]
        self.kinds: list[str] = self._memory["kinds"]
        self.growth: dict[str, Any] | None = self._memory["growth"]
        self._rows = [[0] * len(self.kinds) for _ in range(len(self) + 1)]
        self._retained = [0] * (len(self) + 1)
        self._held = list(self._arrays())
        self._fill()

    def __len__(self) -> int:
        return sum(self._sizes)

    def _arrays(self) -> Iterator[_Array]:
        """Each array with its states."""
        first = 0
        for number, size in zip(self._memory["rows"], self._sizes, strict=True):
            row = self._memory["starts"][number]
            for i in range(0, len(row), 2):
                array, parts = self._memory["lives"][row[i + 1]]
                yield self._unfolded(first + row[i], self._memory["arrays"][array], parts)
            first += size

    def _unfolded(self, made: int, origin: list[Any], parts: list[Any]) -> _Array:
        """An array, from the parts of its life."""
        found = _Array(origin, made, [], None)
        step = made
        for times, states in parts:
            for distance, *state in states * times:
                step += distance
                if state:
                    found.states.append((step, *state))
                else:
                    found.freed = step
        return found

    def _fill(self) -> None:
        """Add up the changes of all arrays."""
        retained = self.kinds.index("retained")
        for array in self._held:
            ends = [step for step, _, _ in array.states[1:]]
            ends.append(len(self._rows) if array.freed is None else array.freed)
            for (step, kind, holders), end in zip(array.states, ends, strict=True):
                kinds = [self._memory["holders"][number][0] for number in holders]
                self._add(kind, array.origin[0], step, end, is_retained=retained in kinds)
        for before, row in pairwise(self._rows):
            row[:] = [a + b for a, b in zip(before, row, strict=True)]
        self._retained = list(accumulate(self._retained))

    def _add(self, kind: int, size: int, step: int, end: int, *, is_retained: bool) -> None:
        """Note that an array begins to count for a kind, and ends."""
        for where, change in ((step, size), (end, -size)):
            if where < len(self._rows):
                self._rows[where][kind] += change
                self._retained[where] += change if is_retained else 0

    # --- the numbers -----------------------------------------------------------------------------

    def bytes_at(self, step: int) -> dict[str, int]:
        """The bytes alive at the end of a step, by kind."""
        return dict(zip(self.kinds, self._rows[step], strict=True))

    def total_at(self, step: int) -> int:
        """The bytes alive at the end of a step."""
        return sum(self._rows[step])

    def retained_at(self, step: int) -> int:
        """The bytes that functions retain, also of arrays of another kind.

        The number is that of ``MemoryHook``, but the views of an array count once, by the size of
        the array behind.
        """
        return self._retained[step]

    @property
    def peak_step(self) -> int:
        """The number of the first step with the most bytes."""
        totals = [self.total_at(step) for step in range(len(self))]
        return totals.index(max(totals)) if totals else 0

    def held_at(self, step: int) -> list[HeldArray]:
        """The arrays that are alive at the end of a step, the largest first."""
        found = []
        for array in self._held:
            states = [state for state in array.states if state[0] <= step]
            if not states or (array.freed is not None and array.freed <= step):
                continue
            _, kind, holders = states[-1]
            size, name, made_by, at = array.origin
            words = tuple(self._holder_words(number) for number in holders)
            place = (self.kinds[kind], name, made_by, self._line(at), words)
            found.append(HeldArray(size, *place, array.made, array.freed))
        found.sort(key=_size, reverse=True)
        return found

    def _holder_words(self, number: int) -> str:
        """``Variable x``, ``gradient of x``, ``Exp (script.py:3)``."""
        kind, name, _, at = self._memory["holders"][number]
        if self.kinds[kind] == "retained":
            line = self._line(at)
            return f"{name} ({line})" if line else name
        return f"Variable {name}" if self.kinds[kind] == "results" else name

    def _line(self, at: list[Any] | None) -> str:
        return "" if at is None else f"{self._files[at[0]]['name']}:{at[1]}"

    def place(self, step: int) -> tuple[int, int]:
        """The number of a step's iteration and of the step in the iteration, both from 0."""
        for iteration, size in enumerate(self._sizes):
            if step < size or iteration + 1 == len(self._sizes):
                return iteration, step
            step -= size
        return 0, 0

    # --- in words --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not len(self):
            return "<MemoryTimeline: no steps>"
        peak = self.peak_step
        return f"<MemoryTimeline: at most {bytes_text(self.total_at(peak))} at step {peak + 1}>"

    def __str__(self) -> str:
        return printable_lines("\n".join(self._lines()))

    def _lines(self) -> list[str]:
        if not len(self) or not self._memory["arrays"]:
            return ["No arrays: no step of tinynode was recorded."]
        peak = self.peak_step
        iteration, step = self.place(peak)
        lines = [
            f"At most {bytes_text(self.total_at(peak))}, {self._step_words(peak)}:",
            f"  {self._titles[iteration][step]}",
            "",
            "Who holds the memory there:",
            *self._kind_lines(peak),
            "",
            *self._holder_lines(peak),
            "",
            "Growth: " + (self.growth["sentence"] if self.growth else self._no_growth()),
            "",
        ]
        if len(self._sizes) > 1:
            lines.append("Each iteration, at its step with the most bytes:")
            lines += [*self._iteration_bars(), ""]
        of_one = "" if len(self._sizes) == 1 else f" of iteration {iteration + 1}"
        lines += [f"Each step{of_one}:", *self._step_bars(iteration), "", _legend(self.kinds)]
        return lines

    def _step_words(self, step: int) -> str:
        if len(self._sizes) == 1:
            return f"at step {step + 1} of {len(self)}"
        iteration, number = self.place(step)
        of_loop = f"in iteration {iteration + 1} of {len(self._sizes)}"
        return f"{of_loop}, at step {number + 1} of {self._sizes[iteration]}"

    def _no_growth(self) -> str:
        return "none was found. A word on growth needs four backward passes, or four iterations."

    def _kind_lines(self, step: int) -> list[str]:
        row = [(size, kind) for kind, size in self.bytes_at(step).items() if size]
        row.sort(reverse=True)
        return [f"  {bytes_text(size):>12}  {kind}" for size, kind in row]

    def _holder_lines(self, step: int) -> list[str]:
        """A table of the largest arrays; arrays of one line with the same holders are a row."""
        groups: dict[tuple[str, ...], list[HeldArray]] = {}
        for one in self.held_at(step):
            made = f"{one.made_by} {one.line}".strip() or "the program"
            by = ", ".join(one.holders) or "the program"
            groups.setdefault((one.kind, one.name, made, by), []).append(one)
        rows = []
        for key, held in groups.items():
            size = sum(one.bytes for one in held)
            rows.append((size, [bytes_text(size), str(len(held)), *key, self._freed_words(held)]))
        rows.sort(key=_first, reverse=True)
        head = ["bytes", "arrays", "counts for", "array", "made by", "held by", "freed"]
        cells = [row for _, row in rows[:MOST_ROWS]]
        lines = format_table(head, cells, left=(2, 3, 4, 5, 6)).splitlines()
        if len(rows) > MOST_ROWS:
            rest = sum(size for size, _ in rows[MOST_ROWS:])
            lines.append(f"and {len(rows) - MOST_ROWS} rows more, {bytes_text(rest)}")
        return lines

    def _freed_words(self, held: list[HeldArray]) -> str:
        """When the first of some arrays is freed."""
        freed = [one.freed for one in held if one.freed is not None and one.freed < len(self)]
        if not freed:
            return "not in this film"
        iteration, number = self.place(min(freed))
        words = f"step {number + 1}"
        if len(self._sizes) > 1:
            words = f"iteration {iteration + 1}, {words}"
        return words if len(held) == 1 else f"the first: {words}"

    def _iteration_bars(self) -> list[str]:
        first = 0
        peaks = []
        for size in self._sizes:
            peaks.append(max(range(first, first + size), key=self.total_at))
            first += size
        chosen = _spread(len(peaks))
        names = [str(number + 1) for number in chosen]
        return self._bars(names, [peaks[number] for number in chosen], [""] * len(chosen))

    def _step_bars(self, iteration: int) -> list[str]:
        first = sum(self._sizes[:iteration])
        chosen = _spread(self._sizes[iteration])
        titles = [self._titles[iteration][number] for number in chosen]
        names = [str(number + 1) for number in chosen]
        return self._bars(names, [first + number for number in chosen], titles)

    def _bars(self, names: list[str], steps: list[int], titles: list[str]) -> list[str]:
        """A line for each step: number, bytes, a bar and the sentence."""
        most = max(max(self.total_at(step) for step in steps), 1)
        lines = []
        for name, step, title in zip(names, steps, titles, strict=True):
            bar = ""
            for letter, size in zip(LETTERS, self._rows[step], strict=True):
                bar += letter * round(BAR * size / most)
            size_words = bytes_text(self.total_at(step))
            lines.append(f"{name:>6}  {size_words:>12}  {bar:<{BAR + 2}}  {title}".rstrip())
        return lines


def _first(row: tuple[int, list[str]]) -> int:
    return row[0]


def _size(one: HeldArray) -> int:
    return one.bytes


def _spread(count: int) -> list[int]:
    """At most ``MOST_BARS`` numbers below a count, at about equal distances, with both ends."""
    if count <= MOST_BARS:
        return list(range(count))
    return [round(i * (count - 1) / (MOST_BARS - 1)) for i in range(MOST_BARS)]


def _legend(kinds: list[str]) -> str:
    return "  ".join(f"{letter} {kind}" for letter, kind in zip(LETTERS, kinds, strict=True))
