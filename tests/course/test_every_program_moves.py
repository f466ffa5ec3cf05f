"""The programs of the course and the programs to start from: one setting moves each of them.

A program runs unchanged with TINYNODE_DEVICE. A hook counts the outputs of functions by device:
all stand on the chosen device, unless the program is about other devices.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tinynode_course import execution, mynode

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "tutorials"
PROGRAMS = {
    path.stem: path
    for path in sorted([*TUTORIALS.glob("*.py"), *TUTORIALS.glob("examples/*.py")])
    if "import tinynode" in path.read_text(encoding="utf-8")
}
DEVICES = ("torch", "strict:device1")
"""``strict:device1`` is stricter than ``strict``: NumPy cannot read its memory."""

ABOUT_OTHER_DEVICES = {
    "elective_compile": "it is about C code, on fast",
    "elective_devices": "it compares numpy, fast and a device of its own",
    "elective_fast_path": "it compares numpy with fast",
    "elective_net_in_c": "it is about C code, on fast",
    "elective_portability": "it compares numpy, fast and a device of its own",
    "elective_your_own_backend": "it compares numpy with a device of its own",
}
"""Programs that name all their devices: these run, and stay where they are."""

ALSO_ON = {"capstone_gradient_penalty": {"numpy", "fast"}}
"""Further devices of a program: this one repeats its training there."""

OWN_ENGINE = {step.path.stem for step in mynode.builders()}
"""Steps whose graph is of ``mynode``, the package that the learner builds."""

LONG_ON_TORCH = {"capstone_tiny_gpt", "deep_equilibrium", "start_images", "start_sequence"}
"""Programs of 19 to 57 seconds on torch; the others took 15 seconds at most."""

COUNTED = """
import collections, json, runpy, sys
import tinynode as tn

class Counted(tn.FunctionHook):
    name = "devices of a whole program"

    def __init__(self):
        self.outputs = collections.Counter()

    def applied(self, function, inputs, outputs):
        self.outputs.update(str(y.device) for y in outputs if y is not None)

_, result, program = sys.argv
sys.argv = [program]
with Counted() as counted:
    runpy.run_path(program, run_name="__main__")
with open(result, "w", encoding="utf-8") as file:
    json.dump(counted.outputs, file)
"""
"""A program that runs another program, and writes the number of outputs on each device."""


def devices_of(program: Path, device: str, folder: Path) -> set[str]:
    """The devices of the functions that ran; the devices of vmap count as those below."""
    work = folder / "work"
    work.mkdir()
    result = folder / "devices.json"
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(result), str(program)],
        cwd=work,
        env=execution.without_settings() | {"TINYNODE_DEVICE": device, "MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=execution.SECONDS,
    )
    assert done.returncode == 0, f"{program.name} on {device} stops: {done.stderr[-2000:]}"
    names = json.loads(result.read_text(encoding="utf-8"))
    return {re.sub(r"^(vmap\()+|\).*", "", name) for name in names}


def test_the_exceptions_are_programs() -> None:
    assert len(PROGRAMS) >= 30
    listed = {*ABOUT_OTHER_DEVICES, *ALSO_ON, *LONG_ON_TORCH}
    assert listed <= set(PROGRAMS)


def cases() -> list[Any]:
    found = []
    for name in PROGRAMS:
        for device in DEVICES:
            is_long = device == "torch" and name in LONG_ON_TORCH
            found.append(pytest.param(name, device, marks=[pytest.mark.long] if is_long else []))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "device"), cases())
def test_a_program_moves_by_one_setting(name: str, device: str, tmp_path: Path) -> None:
    if device == "torch" and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: pip install tinynode[torch]")
    found = devices_of(PROGRAMS[name], device, tmp_path)
    if name in ABOUT_OTHER_DEVICES:
        assert found and device not in found, "the program moves: take it out of the exceptions"
    elif name in OWN_ENGINE:
        assert not found
    else:
        assert found == {device} | ALSO_ON.get(name, set())
