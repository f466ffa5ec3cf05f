"""The cost of a film: a training step of a perceptron 64-100-10, and films of training loops.

Batch 64, Adam, float32, random images. Times are processor times. The times of the step are
medians over the rounds. Plain and recorded step take turns in each round. The recorded step
includes ``record()``. The loops are recorded once: 1,000 iterations of 64-100-10, and 50
iterations of 784-256-10. The data and the page are made once for each loop.

    python -m tools.benchmarks.film
    python -m tools.benchmarks.film --rounds 20 --iterations 100
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode import functions, nn
from tinynode.show import Film, record
from tinynode.show.films.film import to_json
from tinynode.show.page.document import page
from tools.benchmarks import measure

DIGITS = (64, 100, 10)
IMAGES = (784, 256, 10)
BATCH = 64


def make_step(sizes: tuple[int, int, int]) -> Callable[[], None]:
    """A training step, for repeated calls."""
    rng = np.random.default_rng(0)
    images = rng.random((BATCH, sizes[0]), dtype=np.float32)
    labels = rng.integers(0, sizes[-1], BATCH)
    model = nn.Sequential(nn.Linear(*sizes[:2]), functions.relu, nn.Linear(*sizes[1:]))
    optimizer = nn.Adam(model)

    def step() -> None:
        loss = functions.softmax_cross_entropy(model(images), labels)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()

    return step


def recorded(step: Callable[[], None], iterations: int = 1) -> Film:
    """A film of some iterations."""
    with record("Training steps") as film:
        for _ in range(iterations):
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


def sizes_of(film: Film) -> tuple[float, float, float]:
    """The seconds that making the data takes; megabytes of the data and of the page."""
    start = time.process_time_ns()
    data = film.data()
    seconds = (time.process_time_ns() - start) / 1e9
    return seconds, len(to_json(data).encode()) / 1e6, len(page(data).encode()) / 1e6


def film_row(sizes: tuple[int, int, int], iterations: int) -> list[str]:
    """A row of the table of films."""
    film = recorded(make_step(sizes), iterations)
    seconds, data, whole = sizes_of(film)
    shown = [f"{seconds:.2f}", f"{data:.2f}", f"{whole:.2f}"]
    return ["-".join(map(str, sizes)), str(iterations), str(len(film)), *shown]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The cost of films of training.")
    parser.add_argument("--rounds", type=int, default=200, help="medians are over these")
    parser.add_argument(
        "--iterations", type=int, default=1000, help="of the loop of small images; at least 20"
    )
    options = parser.parse_args(arguments)
    plain, filmed = compare(make_step(DIGITS), options.rounds)
    print(measure.describe_setting(["numpy", "tinynode"]))
    print(f"one step of {'-'.join(map(str, DIGITS))}, batch {BATCH}, {options.rounds} rounds")
    rows = [
        ["step, ms", f"{statistics.median(plain) * 1e3:.2f}"],
        ["recorded step, ms", f"{statistics.median(filmed) * 1e3:.2f}"],
        ["slower by", f"{measure.median_ratio(filmed, plain):.2f}"],
    ]
    measure.print_table(["", "result"], rows)
    print("films")
    films = [(DIGITS, 1), (DIGITS, options.iterations), (IMAGES, options.iterations // 20)]
    headings = ["perceptron", "iterations", "steps", "making data, s", "data, MB", "page, MB"]
    measure.print_table(headings, [film_row(*film) for film in films])


if __name__ == "__main__":
    main()
