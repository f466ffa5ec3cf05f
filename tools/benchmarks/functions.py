"""The cost of each function, beside the plain NumPy formula and PyTorch, on a single thread.

Each function runs in float32 on a small input, about 1,000 elements, and a large input, about
10^6. The graph dominates the small time, arithmetic the large time. Forward, and forward with
backward, are timed. The quickest of several rounds counts: other programs only make calls slower.
NumPy computes the formula alone, so under "/ numpy" both times are ratios to NumPy's forward.
Before the timing, values are compared with NumPy and PyTorch, and gradients with PyTorch. The rows
are sorted, worst first, by the ratio of forward+backward to PyTorch. Without PyTorch, the ratio to
NumPy counts.

    python -m tools.benchmarks.functions
    python -m tools.benchmarks.functions --functions gelu conv2d --rounds 21
    python -m tools.benchmarks.functions --sizes large --worst 10
"""

from __future__ import annotations

import argparse
import itertools
import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.benchmarks import measure
from tools.benchmarks.function_table import TABLE, Entry

SIZES = ("small", "large")
LEAST = 1e-3  # the shortest sample in seconds; quick calls are repeated


# --- the libraries -------------------------------------------------------------------------------


def as_tuple(ys: Any) -> tuple[Any, ...]:
    return tuple(ys) if isinstance(ys, tuple | list) else (ys,)


class TinynodeRun:
    """An entry at a given size, in tinynode: outputs by forward, gradients by backward."""

    def __init__(self, one: Entry, arrays: Sequence[Any], modules: dict[str, Any]) -> None:
        self.library, self.functions = modules["tinynode"], modules["tinynode"].functions
        self.entry = one
        self.inputs = [self.library.Variable(x) if x.dtype.kind == "f" else x for x in arrays]
        self.leaves = [x for x in self.inputs if isinstance(x, self.library.Variable)]

    def forward(self) -> tuple[Any, ...]:
        return as_tuple(self.entry.ours(self.functions, *self.inputs, **self.entry.constants))

    def differentiable(self, ys: tuple[Any, ...]) -> list[Any]:
        return [y for y in ys if y.requires_grad]

    def backward(self, ys: list[Any], gys: list[Any]) -> list[Any]:
        return self.library.grad(ys, self.leaves, gys)

    def gradient(self, array: Any) -> Any:
        return self.library.Variable(array)

    def host(self, y: Any) -> Any:
        return None if y is None else y.array


class TorchRun:
    """The same in PyTorch."""

    def __init__(self, one: Entry, arrays: Sequence[Any], modules: dict[str, Any]) -> None:
        self.library = modules["torch"]
        self.inputs = [self.library.from_numpy(x) for x in arrays]
        self.leaves = [x.requires_grad_() for x in self.inputs if x.is_floating_point()]
        self.function: Any = one.torch
        self.arguments = [self.library, *self.inputs]
        if isinstance(one.torch, str):
            self.function = operator.attrgetter(one.torch)(self.library)
            self.arguments = self.inputs

    def forward(self) -> tuple[Any, ...]:
        return as_tuple(self.function(*self.arguments))

    def differentiable(self, ys: tuple[Any, ...]) -> list[Any]:
        return [y for y in ys if y.requires_grad]

    def backward(self, ys: list[Any], gys: list[Any]) -> list[Any]:
        return list(self.library.autograd.grad(ys, self.leaves, gys, allow_unused=True))

    def gradient(self, array: Any) -> Any:
        return self.library.from_numpy(array)

    def host(self, y: Any) -> Any:
        return None if y is None else y.numpy(force=True)


class NumPyRun:
    """The plain formula."""

    def __init__(self, one: Entry, arrays: Sequence[Any], modules: dict[str, Any]) -> None:
        self.entry, self.arrays = one, arrays

    def forward(self) -> tuple[Any, ...]:
        return as_tuple(self.entry.numpy(*self.arrays, **self.entry.constants))


RUNS: dict[str, Any] = {"numpy": NumPyRun, "tinynode": TinynodeRun, "torch": TorchRun}


def load(names: Sequence[str]) -> dict[str, Any]:
    """The libraries. Only measured libraries are imported, so the imports are here."""
    modules: dict[str, Any] = {}
    import tinynode

    modules["tinynode"] = tinynode
    if "torch" in names:
        import torch

        torch.set_num_threads(1)
        modules["torch"] = torch
    return modules


# --- measuring -----------------------------------------------------------------------------------

RANDOM = {"dropout"}  # libraries draw different numbers
UNSIGNED = {"linalg.eigh", "linalg.svd"}  # vectors are unique up to a sign


def check_values(one: Entry, runs: dict[str, Any]) -> None:
    """Compare the values of all libraries, and the gradients with PyTorch's."""
    if one.name in RANDOM | UNSIGNED:
        return
    ys = runs["tinynode"].forward()
    for name, run in runs.items():
        for y, other in zip(ys, run.forward(), strict=True):
            wanted = other if name == "numpy" else run.host(other)
            np.testing.assert_allclose(y.array, wanted, 1e-3, 1e-3, err_msg=f"{one.name}: {name}")
    if "torch" not in runs or not runs["tinynode"].differentiable(ys):
        return
    results = []
    for run in (runs["tinynode"], runs["torch"]):
        outputs = run.differentiable(run.forward())
        gys = [run.gradient(gy) for gy in gradients_of(run, outputs)]
        results.append([run.host(gx) for gx in run.backward(outputs, gys)])
    for gx, wanted in zip(*results, strict=True):
        if gx is None or wanted is None:
            assert not np.any(gx) or not np.any(wanted), one.name
            continue
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(gx, wanted, 1e-3, 1e-3 * scale, err_msg=one.name)


def gradients_of(run: Any, ys: list[Any]) -> list[Any]:
    """A random gradient for each output, as an array."""
    rng = np.random.default_rng(5)
    return [np.asarray(rng.standard_normal(y.shape), run.host(y).dtype) for y in ys]


def step(run: Any) -> Callable[[], Any]:
    """Forward and backward as a single call."""
    ys = run.differentiable(run.forward())
    gys = [run.gradient(gy) for gy in gradients_of(run, ys)]

    def both() -> Any:
        return run.backward(run.differentiable(run.forward()), gys)

    return both


def seconds(call: Callable[[], Any], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def repeats_of(call: Callable[[], Any]) -> int:
    """The number of calls in a sample of at least ``LEAST`` seconds."""
    call()
    return max(1, math.ceil(LEAST / max(seconds(call, 1), 1e-7)))


@dataclass
class Row:
    """The best times of an entry at a given size, in microseconds, and ratios; None if missing."""

    name: str
    forward: float
    to_numpy: float
    to_torch: float | None
    both: float | None = None
    both_to_numpy: float | None = None
    both_to_torch: float | None = None

    def badness(self) -> tuple[bool, float]:
        """The key for sorting: rows with a ratio to PyTorch come first."""
        ratio = self.to_torch if self.both is None else self.both_to_torch
        if ratio is not None:
            return True, ratio
        return False, self.both_to_numpy or self.to_numpy

    def cells(self) -> list[str]:
        times = [self.forward, self.to_numpy, self.to_torch]
        times += [self.both, self.both_to_numpy, self.both_to_torch]
        formats = ("{:.1f}", "{:.2f}", "{:.2f}")
        pairs = zip(itertools.cycle(formats), times)
        return [self.name, *("-" if value is None else how.format(value) for how, value in pairs)]


def measure_entry(one: Entry, size: str, modules: dict[str, Any], rounds: int) -> Row:
    """Measure every library once in each round: a slow round is slow for all."""
    arrays = [data.make(size, seed) for seed, data in enumerate(one.data)]
    names = [name for name in RUNS if name in ("numpy", *modules)]
    if one.torch is None and "torch" in names:
        names.remove("torch")
    runs = {name: RUNS[name](one, arrays, modules) for name in names}
    check_values(one, runs)
    calls = {name: run.forward for name, run in runs.items()}
    if runs["tinynode"].differentiable(runs["tinynode"].forward()):
        calls |= {f"{name} both": step(runs[name]) for name in names if name != "numpy"}
    repeats = {name: repeats_of(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats[name]))
    return make_row(one, size, times)


def make_row(one: Entry, size: str, times: dict[str, list[float]]) -> Row:
    def ratio(ours: str, theirs: str) -> float | None:
        if ours not in times or theirs not in times:
            return None
        return min(times[ours]) / min(times[theirs])

    options = ", ".join(f"{k}={v}" for k, v in one.constants.items() if k in TELLING)
    both = times.get("tinynode both")
    return Row(
        f"{one.name}{f' {options}' if options else ''}, {size}",
        min(times["tinynode"]) * 1e6,
        ratio("tinynode", "numpy") or math.nan,
        ratio("tinynode", "torch"),
        min(both) * 1e6 if both else None,
        ratio("tinynode both", "numpy"),
        ratio("tinynode both", "torch both"),
    )


TELLING = {"approximate", "causal", "kernel_size", "label_smoothing"}


def chosen(names: Sequence[str]) -> list[Entry]:
    """The entries of some functions, or all. Raises SystemExit for an unknown name."""
    known = {one.name for one in TABLE}
    unknown = sorted(set(names) - known)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(sorted(known))}")
    return [one for one in TABLE if one.name in names or not names]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Cost per function, side by side.")
    parser.add_argument(
        "--functions", nargs="+", default=[], metavar="NAME", help="all by default"
    )
    parser.add_argument("--libraries", default="torch", help="compared with tinynode and NumPy")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES, help="both by default")
    parser.add_argument("--rounds", type=int, default=15, help="the quickest of these counts")
    parser.add_argument("--worst", type=int, help="print only so many rows")
    options = parser.parse_args(arguments)
    entries = chosen(options.functions)
    names = measure.available(["numpy", "tinynode", "torch"], f"numpy,{options.libraries}")
    modules = load(names)
    rows = [
        measure_entry(one, size, modules, options.rounds)
        for one in entries
        for size in options.sizes
    ]
    rows.sort(key=Row.badness, reverse=True)
    print(measure.describe_setting(names))
    print(
        "times in microseconds, ratios to NumPy's forward and to PyTorch, the quickest of "
        f"{options.rounds} rounds"
    )
    head = ["function", "forward", "/ numpy", "/ torch", "both", "both / numpy", "both / torch"]
    measure.print_table(head, [row.cells() for row in rows[: options.worst]])


if __name__ == "__main__":
    main()
