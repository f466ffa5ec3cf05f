"""The results of the jobs ``tiny-gpt`` and ``pinn``, beside baselines.

- tiny-gpt: the held-out loss for each character. The baselines are counts of characters, and of
  pairs of characters, in the text to train on.
- pinn: the largest error of the temperature. The baselines are the network before the training,
  and explicit finite differences with 9 points in space.

Each result has a limit. The command fails if a result is above its limit.

    python -m tools.benchmarks.jobs
    python -m tools.benchmarks.jobs --jobs pinn
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from tinynode import nn, random
from tinynode.commands import pinn, tiny_gpt

LIMITS = {"tiny-gpt": 2.05, "pinn": 0.004}
"""The largest result of a job."""


def trained(job: Any) -> tuple[nn.Trainer, float]:
    """The trained job with the seed 0, and the seconds of the processor."""
    random.seed(0)
    trainer = nn.Trainer(**job.parts())
    start = time.process_time()
    trainer.run(job.epochs, quiet=True)
    return trainer, time.process_time() - start


def run_tiny_gpt() -> float:
    text = nn.datasets.load_sonnets()
    train, held_out = text.encode(text.train), text.encode(text.held_out)
    count = len(text.characters)
    single = np.bincount(train, minlength=count) + 0.1
    pairs = np.full((count, count), 0.1)
    np.add.at(pairs, (train[:-1], train[1:]), 1)
    single = -np.log(single / single.sum())
    pairs = -np.log(pairs / pairs.sum(axis=1, keepdims=True))
    trainer, seconds = trained(tiny_gpt.JOB)
    loss = trainer.evaluate()["loss"]
    print(f"tiny-gpt: held-out loss {loss:.2f} for each character, {seconds:.0f} s")
    print(f"  counts of characters: {single[held_out].mean():.2f}")
    print(f"  counts of pairs:      {pairs[held_out[:-1], held_out[1:]].mean():.2f}")
    return loss


def run_pinn() -> float:
    random.seed(0)
    before = nn.Trainer(**pinn.JOB.parts()).evaluate()["largest error"]
    trainer, seconds = trained(pinn.JOB)
    error = trainer.evaluate()["largest error"]
    print(f"pinn: largest error {error:.4f}, {seconds:.0f} s")
    print(f"  before the training:               {before:.4f}")
    print(f"  finite differences, 9 points in x: {finite_differences(9):.4f}")
    return error


def finite_differences(points: int) -> float:
    """The largest error of explicit Euler steps in time, with half the largest stable step."""
    x = np.linspace(0.0, 1.0, points)
    h = x[1]
    steps = int(np.ceil(4 * pinn.K / h**2))
    u, largest = np.sin(np.pi * x), 0.0
    for step in range(1, steps + 1):
        u[1:-1] += pinn.K / steps / h**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        exact = np.sin(np.pi * x) * np.exp(-pinn.K * np.pi**2 * step / steps)
        largest = max(largest, float(np.abs(u - exact).max()))
    return largest


RUNS = {"tiny-gpt": run_tiny_gpt, "pinn": run_pinn}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", nargs="+", choices=RUNS, default=list(RUNS))
    options = parser.parse_args(arguments)
    results = {name: RUNS[name]() for name in options.jobs}
    worse = [name for name, result in results.items() if result > LIMITS[name]]
    for name in worse:
        print(f"{name}: {results[name]:.4f} is above the limit {LIMITS[name]}")
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
