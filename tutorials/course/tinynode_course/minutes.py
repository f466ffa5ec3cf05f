"""The command ``minutes``: the time of each step, by a model of reading and writing.

Requirement: a teacher plans a session, and a learner an evening. The model is simple, and its
numbers stand below, so a teacher can put own numbers in their place. No learner was measured.

    reading     words of the page, lines of shown code, pauses for pictures and for the prediction
    exercise    lines of code that the learner writes: those of the reference without the lines
                of the stub. A line that the page or the package shows is copied faster than a
                new line is found. Plus a time for start and check
    hunt        a time for tests against planted bugs

Source of the reading speed: Brysbaert, How many words do we read per minute?, Journal of Memory
and Language 109, 2019: 238 words of English a minute. Technical text in a second language is
slower. The other numbers are assumptions.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tinynode_course import hunts, mynode, sources
from tinynode_course.cells import read
from tinynode_course.mynode import Excerpt, Files
from tinynode_course.sources import Step

SUMMARY = "print the minutes of each step, by a model of reading and writing"

WORDS_A_MINUTE = 150.0
CODE_LINES_A_MINUTE = 12.0
PAUSE = 0.5
"""Minutes for the output of a cell of code."""
PREDICTION = 1.5
NEW_LINES_A_MINUTE = 1.0
KNOWN_LINES_A_MINUTE = 6.0
"""For a line that the page shows, or that the package has elsewhere: ``(x,) = inputs``."""
START = 4.0
"""Minutes to start an exercise, find the place, and run the checks."""
HUNT = 15.0
LAST_OF_GPT = "21"
"""The last step on the way to the learner's own GPT; gradients of gradients follow."""

_CODE_BLOCK = re.compile(r"^(?: {4}.*|\|.*)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass(frozen=True)
class Minutes:
    """The minutes of a step."""

    key: str
    reading: float
    exercise: float

    @property
    def total(self) -> float:
        """Reading and exercise."""
        return self.reading + self.exercise


def run(options: argparse.Namespace) -> int:
    """Print the minutes of each step, and the hours of each part."""
    print("minutes of a model: reading, exercise, both\n")
    for part, steps in parts().items():
        found = {step: of(step) for step in steps}
        print(f"{part}: {hours(found.values()):.1f} hours")
        for step, one in found.items():
            title = step.title.partition(":")[2].strip() or step.title
            both = f"{one.reading:4.0f} {one.exercise:4.0f} {one.total:4.0f}"
            print(f"  {both}   {step.key}  {title}")
    print()
    for words, steps in ways().items():
        print(f"{words}: {hours(of(step) for step in steps):.1f} hours")
    return 0


def table() -> str:
    """The hours of the parts and of the ways through them, as a table in Markdown."""
    rows = ["| part | steps | hours | longest step |", "|---|---|---|---|"]
    for part, steps in parts().items():
        found = [of(step) for step in steps]
        longest = max(one.total for one in found)
        rows.append(f"| {part} | {len(steps)} | {hours(found):.1f} | {longest:.0f} min |")
    for words, steps in ways().items():
        found = [of(step) for step in steps]
        longest = max(one.total for one in found)
        rows.append(f"| **{words}** | {len(steps)} | {hours(found):.1f} | {longest:.0f} min |")
    return "\n".join(rows)


def parts() -> dict[str, list[Step]]:
    """The steps of each part of the course."""
    found: dict[str, list[Step]] = {}
    for step in sources.steps():
        found.setdefault(sources.part(step), []).append(step)
    return found


def ways() -> dict[str, list[Step]]:
    """The steps to the learner's own GPT, and all numbered steps."""
    numbered = [step for step in sources.steps() if step.kind == "step"]
    to_gpt = [step for step in numbered if step.key <= LAST_OF_GPT]
    found = {}
    for words, steps in (("To your own GPT", to_gpt), ("All steps", numbered)):
        if steps:
            found[f"{words}, {steps[0].key} to {steps[-1].key}"] = steps
    return found


def hours(found: Iterable[Minutes]) -> float:
    """The sum in hours."""
    return sum(one.total for one in found) / 60


def of(step: Step) -> Minutes:
    """The minutes of a step."""
    words = pauses = 0.0
    for cell in read(step.path):
        if cell.kind == "code":
            pauses += PAUSE
            continue
        texts = [part for part in mynode.parts(cell.source, step.key) if isinstance(part, str)]
        for text in texts:
            words += len(_WORD.findall(_CODE_BLOCK.sub("", text)))
            pauses += PREDICTION * text.count("## Predict")
    code = sum(lines for _, lines in _shown_code(step))
    reading = words / WORDS_A_MINUTE + code / CODE_LINES_A_MINUTE + pauses
    exercise = 0.0
    if step.stub.exists():
        new, known = lines_to_write(step)
        exercise = START + new / NEW_LINES_A_MINUTE + known / KNOWN_LINES_A_MINUTE
    exercise += HUNT if hunts.of(step) is not None else 0.0
    return Minutes(step.key, reading, exercise)


def _shown_code(step: Step) -> Iterator[tuple[str, int]]:
    """The code on the page, with the number of new lines: of cells, and of the package."""
    for cell in read(step.path):
        if cell.kind == "code":
            yield cell.source, len(code_lines(cell.source))
            continue
        for part in mynode.parts(cell.source, step.key):
            if isinstance(part, Excerpt):
                yield part.code, len(part.marked) or len(code_lines(part.code))


def lines_to_write(step: Step) -> tuple[int, int]:
    """The new lines that an exercise asks for, and the lines that are known from elsewhere."""
    if step.builds:
        earlier, stubs = mynode.before(step.key), mynode.read_files(step.stub)
        after = mynode.changed(step.key)
    else:
        earlier, stubs = {}, {"": step.stub.read_text(encoding="utf-8")}
        after = {"": step.solution.read_text(encoding="utf-8")}
    shown = [text for text, _ in _shown_code(step)]
    known = {
        line for text in (*earlier.values(), *stubs.values(), *shown) for line in code_lines(text)
    }
    counts = [0, 0]
    for path in after:
        for line in _lines_of_file(path, earlier, stubs, after):
            counts[line in known] += 1
            known.add(line)
    return counts[0], counts[1]


def _lines_of_file(path: str, earlier: Files, stubs: Files, after: Files) -> list[str]:
    """The new lines of a file: each definition beside its stub, or beside its earlier form."""
    old, stub, new = (mynode.definitions(files.get(path, "")) for files in (earlier, stubs, after))
    found = []
    for name, one in new.items():
        before = old.get(name) or stub.get(name)
        there = code_lines(before.text) if before is not None else []
        given = stub.get(name)
        if given is None or given.meaning != one.meaning:
            found += _inserted(there, code_lines(one.text))
    return found


def _inserted(before: list[str], after: list[str]) -> list[str]:
    """The lines of ``after`` that are not in ``before``."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changes = matcher.get_opcodes()
    pieces = [after[start:end] for kind, _, _, start, end in changes if kind[0] in "ir"]
    return [line for piece in pieces for line in piece]


def code_lines(code: str) -> list[str]:
    """The lines of code, without comments, docstrings and empty lines."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return [
        line.strip()
        for number, line in enumerate(code.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in left_out
    ]
