"""The cost of ``import tinynode`` over ``import numpy``.

Each run is a fresh process, with separate times for the imports of NumPy and of the library. The
times are processor time: the least of all runs. The libraries take turns. A first run of each
library writes the files of bytecode, and is not counted.

    python -m tools.benchmarks.import_time
"""

from __future__ import annotations

import argparse
import os

from tools.benchmarks import measure

NAMES = ["tinynode", "tinynode.nn", "torch", "autograd", "mygrad"]
PROGRAM = """
import json, time
start = time.process_time()
import numpy
middle = time.process_time()
import {name}
end = time.process_time()
print(json.dumps([middle - start, end - middle]))
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Import time over NumPy's.")
    parser.add_argument("--libraries", default=",".join(NAMES), help="compared with tinynode")
    parser.add_argument("--runs", type=int, default=15, help="processes for each library")
    options = parser.parse_args(arguments)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    names = measure.available(NAMES, options.libraries)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for run in range(options.runs + 1):
        for name in names:
            seconds = measure.run_python("-c", PROGRAM.format(name=name))
            if run:  # the first run of each may have to write bytecode
                times[name].append(seconds)
    numpy = min(pair[0] for pairs in times.values() for pair in pairs)
    print(measure.describe_setting(dict.fromkeys(["numpy", *(n.split(".")[0] for n in names)])))
    print(f"least processor time of {options.runs} runs; numpy alone: {1e3 * numpy:.1f} ms")
    rows = []
    for name, pairs in times.items():
        seconds = min(pair[1] for pair in pairs)
        rows.append([name, f"{1e3 * seconds:.1f}", f"{seconds / numpy:.2f}"])
    measure.print_table(["library", "import over numpy, ms", "of numpy's own"], rows)


if __name__ == "__main__":
    main()
