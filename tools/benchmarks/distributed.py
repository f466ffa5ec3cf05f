"""A training step on 1, 2 and 4 ranks: compute, allreduce, and what hides behind the compute.

    python -m tools.benchmarks.distributed

The program starts itself by ``mpiexec``. The whole batch is the same for each number of ranks. All
figures are medians over rounds, and each rank has a single thread. In a round the ways of a step
take turns, in a random order. A step begins and ends with a barrier, so the slowest rank counts.

- compute: forward, backward and update, without an exchange.
- exchange: the exchange of the gradients alone.
- after: all gradients leave after the backward pass, as a single message.
- overlapped: buckets of 4 MiB leave during the backward pass. Small gradients fit a bucket, and
  then leave after the pass too.
- hidden: (after - overlapped) / (after - compute), the share of the communication that is hidden.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import distributed, nn
from tinynode.commands import digits, digits_cnn
from tools.benchmarks import collective_model, measure

SIZES = [8, 128, 1024, 8192, 65536, 524288, 4194304, 16777216]


def wide_model() -> nn.Module:
    """A convolutional network with 2.1 million weights in the first linear layer: 8 MiB."""
    return nn.Sequential(
        digits_cnn.AsImages(),
        nn.Conv2d(1, 32, 3, padding=1),
        tn.functions.relu,
        nn.Conv2d(32, 64, 3, padding=1),
        tn.functions.relu,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 2048),
        tn.functions.relu,
        nn.Linear(2048, 10),
    )


JOBS: list[tuple[str, Callable[[], nn.Module], int]] = [
    ("digits perceptron", digits.make_model, 64),
    ("convolutional network", digits_cnn.make_model, 64),
    ("convolutional network", digits_cnn.make_model, 256),
    ("wide convolutional network", wide_model, 64),
]
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
WAYS = "compute", "exchange", "after", "overlapped"


def message_times(comm: distributed.Communicator, rounds: int) -> list[float]:
    """The median seconds of an allreduce of each size."""
    found = []
    for size in SIZES:
        array = np.zeros(size // 4, np.float32)
        times = []
        for _ in range(rounds):
            comm.barrier()
            start = time.perf_counter()
            comm.start_allreduce(array).wait()
            times.append(time.perf_counter() - start)
        found.append(statistics.median(times))
    return found


class Step:
    """A step of training on the part of this rank, in several ways."""

    def __init__(self, make_model: Callable[[], nn.Module], batch: int, comm: Any) -> None:
        tn.seed(0)
        self.comm = comm
        self.model = make_model()
        distributed.broadcast_parameters(self.model)
        data = nn.datasets.load_digits()
        whole = nn.ArrayDataset(data.train_images[:batch], data.train_labels[:batch])
        loader = nn.DataLoader(whole, batch, seed=0)
        (share,) = distributed.scatter_batches(loader, comm)
        self.x, self.t = share.batch
        self.examples = share.examples
        plain = nn.Adam(self.model, lr=1e-4)
        after = distributed.DistributedOptimizer(plain, comm, 2**30, overlap=False)
        overlapped = distributed.DistributedOptimizer(plain, comm)
        self.plain, self.optimizers = plain, {"after": after, "overlapped": overlapped}
        self.bytes = sum(p.size * p.dtype.itemsize for p in self.model.parameters())

    def run(self, way: str) -> None:
        """A step, or an exchange of the present gradients."""
        if way == "exchange":
            self.optimizers["after"].average_gradients(self.examples)
            return
        self.plain.cleargrads()
        loss = tn.functions.softmax_cross_entropy(self.model(self.x), self.t)
        if way == "compute":
            loss.backward()
            self.plain.update()
        else:
            optimizer = self.optimizers[way]
            optimizer.backward(loss, weight=self.examples)
            optimizer.update()

    def seconds(self, way: str) -> float:
        """The time of the slowest rank."""
        self.comm.barrier()
        start = time.perf_counter()
        self.run(way)
        self.comm.barrier()
        return time.perf_counter() - start


def measured(rounds: int) -> dict[str, Any]:
    """The figures of this number of ranks."""
    comm = distributed.world()
    jobs = []
    for name, make_model, batch in JOBS:
        step = Step(make_model, batch, comm)
        step.seconds("compute")  # the first step leaves gradients for the exchange
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        order, shuffler = list(WAYS), random.Random(0)  # the same order on each rank
        for _ in range(rounds):
            shuffler.shuffle(order)
            for way in order:
                times[way].append(step.seconds(way))
        medians = {way: statistics.median(times[way][1:]) for way in WAYS}
        jobs.append({"name": name, "batch": batch, "bytes": step.bytes, **medians})
    return {"ranks": comm.size, "messages": message_times(comm, rounds), "jobs": jobs}


def on_ranks(number: int, rounds: int) -> dict[str, Any]:
    """The figures of a number of ranks, in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.json")
        worker = ["-m", "tools.benchmarks.distributed"]
        worker += ["--worker", str(path), "--rounds", str(rounds)]
        start = [] if number == 1 else [launcher() or "mpiexec", "-n", str(number)]
        environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
        subprocess.run([*start, sys.executable, *worker], check=True, env=environment)
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def launcher() -> str | None:
    """The path of mpiexec; None if several ranks cannot run here."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpiexec", path=beside) or shutil.which("mpiexec")


def hidden_share(job: dict[str, Any]) -> str:
    """The share of the communication that is hidden, in per cent."""
    cost = job["after"] - job["compute"]
    return "-" if cost <= 0 else f"{100 * (job['after'] - job['overlapped']) / cost:.0f} %"


def print_report(every: list[dict[str, Any]]) -> None:
    """The tables of steps and of messages."""
    print(f"{measure.describe_setting(['numpy', 'mpi4py'])} in each rank\n")
    rows = []
    for number, (name, _, batch) in enumerate(JOBS):
        for figures in every:
            job = figures["jobs"][number]
            times = [f"{1e3 * job[way]:.2f}" for way in WAYS]
            first = every[0]["jobs"][number]["compute"]
            gain = f"{first / min(job['after'], job['overlapped']):.2f}"
            share = hidden_share(job) if figures["ranks"] > 1 else "-"
            rows.append([f"{name}, {batch}", figures["ranks"], *times, share, gain])
    head = ["job, batch", "ranks", *[f"{way}, ms" for way in WAYS], "hidden", "speedup"]
    measure.print_table(head, rows)
    print()
    several = [figures for figures in every if figures["ranks"] > 1]
    columns = [[f"{1e6 * t:.1f}" for t in figures["messages"]] for figures in several]
    sizes = [[str(size), *row] for size, *row in zip(SIZES, *columns, strict=True)]
    measure.print_table(
        ["bytes", *[f"{figures['ranks']} ranks, us" for figures in several]], sizes
    )
    for figures in several:
        alpha, beta = collective_model.fit(SIZES, figures["messages"])
        print(
            f"\nallreduce on {figures['ranks']} ranks of this machine: alpha "
            f"{1e6 * alpha:.1f} us, beta {1e9 * beta:.2f} ns a byte"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A training step on several ranks.")
    parser.add_argument("--rounds", type=int, default=40, help="medians are over these")
    parser.add_argument("--ranks", default="1,2,4", help="the numbers of ranks")
    parser.add_argument("--json", metavar="PATH", help="write all figures to a file")
    parser.add_argument("--worker", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        figures = measured(options.rounds)
        if distributed.world().is_main:
            Path(options.worker).write_text(json.dumps(figures))
        return
    numbers = [int(text) for text in options.ranks.split(",")]
    if launcher() is None:
        print("skipped: several ranks need mpi4py and mpiexec (pip install 'tinynode[mpi]')")
        numbers = [number for number in numbers if number == 1]
    every = [on_ranks(number, options.rounds) for number in numbers]
    print_report(every)
    if options.json:
        Path(options.json).write_text(json.dumps(every))


if __name__ == "__main__":
    main()
