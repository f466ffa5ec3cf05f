"""The programs of the course and the programs to start from: one setting moves each of them.

A program runs unchanged with TINYNODE_DEVICE. A hook counts the outputs of functions by device:
all stand on the chosen device, unless the program is about other devices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import device_counts
import pytest

from tinynode_course import mynode

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

OWN_ENGINE = {
    step.path.stem
    for step in mynode.builders()
    if "use_mynode" in step.path.read_text(encoding="utf-8")
}
"""Steps whose graph is of ``mynode``, the package that the learner builds."""

BOTH_ENGINES = {"elective_splats"}
"""Steps that lay a graph of tinynode beside the one of ``mynode``: this graph moves."""

LONG_ON_TORCH = {
    "capstone_tiny_gpt",
    "deep_equilibrium",
    "microgpt",
    "microgpt_scalars",
    "start_images",
    "start_sequence",
    "start_text",
}
"""Programs of 19 to 95 seconds on torch; the others took 15 seconds at most."""

LONG_ON_BOTH = {"microgpt", "microgpt_compiled", "start_text", "start_translation", "start_vae"}
"""Programs of 20 to 32 seconds; ``start_sequence`` and ``microgpt_scalars`` are like these."""

SAMPLE = (
    "elective_jacobians",
    "first_picture",
    "start_tabular",
    "step24_double_check",
    "step26_hooks",
)
"""Programs for jax and sycl, which compile each operation."""


def test_the_exceptions_are_programs() -> None:
    assert len(PROGRAMS) >= 30
    listed = {*ABOUT_OTHER_DEVICES, *ALSO_ON, *LONG_ON_TORCH, *LONG_ON_BOTH, *SAMPLE}
    assert BOTH_ENGINES <= OWN_ENGINE
    assert listed <= set(PROGRAMS)


def cases() -> list[Any]:
    """Each program on one of the two devices in the slow tests, on both in the long tests.

    A third of the programs with an engine of their own is slow, for they run nothing that moves.
    """
    found = []
    for number, name in enumerate(PROGRAMS):
        usual = "torch" if number % 2 and name not in LONG_ON_TORCH else "strict:device1"
        for device in DEVICES:
            is_own = name in OWN_ENGINE - BOTH_ENGINES
            is_long = device != usual or name in LONG_ON_BOTH or (is_own and number % 3)
            found.append(pytest.param(name, device, marks=[pytest.mark.long] if is_long else []))
    for name in SAMPLE:
        for device in ("jax", "sycl"):
            found.append(pytest.param(name, device, marks=pytest.mark.long))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "device"), cases())
def test_a_program_moves_by_one_setting(name: str, device: str, tmp_path: Path) -> None:
    missing = device_counts.missing_library(device)
    if missing:
        pytest.skip(missing)
    (run,) = device_counts.run([PROGRAMS[name]], device, tmp_path).values()
    assert not run.error, f"{name} on {device} stops: {run.error}"
    found = run.devices
    if name in ABOUT_OTHER_DEVICES:
        assert found and device not in found, "the program moves: take it out of the exceptions"
    elif name in OWN_ENGINE - BOTH_ENGINES:
        assert not found
    else:
        assert found == {device} | ALSO_ON.get(name, set())
