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

import io
import random
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tinynode_course import mynode
from tinynode_course.mynode import Definition
from tinynode_course.sources import Step

LEAST = 3
"""The fewest lines of a definition's puzzle, wrong lines included."""

MOST = 24
"""The most lines: the first definitions that fit, and at least one definition."""

TO_WRITE = "NotImplementedError"


@dataclass(frozen=True)
class Group:
    """The missing lines of a definition, in the right order."""

    path: str
    name: str
    lines: tuple[str, ...]


def hints(step: Step) -> list[str]:
    """All hints of an exercise: words, then the puzzle, if there is one, and last the lines.

    The puzzle shows nearly the whole solution, so the hints that ask and point come first.
    """
    *words, lines = step.hints()
    found = puzzle(step)
    return [*words, *([found] if found else []), lines]


def puzzle(step: Step) -> str:
    """The puzzle of an exercise as text; "" without one."""
    wrong = distractors(step)
    groups = [
        group
        for group in _chosen(step)
        if len(group.lines) + len(wrong.get(group.name, ())) >= LEAST
    ]
    if not groups:
        return ""
    text = "these lines are missing, in a mixed order and without indentation."
    extra = sum(len(wrong.get(group.name, ())) for group in groups)
    if extra:
        text += f" {extra} of them {'is' if extra == 1 else 'are'} wrong: leave these out."
    for group in groups:
        where = f"{mynode.NAME}/{group.path}: " if step.builds else ""
        text += f"\n\n  {where}{group.name}"
        for line in mixed([*group.lines, *wrong.get(group.name, ())], f"{step.key} {group.name}"):
            text += f"\n    {line}"
    return text


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


def _chosen(step: Step) -> list[Group]:
    """The definitions to show: those the learner has not begun, as many as fit."""
    groups = list(_groups(step))
    unwritten = [group for group in groups if _is_to_write(group, step)]
    chosen: list[Group] = []
    for group in unwritten or groups:
        if chosen and sum(len(one.lines) for one in chosen) + len(group.lines) > MOST:
            break
        chosen.append(group)
    return chosen


def _is_to_write(group: Group, step: Step) -> bool:
    """True if the learner's definition is still the stub's."""
    file = Path(mynode.NAME, group.path) if step.builds else Path(step.work)
    try:
        there = mynode.definitions(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return False
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
    missing = Counter(statements(now.text))
    if earlier is not None:
        missing -= Counter(statements(earlier.text))
    lines = []
    for line in statements(now.text):
        if missing[line] > 0:
            missing[line] -= 1
            lines.append(line)
    if lines:
        yield Group(path, now.name, tuple(lines))


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
