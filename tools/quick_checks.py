"""Check what a change touches: style, types, the rules of the repository, and the rooms' tests.

    python -m tools.quick_checks              the change since main, and what is not committed
    python -m tools.quick_checks --base HEAD  what is not committed

A change of ``tinynode/functions`` runs ``tests/functions``, a change of a test file runs the file.
All checks run, also after a failure; the exit status is 1 if one failed. ``.ci/run`` checks all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TESTS_OF = {
    "backends": "tests/backends",
    "course_solutions": "tests/course",
    "docs": "tests/tools",
    "tools": "tests/tools",
    "tutorials": "tests/course",
}
"""The tests of folders outside of ``tinynode``."""

ALWAYS = ("tests/repository",)
"""Imports, sizes, public names, prose: seconds, whatever changed."""


def output_of(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise SystemExit(f"tools.quick_checks: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def changed_files(base: str) -> list[str]:
    """The files that differ from where this branch left ``base``, new files too."""
    start = output_of("git", "merge-base", base, "HEAD").strip()
    changed = output_of("git", "diff", "--name-only", start).splitlines()
    new = output_of("git", "ls-files", "--others", "--exclude-standard").splitlines()
    return sorted({*changed, *new})


def tests_of(files: Iterable[str]) -> list[str]:
    """The folders and files of tests for changed files; a folder stands for its files."""
    found = {*ALWAYS}
    for name in files:
        room, *rest = name.split("/")
        if room == "tinynode":
            folder = f"tests/{rest[0]}" if len(rest) > 1 else "tests/core"
            found.add(folder if (ROOT / folder).is_dir() else "tests/course")  # tinynode/learn
        elif room == "tests":
            is_test = rest[-1].startswith("test_") and (ROOT / name).is_file()
            found.add(name if is_test else "tests/core")
        elif room in TESTS_OF:
            found.add(TESTS_OF[room])
        elif name.endswith(".md") or name == "pyproject.toml":
            found.add("tests/tools")
    folders = {one for one in found if (ROOT / one).is_dir()}
    return sorted(one for one in found if one in folders or str(Path(one).parent) not in folders)


def commands(tests: Sequence[str]) -> dict[str, list[str]]:
    """The checks, by name, from the quickest to the slowest."""
    python = sys.executable
    return {
        "style": [python, "-m", "ruff", "check", "."],
        "format": [python, "-m", "ruff", "format", "--check", "."],
        "prose": [python, "-m", "tools.prose", "--check"],
        "types": [python, "-m", "mypy"],
        "tests": [python, "-m", "pytest", "-n", "auto", *tests],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", default="main", help="the revision to compare with")
    options = parser.parse_args(arguments)
    files = changed_files(options.base)
    tests = tests_of(files)
    print(f"{len(files)} changed files; tests: {' '.join(tests)}", flush=True)
    failed = []
    for name, command in commands(tests).items():
        began = time.monotonic()
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        verdict = "failed" if status else "passed"
        print(f"--- {name}: {verdict} in {time.monotonic() - began:.0f} s", flush=True)
        if status:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
