"""Run the tests on each supported Python with each supported NumPy.

    python -m tools.versions                      all pairs: about an hour
    python -m tools.versions --quick              the oldest and the newest NumPy of each Python
    python -m tools.versions --python 3.13 --numpy 2.1 -- tests/nn/test_nn.py
    python -m tools.versions --quick --wheels dist    what a user installs, outside of the checkout

Interpreters are found as ``python3.X`` on the PATH, among pyenv's versions, and by uv. Each pair
gets a fresh virtual environment. Arguments after ``--`` go to pytest. The exit status is 1 if the
tests of a pair failed, or if no pair could be tested. Ctrl-C ends the run and prints the table.

With ``--wheels``, the environment has the wheels of ``python -m tools.release``. The first film,
the main job, the first exercises of the course, a hidden check and the tests run in a copy of the
tree without the packages. Tests of the tree itself, in ``tests/repository`` and ``tests/tools``,
are left out. The tree may be an unpacked source archive. pip's own settings hold, such as
``PIP_FIND_LINKS`` for a folder of wheels. The page docs/supported-versions.md has a run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools import release

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST_NUMPY = "2.1"

PASSED, FAILED, NO_WHEEL, NO_PYTHON = "passed", "FAILED", "no wheel", "no Python"
NOT_RUN = "-"

Pair = tuple[str, str]
"""A Python and a NumPy, such as ``("3.12", "2.1")``."""


def number(version: str) -> tuple[int, ...]:
    """A version such as ``2.10.1`` for comparison."""
    return tuple(int(part) for part in version.split("."))


def minor(version: str) -> str:
    """The version without its last part: ``2.10`` of ``2.10.1``."""
    return ".".join(version.split(".")[:2])


def oldest_first(versions: Iterable[str]) -> list[str]:
    """Versions without copies, in order."""
    return sorted(set(versions), key=number)


# --- what can be had -----------------------------------------------------------------------------


def candidates(python: str) -> list[str]:
    """The paths and names that may be an interpreter of that version."""
    found = [f"python{python}", sys.executable]
    root = os.environ.get("PYENV_ROOT") or output_of(["pyenv", "root"]).strip()
    if root:
        patches = [p.name for p in Path(root, "versions").glob(f"{python}.*")]
        plain = oldest_first(name for name in patches if re.fullmatch(r"[\d.]+", name))
        found += [str(Path(root, "versions", name, "bin", "python")) for name in reversed(plain)]
    by_uv = output_of(["uv", "python", "find", "--system", python]).strip()
    return [*found, by_uv] if by_uv else found


def find_python(python: str) -> str | None:
    """The path of an interpreter of that version; None if none starts."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"
    for path in candidates(python):
        version, _, executable = output_of([path, "-c", ask]).partition("\n")
        if version == python:
            return executable.strip()
    return None


def output_of(command: Sequence[str]) -> str:
    """The output of a command; empty if the command fails or is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def numpys_for(interpreter: str) -> list[str]:
    """The minor versions of NumPy with a wheel for the interpreter, oldest first."""
    index = [interpreter, "-m", "pip", "index", "versions", "numpy", "--only-binary=:all:"]
    return parse_index(output_of(index))


def parse_index(text: str) -> list[str]:
    """The minor versions in the output of ``pip index versions numpy``."""
    _, _, listed = text.partition("Available versions:")
    versions = re.findall(r"\b\d+(?:\.\d+)+\b", listed.partition("\n")[0])
    return oldest_first(minor(v) for v in versions if number(v) >= number(OLDEST_NUMPY))


# --- the pairs and the table ---------------------------------------------------------------------


def choose(available: Mapping[str, Sequence[str]], quick: bool) -> list[Pair]:
    """The pairs to test: each NumPy of each Python, or with ``quick`` the first and the last."""
    pairs = []
    for python, numpys in available.items():
        chosen = oldest_first([numpys[0], numpys[-1]]) if quick and numpys else numpys
        pairs += [(python, numpy) for numpy in chosen]
    return pairs


def table(available: Mapping[str, Sequence[str] | None], results: Mapping[Pair, str]) -> list[str]:
    """The lines of the table: a row for each Python, a column for each NumPy.

    Args:
        available: the NumPys of each Python; None for a Python that was not found.
        results: the outcome of each tested pair.
    """
    numpys = oldest_first(n for found in available.values() for n in found or ())
    rows = [["Python", *(f"NumPy {numpy}" for numpy in numpys)]]
    for python, found in available.items():
        row = [python]
        for numpy in numpys:
            missing = NO_PYTHON if found is None else NO_WHEEL
            untested = NOT_RUN if found is not None and numpy in found else missing
            row.append(results.get((python, numpy), untested))
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def exit_status(results: Mapping[Pair, str]) -> int:
    """1 if the tests of a pair failed, or if nothing was tested."""
    return int(not results or FAILED in results.values())


# --- the run -------------------------------------------------------------------------------------


def run_pair(
    interpreter: str,
    pair: Pair,
    folder: Path,
    arguments: Sequence[str],
    wheels: Path | None = None,
) -> str:
    """Make an environment for a pair, and run the tests; returns the outcome."""
    python, numpy = pair
    binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    own = str(binaries / "python")
    tree = ROOT
    if wheels is not None:
        tree = folder / "tree"
        release.copy_of_the_tree(tree, without=(*PACKAGES, *OF_THE_TREE))
    work = folder / "work"
    work.mkdir(exist_ok=True)
    steps = [
        Step("making the environment", [interpreter, "-m", "venv", str(folder / "venv")], work)
    ]
    if wheels is None:
        steps += in_the_checkout(own, numpy)
    else:
        steps += from_wheels(own, numpy, wheels, tree, work)
    steps.append(Step("testing", [own, "-m", "pytest", "-n", "auto", *arguments], tree))
    started = time.monotonic()
    for title, command, place in steps:
        say(f"Python {python} with NumPy {numpy}: {title}")
        began = time.monotonic()
        status, text = run_step(command, folder / "log", place)
        if status:
            say("".join(f"    {line}\n" for line in text.splitlines()[-30:]) + f"  {FAILED}")
            return FAILED
        say(f"  {time.monotonic() - began:.1f} s")
    last = text.strip().splitlines()[-1] if text.strip() else ""
    say(f"  {PASSED} in {time.monotonic() - started:.0f} s: {last}")
    return PASSED


class Step(NamedTuple):
    """A command of a run, its title, and the folder where it runs."""

    title: str
    command: list[str]
    place: Path


def pip_install(own: str, *what: str) -> list[str]:
    return [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]


def in_the_checkout(own: str, numpy: str) -> list[Step]:
    """An editable installation: tests read the files of the tree."""
    command = pip_install(own, "--editable", ".[test]", f"numpy=={numpy}.*")
    return [Step("installing", command, ROOT)]


def from_wheels(own: str, numpy: str, wheels: Path, tree: Path, work: Path) -> list[Step]:
    """What a user does after the installation of the wheels, from the shortest to the longest."""
    framework, course_wheel = wheel_of("tinynode", wheels), wheel_of("tinynode_course", wheels)
    hidden_checks = wheel_of("tinynode_course_solutions", wheels)
    chosen = f"numpy=={numpy}.*"
    program = str(tree / "tutorials" / "examples" / "first_picture.py")
    film = ["step", program, "--no-open", "--output", "film.html"]
    commands = [
        ("installing the framework", pip_install(own, framework, chosen)),
        ("the first film", [own, "-m", "tinynode", *film]),
        ("the main job", [own, "-m", "tinynode", "train", "digits"]),
        ("installing the course", pip_install(own, course_wheel, framework, chosen)),
    ]
    for words in FIRST_STEPS:
        commands.append((f"learn {words}", [own, "-m", "tinynode.learn", *words.split()]))
    needed = [hidden_checks, course_wheel, framework, chosen]
    commands += [
        ("installing the hidden checks", pip_install(own, *needed)),
        ("the packages are those of the wheels", [own, "-c", INSTALLED]),
        ("learn check 04 --hidden", [own, "-m", "tinynode.learn", "check", "04", "--hidden"]),
        ("installing what tests need", pip_install(own, f"{framework}[test]", chosen)),
    ]
    return [Step(title, command, work) for title, command in commands]


FIRST_STEPS = (
    "run 01",
    "start 01",
    "take 01",
    "check 01",
    "take 02",
    "check 02",
    "take 03",
    "check 03",
    "take 04",
    "check 04",
)
"""What a learner does first: the references of four exercises pass their checks."""


def wheel_of(name: str, wheels: Path) -> str:
    """The path of a distribution's wheel: an index may have another package of this name.

    Raises:
        SystemExit: The folder has not exactly one wheel of the distribution.
    """
    found = sorted(wheels.glob(f"{name}-*.whl"))
    if len(found) != 1:
        raise SystemExit(
            f"tools.versions: --wheels {wheels} has {len(found)} wheels of {name}, not one; "
            f"make them by  python -m tools.release {wheels}"
        )
    return str(found[0].resolve())


INSTALLED = """
import pathlib, sys, tinynode, tinynode_course, tinynode_course_solutions, tinynode_fast
for package in (tinynode, tinynode_course, tinynode_course_solutions, tinynode_fast):
    place = pathlib.Path(package.__file__).resolve()
    assert place.is_relative_to(pathlib.Path(sys.prefix).resolve()), place
"""

PACKAGES = ("tinynode", "backends", "tutorials/course/tinynode_course")
"""Folders of the tree that the wheels replace."""

OF_THE_TREE = ("tests/repository", "tests/tools")
"""Tests that read the files of the packages."""


def run_step(command: Sequence[str], log: Path, place: Path) -> tuple[int, str]:
    """The exit status of a command in a folder, and its output."""
    environment = {key: v for key, v in os.environ.items() if not key.startswith("PYTHON")}
    environment["PATH"] = os.pathsep.join([str(Path(command[0]).parent), environment["PATH"]])
    with log.open("w+", encoding="utf-8", errors="replace") as file:
        done = subprocess.run(
            command, cwd=place, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        file.seek(0)
        return done.returncode, file.read()


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        epilog="Arguments after -- go to pytest.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="only the oldest and newest NumPy of each Python")
    add("--python", nargs="+", default=PYTHONS, metavar="3.X", help="only these Pythons")
    add("--numpy", nargs="+", metavar="2.X", help="only these NumPys")
    add("--wheels", type=Path, metavar="DIST", help="test the wheels of this folder")
    given = list(sys.argv[1:] if arguments is None else arguments)
    split = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:split])
    interpreters = {python: find_python(python) for python in options.python}
    available: dict[str, Sequence[str] | None] = {}
    for python, interpreter in interpreters.items():
        available[python] = None if interpreter is None else numpys_for(interpreter)
        say(f"Python {python}: {interpreter or 'not found'}")
    known = {p: found for p, found in available.items() if found is not None}
    pairs = choose(known, options.quick)
    pairs = [pair for pair in pairs if options.numpy is None or pair[1] in options.numpy]
    results: dict[Pair, str] = {}
    status = 0
    try:
        for pair in pairs:
            interpreter = interpreters[pair[0]] or sys.executable
            with tempfile.TemporaryDirectory(
                prefix="tinynode-versions-", ignore_cleanup_errors=True
            ) as folder:
                results[pair] = run_pair(
                    interpreter, pair, Path(folder), given[split + 1 :], options.wheels
                )
    except KeyboardInterrupt:
        say("interrupted")
        status = 130
    say("\n" + "\n".join(table(available, results)))
    return status or exit_status(results)


if __name__ == "__main__":
    sys.exit(main())
