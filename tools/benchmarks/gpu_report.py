"""A report on tinynode on a GPU, as a JSON file: correctness, training, and the time of a step.

The parts are: all versions; the whole table of functions (``tests/op_cases``), by every driver;
the training of the jobs digits and digits-cnn; and the time of a perceptron's training step,
beside the step by hand in CuPy, and in PyTorch if installed.

    python -m tools.benchmarks.gpu_report --out report.json
    python -m tools.benchmarks.gpu_report --device numpy --every 100 --epochs 1  # a trial

The exit status is 0, or 1 if a row of the table failed, or 2 if there is no usable GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import itertools
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import functions, nn, random
from tinynode.commands.train import JOBS
from tinynode.devices import Device
from tinynode.errors import DeviceError
from tools.benchmarks import digits_step

PARTS = ("op_table", "training", "steps")
TRAINED = ("digits", "digits-cnn")
LONGEST = 400  # the most characters of an error in the report

# --- versions ------------------------------------------------------------------------------------


def versions(device: Device) -> dict[str, Any]:
    """Of Python, the libraries, the driver and the GPU."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "tinynode": tn.__version__,
        "numpy": np.__version__,
    }
    if "gpu" in device.backend.capabilities:
        import cupy  # only if measured

        properties = cupy.cuda.runtime.getDeviceProperties(int(device.index))
        found["cupy"] = cupy.__version__
        found["driver"] = cupy.cuda.runtime.driverGetVersion()
        found["runtime"] = cupy.cuda.runtime.runtimeGetVersion()
        found["device_name"] = properties["name"].decode()
        found["device_memory"] = properties["totalGlobalMem"]
        found["compute_capability"] = f"{properties['major']}.{properties['minor']}"
    return found


# --- the table of functions ----------------------------------------------------------------------


def import_table() -> tuple[Any, list[Any]]:
    """The drivers and the rows, from modules in ``tests``."""
    tests = Path(__file__).resolve().parents[2] / "tests"
    for folder in (str(tests), str(tests / "support")):
        if folder not in sys.path:
            sys.path.append(folder)
    drivers = importlib.import_module("op_drivers")
    return drivers, importlib.import_module("op_cases").CASES


def op_table(device: Device, every: int) -> dict[str, Any]:
    """By driver, how many rows passed, and the errors of the others by the rows' names."""
    drivers, cases = import_table()
    results: dict[str, Any] = {}
    for case in cases[::every]:
        if not drivers.runs_on(case, device.name):
            continue
        for check in (*drivers.every_check_of(case), drivers.check_as_on_the_reference):
            found = results.setdefault(check.__name__, {"passed": 0, "failed": 0, "failures": {}})
            try:
                check(case, device.name)
                found["passed"] += 1
            except Exception as error:  # any error goes into the report
                found["failed"] += 1
                found["failures"][case.id] = f"{type(error).__name__}: {error}"[:LONGEST]
    return results


# --- training ------------------------------------------------------------------------------------


def training(device: Device, epochs: int | None) -> dict[str, Any]:
    """The loss after each epoch, the last accuracy and the seconds, for both jobs."""
    jobs = {job.name: job for job in JOBS}
    return {name: train(jobs[name], device, epochs or jobs[name].epochs) for name in TRAINED}


def train(job: Any, device: Device, epochs: int) -> dict[str, Any]:
    with tn.using_device(device):
        random.seed(0)
        trainer = nn.Trainer(**job.parts())
        start = time.perf_counter()
        rows = trainer.run(epochs, quiet=True)
        device.synchronize()
        seconds = time.perf_counter() - start
    losses = [row["loss"] for row in rows]
    accuracy = rows[-1]["accuracy"]
    return {"losses": losses, "held_out_accuracy": accuracy, "seconds": seconds}


# --- the time of a step --------------------------------------------------------------------------


class ByHand:
    """The perceptron of ``tools.benchmarks.digits_step`` in plain NumPy or CuPy."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.xp = importlib.import_module(device.backend.name)
        self.weights = [device.from_host(w) for w in digits_step.start_weights()]
        self.moments = [(self.xp.zeros_like(w), self.xp.zeros_like(w)) for w in self.weights]
        self.count = 0

    def place(self, host: Any) -> Any:
        return self.device.from_host(host)

    def step(self, images: Any, labels: Any) -> float:
        xp = self.xp
        w1, b1, w2, b2, w3, b3 = self.weights
        h1 = xp.maximum(images @ w1.T + b1, 0)
        h2 = xp.maximum(h1 @ w2.T + b2, 0)
        scores = h2 @ w3.T + b3
        scores -= scores.max(axis=1, keepdims=True)
        log_p = scores - xp.log(xp.exp(scores).sum(axis=1, keepdims=True))
        rows = xp.arange(len(labels))
        g3 = xp.exp(log_p)
        g3[rows, labels] -= 1
        g3 /= np.float32(len(labels))
        g2 = (g3 @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        gradients = [g1.T @ images, g1.sum(axis=0), g2.T @ h1, g2.sum(axis=0)]
        self.adam([*gradients, g3.T @ h2, g3.sum(axis=0)])
        return float(-log_p[rows, labels].mean())

    def adam(self, gradients: list[Any]) -> None:
        self.count += 1
        b1, b2, eps = digits_step.BETA1, digits_step.BETA2, digits_step.EPS
        rate = digits_step.LR * (1 - b2**self.count) ** 0.5 / (1 - b1**self.count)
        eps *= (1 - b2**self.count) ** 0.5
        for w, g, (m, v) in zip(self.weights, gradients, self.moments, strict=True):
            m *= b1
            m += (1 - b1) * g
            v *= b2
            v += (1 - b2) * g * g
            w -= rate * m / (self.xp.sqrt(v) + eps)


class Tinynode:
    """The same in tinynode."""

    def __init__(self, device: Device) -> None:
        self.device = device
        sizes = itertools.pairwise(digits_step.SIZES)
        with tn.using_device(device):
            layers = [nn.Linear(n, m) for n, m in sizes]
            relu = functions.relu
            self.model = nn.Sequential(layers[0], relu, layers[1], relu, layers[2])
            parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
            for p, array in zip(parameters, digits_step.start_weights(), strict=True):
                p.array = device.from_host(array)
            self.optimizer = nn.Adam(self.model, lr=digits_step.LR)

    def place(self, host: Any) -> Any:
        return self.device.from_host(host)

    def step(self, images: Any, labels: Any) -> float:
        with tn.using_device(self.device):
            loss = functions.softmax_cross_entropy(self.model(images), labels)
            self.optimizer.cleargrads()
            loss.backward()
            self.optimizer.update()
            return float(loss)


class Torch:
    """The same in PyTorch, on the GPU or on the CPU."""

    def __init__(self, device: Device) -> None:
        import torch  # only if installed and measured

        self.torch = torch
        self.where = "cuda" if "gpu" in device.backend.capabilities else "cpu"
        layers = [torch.nn.Linear(n, m) for n, m in itertools.pairwise(digits_step.SIZES)]
        relu = torch.nn.ReLU()
        self.model = torch.nn.Sequential(layers[0], relu, layers[1], relu, layers[2])
        self.model.to(self.where)
        with torch.no_grad():
            hosts = digits_step.start_weights()
            for p, array in zip(self.model.parameters(), hosts, strict=True):
                p.copy_(torch.from_numpy(array))
        self.optimizer = torch.optim.Adam(self.model.parameters(), digits_step.LR, fused=True)

    def place(self, host: Any) -> Any:
        return self.torch.from_numpy(host).to(self.where)

    def step(self, images: Any, labels: Any) -> float:
        loss = self.torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def steps(device: Device, rounds: int) -> dict[str, Any]:
    """Milliseconds of a step, medians, by batch size and library; batches lie on the device."""
    results: dict[str, Any] = {}
    for size in (64, 1024):
        models, absent = make_models(device)
        hosts = digits_step.batches(4, size)
        data = {
            name: [tuple(model.place(array) for array in batch) for batch in hosts]
            for name, model in models.items()
        }
        losses = {name: [m.step(*batch) for batch in data[name]] for name, m in models.items()}
        for name, found in losses.items():  # times are comparable only for the same work
            np.testing.assert_allclose(found, losses["by hand"], rtol=1e-3, err_msg=name)
        times: dict[str, list[float]] = {name: [] for name in models}
        for turn in range(rounds):
            for name, model in models.items():
                begin = time.perf_counter()
                model.step(*data[name][turn % 4])  # float(loss) waits for the device
                times[name].append((time.perf_counter() - begin) * 1e3)
        medians = {name: statistics.median(values) for name, values in times.items()}
        results[f"batch {size}"] = {"milliseconds": medians, "absent": absent}
    return results


def make_models(device: Device) -> tuple[dict[str, Any], dict[str, str]]:
    """The models, and the reason for a missing model."""
    models: dict[str, Any] = {"by hand": ByHand(device), "tinynode": Tinynode(device)}
    absent = {}
    try:
        models["torch"] = Torch(device)
    except Exception as error:  # not installed, or without this GPU's CUDA
        absent["torch"] = f"{type(error).__name__}: {error}"[:LONGEST]
    return models, absent


# --- the program ---------------------------------------------------------------------------------


def make_report(device: Device, options: argparse.Namespace) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    report: dict[str, Any] = {"date": now, "device": device.name, "versions": versions(device)}
    if "op_table" in options.parts:
        report["op_table"] = op_table(device, options.every)
        report["every"] = options.every
    if "training" in options.parts:
        report["training"] = training(device, options.epochs)
    if "steps" in options.parts:
        report["steps"] = steps(device, options.rounds)
    return report


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpu_report", description="tinynode on a GPU, as JSON.")
    parser.add_argument("--out", metavar="PATH", help="default: standard output")
    parser.add_argument("--device", default="cupy", help="default: cupy")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--every", type=int, default=1, help="take every n-th row of the table")
    parser.add_argument("--epochs", type=int, help="default: as many as the jobs have")
    parser.add_argument("--rounds", type=int, default=200, help="steps that are timed")
    options = parser.parse_args(arguments)
    try:
        device = tn.get_device(options.device)
    except DeviceError as error:
        print(
            f"gpu_report: no report, since {options.device} is not usable: {error}",
            file=sys.stderr,
        )
        return 2
    report = make_report(device, options)
    text = json.dumps(report, indent=1)
    if options.out is None:
        print(text)
    else:
        Path(options.out).write_text(text + "\n")
    return int(any(row["failed"] for row in report.get("op_table", {}).values()))


if __name__ == "__main__":
    raise SystemExit(main())
