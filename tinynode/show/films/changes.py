"""Changes of a single number at a step of a film: as data, in words, and from a page's request.

Requirement: readers of a page, a notebook and a terminal name a change in the same way. A request
of a page has no other power. So a change is a few names and numbers, and all are checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinynode.errors import LONGEST_NAME, describe, number_text, printable, short_text

PARTS = ("value", "gradient", "setting")
"""The parts of a step that a change can name."""

MOST_CHANGES = 50
"""The most changes of a program."""

MOST_LETTERS = 2 * LONGEST_NAME
"""The longest name of a change: a film adds numbers to equal names."""

MOST_AXES = 64
"""The most numbers of an index; NumPy has no array with more axes."""

LARGEST = 2**63
"""Whole numbers, steps and indexes are below it."""

_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

_TEXT = re.compile(
    r"\s*(?:iteration\s+(?P<iteration>\d+)\s*,\s*)?(?:step\s+)?(?P<step>\d+)\s*:"
    r"\s*(?P<gradient>gradient\s+of\s+)?(?P<name>\S|\S.*?\S)\s*"
    r"(?:\[(?P<index>[-\d,\s]*)\])?\s*=\s*(?P<to>[^\s=]+)\s*",
    re.DOTALL,
)


@dataclass(frozen=True)
class Change:
    """Another number for an element, at a step of a film.

        >>> print(tn.show.Change(step=3, name="w", index=(0, 1), to=0.0))
        step 3: w[0, 1] = 0

    An operand changes before the function runs, a result afterwards. A gradient changes in the
    table of the backward pass, a setting of an optimizer before the update. All later steps use
    the new number.

    Attributes:
        step: the number of the step, from 1.
        name: the name of the variable in the film, or of a setting such as ``"lr"``.
        index: the element, with a number for each axis; ``()`` for a scalar.
        to: the new number; also nan or an infinity.
        part: ``"value"``, ``"gradient"`` or ``"setting"``. At an update, ``"value"`` with a name
            that no variable has is a setting.
        iteration: the iteration that the step is counted in, from 1; None counts all steps.

    Raises:
        TypeError: an attribute has a wrong type.
        ValueError: a number is out of range, or a name is empty or too long.
    """

    step: int
    name: str
    index: tuple[int, ...] = ()
    to: float = 0.0
    part: str = "value"
    iteration: int | None = None

    def __post_init__(self) -> None:
        _check_whole("step", self.step, least=1)
        if self.iteration is not None:
            _check_whole("iteration", self.iteration, least=1)
        if not isinstance(self.name, str):
            raise TypeError(f"Change: name must be a string, got {describe(self.name)}.")
        if not 0 < len(self.name) <= MOST_LETTERS:
            raise ValueError(
                f"Change: name must have 1 to {MOST_LETTERS} letters, got {len(self.name)}."
            )
        if not isinstance(self.index, tuple):
            raise TypeError(
                "Change: index must be a tuple of integers, such as (0, 1), got "
                f"{describe(self.index)}."
            )
        if len(self.index) > MOST_AXES:
            raise ValueError(
                f"Change: index has {len(self.index)} numbers, expected {MOST_AXES} at most."
            )
        for number in self.index:
            _check_whole("a number of index", number, least=-LARGEST)
        _check_number(self.to)
        if self.part not in PARTS:
            raise ValueError(
                f"Change: part must be one of {', '.join(PARTS)}, got {short_text(self.part)}."
            )

    def __str__(self) -> str:
        place = "" if self.iteration is None else f"iteration {self.iteration}, "
        return f"{place}step {self.step}: {self.what} = {number_words(self.to)}"

    @property
    def what(self) -> str:
        """The number that changes, such as ``"gradient of w[0, 1]"``."""
        gradient = "gradient of " if self.part == "gradient" else ""
        index = f"[{', '.join(map(str, self.index))}]"
        has_index = bool(self.index) or self.name.endswith("]")
        return printable(f"{gradient}{self.name}{index if has_index else ''}")


def parsed(text: str) -> Change:
    """The change in a text such as ``"3: w[0, 1] = 0"``.

    Further forms: ``"iteration 2, step 3: gradient of w[0] = nan"`` and ``"9: lr = 0.1"``.

    Raises:
        ValueError: the text has another form, or a number out of range.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise _other_form(text)
    iteration, gradient, index = found["iteration"], found["gradient"], found["index"]
    try:
        numbers = tuple(int(number) for number in (index or "").split(",") if number.strip())
        return Change(
            step=int(found["step"]),
            name=found["name"],
            index=numbers,
            to=_number_in(found["to"]),
            part="value" if gradient is None else "gradient",
            iteration=None if iteration is None else int(iteration),
        )
    except ValueError as error:
        if str(error).startswith("Change:"):
            raise
        raise _other_form(text) from None


def _other_form(text: str) -> ValueError:
    return ValueError(
        'Change: expected a text such as "3: w[0, 1] = 0", "3: gradient of w[0] = 1" or '
        f'"9: lr = 0.1", got {short_text(text)}.'
    )


def _number_in(text: str) -> float:
    if text in _WORDS:
        return _WORDS[text]
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"Change: write nan, inf or -inf, got {short_text(text)}.")
    return number


def from_json(request: Any) -> list[Change]:
    """The changes in a page's request: a list of objects with the attributes of ``Change``.

    ``to`` is a number, or one of the texts ``nan``, ``inf`` and ``-inf``.

    Raises:
        TypeError: a part of the request has a wrong type.
        ValueError: a part is missing, unknown or out of range.
    """
    if not isinstance(request, list):
        raise TypeError(f"Change: the changes must be a list, got {describe(request)}.")
    if len(request) > MOST_CHANGES:
        raise ValueError(f"Change: expected {MOST_CHANGES} changes at most, got {len(request)}.")
    return [_one_from_json(one) for one in request]


def _one_from_json(told: Any) -> Change:
    if not isinstance(told, dict):
        raise TypeError(f"Change: a change must be an object, got {describe(told)}.")
    keys = set(Change.__dataclass_fields__)
    if told.keys() - keys:
        unknown = ", ".join(sorted(map(short_text, told.keys() - keys))[:5])
        raise ValueError(f"Change: unknown keys {unknown}; known are {', '.join(sorted(keys))}.")
    missing = {"step", "name", "to"} - told.keys()
    if missing:
        raise ValueError(f"Change: the keys {', '.join(sorted(missing))} are missing.")
    index, to = told.get("index", []), told["to"]
    if not isinstance(index, list):
        raise TypeError(f"Change: index must be a list of integers, got {describe(index)}.")
    if isinstance(to, str):
        if to not in _WORDS:
            raise ValueError(
                f"Change: to must be a number, nan, inf or -inf, got {short_text(to)}."
            )
        to = _WORDS[to]
    return Change(**{**told, "index": tuple(index), "to": to})


def to_json(change: Change) -> dict[str, Any]:
    """A change as ``from_json`` reads it."""
    is_finite = math.isfinite(change.to)
    return {
        "step": change.step,
        "name": change.name,
        "index": list(change.index),
        "to": change.to if is_finite else number_words(change.to),
        "part": change.part,
        "iteration": change.iteration,
    }


def number_words(number: float) -> str:
    """A number in a sentence: ``0.5``, ``0``, ``nan``."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return str(number)


def checked_changes(function: str, changes: Any) -> list[Change]:
    """One change or several, as a list.

    Raises:
        TypeError: an entry is no Change and no text.
        ValueError: there is no change, or too many.
    """
    given = (
        changes if isinstance(changes, Sequence) and not isinstance(changes, str) else [changes]
    )
    if not 0 < len(given) <= MOST_CHANGES:
        raise ValueError(f"{function}: expected 1 to {MOST_CHANGES} changes, got {len(given)}.")
    found = []
    for one in given:
        if not isinstance(one, Change | str):
            raise TypeError(
                f"{function}: a change must be a tn.show.Change or a text such as "
                f'"3: w[0, 1] = 0", got {describe(one)}.'
            )
        found.append(parsed(one) if isinstance(one, str) else one)
    return found


def _check_whole(what: str, number: Any, least: int) -> None:
    if type(number) is not int:
        raise TypeError(f"Change: {what} must be an integer, got {describe(number)}.")
    if not least <= number < LARGEST:
        raise ValueError(f"Change: {what} must be {least} or more, and below 2^63.")


def _check_number(number: Any) -> None:
    if type(number) not in (int, float):
        raise TypeError(f"Change: to must be a number, got {describe(number)}.")
    if type(number) is int and abs(number) >= LARGEST:
        raise ValueError("Change: to is a whole number of more than 63 bits; write it with a dot.")


@dataclass(frozen=True)
class Made:
    """A change that was made.

    Attributes:
        change: the change.
        place: the iteration and the step in it, from 0.
        was: the number before.
    """

    change: Change
    place: tuple[int, int]
    was: float

    def __str__(self) -> str:
        return f"{self.change}, was {number_text(self.was)}"
