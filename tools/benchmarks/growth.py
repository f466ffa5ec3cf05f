"""The cost of one more: time per function, per parameter, per step and per node, as counts grow.

A program that is ten times longer should take ten times longer. Each row measures one kind of
growth at several counts, and divides by the count. The ratio compares the largest count with the
smallest. The goal is a ratio of 1.3 at most.

    forward, backward      a chain of ``y * w`` on shape (10,), of 10^2 to 10^6 functions
    update                 an optimizer's update of 10^2 to 10^4 parameters of shape (10,)
    compiled step          gradients and update of 10^2 to 10^4 parameters as one compiled
                           function, after the C is built
    sequence               a recurrent layer over 16 to 1,024 steps, with gradients
    film                   the data of a film of 30 to 1,000 functions

The times are processor time, the least of several rounds. Each count runs in a fresh process: a
large graph before would leave a fragmented memory. A count below ``SMALL`` is repeated: each
round has ``SMALL`` units at least.

    python -m tools.benchmarks.growth
    python -m tools.benchmarks.growth --rows forward backward --most 100000
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinynode as tn
from tinynode import nn
from tinynode.show import record
from tinynode_fast.native import build
from tools.benchmarks import measure

GOAL = 1.3
"""The largest ratio of the time per unit, from one end to the other."""
SMALL = 1_000
"""A round has as many units at least."""

Work = Callable[[], float]
"""One measurement: seconds of processor time."""


def timed(call: Callable[[], Any]) -> float:
    """Seconds of processor time of a call. The result is freed after the measurement."""
    start = time.process_time_ns()
    result = call()
    seconds = (time.process_time_ns() - start) / 1e9
    del result
    return seconds


def leaf(size: int = 10) -> tn.Variable:
    return tn.Variable(np.linspace(0.5, 1.0, size, dtype=np.float32))


def chain(count: int) -> tn.Variable:
    """``y * w``, ``count`` times; a factor 1 keeps the numbers in range."""
    y, w = leaf(), tn.Variable(np.ones(10, np.float32))
    for _ in range(count):
        y = y * w
    return y


def forward(count: int) -> Work:
    return lambda: timed(lambda: chain(count))


def backward(count: int) -> Work:
    def work() -> float:
        y = chain(count)
        y.grad = np.ones(10, np.float32)
        return timed(y.backward)

    return work


def parameters(count: int) -> list[nn.Parameter]:
    return [nn.Parameter(np.full(10, 0.5, np.float32)) for _ in range(count)]


def update_of(kind: type[nn.Optimizer]) -> Callable[[int], Work]:
    def update(count: int) -> Work:
        weights = parameters(count)
        for weight in weights:
            weight.grad = np.full(10, 0.25, np.float32)
        optimizer = kind(weights, lr=0.001)
        return lambda: timed(optimizer.update)

    return update


def compiled_step_of(kind: type[nn.Optimizer], device: str) -> Callable[[int], Work]:
    def compiled_step(count: int) -> Work:
        with tn.using_device(device):
            weights = parameters(count)
            optimizer = kind(weights, lr=0.001)

            @tn.compile
            def step(x: tn.Variable) -> tn.Variable:
                loss = tn.functions.sum(tn.functions.stack([w * x for w in weights]))
                optimizer.cleargrads()
                loss.backward()
                optimizer.update()
                return loss

            x = tn.Variable(np.ones(10, np.float32), requires_grad=False)
        for _ in range(3):  # recording and planning
            step(x)
        if device == "fast":  # compiling aside
            build.wait()
        return lambda: timed(lambda: step(x))

    return compiled_step


def sequence_of(kind: Any) -> Callable[[int], Work]:
    def sequence(count: int) -> Work:
        layer = kind(8, 16)
        x = tn.Variable(np.ones((count, 4, 8), np.float32))

        def work() -> None:
            layer.cleargrads()
            result = layer(x)
            outputs = result[0] if isinstance(result, tuple) else result
            tn.functions.sum(outputs).backward()

        return lambda: timed(work)

    return sequence


def film(count: int) -> Work:
    with record("Growth") as filmed:
        y = chain(count)
    del y
    return lambda: timed(filmed.data)


class Row(NamedTuple):
    """One kind of growth.

    Attributes:
        unit: the unit that is counted.
        counts: the counts, from the smallest to the largest.
        prepare: count -> a measurement.
        rounds: measurements of each count.
    """

    unit: str
    counts: tuple[int, ...]
    prepare: Callable[[int], Work]
    rounds: int = 5


FUNCTIONS = (100, 1_000, 10_000, 100_000, 1_000_000)
PARAMETERS = (100, 1_000, 10_000)
STEPS = (16, 64, 256, 1_024)
NODES = (30, 100, 300, 1_000)

ROWS = {
    "forward": Row("function", FUNCTIONS, forward),
    "backward": Row("function", FUNCTIONS, backward),
    "SGD update": Row("parameter", PARAMETERS, update_of(nn.SGD), 15),
    "Adam update": Row("parameter", PARAMETERS, update_of(nn.Adam), 15),
    "SGD compiled step": Row("parameter", PARAMETERS, compiled_step_of(nn.SGD, "fast"), 15),
    "Adam compiled step": Row("parameter", PARAMETERS, compiled_step_of(nn.Adam, "fast"), 15),
    "RNN sequence": Row("step", STEPS, sequence_of(nn.RNN), 5),
    "LSTM sequence": Row("step", STEPS, sequence_of(nn.LSTM), 5),
    "film data": Row("node", NODES, film, 3),
}


def per_unit(row: Row, count: int, rounds: int) -> float:
    """Microseconds per unit: the least of the rounds, in this process."""
    work = row.prepare(count)
    repeats = max(1, SMALL // count)
    work()  # caches fill
    times = []
    for _ in range(rounds):
        gc.collect()
        times.append(sum(work() for _ in range(repeats)))
    return 1e6 * min(times) / (repeats * count)


def in_own_process(name: str, count: int, rounds: int) -> float:
    child = ["--rows", name, f"--child={count}", f"--rounds={rounds}"]
    found: float = measure.run_python("-m", "tools.benchmarks.growth", *child)
    return found


def cells_of(name: str, most: int, rounds: int) -> list[str]:
    """A row of the table: the name, microseconds per unit at each count, and the ratio."""
    row = ROWS[name]
    counts = [count for count in row.counts if count <= most] or [row.counts[0]]
    found = [in_own_process(name, count, rounds or row.rounds) for count in counts]
    ratio = found[-1] / found[0]
    shown = "  ".join(f"{count:,}: {time:.2f}" for count, time in zip(counts, found, strict=True))
    verdict = "yes" if ratio <= GOAL else "no"
    return [name, row.unit, shown, f"{ratio:.2f}", verdict]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Time per unit, as the counts grow.")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), help=f"of: {', '.join(ROWS)}")
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest count measured")
    parser.add_argument("--rounds", type=int, default=0, help="of each count, for all rows")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(ROWS)}")
    if options.child:
        (name,) = options.rows
        print(json.dumps(per_unit(ROWS[name], options.child, options.rounds)))
        return
    rows = [cells_of(name, options.most, options.rounds) for name in options.rows]
    print(measure.describe_setting(["numpy", "tinynode"]))
    print(f"least processor time per unit; the ratio is last to first, goal {GOAL}")
    head = ["growth", "unit", "count: us per unit", "ratio", f"at most {GOAL}"]
    measure.print_table(head, rows)


if __name__ == "__main__":
    main()
