"""Training steps on the ``fast`` backend, beside ``numpy``, and beside PyTorch; float32.

The workloads are a perceptron 784-256-256-10 with Adam, batch 64 and 1,024; a convolutional
network on 64 images of 28 by 28 with SGD; and a transformer block (16 sequences of 64 vectors of
128, 4 heads, causal, layer_norm, GELU) with Adam. All start from the same weights and see the
same data. The losses and weights after three steps are compared before the timing. Then the
backends take turns, step by step.

    python -m tools.benchmarks.backends
    python -m tools.benchmarks.backends --workloads transformer --rounds 50
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from tools.benchmarks import measure
from tools.benchmarks.models import Block, ConvNet, Perceptron, Run, Training

STEPS = 3  # the number of compared steps


class TrainedBlock(Block):
    """The block alone, with the input as data, the exact GELU and the mean squared error."""

    def parameters(self) -> dict[str, Any]:
        return {name: array for name, array in super().parameters().items() if name != "x"}

    def data(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(1)
        shape = (self.batch, self.length, self.width)
        return tuple([rng.standard_normal(shape, dtype=np.float32) for _ in range(2)])

    def loss(self, ops: Any, p: Any, x: Any, target: Any) -> Any:  # type: ignore[override]
        return ops.squared_error(self.output(ops, p, x), target)

    def gelu(self, ops: Any, x: Any) -> Any:
        return ops.exact_gelu(x)

    def by_hand(self, p: Any, x: Any, target: Any) -> Any:  # type: ignore[override]
        raise NotImplementedError("the backends are compared with numpy, not with a reference")


def workloads(shrink: int) -> dict[str, Training]:
    return {
        "perceptron 64": Training(Perceptron(max(64 // shrink, 2)), "Adam"),
        "perceptron 1024": Training(Perceptron(max(1024 // shrink, 2)), "Adam"),
        "convolutional": Training(ConvNet(max(64 // shrink, 2)), "SGD"),
        "transformer": Training(TrainedBlock(max(16 // shrink, 1)), "Adam"),
    }


def make_run(name: str, workload: Training) -> Run:
    """A training step in PyTorch, or in tinynode on the device ``name``."""
    if name == "torch":
        return workload.torch()
    import tinynode

    with tinynode.using_device(name):
        run = workload.tinynode(compiled=False)

    def step() -> Any:
        with tinynode.using_device(name):
            return run()

    return step


# --- measuring -----------------------------------------------------------------------------------


def first_steps(run: Run) -> tuple[list[float], list[Any]]:
    """The losses of the first steps, and the weights afterwards."""
    losses = []
    for _ in range(STEPS):
        loss, *weights = run()
        losses.append(float(loss.detach()))
    return losses, [np.asarray(array.detach()) for array in weights]


def check_results(workload: Training, runs: dict[str, Run]) -> None:
    """Compare losses and weights after a few steps with the results of ``numpy``."""
    found = {name: first_steps(run) for name, run in runs.items()}
    right_losses, right_weights = found["numpy"]
    for name, (losses, weights) in found.items():
        np.testing.assert_allclose(losses, right_losses, 1e-4, err_msg=f"{name}: losses")
        for position, (array, right) in enumerate(zip(weights, right_weights, strict=True)):
            rtol, atol = workload.tolerances(right)
            title = f"{name}: weights {position}"
            np.testing.assert_allclose(array, right, rtol, atol, err_msg=title)


def measure_workload(runs: dict[str, Run], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return times


def chosen_workloads(names: str, shrink: int) -> dict[str, Training]:
    known = workloads(shrink)
    chosen = {n: w for n, w in known.items() if any(part in n for part in names.split(","))}
    if not chosen:
        raise SystemExit(f"unknown workload {names!r}; choose from {', '.join(known)}")
    return chosen


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A training step on each backend.")
    parser.add_argument("--workloads", default="", help="parts of their names, with commas")
    parser.add_argument("--libraries", default="torch", help="compared beside the backends")
    parser.add_argument("--rounds", type=int, default=60, help="medians are over these")
    parser.add_argument("--shrink", type=int, default=1, help="divides the batches, for a test")
    options = parser.parse_args(arguments)
    found = measure.available(["tinynode", "torch"], options.libraries)
    names = ["numpy", "fast", *(name for name in found if name == "torch")]
    print(measure.describe_setting(["numpy", *found]))
    print(f"one step in ms, medians of {options.rounds} rounds")
    rows = []
    for title, workload in chosen_workloads(options.workloads, options.shrink).items():
        runs = {name: make_run(name, workload) for name in names}
        check_results(workload, runs)
        times = measure_workload(runs, options.rounds)
        ms = [f"{statistics.median(times[name]) * 1e3:.2f}" for name in names]
        ratios = [
            f"{measure.median_ratio(times[name], times['fast']):.2f}"
            for name in names
            if name != "fast"
        ]
        rows.append([title, *ms, *ratios])
    head = ["workload", *names, *(f"{name} / fast" for name in names if name != "fast")]
    measure.print_table(head, rows)


if __name__ == "__main__":
    main()
