"""Transforms side by side: per-example gradients, Jacobians, Hessians, forward mode.

- gradients: of each example's loss, by ``vmap`` of the gradient of a perceptron, at batch 64.
- jacrev, jacfwd: the Jacobian of a tanh network R^30 -> R^30.
- hessian: of a function of 50 variables.
- hvp: a Hessian-vector product of a perceptron 64-64-10.
- jvp: forward mode of a perceptron, a convolutional net and a transformer block, along a direction
  of the input. The function alone is measured too, as "forward".

All in float32.

tinynode runs on ``numpy`` and on ``fast``, eager and compiled. The peers are ``torch.func``, JAX
and ``jax.jit``. The gradients are also computed in a loop over the examples, and by hand in NumPy.
Before the timing, all results are compared. Then the contestants take turns in a single process.
Each number of threads has a separate process.

    python -m tools.benchmarks.transforms
    python -m tools.benchmarks.transforms --only gradients hessian --threads 1 2 --rounds 30
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.benchmarks import workloads  # before NumPy: sets the number of threads

import numpy as np  # isort: skip

from tools.benchmarks import measure, transform_jobs
from tools.benchmarks.models import Run

PEERS = {"torch.func": "torch", "jax": "jax", "jax.jit": "jax"}
TINYNODE = ("numpy", "fast", "numpy compiled", "fast compiled")
GRADIENTS = ("gradients 64-64-10", "gradients 784-100-10")
FORWARD_MODE = ("jvp perceptron", "jvp convolution", "jvp transformer")

GOALS = [  # job, contestant of tinynode, other contestant, largest ratio
    *((title, "fast", "torch.func", 1.3) for title in GRADIENTS),
    *((title, "fast compiled", "torch.func", 1.3) for title in GRADIENTS),
    *((title, "numpy", "numpy, loop", 0.04) for title in GRADIENTS),
    *((title, "numpy compiled", "numpy, loop", 0.04) for title in GRADIENTS),
    *((title, "numpy", "numpy, forward", 5.0) for title in FORWARD_MODE),
    *((title, "fast", "fast, forward", 5.0) for title in FORWARD_MODE),
    *((title, "numpy compiled", "numpy compiled, forward", 2.2) for title in FORWARD_MODE),
    *((title, "fast compiled", "fast compiled, forward", 2.2) for title in FORWARD_MODE),
]


def library(name: str) -> Any:
    if name in TINYNODE:
        return transform_jobs.Tinynode(name.endswith("compiled"))
    return (
        transform_jobs.Torch() if name == "torch.func" else transform_jobs.JAX(name == "jax.jit")
    )


def on_device(name: str) -> Any:
    """A ``with`` block for the device of a contestant."""
    device = name.partition(",")[0].partition(" ")[0]
    if device not in TINYNODE:
        return contextlib.nullcontext()
    import tinynode

    return tinynode.using_device(device)


def arrays(one: Any, tree: Any) -> Any:
    """The arguments as arrays of a library."""
    if isinstance(tree, dict):
        return {key: arrays(one, part) for key, part in tree.items()}
    return tuple([arrays(one, x) for x in tree]) if isinstance(tree, tuple) else one.array(tree)


def leaves(tree: Any) -> list[Any]:
    """The arrays of a result as arrays of NumPy."""
    if isinstance(tree, dict):
        return [x for key in sorted(tree) for x in leaves(tree[key])]
    if isinstance(tree, tuple | list):
        return [x for part in tree for x in leaves(part)]
    return [np.asarray(workloads.host(tree))]


def contestants(job: Any, names: Sequence[str]) -> dict[str, Run]:
    """The runs of a job: the transform, then others for comparison."""
    runs = {name: make_run(job, name, job.make) for name in names}
    if job.by_hand is not None:
        runs["by hand"] = lambda: job.by_hand(*job.arguments)
    if job.loop is not None:
        runs["numpy, loop"] = make_run(job, "numpy", job.loop)
    if job.forward is not None:
        runs |= {f"{name}, forward": make_run(job, name, job.forward) for name in names}
    return runs


def make_run(job: Any, name: str, make: Any) -> Run:
    with on_device(name):
        one = library(name)
        function = one.ready(make(one, one.ops))
        given = arrays(one, job.arguments)
    return lambda: function(*given)


def check(runs: dict[str, Run]) -> None:
    """Compare the results of all contestants with the first, after a few calls."""
    wanted: list[Any] = []
    for name, run in runs.items():
        with on_device(name):
            for _ in range(workloads.CALLS):
                result = run()
        found = leaves(result)
        wanted = wanted or found
        is_whole = "forward" not in name
        assert len(found) == (len(wanted) if is_whole else 1), (name, len(found))
        for position, (x, right) in enumerate(zip(found, wanted, strict=is_whole)):
            atol = 1e-5 * float(np.abs(right).max(initial=0))
            title = f"{name}, result {position}"
            np.testing.assert_allclose(x, right, 1e-3, 10 * atol, err_msg=title)
            assert np.abs(x - right).mean() <= atol, title


def measure_job(
    job: Any, names: Sequence[str], rounds: int, of_processor: bool
) -> dict[str, list[float]]:
    """For each contestant the seconds of each round, by the clock or of the processor."""
    runs = contestants(job, names)
    check(runs)
    repeats = {}
    for name, run in runs.items():
        with on_device(name):
            repeats[name] = workloads.repeats_for(name, run)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            with on_device(name):
                seconds = workloads.sample(name, run, repeats[name])
                times[name].append(seconds[1 if of_processor else 0])
    return times


def measure_all(titles: Sequence[str], names: Sequence[str], options: Any) -> dict[str, Any]:
    made = transform_jobs.jobs(options.tiny)
    results: dict[str, Any] = {"load": [os.getloadavg()[0]], "jobs": {}}
    for title in titles:
        job = made[title]()
        results["jobs"][title] = measure_job(job, names, options.rounds, options.processor)
        gc.collect()
    results["load"].append(os.getloadavg()[0])
    return results


# --- the report ----------------------------------------------------------------------------------


def ratio(times: dict[str, list[float]], ours: str, theirs: str) -> float | None:
    """The median of the ratios round by round; None if a contestant is missing."""
    if ours not in times or theirs not in times:
        return None
    return measure.median_ratio(times[ours], times[theirs])


def print_jobs(jobs: dict[str, dict[str, list[float]]]) -> None:
    others = ("torch.func", "jax.jit")
    rows = []
    for title, times in jobs.items():
        for name, seconds in times.items():
            row = [f"{title}: {name}", f"{statistics.median(seconds) * 1e3:.3g}"]
            row.append(f"{min(seconds) * 1e3:.3g}")
            suffix = ", forward" if name.endswith(", forward") else ""
            row += [workloads.text(ratio(times, name, other + suffix)) for other in others]
            row.append(workloads.text(ratio(times, name, f"{name}, forward")))
            rows.append(row)
    head = ["job", "median, ms", "best, ms", *(f"/ {other}" for other in others), "/ forward"]
    measure.print_table(head, rows)


def print_goals(jobs: dict[str, dict[str, list[float]]]) -> None:
    rows = []
    for title, ours, theirs, wanted in GOALS:
        found = ratio(jobs.get(title, {}), ours, theirs)
        if found is not None:
            rows.append([f"{title}: {ours} / {theirs}", f"{wanted:.2f}", f"{found:.3f}"])
    if rows:
        print("\nwhere we want to be")
        measure.print_table(["ratio", "at most", "measured"], rows)


def chosen(only: Sequence[str]) -> list[str]:
    """The jobs with a requested start."""
    known = list(transform_jobs.jobs(True))
    unknown = [part for part in only if not any(title.startswith(part) for title in known)]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
    return [t for t in known if not only or any(t.startswith(part) for part in only)]


def available(asked_for: str) -> list[str]:
    """The contestants: tinynode's, and the requested and installed peers."""
    wanted = [name for name in asked_for.split(",") if name]
    unknown = sorted(set(wanted) - set(PEERS))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; choose from {', '.join(PEERS)}")
    found = []
    for name in wanted:
        if importlib.util.find_spec(PEERS[name]) is None:
            print(
                f"skipped: {name}, for {PEERS[name]} is not installed (pip install {PEERS[name]})"
            )
        else:
            found.append(name)
    return [*TINYNODE, *found]


def report(options: Any) -> dict[str, Any]:
    """Run and print all jobs; returns the results for JSON."""
    titles, names = chosen(options.only), available(options.libraries)
    packages = dict.fromkeys(["tinynode", "numpy", *(PEERS[n] for n in names if n in PEERS)])
    setting = measure.describe_setting(packages).removesuffix("; one thread")
    everything: dict[str, Any] = {"setting": setting, "threads": {}}
    peers = ",".join(name for name in names if name in PEERS)
    shared = ["--child", f"--rounds={options.rounds}", f"--libraries={peers}"]
    shared += ["--tiny"] if options.tiny else []
    shared += ["--processor"] if options.processor else []
    for threads in options.threads:
        os.environ["BENCHMARK_THREADS"] = str(threads)
        command = ("-m", "tools.benchmarks.transforms", *shared, "--only", *titles)
        results = measure.run_python(*command)
        everything["threads"][str(threads)] = results
        load = " to ".join(f"{n:.1f}" for n in results["load"])
        print(f"\n{setting}; {threads} thread{'s'[: threads != 1]}; load {load}")
        clock = "of processor time, " if options.processor else ""
        print(f"medians {clock}of {options.rounds} rounds; ratios are medians of those of each")
        print_jobs(results["jobs"])
        print_goals(results["jobs"])
    return everything


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Transforms, side by side.")
    parser.add_argument("--only", nargs="+", default=[], help="starts of jobs, such as jvp hvp")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], help="such as 1 2")
    parser.add_argument("--libraries", default=",".join(PEERS), help="compared with tinynode")
    parser.add_argument("--rounds", type=int, default=15, help="medians are over these")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--processor", action="store_true", help="processor time: a busy machine")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        names = available(options.libraries)
        print(json.dumps(measure_all(chosen(options.only), names, options)))
        return
    everything = report(options)
    if options.json is not None:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
