"""The programs of docs/code-of-others.md: their gradients, on arrays of several libraries."""

from __future__ import annotations

import contextlib
import functools
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import python_blocks

import tinynode as tn

for _library in ("scipy", "sklearn", "xarray"):
    pytest.importorskip(_library, reason=f"the extra `consumers` with {_library} is not installed")

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("pose", "distribution", "filter", "scaler", "axes")
pytestmark = pytest.mark.slow


@functools.cache
def programs() -> dict[str, tuple[Any, Any]]:
    """The function ``loss`` and the point ``start`` of each program of the page."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for line, code, _ in python_blocks(ROOT / "docs" / "code-of-others.md"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * line + code, "code-of-others.md", "exec"), names)
        if "start" in names:
            found.append((names["loss"], np.asarray(names.pop("start"))))
    return dict(zip(PROGRAMS, found, strict=True))


def differences(loss: Any, start: Any) -> Any:
    """Fourth-order central differences, on arrays of NumPy."""
    gradient, step = np.zeros_like(start), 1e-3
    for place in np.ndindex(start.shape):
        for distance, weight in ((1, 8.0), (2, -1.0), (-1, -8.0), (-2, 1.0)):
            moved = start.copy()
            moved[place] += distance * step
            gradient[place] += weight * float(loss(moved))
    return gradient / (12 * step)


def device_of_tests(name: str) -> str:
    """A device by its name; the test is skipped where PyTorch is missing."""
    if name == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed: see the extra backends")
    return name


@pytest.mark.parametrize("device", ["numpy", "fast", "strict", "torch"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_of_a_program(program: str, device: str) -> None:
    loss, start = programs()[program]
    x = tn.asarray(start, dtype="float64", device=device_of_tests(device), requires_grad=True)
    loss(x).backward()
    # beside a float64 without axes, PyTorch keeps the float32 of ``asarray`` of a list
    rtol = 1e-6 if device == "torch" else 1e-7
    np.testing.assert_allclose(tn.to_host(x.grad), differences(loss, start), rtol=rtol, atol=1e-8)
