"""Implicit gradients beside the unrolled loop, and sparse beside full Jacobians.

The layer is z = tanh(z W^T + x), of 32 rows and ``--size`` columns. The table has the time of
forward and backward, and the bytes that the graph keeps. The Jacobian is tridiagonal.

    python -m tools.benchmarks.implicit
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import functions
from tools.benchmarks import measure

ROWS = 32


def layers(size: int, rounds: int) -> dict[str, Callable[[], tn.Variable]]:
    """The unrolled loop, and implicit layers, on the same arrays."""
    rng = np.random.default_rng(0)
    orthogonal = np.linalg.qr(rng.normal(size=(size, size)))[0]
    x = tn.asarray(rng.normal(scale=0.3, size=(ROWS, size)), requires_grad=True)
    w = tn.asarray(0.8 * orthogonal, requires_grad=True)

    def step(z: Any, x: Any) -> tn.Variable:
        return functions.tanh(functions.linear(z, w) + x)

    def loop(x: tn.Variable) -> tn.Variable:
        z = x * 0.0
        for _ in range(rounds):
            z = step(z, x)
        return z

    implicit = tn.custom_fixed_point(step, loop, solve="gmres")

    def unrolled_layer() -> tn.Variable:
        return loop(x)

    def implicit_layer() -> tn.Variable:
        return implicit(x)

    return {f"{rounds} rounds, unrolled": unrolled_layer, "implicit, gmres": implicit_layer}


def milliseconds(run: Callable[[], Any], runs: int) -> float:
    """The median of the runs; a first run warms up."""
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds[1:])


def row_of_layer(name: str, layer: Callable[[], tn.Variable], runs: int) -> list[str]:
    def both() -> None:
        functions.sum(layer() ** 2).backward()

    with tn.hooks.MemoryHook() as memory:
        kept = layer()
    size = memory.current_bytes()
    del kept
    times = [milliseconds(layer, runs), milliseconds(both, runs)]
    return [name, f"{times[0]:.1f}", f"{times[1] - times[0]:.1f}", f"{size / 1e3:.0f}"]


def reaction(x: Any) -> tn.Variable:
    """A diffusion with a reaction: each element depends on three."""
    zero = 0.0 * x[:1]
    left, right = functions.concat([zero, x[:-1]]), functions.concat([x[1:], zero])
    return left - 2 * x + right + x * (1 - x * x)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Implicit gradients and sparse Jacobians.")
    parser.add_argument("--size", type=int, default=64, help="columns of the layer")
    parser.add_argument("--unknowns", type=int, default=1000, help="of the Jacobian")
    parser.add_argument("--runs", type=int, default=9, help="medians are over these")
    options = parser.parse_args(arguments)
    print(measure.describe_setting(["numpy"]))
    rows = [row_of_layer(n, f, options.runs) for n, f in layers(options.size, 100).items()]
    measure.print_table(["layer", "forward, ms", "backward, ms", "kept, kB"], rows)
    n = options.unknowns
    x = np.random.default_rng(0).normal(size=n)
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1
    found = {"full": tn.jacobian(reaction), "3 colours": tn.jacobian(reaction, sparsity=band)}

    def run(jacobian: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: jacobian(x)

    times = [[name, f"{milliseconds(run(f), options.runs):.1f}"] for name, f in found.items()]
    print()
    measure.print_table([f"Jacobian {n} x {n}", "ms"], times)


if __name__ == "__main__":
    main()
