"""Seven workloads, from a chain of tiny operations to a transformer block, side by side.

W1 chain of 500 products and 500 sums on (10,), forward and backward, per operation. W2 step of a
perceptron 784-256-256-10 with Adam, batch 64 and 1,024. W3 step of a convolutional net with SGD,
batch 64. W4 transformer block, forward and backward. W5 ``sum(tanh(x) * sigmoid(x) + x * x)`` on
10^7 elements, value and gradient. W6 chain of 100,000 additions. W7 third derivative of
``sin(x) * exp(x)``, and a Hessian-vector product of a perceptron 64-64-10. All in float32.

tinynode runs on ``numpy``, on ``fast``, and compiled on ``fast``. Before the timing, results are
compared with a float64 reference by hand. Then the libraries take turns in a single process, in a
random order. Both wall time and processor time of all threads are shown; other programs disturb
processor time less. Each number of threads has a separate process.

    python -m tools.benchmarks.workloads
    python -m tools.benchmarks.workloads --only W1 W5 --threads 1 2 --rounds 30 --json results.json
    python -m tools.benchmarks.workloads --only W2 --libraries torch,torch.compile
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib.util
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# the number of threads of NumPy and the other libraries, set before their import
os.environ["OMP_NUM_THREADS"] = os.environ.get("BENCHMARK_THREADS", "1")
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
os.environ["NPROC"] = os.environ["OMP_NUM_THREADS"]  # JAX's own pool
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # one library's threads do not spin in another's time
os.environ["JAX_PLATFORMS"] = "cpu"
if os.environ["OMP_NUM_THREADS"] == "1":
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np

from tools.benchmarks import measure, models
from tools.benchmarks.chains import products_and_sums, sums
from tools.benchmarks.models import Run

PEERS = ("torch", "jax", "autograd", "mygrad", "torch.compile")
TINYNODE = {"numpy device": "numpy", "fast": "fast", "compiled": "fast"}
"""The contestants of tinynode, each with a device."""
BY_HAND = ("by hand", "in blocks by hand")
CALLS = 3  # the calls before results are compared: the third runs a finished plan
LEAST = 1e-2  # the shortest sample in seconds; quick calls are repeated


def host(x: Any) -> Any:
    """A result of any library as an array of NumPy."""
    if hasattr(x, "detach"):  # PyTorch, tinynode
        x = x.detach()
    array = getattr(x, "array", x)
    return np.asarray(getattr(array, "data", array) if "mygrad" in str(type(x)) else array)


# --- the list ------------------------------------------------------------------------------------


def workloads(tiny: bool) -> dict[str, Callable[[], Any]]:
    """The makers of the workloads; tiny workloads have the same structure and take no time."""
    size = 1000 if tiny else 10_000_000
    operations, deep = (10, 20) if tiny else (1000, 100_000)
    sizes = (8, 6, 6, 10) if tiny else (784, 256, 256, 10)
    few, many = (2, 3) if tiny else (64, 1024)
    net = models.ConvNet(2, 12) if tiny else models.ConvNet(64)
    block = models.Block(2, 3, 8, 2) if tiny else models.Block(16)
    return {
        "W1": lambda: models.Chain(products_and_sums, operations),
        "W2 batch 64": lambda: models.Training(models.Perceptron(few, sizes), "Adam"),
        "W2 batch 1024": lambda: models.Training(models.Perceptron(many, sizes), "Adam"),
        "W3": lambda: models.Training(net, "SGD"),
        "W4": lambda: models.Training(block, ""),
        "W5": lambda: models.Formula(size),
        "W6": lambda: models.Chain(sums, deep),
        "W7 third derivative": lambda: models.Third(10 if tiny else 1000),
        "W7 Hessian-vector": lambda: models.HessianVector(2 if tiny else 32),
    }


LEFT_OUT = {
    "W1": {"in blocks by hand", "torch.compile"},
    "W2": {"in blocks by hand"},
    "W3": {"in blocks by hand", "autograd", "mygrad"},
    "W4": {"in blocks by hand", "autograd", "mygrad"},
    "W5": set(),
    # recording and planning a chain of 100,000 would take the time
    "W6": {"compiled", "by hand", "in blocks by hand", "jax", "torch.compile"},
    "W7 t": {"by hand", "in blocks by hand", "mygrad", "torch.compile"},
    "W7 H": {"in blocks by hand", "mygrad", "torch.compile"},
}
"""The libraries left out, by the start of the title."""

GOALS = [  # workload, contestant of tinynode, peer, largest ratio
    ("W1", "compiled", "torch", 0.05),
    ("W2 batch 64", "compiled", "torch", 0.8),
    ("W2 batch 64", "compiled", "jax", 0.95),
    ("W2 batch 1024", "compiled", "torch", 0.95),
    ("W3", "compiled", "torch", 0.85),
    ("W4", "compiled", "torch", 0.9),
    ("W5", "compiled", "jax", 0.5),
    ("W7 Hessian-vector", "compiled", "torch", 0.4),
    ("W1", "numpy device", "torch", 1.15),
    ("W2 batch 64", "numpy device", "torch", 1.3),
    ("W2 batch 1024", "numpy device", "torch", 1.1),
    ("W3", "numpy device", "torch", 1.5),
    ("W4", "numpy device", "torch", 1.15),
    ("W5", "numpy device", "jax", 2.5),
    ("W6", "numpy device", "torch", 1.1),
    ("W7 Hessian-vector", "numpy device", "torch", 1.3),
]
WEIGHED = ("W2 batch 64", "W2 batch 1024", "W5")
MEMORY_GOAL, COMPILE_GOALS = 1.0, {"W2 batch 64": 50.0, "W4": 1000.0}


def left_out(title: str) -> set[str]:
    return next(names for start, names in LEFT_OUT.items() if title.startswith(start))


def make_run(workload: Any, name: str) -> Run:
    """A contestant's function for a single run with results."""
    if name in TINYNODE:
        with on_device(name):
            run: Run = workload.tinynode(name == "compiled")
            return run
    if name == "torch.compile":
        run = workload.torch(compiled=True)
        return run
    run = getattr(workload, name.replace(" ", "_"))()
    return run


def on_device(name: str) -> Any:
    """A ``with`` block for the device of a contestant; the default device needs none."""
    if name not in TINYNODE:
        return contextlib.nullcontext()
    import tinynode

    if tinynode.get_device() is tinynode.get_device(TINYNODE[name]):
        return contextlib.nullcontext()  # as in a program that sets no device
    return tinynode.using_device(TINYNODE[name])


def wait_for_c(name: str) -> None:
    """Wait until the C of the compiled functions so far is in use."""
    if name == "compiled":
        from tinynode_fast.native import build

        build.wait()


def check(workload: Any, runs: dict[str, Run]) -> None:
    """Compare all results after a few calls with the reference."""
    by_reference = workload.reference()
    for _ in range(CALLS):
        wanted = by_reference()
    for name, run in runs.items():
        with on_device(name):
            for _ in range(CALLS):
                results = run()
                wait_for_c(name)  # so the last call runs the C
        for position, (result, right) in enumerate(zip(results, wanted, strict=True)):
            if right is None:
                continue
            rtol, atol = workload.tolerances(right)
            title = f"{name}, result {position}"
            np.testing.assert_allclose(host(result), right, rtol, atol, err_msg=title)
            usual = np.abs(host(result) - right).mean()
            assert usual <= (atol + rtol * np.abs(right).max()) / 20, (title, usual)


# --- measuring, in the process with the right number of threads ----------------------------------


def sample(name: str, run: Run, repeats: int) -> tuple[float, float]:
    """Wall and processor seconds of a call."""
    with on_device(name):
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            run()
        end, cpu_end = time.perf_counter(), time.process_time()
    return (end - wall) / repeats, (cpu_end - cpu) / repeats


def repeats_for(name: str, run: Run) -> int:
    once = min(sample(name, run, 1)[0] for _ in range(2))
    return max(1, int(LEAST / once))


def measure_workload(workload: Any, names: Sequence[str], rounds: int) -> dict[str, Any]:
    """For each library the wall and processor seconds of each round."""
    runs = {name: make_run(workload, name) for name in names}
    check(workload, runs)
    repeats = {name: repeats_for(name, run) for name, run in runs.items()}
    times: dict[str, Any] = {name: {"wall": [], "cpu": []} for name in runs}
    order, shuffler = list(runs), random.Random(0)
    for _ in range(rounds):
        # the threads of a library go on for a moment, so no library always comes after another
        shuffler.shuffle(order)
        for name in order:
            wall, cpu = sample(name, runs[name], repeats[name])
            times[name]["wall"].append(wall)
            times[name]["cpu"].append(cpu)
    return times


def compile_times(workload: Any, times: int) -> dict[str, list[float]]:
    """The extra milliseconds of a compiled function's first call over later calls."""
    found: dict[str, list[float]] = {"wall": [], "cpu": []}
    for _ in range(times):
        run = make_run(workload, "compiled")
        first = sample("compiled", run, 1)
        later = sample("compiled", run, 3)
        for kind, a, b in zip(found, first, later, strict=True):
            found[kind].append((a - b) * 1e3)
    return found


def measure_all(titles: Sequence[str], names: Sequence[str], options: Any) -> dict[str, Any]:
    made = workloads(options.tiny)
    results: dict[str, Any] = {"load": [os.getloadavg()[0]], "workloads": {}, "compile": {}}
    for title in titles:
        rounds = max(1, min(options.rounds, 3)) if title == "W6" else options.rounds
        present = [name for name in names if name not in left_out(title)]
        results["workloads"][title] = measure_workload(made[title](), present, rounds)
        if title in COMPILE_GOALS:
            results["compile"][title] = compile_times(made[title](), min(options.rounds, 5))
        gc.collect()
    results["load"].append(os.getloadavg()[0])
    return results


STATUS = Path("/proc/self/status")


def peak_bytes(title: str, name: str, tiny: bool) -> list[int]:
    """The peak memory of a workload beside the inputs: of all calls, and of later calls.

    A tiny workload runs first, so the code loaded by the library does not count. [] if the system
    does not tell.
    """
    workload = workloads(tiny)[title]()
    small = make_run(workloads(True)[title](), name)
    with on_device(name):
        for _ in range(CALLS):
            small()
            wait_for_c(name)
    del small
    gc.collect()
    give_pages_back()  # else a library that kept freed pages would seem to need less
    if not STATUS.exists():
        return []
    before = memory_line("VmRSS")
    run = make_run(workload, name)
    peaks = []
    with on_device(name):
        for _ in range(2):
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
            for _ in range(CALLS):
                run()
                wait_for_c(name)
            peaks.append(memory_line("VmHWM") - before)
    return [max(peaks), peaks[-1]]


def give_pages_back() -> None:
    """Give freed memory back to the system, where the C library can: see malloc_trim(3)."""
    with contextlib.suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def memory_line(key: str) -> int:
    """Bytes of the process, counted by Linux: VmRSS now, VmHWM at the peak."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


# --- the report ----------------------------------------------------------------------------------


def in_own_process(threads: int, *arguments: str) -> Any:
    os.environ["BENCHMARK_THREADS"] = str(threads)
    return measure.run_python("-m", "tools.benchmarks.workloads", *arguments)


def ratio(times: dict[str, Any], ours: str, theirs: str, kind: str) -> float | None:
    """The median of the ratios round by round; None if a time is missing."""
    if ours not in times or theirs not in times:
        return None
    return measure.median_ratio(times[ours][kind], times[theirs][kind])


def text(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def print_workload(title: str, times: dict[str, Any]) -> None:
    unit, scale = "ms", 1e3
    if title == "W1":
        unit, scale = "us per operation", 1e3  # of 1,000 operations
    print(f"\n{title}, {unit}")
    rows = []
    for name, one in times.items():
        row = [name]
        for kind in ("wall", "cpu"):
            row += [f"{statistics.median(one[kind]) * scale:.3g}"]
            row += [f"{min(one[kind]) * scale:.3g}"] if kind == "wall" else []
            row += [text(ratio(times, name, other, kind)) for other in ("torch", "jax")]
        rows.append(row)
    head = ["library", "median", "best", "/ torch", "/ jax", "CPU", "/ torch", "/ jax"]
    measure.print_table(head, rows)


def print_goals(results: dict[str, Any]) -> None:
    rows = []
    for title, ours, theirs, wanted in GOALS:
        times = results["workloads"].get(title, {})
        found = [ratio(times, ours, theirs, kind) for kind in ("wall", "cpu")]
        if found[0] is not None:
            rows.append([f"{title}: {ours} / {theirs}", f"{wanted:.2f}", *map(text, found)])
    if rows:
        print("\nwhere we want to be")
        measure.print_table(["ratio", "at most", "by the clock", "by the processor"], rows)
    for title, found in results["compile"].items():
        print(
            f"compiling {title}: median {statistics.median(found['wall']):.0f} ms, best "
            f"{min(found['wall']):.0f}, processor {statistics.median(found['cpu']):.0f} "
            f"(at most {COMPILE_GOALS[title]:.0f})"
        )


def weigh(titles: Sequence[str], names: Sequence[str], tiny: bool) -> dict[str, Any]:
    """Peak bytes of each library in a separate process."""
    shared = ["--tiny"] if tiny else []
    return {
        title: {
            name: in_own_process(1, "--peak", f"--only={title}", f"--libraries={name}", *shared)
            for name in (*TINYNODE, "torch", "jax")
            if name in names
        }
        for title in titles
        if title in WEIGHED
    }


def print_memory(weights: dict[str, Any]) -> None:
    rows = []
    for title, peaks in weights.items():
        for name, found in peaks.items():
            row = [f"{title}: {name}"]
            for peak, base in zip(found, peaks.get("torch") or [0, 0], strict=True):
                row += [f"{peak / 1e6:.1f}", f"{peak / base:.2f}" if base else "-"]
            rows.append(row)
    if rows:
        print(f"\npeak memory beside the inputs, MB (compiled / torch at most {MEMORY_GOAL})")
        head = ["workload", "with the first calls", "/ torch", "later calls", "/ torch"]
        measure.print_table(head, [row for row in rows if len(row) == len(head)])


def chosen(only: Sequence[str]) -> list[str]:
    """The titles with a requested start."""
    known = list(workloads(True))
    found = [title for title in known if any(title.startswith(part) for part in only)]
    unknown = [part for part in only if not any(title.startswith(part) for title in known)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
    return found or known


def available(asked_for: str) -> list[str]:
    """The contestants: tinynode, by hand, and the requested and installed peers."""
    wanted = [name for name in asked_for.split(",") if name]
    unknown = sorted(set(wanted) - set(PEERS))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(PEERS)}")
    found = []
    for name in wanted:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            print(f"skipped: {name} is not installed (pip install -e '.[peers]')")
        else:
            found.append(name)
    return [*TINYNODE, *BY_HAND, *found]


def report(options: Any) -> dict[str, Any]:
    """Run and print all workloads; returns the results for JSON."""
    titles, names = chosen(options.only), available(options.libraries)
    packages = ["tinynode", "numpy", *(n for n in names if n in PEERS and "." not in n)]
    setting = measure.describe_setting(packages).removesuffix("; one thread")
    everything: dict[str, Any] = {"setting": setting, "threads": {}}
    shared = ["--child", f"--rounds={options.rounds}", f"--libraries={','.join(names)}"]
    shared += ["--tiny"] if options.tiny else []
    for threads in options.threads:
        results = in_own_process(threads, *shared, "--only", *titles)
        everything["threads"][str(threads)] = results
        load = " to ".join(f"{n:.1f}" for n in results["load"])
        print(f"\n{setting}; {threads} thread{'s'[: threads != 1]}; load {load}")
        print(f"medians of {options.rounds} rounds; ratios are medians of those of each round")
        for title, times in results["workloads"].items():
            print_workload(title, times)
        print_goals(results)
    everything["peak bytes"] = weigh(titles, names, options.tiny)
    print_memory(everything["peak bytes"])
    return everything


def parse(arguments: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(description="Workloads W1 to W7, side by side.")
    parser.add_argument("--only", nargs="+", default=[], help="starts of titles, such as W1 W5")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="such as 1 2")
    parser.add_argument("--libraries", default=",".join(PEERS[:-1]), help="compared with tinynode")
    parser.add_argument("--rounds", type=int, default=20, help="medians are over these")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.child:
        names = options.libraries.split(",")
        print(json.dumps(measure_all(chosen(options.only), names, options)))
    elif options.peak:
        print(json.dumps(peak_bytes(options.only[0], options.libraries, options.tiny)))
    else:
        everything = report(options)
        if options.json is not None:
            options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
