"""Measures the prose of docstrings and guides: long sentences, and pronouns.

Requirement: readers with another first language understand every sentence at the first reading.
The rule: name the noun, a single fact in a sentence, 25 words at most. Two figures measure the
text: the number of longer sentences, and the share of pronouns among all words.

    python -m tools.prose                     # a line for each folder and each guide
    python -m tools.prose tinynode/core       # the worst sentences of some files or folders
    python -m tools.prose --check             # compare with the limits below; CI runs this
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tinynode", "backends", "docs", "tutorials/course")
LONGEST = 25
"""The most words of a sentence."""
PRONOUNS = frozenset(
    [
        "it",
        "its",
        "itself",
        "that",
        "what",
        "whatever",
        "who",
        "whom",
        "whose",
        "which",
        "one",
        "ones",
        "nobody",
        "somebody",
        "anybody",
        "everybody",
        "something",
        "anything",
        "everything",
        "nothing",
        "this",
        "these",
        "those",
        "they",
        "them",
        "their",
    ]
)
LIMITS = {"docstrings": (0, 2.5), "guides": (0, 2.75)}
"""For docstrings and for guides: sentences above ``LONGEST``, and pronouns in a hundred words."""

_CODE = re.compile(r"``.+?``|`.+?`|\$.+?\$", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:])[\"')\]]*\s+(?=[A-Z`\"'(\[]|$)|\n\s*\n|;\s")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_ENTRY = re.compile(r"^\s*(?:\*\*)?[\w`*., \[\]|\"']{1,60}:\s+(?=\S)")


class Sentence(NamedTuple):
    """A sentence and its place: file and line."""

    place: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words in lower case; a piece of code counts as one word."""
        return [word.lower() for word in _WORD.findall(self.text)]

    @property
    def pronouns(self) -> list[str]:
        """The pronouns among the words."""
        return [word for word in self.words if word in PRONOUNS]


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The docstrings of a file, each with file and line, also docstrings below attributes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:
            value = getattr(statement, "value", None)
            is_text = isinstance(statement, ast.Expr) and isinstance(value, ast.Constant)
            if is_text and isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield f"{name}:{statement.lineno}", value.value


def paragraphs_of_docstring(text: str) -> Iterator[str]:
    """The prose of a docstring: without code, formulas and headings of sections."""
    lines = text.expandtabs().split("\n")
    margin = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    lines = [lines[0].strip(), *(line[margin:] for line in lines[1:])]
    in_section, block = False, []
    for line in [*lines, ""]:
        is_heading = re.fullmatch(r"(Args|Returns|Raises|Attributes|Source|Yields|Note):.*", line)
        if is_heading:
            in_section = True
        elif line and not line.startswith(" "):
            in_section = False
        is_entry = in_section and _indent(line) == 4 and bool(_ENTRY.match(line))
        if not line.strip() or is_heading or is_entry:
            if block:
                yield " ".join(block)
            block = []
        if is_heading or not line.strip():
            continue
        is_code = _indent(line) >= 4 and not in_section
        if is_code or _is_formula(line):
            if block:
                yield " ".join(block)
            block = []
            continue
        block.append(_ENTRY.sub("", line).strip() if is_entry else line.strip())


def paragraphs_of_page(text: str) -> Iterator[str]:
    """The prose of a Markdown page: without code, tables, headings and directives."""
    block: list[str] = []
    fenced = in_directive = False
    for line in [*text.split("\n"), ""]:
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            fenced = not fenced
            stripped = ""
        in_directive = stripped.startswith(":::") or (in_directive and line.startswith("    "))
        if in_directive:
            stripped = ""
        skipped = fenced or not stripped or stripped.startswith(("#", "|", ":::", "<", "--8<--"))
        is_item = re.match(r"([-*]|\d+\.)\s+", stripped)
        if skipped or is_item:
            if block:
                yield " ".join(block)
            block = []
        if not skipped:
            block.append(stripped[is_item.end() :] if is_item else stripped)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_formula(line: str) -> bool:
    """True for a line of shapes or mathematics: more signs than words."""
    signs = len(re.findall(r"->|<-|[=+*/^@|<>\[\]{}]|dL/d\w+|\w\(", line))
    return signs >= 2 and signs * 4 >= len(_WORD.findall(line))


def sentences(place: str, paragraphs: Iterable[str]) -> Iterator[Sentence]:
    """The sentences of paragraphs; a piece of code becomes one word."""
    for paragraph in paragraphs:
        plain = _CODE.sub(" Code ", _LINK.sub(r"\1", paragraph)).replace("**", "")
        for part in _END.split(plain):
            sentence = Sentence(place, " ".join((part or "").split()))
            if sentence.words:
                yield sentence


def sentences_of(path: Path) -> Iterator[Sentence]:
    """The sentences of a Python file's docstrings, or of a page."""
    if path.suffix == ".md":
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        yield from sentences(name, paragraphs_of_page(path.read_text(encoding="utf-8")))
        return
    for place, text in docstrings(path):
        yield from sentences(place, paragraphs_of_docstring(text))


def files(starts: Sequence[Path]) -> Iterator[Path]:
    """The Python and Markdown files below some files and folders."""
    for start in starts:
        found = [start] if start.is_file() else sorted(start.rglob("*"))
        for path in found:
            if path.suffix in (".py", ".md"):
                yield path


class Figures(NamedTuple):
    """The counts of some text."""

    sentences: int
    long: int
    words: int
    pronouns: int

    @property
    def share(self) -> float:
        """Pronouns in a hundred words."""
        return 100.0 * self.pronouns / max(self.words, 1)


def measure(found: Iterable[Sentence]) -> Figures:
    """The figures of some sentences."""
    counts: Counter[str] = Counter()
    for sentence in found:
        counts["sentences"] += 1
        counts["long"] += len(sentence.words) > LONGEST
        counts["words"] += len(sentence.words)
        counts["pronouns"] += len(sentence.pronouns)
    return Figures(counts["sentences"], counts["long"], counts["words"], counts["pronouns"])


def _groups() -> dict[str, list[Path]]:
    """The files by folder, two levels deep; each guide is a group."""
    groups: dict[str, list[Path]] = {}
    for path in files([ROOT / name for name in FOLDERS]):
        parts = path.relative_to(ROOT).parts
        key = "/".join(parts) if path.suffix == ".md" else "/".join(parts[:2])
        groups.setdefault(key, []).append(path)
    for name in ("README.md", "CONTRIBUTING.md", "tutorials/README.md"):
        groups[name] = [ROOT / name]
    return groups


def _line(title: str, figures: Figures) -> str:
    long = f"{figures.long:5d} of {figures.sentences:5d} sentences over {LONGEST} words"
    return f"{title:40s} {long}, {figures.share:5.2f} % pronouns"


def show_overview() -> dict[str, Figures]:
    """Print a line for each folder and guide; give the figures of both kinds of text."""
    kinds: dict[str, list[Sentence]] = {"docstrings": [], "guides": []}
    for title, paths in _groups().items():
        found = [sentence for path in paths for sentence in sentences_of(path)]
        kinds["guides" if title.endswith(".md") else "docstrings"] += found
        print(_line(title, measure(found)))
    totals = {kind: measure(found) for kind, found in kinds.items()}
    for kind, figures in totals.items():
        print(_line(f"all {kind}", figures))
    return totals


def show_worst(paths: Sequence[Path], number: int) -> None:
    """Print the longest sentences, and the sentences with the most pronouns."""
    found = [sentence for path in files(paths) for sentence in sentences_of(path)]
    print(_line("these files", measure(found)))
    print("\nlongest sentences")
    for sentence in sorted(found, key=_length, reverse=True)[:number]:
        print(f"  {sentence.place}: {len(sentence.words)} words: {sentence.text}")
    print("\nmost pronouns")
    for sentence in sorted(found, key=_number_of_pronouns, reverse=True)[:number]:
        print(f"  {sentence.place}: {' '.join(sentence.pronouns)}: {sentence.text}")


def _length(sentence: Sentence) -> int:
    return len(sentence.words)


def _number_of_pronouns(sentence: Sentence) -> int:
    return len(sentence.pronouns)


def check(totals: dict[str, Figures]) -> int:
    """1 if a figure is above the limit, else 0."""
    status = 0
    for kind, (most_long, most_pronouns) in LIMITS.items():
        figures = totals[kind]
        if figures.long > most_long or figures.share > most_pronouns:
            print(
                f"{kind}: at most {most_long} sentences over {LONGEST} words and "
                f"{most_pronouns} % pronouns are allowed. `python -m tools.prose FILE` shows the "
                "sentences to mend."
            )
            status = 1
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders to look at closely")
    parser.add_argument("--check", action="store_true", help="fail above the limits")
    parser.add_argument("--number", type=int, default=15, help="sentences to show of each kind")
    options = parser.parse_args(arguments)
    if options.paths:
        show_worst([path.resolve() for path in options.paths], options.number)
        return 0
    totals = show_overview()
    return check(totals) if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
