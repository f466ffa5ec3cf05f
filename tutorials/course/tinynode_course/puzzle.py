"""The hint before the last of an exercise: a Parsons puzzle, the missing lines in a mixed order.

Requirement: a stuck learner gets the lines, and still has to think. A puzzle of less than
``LEAST`` lines would be a solution, so a definition with fewer missing lines has none. Wrong lines
may stand between the right ones: ``DISTRACTORS = {"backward": ("x.grad = gx",)}`` in the module of
the checks.

Sources: Parsons and Haden, Parson's programming puzzles, ACE 2006. The indentation is removed, as
in Ihantola and Karavirta, Two-dimensional Parson's puzzles, 2011: learners find it themselves.
Ericson, Margulieux and Rick, Solving Parsons problems versus fixing and writing code, Koli Calling
2017: learners take less time than by writing, and learn as much.
"""

from __future__ import annotations

import ast
import io
import random
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tinynode_course import mynode, places, swapping
from tinynode_course.mynode import Definition
from tinynode_course.places import Spot
from tinynode_course.sources import Step

LEAST = 3
"""The fewest lines of a definition's puzzle, wrong lines included."""

MOST = 24
"""The most lines: the first definitions that fit, and at least one definition."""

MOST_PLACES = 2
"""The most definitions of a check that names several places."""

TO_WRITE = "NotImplementedError"


@dataclass(frozen=True)
class Group:
    """The missing lines of a definition, in the right order."""

    path: str
    name: str
    lines: tuple[str, ...]
    text: str
    """The definition with all its lines."""


def puzzle(step: Step, chosen: Sequence[Group]) -> str:
    """The puzzle of some groups as text; "" if no group has enough lines."""
    wrong = distractors(step)
    shown = [
        group for group in chosen if len(group.lines) + len(wrong.get(group.name, ())) >= LEAST
    ]
    if not shown:
        return ""
    text = "These lines are missing, in a mixed order and without indentation."
    extra = sum(len(wrong.get(group.name, ())) for group in shown)
    if extra:
        text += f" {extra} of them {'is' if extra == 1 else 'are'} wrong: leave these out."
    for group in shown:
        text += f"\n\n  {_title(step, group)}"
        for line in mixed([*group.lines, *wrong.get(group.name, ())], f"{step.key} {group.name}"):
            text += f"\n    {line}"
    return text


def solution_lines(step: Step, chosen: Sequence[Group]) -> str:
    """The lines of a solution, for some groups."""
    text = "The lines of a solution:"
    for group in chosen:
        text += f"\n\n  {_title(step, group)}\n{textwrap.indent(group.text, '    ')}"
    return text


def _title(step: Step, group: Group) -> str:
    return f"{mynode.NAME}/{group.path}: {group.name}" if step.builds else group.name


def distractors(step: Step) -> dict[str, tuple[str, ...]]:
    """The wrong lines for a puzzle, by definition."""
    found: dict[str, tuple[str, ...]] = getattr(step.check_module(), "DISTRACTORS", {})
    return found


def mixed(lines: list[str], seed: str) -> list[str]:
    """The lines in another order, the same every time."""
    order = random.Random(seed)  # of the standard library: the same on every machine
    result = list(lines)
    for _ in range(10):
        order.shuffle(result)
        if result != lines:
            break
    return result


def groups(step: Step, found: Sequence[Spot] = (), stage: str = "") -> list[Group]:
    """The definitions to show: at the places, or without a beginning of the learner."""
    if found:
        here = [_group_at(step, one, stage or step.key) for one in found]
        chosen = [one for one in here if one is not None]
        if chosen:
            return chosen[:MOST_PLACES]
    return _chosen(step)


def _group_at(step: Step, place: Spot, stage: str) -> Group | None:
    """The lines of the reference at a place that the learner does not have; None without any."""
    reference = places.reference_of(step, stage).get(place.path, "")
    known = swapping.units(reference)
    if place.name not in known:
        return None
    code = swapping.text_of(reference, known[place.name])
    mine = _text_of(step, place.path)
    here = swapping.units(mine).get(place.name)
    have = swapping.text_of(mine, here) if here is not None else ""
    lines = _missing(code, statements(have) or statements(code)[:1])
    has_methods = any(name.startswith(f"{place.name}.") for name in known)
    text = "\n".join(lines) if has_methods and have else code
    return Group(place.path, place.name, tuple(lines), text) if lines else None


def _text_of(step: Step, path: str) -> str:
    """The text of a learner's file; "" for a file that is no Python."""
    file = Path(mynode.NAME, path) if step.builds else Path(step.work)
    try:
        text = file.read_text(encoding="utf-8")
        ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return ""
    return text


def _chosen(step: Step) -> list[Group]:
    """The definitions that the learner has not begun, as many as fit."""
    every = list(_groups(step))
    unwritten = [group for group in every if _is_to_write(group, step)]
    chosen: list[Group] = []
    for group in unwritten or every:
        if chosen and sum(len(one.lines) for one in chosen) + len(group.lines) > MOST:
            break
        chosen.append(group)
    return chosen


def _is_to_write(group: Group, step: Step) -> bool:
    """True if the learner's definition is still the stub's."""
    there = mynode.definitions(_text_of(step, group.path))
    return group.name in there and TO_WRITE in there[group.name].text


def _groups(step: Step) -> Iterator[Group]:
    """The missing lines of each definition that the step adds or changes."""
    if not step.builds:
        text = step.solution.read_text(encoding="utf-8")
        stub = step.stub.read_text(encoding="utf-8")
        there = mynode.definitions(stub)
        for name, one in mynode.definitions(text).items():
            yield from _group(step.work, one, there.get(name))
        return
    stubs = mynode.read_files(step.stub)
    for path, text in mynode.changed(step.key).items():
        earlier = mynode.definitions(mynode.before(step.key).get(path, ""))
        earlier |= mynode.definitions(stubs.get(path, ""))
        now = mynode.definitions(text)
        for name in mynode.new_definitions(step.key, path):
            yield from _group(path, now[name], earlier.get(name))


def _group(path: str, now: Definition, earlier: Definition | None) -> Iterator[Group]:
    """The lines of a definition that are not in the earlier one; no group without any."""
    lines = _missing(now.text, statements(earlier.text) if earlier is not None else [])
    if lines:
        yield Group(path, now.name, tuple(lines), now.text)


def _missing(code: str, known: Sequence[str]) -> list[str]:
    """The statements of code that are not among the known ones, in order."""
    missing = Counter(statements(code))
    missing -= Counter(known)
    lines = []
    for line in statements(code):
        if missing[line] > 0:
            missing[line] -= 1
            lines.append(line)
    return lines


def statements(code: str) -> list[str]:
    """The lines of code without indentation, comments and docstrings; a statement is a line."""
    found: list[str] = []
    words: list[tokenize.TokenInfo] = []
    ignored = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(code + "\n").readline):
        if token.type not in (*ignored, tokenize.NEWLINE, tokenize.ENDMARKER):
            words.append(token)
        elif token.type == tokenize.NEWLINE:
            if [word.type for word in words] != [tokenize.STRING]:
                found.append(_one_line(words))
            words = []
    return found


def _one_line(words: list[tokenize.TokenInfo]) -> str:
    """The text of a statement on a line."""
    text, row, column = "", words[0].start[0], words[0].start[1]
    for word in words:
        if word.start[0] == row:
            text += " " * (word.start[1] - column)
        elif text[-1] not in "([{" and word.string not in ")]}":
            text += " "
        text += word.string
        row, column = word.end
    return text
