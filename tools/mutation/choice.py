"""The tests for a mutant: those that run the mutant's line, quickest first.

Requirement: a mutant must cost seconds, and the suite takes minutes. A *map*, made by one run of
the tests with coverage, knows the tests of each line and the seconds of each test. The tests take
turns by test function, so that different tests come before other parameters of the same test.
"""

from __future__ import annotations

import ast
import difflib
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from coverage import CoverageData

from tools.mutation.plan import ROOMS, Mutant

SECONDS = 40.0
"""The tests of a mutant take at most this time, as far as the map knows."""


class TestMap:
    """The tests of each line, and the seconds of each test.

    Args:
        folder: the folder of the map. A run of tests with coverage has a folder inside, with the
            coverage data, the seconds and the sources at that time.
    """

    __test__ = False  # not a class of tests, whatever pytest thinks of the name

    def __init__(self, folder: pathlib.Path) -> None:
        self.seconds: dict[str, float] = {}
        self.runs = sorted(path.parent for path in folder.glob("*/coverage"))
        for run in self.runs:
            self.seconds.update(json.loads((run / "seconds.json").read_text(encoding="utf-8")))
        self.lines = [self._lines(run) for run in self.runs]

    def _lines(self, run: pathlib.Path) -> dict[str, dict[int, set[str]]]:
        """For each file, the tests of each line."""
        data = CoverageData(basename=str(run / "coverage"))
        data.read()
        found: dict[str, dict[int, set[str]]] = {}
        for measured in data.measured_files():
            room = next((one for one in ROOMS.values() if f"/{one}/" in f"/{measured}"), "")
            lines = found.setdefault(f"{room}{measured.rpartition(room)[2]}" if room else "", {})
            for line, contexts in data.contexts_by_lineno(measured).items():
                tests = {context.rpartition("|")[0] for context in contexts}
                lines[line] = tests & self.seconds.keys()
        return found

    def tests_of(self, mutant: Mutant, root: pathlib.Path) -> list[str]:
        """The tests for a mutant in the file of a checkout, in the order to run them."""
        now = (root / mutant.path).read_text(encoding="utf-8").splitlines()
        used = [] if mutant.definition else lines_with_name(now, mutant.start[0])
        of_line: set[str] = set()
        of_name: set[str] = set()
        of_block: set[str] = set()
        of_folder: set[str] = set()
        for run, files in zip(self.runs, self.lines, strict=True):
            source = run / "sources" / mutant.path
            then = source.read_text(encoding="utf-8").splitlines() if source.exists() else []
            lines = files.get(mutant.path, {})
            for line in range(mutant.start[0], mutant.end[0] + 1):
                of_line |= lines.get(old_line(then, now, line), set())
            for line in used:
                of_name |= lines.get(old_line(then, now, line), set())
            for line in around(then, mutant.definition):
                of_block |= lines.get(line, set())
            for path, others in files.items():
                if pathlib.Path(path).parent == pathlib.Path(mutant.path).parent:
                    of_folder.update(*others.values())
        # a constant: the lines that use the name; code of a class, or new code: the block
        wider = (of_name, of_block, of_folder)
        if runs_at_import("\n".join(now), mutant.start[0]):
            # the line belongs to the tests that happened to be the first import of the module
            found = next((one for one in wider if one - of_line), of_line)
            name = name_at(now, mutant.start[0])
            files = {one.partition("::")[0] for one in found}
            named = {one for one in files if name and mentions(root / one, name)}
            first = {one for one in found if one.partition("::")[0] in named}
            # an entry of a table may show in one parameter of a test alone
            return [*self.in_order(first, in_turns=False), *self.in_order(found - first)]
        return self.in_order(next((one for one in (of_line, *wider) if one), of_line))

    def in_order(self, tests: set[str], in_turns: bool = True) -> list[str]:
        """The tests by turns of their functions, each quickest first, up to ``SECONDS``."""
        turns: dict[str, int] = {}
        ranked = []
        for test in sorted(tests, key=lambda one: (self.seconds[one], one)):
            function = test.partition("[")[0]
            turns[function] = turns.get(function, 0) + 1
            ranked.append((turns[function] * in_turns, self.seconds[test], test))
        chosen, total = [], 0.0
        for _, seconds, test in sorted(ranked):
            if total + seconds <= SECONDS:
                chosen.append(test)
                total += seconds
        return chosen


def old_line(then: list[str], now: list[str], line: int) -> int:
    """The number that a line had in an older text; 0 for a changed line."""
    if then == now:
        return line
    for old, new, size in same_blocks("\n".join(then), "\n".join(now)):
        if new < line <= new + size:
            return line - new + old
    return 0


@functools.lru_cache(maxsize=64)
def same_blocks(then: str, now: str) -> list[difflib.Match]:
    """The blocks of equal lines of two texts."""
    texts = then.split("\n"), now.split("\n")
    return difflib.SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks()


def runs_at_import(source: str, line: int) -> bool:
    """True for a line outside of the bodies of functions."""
    return not any(first <= line <= last for first, last in bodies(source))


@functools.lru_cache(maxsize=64)
def bodies(source: str) -> list[tuple[int, int]]:
    """The first and the last line of each function's body."""
    return [
        (node.body[0].lineno, node.end_lineno or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def lines_with_name(source: list[str], line: int) -> list[int]:
    """The lines that have the name assigned by a statement of a module."""
    name = name_at(source, line)
    if not name:
        return []
    return [i for i, one in enumerate(source, 1) if re.search(rf"\b{name}\b", one)]


def name_at(source: list[str], line: int) -> str:
    """The name assigned by the statement of a module around a line; empty without a name."""
    while line > 1 and not re.match(r"\w", source[line - 1]):
        line -= 1
    name = re.match(r"\w+", source[line - 1])
    return name[0] if name else ""


@functools.lru_cache(maxsize=256)
def mentions(path: pathlib.Path, name: str) -> bool:
    """True if a file of tests has a name: its tests know a table better than others."""
    return path.is_file() and bool(re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")))


def around(source: list[str], definition: str) -> range:
    """The lines of a function or class; all lines of the file where the name is not found."""
    first = 0
    for name in definition.split(".") if definition else []:
        starts = (f"def {name}(", f"class {name}(", f"class {name}:")
        first = next((i for i in range(first, len(source))
                      if source[i].lstrip().startswith(starts)), -1)  # fmt: skip
        if first < 0:
            return range(1, len(source) + 1)
    if not definition:
        return range(1, len(source) + 1)
    depth = len(source[first]) - len(source[first].lstrip())
    last = first + 1
    while last < len(source) and (
        not source[last].strip()
        or source[last].lstrip().startswith(")")
        or len(source[last]) - len(source[last].lstrip()) > depth
    ):
        last += 1
    return range(first + 1, last + 1)


def make_map(root: pathlib.Path, folder: pathlib.Path, tests: list[str]) -> int:
    """Run tests with coverage and write a map; with paths of tests, add to the map."""
    if not tests:
        shutil.rmtree(folder, ignore_errors=True)
    run = folder / f"{len(list(folder.glob('*'))):03}"
    run.mkdir(parents=True)
    rooms = [path for path in ROOMS.values() if (root / path).is_dir()]
    for path in rooms:
        shutil.copytree(root / path, run / "sources" / path)
    settings = run / "settings.ini"  # coverage deletes files named coverage.*
    settings.write_text("[run]\nsource =\n    " + "\n    ".join(rooms) + "\n", encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"),
        *("-p", "tools.mutation.record", "--record-seconds", str(run / "seconds.json")),
        *("--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="),
        *("-m", "not slow"),
        *tests,
    ]
    environment = {**os.environ, "COVERAGE_FILE": str(run / "coverage")}
    return subprocess.run(command, cwd=root, env=environment).returncode
