"""The cost of ``import tinynode`` over ``import numpy``.

Each run is a fresh process, with separate times for the imports of NumPy and of the library. The
libraries take turns; the table shows medians.

    python -m tools.benchmarks.import_time
"""

from __future__ import annotations

import argparse
import statistics

from tools.benchmarks import measure

NAMES = ["tinynode", "torch", "autograd", "mygrad"]
PROGRAM = """
import json, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import {name}
end = time.perf_counter()
print(json.dumps([middle - start, end - middle]))
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Import time over NumPy's.")
    parser.add_argument("--libraries", default=",".join(NAMES), help="compared with tinynode")
    parser.add_argument("--runs", type=int, default=15, help="medians are over these")
    options = parser.parse_args(arguments)
    names = measure.available(NAMES, options.libraries)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for run in range(options.runs + 1):
        for name in names:
            seconds = measure.run_python("-c", PROGRAM.format(name=name))
            if run:  # the first run of each may have to write bytecode
                times[name].append(seconds)
    numpy = [pair[0] for pairs in times.values() for pair in pairs]
    print(measure.describe_setting(["numpy", *names]))
    print(f"medians of {options.runs} runs; numpy alone: {statistics.median(numpy):.3f} s")
    rows = []
    for name, pairs in times.items():
        seconds = statistics.median(pair[1] for pair in pairs)
        rows.append([name, f"{seconds:.3f}", f"{seconds / statistics.median(numpy):.2f}"])
    measure.print_table(["library", "import over numpy, s", "of numpy's own"], rows)


if __name__ == "__main__":
    main()
