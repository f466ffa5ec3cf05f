"""The cost of a film: a training step of a perceptron 64-100-10, with and without recording.

Batch 64, Adam, float32, random images of 8 by 8. Times are processor times, medians over the
rounds. Plain and recorded step take turns in each round. The recorded step includes ``record()``.
The making of the data and the page has a time of its own.

    python -m benchmarks.film
    python -m benchmarks.film --rounds 20
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import measure
from tinynode import functions, nn
from tinynode.show import Film, record
from tinynode.show.film import to_json
from tinynode.show.page import page

SIZES = (64, 100, 10)
BATCH = 64


def make_step() -> Callable[[], None]:
    """A training step, for repeated calls."""
    rng = np.random.default_rng(0)
    images = rng.random((BATCH, SIZES[0]), dtype=np.float32)
    labels = rng.integers(0, SIZES[-1], BATCH)
    model = nn.Sequential(nn.Linear(*SIZES[:2]), functions.relu, nn.Linear(*SIZES[1:]))
    optimizer = nn.Adam(model)

    def step() -> None:
        loss = functions.softmax_cross_entropy(model(images), labels)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()

    return step


def recorded(step: Callable[[], None]) -> Film:
    with record("One training step") as film:
        step()
    return film


def process_time(call: Callable[[], Any]) -> float:
    """Seconds of the processor's time."""
    start = time.process_time_ns()
    call()
    return (time.process_time_ns() - start) / 1e9


def compare(step: Callable[[], None], rounds: int) -> tuple[list[float], list[float]]:
    """The times of the plain and of the recorded step, in turn."""
    plain, filmed = [], []
    for _ in range(rounds + 3):
        plain.append(process_time(step))
        filmed.append(process_time(lambda: recorded(step)))
    return plain[3:], filmed[3:]  # the first rounds fill caches


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The cost of a film of a training step.")
    parser.add_argument("--rounds", type=int, default=200, help="medians are over these")
    options = parser.parse_args(arguments)
    step = make_step()
    plain, filmed = compare(step, options.rounds)
    film = recorded(step)
    start = time.process_time_ns()
    data = film.data()
    seconds = (time.process_time_ns() - start) / 1e9
    sizes = (len(to_json(data).encode()), len(page(data).encode()))
    print(measure.describe_setting(["numpy", "tinynode"]))
    print(f"one step of {'-'.join(map(str, SIZES))}, batch {BATCH}, {options.rounds} rounds")
    rows = [
        ["step, ms", f"{statistics.median(plain) * 1e3:.2f}"],
        ["recorded step, ms", f"{statistics.median(filmed) * 1e3:.2f}"],
        ["slower by", f"{measure.median_ratio(filmed, plain):.2f}"],
        ["steps of the film", str(len(film))],
        ["making its data, ms", f"{seconds * 1e3:.1f}"],
        ["data, kB", f"{sizes[0] / 1e3:.1f}"],
        ["page, kB", f"{sizes[1] / 1e3:.1f}"],
    ]
    measure.print_table(["", "result"], rows)


if __name__ == "__main__":
    main()
