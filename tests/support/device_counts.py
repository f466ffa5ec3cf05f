"""Programs in another process, and the devices on which their functions ran.

    python tests/support/device_counts.py RESULT PROGRAM ...

runs programs and documentation pages in turn, each in a new folder. The device is that of
``TINYNODE_DEVICE``. RESULT is a JSON file with the devices and the error of each program.
"""

from __future__ import annotations

import collections
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pages

import tinynode as tn
from tinynode_course import execution

SETTINGS = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",  # on a busy machine, more threads take a multiple of the time
    "SCIPY_ARRAY_API": "1",
}


LIBRARIES = {"torch": "torch", "jax": "jax", "sycl": "dpnp"}
"""The modules that devices import."""


def missing_library(device: str) -> str:
    """Why a device cannot be used on this machine; empty if it can be used."""
    library = LIBRARIES.get(device, "json")
    if find_spec(library) is not None:
        return ""
    return f"{library} is not installed: pip install tinynode[{device}]"


class Run(NamedTuple):
    """The devices of a program's functions, and the text of the error that ended the program."""

    devices: set[str]
    error: str


class Counted(tn.FunctionHook):
    """Counts the outputs of functions by device."""

    name = "devices of a whole program"

    def __init__(self) -> None:
        self.outputs: collections.Counter[str] = collections.Counter()

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        self.outputs.update(str(y.device) for y in outputs if y is not None)


def run(programs: Sequence[Path], device: str, folder: Path) -> dict[str, Run]:
    """Run programs in one other process on a device; what each did, by the file's name."""
    result = folder / "devices.json"
    done = subprocess.run(
        [sys.executable, __file__, str(result), *map(str, programs)],
        cwd=folder,
        env=execution.without_settings() | SETTINGS | {"TINYNODE_DEVICE": device},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=execution.SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(result.read_text(encoding="utf-8"))
    return {name: Run(without_vmap(names), error) for name, (names, error) in found.items()}


def without_vmap(names: Sequence[str]) -> set[str]:
    """The devices; those of vmap count as those below."""
    return {re.sub(r"^(vmap\()+|\).*", "", name) for name in names}


def run_here(program: Path) -> tuple[list[str], str]:
    """Run a program or a page in this process: the devices of its functions, and its error."""
    error = ""
    with Counted() as counted:
        try:
            if program.suffix == ".md":
                with warnings.catch_warnings(action="error"):  # as in the tests of the pages
                    pages.run_page(program, pages.same_numbers)
            else:
                sys.argv = [str(program)]
                sys.path.insert(0, str(program.parent))  # as python does for a script
                runpy.run_path(str(program), run_name="__main__")
        except Exception:
            error = traceback.format_exc()[-2000:]
    return sorted(counted.outputs), error


def main() -> None:
    """Run the programs of the command line, and write what each did."""
    result, *programs = map(Path, sys.argv[1:])
    found = {}
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found[program.name] = run_here(program)
            os.chdir(result.parent)
    result.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
