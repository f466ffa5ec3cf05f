"""The cost of an operation: a chain of ``y = y * w + b``, float32.

On ten numbers, arithmetic hardly counts: recording the graph and the backward pass take the time.
All of x, w and b require gradients. Each round measures every library once. Before the timing, the
gradients are compared with the gradients by hand. There is a table for shape (10,), for scalars,
and for Python's numbers in place of w and b. The figures are minima of processor time.

A second table compares eager and compiled functions of 2 to 16 such operations. A third table has
the cost per operation of chains up to 100,000 operations: Python's collector visits a graph again
and again while the graph grows. A fourth table has the time to compile a chain: the recording, the
gradient net, the plans and the printed C.

    python -m tools.benchmarks.overhead
    python -m tools.benchmarks.overhead --libraries numpy,tinynode --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import tinynode as tn
from tinynode_fast.native import build
from tools.benchmarks import measure
from tools.benchmarks.chains import (
    LIBRARIES,
    Chain,
    end_gradient,
    products_and_sums,
    start_values,
    with_numbers,
)

Times = tuple[float, float]

PROGRAMS: dict[str, tuple[Chain, tuple[int, ...]]] = {
    "operations on (10,) float32": (products_and_sums, (10,)),
    "operations on scalars": (products_and_sums, ()),
    "operations with Python's numbers, on (10,)": (with_numbers, (10,)),
    "operations with Python's numbers, on scalars": (with_numbers, ()),
}
"""The chains of the first tables."""

SIZES = (2, 4, 8, 16)
"""Operations of the compiled functions: 2 are ``x * w + b``."""
CALLS = 50
"""Calls of one round."""
WARM_UP = 2
"""Rounds that record the nets and make the plans."""
COMPILED_LENGTHS = (1_000, 5_000)
"""Operations of the chains in the table of compile times."""
COMPILED_TIMES = 3
"""Each chain is compiled so often; the medians count."""


def check_gradients(
    libraries: dict[str, Any], operations: int, chain: Chain, shape: tuple[int, ...]
) -> None:
    """Compare the gradients of all libraries with the gradients by hand."""
    by_hand = LIBRARIES["numpy"]()
    y = by_hand.forward(chain, start_values(shape), operations)
    expected = by_hand.backward(y, end_gradient(shape))
    for name, library in libraries.items():
        y = library.forward(chain, start_values(shape), operations)
        for result, wanted in zip(library.backward(y, end_gradient(shape)), expected, strict=True):
            if wanted is not None:
                np.testing.assert_allclose(result, wanted, rtol=1e-4, err_msg=name)


def one_pass(
    library: Any,
    operations: int,
    chain: Chain = products_and_sums,
    shape: tuple[int, ...] = (10,),
) -> Times:
    """Microseconds of processor time per operation: of forward, and of forward and backward."""
    start, gradient = start_values(shape), end_gradient(shape)
    begin = time.process_time_ns()
    y = library.forward(chain, start, operations)
    middle = time.process_time_ns()
    library.backward(y, gradient)
    end = time.process_time_ns()
    return (middle - begin) / 1e3 / operations, (end - begin) / 1e3 / operations


def print_results(rounds: dict[str, list[Times]]) -> None:
    """Microseconds per operation, and tinynode's time over each library's."""
    rows = []
    for name, times in rounds.items():
        row = [name]
        for i in (0, 1):
            theirs = min(time[i] for time in times)
            ours = min(time[i] for time in rounds["tinynode"])
            row += [f"{theirs:.2f}", f"{ours / theirs:.2f}"]
        rows.append(row)
    head = ["library", "forward, us", "tinynode / it", "forward+backward, us", "tinynode / it"]
    measure.print_table(head, rows)


def eager_and_compiled(operations: int, rounds: int) -> list[str]:
    """A row: microseconds of a call, eager and compiled, and the ratio; then with backward."""

    def chain(y: tn.Variable, w: tn.Variable, b: tn.Variable) -> tn.Variable:
        result: tn.Variable = products_and_sums(y, w, b, operations)
        return result

    leaves = [tn.Variable(array) for array in start_values()]
    gradient = end_gradient()
    times: dict[str, list[list[float]]] = {"eager": [[], []], "compiled": [[], []]}
    functions = {"eager": chain, "compiled": tn.compile(chain)}
    for number in range(rounds + WARM_UP):
        for name, function in functions.items():
            forward = both = 0
            for _ in range(CALLS):
                begin = time.thread_time_ns()
                y = function(*leaves)
                forward += time.thread_time_ns() - begin
                y.grad = gradient
                y.backward()
                both += time.thread_time_ns() - begin
                for x in leaves:
                    x.cleargrad()
            if number >= WARM_UP:
                times[name][0].append(forward / CALLS / 1000)
                times[name][1].append(both / CALLS / 1000)
    row = [str(operations)]
    for i in (0, 1):
        eager, compiled = times["eager"][i], times["compiled"][i]
        row += [f"{statistics.median(t):.1f}" for t in (eager, compiled)]
        row.append(f"{measure.median_ratio(compiled, eager):.2f}")
    return row


def growth(name: str, library: Any, depths: list[int]) -> list[str]:
    """A row: microseconds per operation of each depth, forward and backward, and the growth."""
    medians = []
    for depth in depths:
        times = [one_pass(library, depth)[1] for _ in range(max(3, 10 * depths[0] // depth))]
        medians.append(statistics.median(times))
    return [name, *(f"{one:.2f}" for one in medians), f"{medians[-1] / medians[0]:.2f}"]


def compile_time(operations: int, with_gradients: bool) -> float:
    """Microseconds of processor time, per operation, to compile a chain on the current device.

    The time of the first ``WARM_UP`` calls, beyond the time of later calls. A system compiler runs
    in a process of its own, which does not count.
    """

    def chain(y: tn.Variable, w: tn.Variable, b: tn.Variable) -> tn.Variable:
        result: tn.Variable = products_and_sums(y, w, b, operations)
        return result

    leaves = [tn.Variable(array, requires_grad=with_gradients) for array in start_values()]
    function = tn.compile(chain)
    times = []
    for _ in range(WARM_UP + COMPILED_TIMES):
        begin = time.process_time_ns()
        y = function(*leaves)
        if with_gradients:
            y.grad = end_gradient()
            y.backward()
        build.wait()  # a thread in the background prints the C
        times.append((time.process_time_ns() - begin) / 1000)
    later = statistics.median(times[WARM_UP:])
    return (sum(times[:WARM_UP]) - WARM_UP * later) / operations


def compile_times(device: str, with_gradients: bool, lengths: Sequence[int]) -> list[str]:
    """A row: microseconds per operation to compile a chain of each length, and the growth."""
    medians = []
    with tn.using_device(device):
        for length in lengths:
            found = [compile_time(length, with_gradients) for _ in range(COMPILED_TIMES)]
            medians.append(statistics.median(found))
    title = f"{device}, with gradients" if with_gradients else device
    return [title, *(f"{one:.0f}" for one in medians), f"{medians[-1] / medians[0]:.2f}"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Cost per operation, side by side.")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="compared with tinynode")
    parser.add_argument("--operations", type=int, default=1000, help="in the chain, half each")
    parser.add_argument("--rounds", type=int, default=40, help="minima are over these")
    deep = [1_000, 10_000, 100_000]
    parser.add_argument("--depths", type=int, nargs="+", default=deep, help="of the deep chains")
    parser.add_argument(
        "--compiled", type=int, nargs="+", default=COMPILED_LENGTHS, help="lengths to compile"
    )
    options = parser.parse_args(arguments)
    names = measure.available(LIBRARIES, options.libraries)
    libraries = {name: LIBRARIES[name]() for name in names}
    print(measure.describe_setting(names))
    for title, program in PROGRAMS.items():
        check_gradients(libraries, options.operations, *program)
        rounds: dict[str, list[Times]] = {name: [] for name in names}
        for _ in range(options.rounds):
            for name, library in libraries.items():
                rounds[name].append(one_pass(library, options.operations, *program))
        print(f"\na chain of {options.operations} {title}, minima of {options.rounds} rounds")
        print_results(rounds)
    print("\na compiled function of such operations beside the eager one, us of CPU time per call")
    head = ["operations", "eager", "compiled", "ratio", "with backward", "compiled", "ratio"]
    measure.print_table(head, [eager_and_compiled(n, options.rounds) for n in SIZES])
    print("\nforward and backward of deep chains, us per operation")
    head = ["library", *map("{:,} operations".format, options.depths), "growth"]
    graphs = [(name, library) for name, library in libraries.items() if name != "numpy"]
    measure.print_table(head, [growth(*one, options.depths) for one in graphs])
    print("\ntime to compile a chain, us of CPU time per operation")
    head = ["device", *map("{:,} operations".format, options.compiled), "growth"]
    kinds = [(device, flag) for device in ("numpy", "fast") for flag in (False, True)]
    measure.print_table(head, [compile_times(*kind, options.compiled) for kind in kinds])


if __name__ == "__main__":
    main()
