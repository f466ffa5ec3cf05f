"""The cost of an operation: a chain of ``y = y * w + b`` on shape (10,), float32.

On arrays so small, arithmetic hardly counts: recording the graph and the backward pass take the
time. All of x, w and b require gradients. Each round measures every library once. Before the
timing, the gradients are compared with the gradients by hand. The garbage collector has Python's
defaults.

    python -m benchmarks.overhead
    python -m benchmarks.overhead --libraries numpy,tinynode --rounds 5
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.chains import LIBRARIES, end_gradient, products_and_sums, start_values

Times = tuple[float, float]


def check_gradients(libraries: dict[str, Any], operations: int) -> None:
    """Compare the gradients of all libraries with the gradients by hand."""
    by_hand = LIBRARIES["numpy"]()
    y = by_hand.forward(products_and_sums, start_values(), operations)
    expected = by_hand.backward(y, end_gradient())
    for name, library in libraries.items():
        y = library.forward(products_and_sums, start_values(), operations)
        for result, wanted in zip(library.backward(y, end_gradient()), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-4, err_msg=name)


def one_pass(library: Any, operations: int) -> Times:
    """Microseconds per operation: of forward, and of forward and backward."""
    start, gradient = start_values(), end_gradient()
    begin = time.perf_counter()
    y = library.forward(products_and_sums, start, operations)
    middle = time.perf_counter()
    library.backward(y, gradient)
    end = time.perf_counter()
    return (middle - begin) * 1e6 / operations, (end - begin) * 1e6 / operations


def print_results(rounds: dict[str, list[Times]]) -> None:
    """Microseconds per operation, and tinynode's time over each library's."""
    rows = []
    for name, times in rounds.items():
        row = [name]
        for i in (0, 1):
            theirs = [time[i] for time in times]
            row.append(f"{statistics.median(theirs):.2f}")
            ours = [time[i] for time in rounds["tinynode"]]
            row.append(f"{measure.median_ratio(ours, theirs):.2f}")
        rows.append(row)
    head = ["library", "forward, us", "tinynode / it", "forward+backward, us", "tinynode / it"]
    measure.print_table(head, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Cost per operation, side by side.")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="compared with tinynode")
    parser.add_argument("--operations", type=int, default=1000, help="in the chain, half each")
    parser.add_argument("--rounds", type=int, default=40, help="medians are over these")
    options = parser.parse_args(arguments)
    names = measure.available(LIBRARIES, options.libraries)
    libraries = {name: LIBRARIES[name]() for name in names}
    check_gradients(libraries, options.operations)
    rounds: dict[str, list[Times]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name, library in libraries.items():
            rounds[name].append(one_pass(library, options.operations))
    print(measure.describe_setting(names))
    print(
        f"a chain of {options.operations} operations on (10,) float32, "
        f"medians of {options.rounds} rounds"
    )
    print_results(rounds)


if __name__ == "__main__":
    main()
