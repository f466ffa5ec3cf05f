"""The memory of a deep graph: a chain of 100,000 additions on shape (10,), float32.

An addition retains no array, so only the graph's own memory stays. Each library runs in a separate
process. Resident memory is measured before and after forward; forward, backward and freeing are
timed. For tinynode a second process counts the bytes exactly, with tracemalloc.

    python -m tools.benchmarks.memory
    python -m tools.benchmarks.memory --libraries tinynode --functions 10000
"""

from __future__ import annotations

import argparse
import json
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

from tools.benchmarks import measure
from tools.benchmarks.chains import LIBRARIES, end_gradient, start_values, sums

NAMES = [name for name in LIBRARIES if name != "numpy"]  # by hand there is no graph to weigh
STATUS = Path("/proc/self/statm")


def resident_bytes() -> int:
    """The process's memory in use; 0 if the system does not tell."""
    if not STATUS.exists():
        return 0
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def warmed_up(name: str) -> Any:
    """The library after a first use, with all parts loaded."""
    library = LIBRARIES[name]()
    library.backward(library.forward(sums, start_values(), 10), end_gradient())
    return library


def measure_once(name: str, functions: int) -> dict[str, float]:
    """Bytes per function by resident memory; seconds of forward, backward and freeing."""
    library, start, gradient = warmed_up(name), start_values(), end_gradient()
    before = resident_bytes()
    begin = time.perf_counter()
    y = library.forward(sums, start, functions)
    forward = time.perf_counter()
    weight = resident_bytes() - before
    weighed = time.perf_counter()
    library.backward(y, gradient)
    backward = time.perf_counter()
    del y, library
    freed = time.perf_counter()
    return {
        "bytes": weight / functions,
        "forward": forward - begin,
        "backward": backward - weighed,
        "free": freed - backward,
    }


def count_exactly(name: str, functions: int) -> dict[str, float]:
    """Bytes per function by Python's allocator, and all bytes left after freeing."""
    library, start = warmed_up(name), start_values()
    tracemalloc.start()
    y = library.forward(sums, start, functions)
    size, _ = tracemalloc.get_traced_memory()
    del y
    left, _ = tracemalloc.get_traced_memory()
    return {"bytes": size / functions, "left": left}


def in_own_process(name: str, functions: int, how: str) -> Any:
    return measure.run_python(
        "-m",
        "tools.benchmarks.memory",
        f"--libraries={name}",
        f"--functions={functions}",
        f"--child={how}",
    )


def compare(names: list[str], functions: int) -> None:
    rows = []
    for name in names:
        result = in_own_process(name, functions, "once")
        weight = f"{result['bytes']:.0f}" if STATUS.exists() else "-"
        rows.append([name, weight, *(f"{result[k]:.3f}" for k in ("forward", "backward", "free"))])
    print(measure.describe_setting(names))
    print(f"a chain of {functions} additions on (10,) float32, one run")
    head = ["library", "bytes per function", "forward, s", "backward, s", "free, s"]
    measure.print_table(head, rows)
    exact = in_own_process("tinynode", functions, "exactly")
    print(
        f"tinynode, counted by tracemalloc: {exact['bytes']:.1f} bytes per function, "
        f"{exact['left'] / 1000:.0f} kB in all after freeing"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The weight of a deep graph.")
    parser.add_argument("--libraries", default=",".join(NAMES), help="compared with tinynode")
    parser.add_argument("--functions", type=int, default=100_000, help="in the chain")
    parser.add_argument("--child", choices=("once", "exactly"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        run = measure_once if options.child == "once" else count_exactly
        print(json.dumps(run(options.libraries, options.functions)))
    else:
        compare(measure.available(NAMES, options.libraries), options.functions)


if __name__ == "__main__":
    main()
