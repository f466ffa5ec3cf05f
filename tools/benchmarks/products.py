"""Where threads of BLAS pay: the time of a product with one thread and with all, quiet and busy.

Run ``python -m tools.benchmarks.products``. In the busy columns, three loops of Python run on each
core, as other programs would.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time

import numpy
from threadpoolctl import threadpool_limits

SHAPES = ((16, 16, 16), (64, 64, 64), (64, 256, 256), (128, 784, 100), (256, 256, 256),
          (1024, 1024, 1024))  # fmt: skip
"""Products of (n, k) by (k, m)."""
RUNS = 15
BUSY = 3
"""The other programs for each core in the busy columns."""


def microseconds(shape: tuple[int, int, int], threads: int) -> float:
    """The median time of a product in float32."""
    n, k, m = shape
    x, w = numpy.ones((n, k), numpy.float32), numpy.ones((k, m), numpy.float32)
    number = max(2, min(1000, 10**8 // (n * k * m)))
    times = []
    with threadpool_limits(limits=threads, user_api="blas"):
        for _ in range(RUNS):
            start = time.perf_counter()
            for _ in range(number):
                x @ w
            times.append((time.perf_counter() - start) / number * 1e6)
    return statistics.median(times)


def spin() -> None:
    """A busy core."""
    while True:
        pass


def table() -> list[str]:
    """The lines of the table of ``docs/performance.md``."""
    cores = len(os.sched_getaffinity(0))
    choices = (1, cores)
    found = {shape: [microseconds(shape, threads) for threads in choices] for shape in SHAPES}
    others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(BUSY * cores)]
    for other in others:
        other.start()
    for shape in SHAPES:
        found[shape] += [microseconds(shape, threads) for threads in choices]
    for other in others:
        other.kill()
    lines = [f"| product | 1 thread | {cores} threads | busy, 1 thread | busy, {cores} threads |"]
    lines.append("|---|---|---|---|---|")
    for (n, k, m), times in found.items():
        cells = " | ".join(f"{one:,.1f}" for one in times)
        lines.append(f"| ({n}, {k}) by ({k}, {m}) | {cells} |")
    return lines


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    print("\n".join(table()))
