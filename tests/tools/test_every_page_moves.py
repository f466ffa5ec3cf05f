"""The Python of the README and of the guides: one setting moves each page.

The blocks run unchanged with TINYNODE_DEVICE, and print the numbers of the page. A hook counts the
outputs of functions by device: all stand on the chosen device, unless the page is about others.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import device_counts
import pages
import pytest

from tests.tools.test_docs import NEEDS, WITH_PYTHON

DEVICES = ("fast", "torch", "strict:device1")
"""``strict:device1`` is stricter than ``strict``: NumPy cannot read its memory."""

ABOUT_OTHER_DEVICES = {
    "devices.md": "it names numpy, fast, strict and shapes, and the current device",
}
"""Pages that name their devices: their texts hold where no device is set."""

WITHOUT_FUNCTIONS = {
    "plots.md": "it draws numbers of the host",
    "performance.md": "it limits the threads of NumPy",
}
"""Pages on which no function runs."""

MASKS = "array_api_strict writes with a mask on CPU_DEVICE alone"
STOPS = {
    ("array-object.md", "strict:device1"): MASKS,
    ("code-of-others.md", "strict:device1"): MASKS,
    ("graph.md", "jax"): "it writes into x.array, and arrays of JAX never change",
}
"""Pages that stop on one device."""

SAMPLE = ("README.md", "graph.md", "diagnose.md", "implicit.md", "vmap.md", "why-nan.md")
"""Pages for jax and sycl, which compile each operation."""

LONG = {"code-of-others.md": "it trains with SciPy and scikit-learn for 5 to 15 seconds"}

PAGES = {page.name: page for page in WITH_PYTHON if page.name not in ABOUT_OTHER_DEVICES}


def check(chosen: Sequence[Path], device: str, folder: Path) -> None:
    """Run pages on a device: each ends without an error, with all functions on the device."""
    missing = device_counts.missing_library(device)
    if missing:
        pytest.skip(missing)
    needed = {page: NEEDS.get(page.name, ()) for page in chosen}
    usable = [page for page, names in needed.items() if all(map(find_spec, names))]
    for name, run in device_counts.run(usable, device, folder).items():
        if (name, device) in STOPS:
            assert run.error, f"{name} runs on {device}: take it out of the exceptions"
            continue
        assert not run.error, f"{name} on {device} stops: {run.error}"
        expected = set() if name in WITHOUT_FUNCTIONS else {device}
        assert run.devices == expected, name


def test_the_exceptions_are_pages() -> None:
    known = {page.name for page in WITH_PYTHON}
    listed = {
        *ABOUT_OTHER_DEVICES,
        *WITHOUT_FUNCTIONS,
        *SAMPLE,
        *LONG,
        *(name for name, _ in STOPS),
    }
    assert listed <= known and len(PAGES) >= 25


@pytest.mark.slow
@pytest.mark.parametrize(
    "device", [pytest.param("fast", marks=pytest.mark.long), "torch", "strict:device1"]
)
def test_pages_move_by_one_setting(device: str, tmp_path: Path) -> None:
    check([page for name, page in PAGES.items() if name not in LONG], device, tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("device", ["jax", "sycl"])
def test_a_sample_of_pages_moves_to_devices_that_compile(device: str, tmp_path: Path) -> None:
    check([PAGES[name] for name in SAMPLE], device, tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("device", [*DEVICES, "strict:CPU_DEVICE"])
def test_long_pages_move_by_one_setting(device: str, tmp_path: Path) -> None:
    check([PAGES[name] for name in LONG], device, tmp_path)


@pytest.mark.slow
def test_pages_that_stop_on_one_device_of_strict_run_on_another(tmp_path: Path) -> None:
    stopping = {name for (name, _), reason in STOPS.items() if reason == MASKS} - LONG.keys()
    check([PAGES[name] for name in stopping], "strict:CPU_DEVICE", tmp_path)


def test_numbers_are_compared_whatever_prints_them() -> None:
    page = "[0.17634669 2.]\n1.5e-05 float32"
    assert pages.same_numbers("tensor([0.1763, 2.0000])\n1.5000e-05 torch.float32", page)
    assert not pages.same_numbers("tensor([0.1773, 2.0000])\n1.5000e-05", page)
    assert not pages.same_numbers("tensor([0.1763])", page)
