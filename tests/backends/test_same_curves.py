"""The jobs of ``python -m tinynode train`` run unchanged on every backend on the CPU.

Each is run for a few steps at float64 with the seed 0, on the first images of its data; and its
loss at every step is compared with NumPy's. Random numbers are drawn on the host, so that they are
the same everywhere.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.commands.train import JOBS as ALL_JOBS

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOBS = {job.name: job for job in ALL_JOBS}
# a device beside NumPy, and the library that it needs
DEVICES = {
    "strict:device1": "array_api_strict",
    "fast": "tinynode_fast",
    "torch": "torch",
    "jax": "jax",
    "sycl": "dpnp",
}
STEPS = 8


def require(device: str) -> None:
    """Skip the test where the library of a device is missing."""
    library = DEVICES[device]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def run(
    name: str,
    device: str,
    dtype: str = "float64",
    lr_factor: float = 1.0,
    compiled: bool = False,
) -> tuple[Any, float]:
    """The losses of eight steps of eight examples, and the last measure after them."""
    losses = []
    with tn.using_config(dtype=dtype), tn.using_device(device):
        tn.seed(0)
        parts = JOBS[name].parts(8)
        parts["train"].dataset = nn.Subset(parts["train"].dataset, range(8 * STEPS))
        parts["validation"].dataset = nn.Subset(parts["validation"].dataset, range(40))
        parts["optimizer"].lr *= lr_factor
        trainer = nn.Trainer(**parts, compile=compiled)
        loss_of = trainer.loss

        def noted(model: nn.Module, *batch: Any) -> tn.Variable:
            loss = loss_of(model, *batch)
            losses.append(float(loss))
            return loss

        trainer.loss = noted
        (row,) = trainer.run(1, quiet=True)
        assert all(p.device is tn.get_device(device) for p in trainer.model.parameters())
        return np.asarray(losses[:STEPS]), list(row.values())[-1]


@functools.cache
def numpy_run(name: str) -> tuple[Any, float]:
    return run(name, "numpy")


def by_device() -> list[Any]:
    """Each job on each device; tens of seconds are long: jax and sycl compile each function."""
    long = {("tiny-gpt", "strict:device1")}
    long |= {(name, "jax") for name in JOBS if name != "digits"}
    long |= {(name, "sycl") for name in JOBS if not name.startswith("digits")}
    return [
        pytest.param(name, device, marks=[pytest.mark.long] if (name, device) in long else [])
        for device in DEVICES
        for name in JOBS
    ]


@pytest.mark.parametrize(("name", "device"), by_device())
def test_losses_are_numpy_s(name: str, device: str) -> None:
    require(device)
    losses, accuracy = run(name, device)
    expected, expected_accuracy = numpy_run(name)
    assert losses.shape == (STEPS,)
    np.testing.assert_allclose(losses, expected, rtol=1e-10)
    assert accuracy == pytest.approx(expected_accuracy, rel=1e-8)


@pytest.mark.parametrize("device", ["numpy", "strict:device1", "fast"])
@pytest.mark.parametrize("name", JOBS)
def test_losses_of_compiled_jobs_are_those_of_eager_ones(name: str, device: str) -> None:
    losses, accuracy = run(name, device, compiled=True)
    expected, expected_accuracy = numpy_run(name)
    np.testing.assert_allclose(losses, expected, rtol=1e-11)
    assert accuracy == pytest.approx(expected_accuracy, rel=1e-8)


@pytest.mark.parametrize("name", JOBS)
def test_the_comparison_can_fail(name: str) -> None:
    """It sees rounding to float32, and updates that differ by a millionth."""
    losses, _ = numpy_run(name)
    rounded, _ = run(name, "numpy", "float32")
    quicker, _ = run(name, "numpy", lr_factor=1.000001)
    for others in (rounded, quicker):
        difference = np.abs(others / losses - 1)
        assert 1e-9 < np.max(difference) < 1e-3
    assert quicker[0] == losses[0]


# --- the command itself --------------------------------------------------------------------------


def train(folder: pathlib.Path, device: str | None, job: str = "digits") -> str:
    """What ``python -m tinynode train`` prints for one epoch, with TINYNODE_DEVICE in a shell."""
    paths = (ROOT, ROOT / "backends")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TINYNODE_")} | {
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "OMP_NUM_THREADS": "1",  # on a busy machine, more threads take a multiple of the time
        "TINYNODE_DTYPE": "float64",
    }
    if device is not None:
        environment["TINYNODE_DEVICE"] = device
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tinynode", "train", job, "--epochs", "1"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return re.sub(r"trained for .* s\n", "", done.stdout)


@functools.cache
def numpy_text(job: str) -> str:
    """What the command prints on NumPy."""
    with tempfile.TemporaryDirectory() as folder:
        return train(pathlib.Path(folder), None, job)


def commands() -> list[Any]:
    """Each job by the command; tiny-gpt takes 20 seconds of a core, and sycl compiles."""
    found = [
        pytest.param("digits", "fast"),
        pytest.param("digits", "sycl", marks=pytest.mark.long),
    ]
    for job in JOBS:
        for device in ("strict:device1", "torch"):
            marks = [pytest.mark.long] if job == "tiny-gpt" else []
            found.append(pytest.param(job, device, marks=marks))
    return found


@pytest.mark.parametrize(("job", "device"), commands())
def test_the_environment_chooses_the_command_s_device(
    job: str, device: str, tmp_path: pathlib.Path
) -> None:
    require(device)
    expected, found = numpy_text(job), train(tmp_path, device, job)
    assert "weights on numpy\n" in expected and f"weights on {device}\n" in found
    assert found == expected.replace("on numpy\n", f"on {device}\n")


def test_an_unknown_device_in_the_environment_is_an_error_that_says_so(
    tmp_path: pathlib.Path,
) -> None:
    with pytest.raises(AssertionError, match="TINYNODE_DEVICE"):
        train(tmp_path, "nowhere")
