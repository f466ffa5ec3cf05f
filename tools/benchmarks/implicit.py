"""Implicit gradients beside the unrolled loop, and sparse beside full Jacobians.

The layer is z = tanh(z W^T + x), of 32 rows and ``--size`` columns. The table has the time of
forward and backward, and the bytes that the graph keeps. The second table has solvers, eager and
compiled on ``fast``: the layer, ridge regression by cg, and six equations by Newton's method. The
Jacobian is tridiagonal.

    python -m tools.benchmarks.implicit
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinynode as tn
from tinynode import functions
from tinynode_fast.native import build
from tools.benchmarks import measure

ROWS = 32


class Layer(NamedTuple):
    """The layer as an unrolled loop and as an implicit function, and an input."""

    loop: Callable[[Any], tn.Variable]
    implicit: Callable[[Any], tn.Variable]
    x: tn.Variable


def equilibrium(size: int, rounds: int, device: str = "numpy") -> Layer:
    rng = np.random.default_rng(0)
    orthogonal = np.linalg.qr(rng.normal(size=(size, size)))[0]
    inputs = rng.normal(scale=0.3, size=(ROWS, size))
    x = tn.asarray(inputs, device=device, requires_grad=True)
    w = tn.asarray(0.8 * orthogonal, device=device, requires_grad=True)

    def step(z: Any, x: Any) -> tn.Variable:
        return functions.tanh(functions.linear(z, w) + x)

    def loop(x: tn.Variable) -> tn.Variable:
        z = x * 0.0
        for _ in range(rounds):
            z = step(z, x)
        return z

    return Layer(loop, tn.custom_fixed_point(step, loop, solve="gmres"), x)


def layers(size: int, rounds: int) -> dict[str, Callable[[], tn.Variable]]:
    """The unrolled loop, and the implicit layer, on the same arrays."""
    layer = equilibrium(size, rounds)

    def unrolled_layer() -> tn.Variable:
        return layer.loop(layer.x)

    def implicit_layer() -> tn.Variable:
        return layer.implicit(layer.x)

    return {f"{rounds} rounds, unrolled": unrolled_layer, "implicit, gmres": implicit_layer}


class Problem(NamedTuple):
    """A root, and an argument of it."""

    root: Callable[[Any], tn.Variable]
    x: tn.Variable


def ridge(size: int) -> Problem:
    """The weights of ridge regression as a function of the logarithm of the penalty."""
    rng = np.random.default_rng(0)
    inputs = tn.asarray(rng.normal(size=(5 * size, size)), device="fast", requires_grad=False)
    targets = tn.asarray(rng.normal(size=5 * size), device="fast", requires_grad=False)
    unit = tn.asarray(np.eye(size), device="fast", requires_grad=False)

    def loss(w: Any, log_penalty: Any) -> tn.Variable:
        error = functions.matmul(inputs, w) - targets
        return functions.sum(error**2) + functions.exp(log_penalty) * functions.sum(w * w)

    def minimum(log_penalty: Any) -> tn.Variable:
        matrix = functions.matmul(inputs.T, inputs) + functions.exp(log_penalty) * unit
        return functions.linalg.solve(matrix, functions.matmul(inputs.T, targets))

    slope = tn.gradient(loss, enable_double_backprop=True)
    root = tn.custom_root(slope, minimum, solve="cg")
    return Problem(root, tn.asarray(np.array(0.3), device="fast", requires_grad=True))


def cubes(size: int) -> Problem:
    """Coupled cubic equations, by Newton's method."""
    rng = np.random.default_rng(0)
    matrix = np.eye(size) + 0.1 * rng.normal(size=(size, size))
    coupling = tn.asarray(matrix, device="fast", requires_grad=False)
    start = tn.asarray(np.ones(size), device="fast", requires_grad=False)

    def equation(x: Any, a: Any) -> tn.Variable:
        return x**3 + 0.1 * x * functions.sum(x * x) + functions.matmul(coupling, x) - a

    root = tn.custom_root(equation, lambda a: tn.newton(equation, start, a))
    return Problem(root, tn.asarray(rng.normal(size=size), device="fast", requires_grad=True))


def row_of_solver(name: str, problem: Problem, runs: int) -> list[str]:
    """The time of the value, the gradient and a Hessian-vector product, eager and compiled."""
    root, x = problem

    def loss(x: Any) -> tn.Variable:
        return functions.sum(root(x) ** 2)

    gradient = tn.gradient(loss)

    def product(x: Any) -> tn.Variable:
        along: tn.Variable = tn.jvp(gradient, (x,), (functions.cos(x),))[1]
        return along

    row = [name]
    for f in (loss, gradient, product):
        for ran in (f, tn.compile(f)):
            row.append(f"{least_milliseconds(ran, x, runs):.2f}")
    return row


def least_milliseconds(f: Callable[[Any], Any], x: tn.Variable, runs: int) -> float:
    """The least CPU time of the runs, after runs in which a plan is made and C is built."""
    for _ in range(3):
        f(x)
    build.wait()
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        f(x)
        seconds.append(time.process_time() - start)
    return 1e3 * min(seconds)


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
    fixed = equilibrium(options.size, 100, "fast")
    problems = {
        "layer, gmres": Problem(fixed.implicit, fixed.x),
        "ridge, cg": ridge(12),
        "cubes, Newton and dense": cubes(6),
    }
    head = [f"{what}, {how}" for what in ("value", "gradient", "hvp") for how in ("eager", "net")]
    print()
    rows = [row_of_solver(name, one, options.runs) for name, one in problems.items()]
    measure.print_table(["ms of CPU", *head], rows)
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
