"""What an allreduce costs on paper: the alpha-beta model of rings and trees.

A message of n bytes takes alpha + n beta seconds: alpha for the start, beta for each byte. The
model leaves out the additions, and assumes that a rank sends and receives at once.

| algorithm | steps | bytes sent by a rank | seconds |
|---|---|---|---|
| ring | 2 (p - 1) | 2 n (p - 1) / p | 2 (p - 1) alpha + 2 n beta (p - 1) / p |
| recursive doubling | L = ceil(log2 p) | L n | L (alpha + n beta) |
| binomial tree | 2 L | at most L n | 2 L (alpha + n beta) |

Source: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication
Operations in MPICH, 2005; P. Patarasuk and X. Yuan, Bandwidth Optimal All-reduce Algorithms for
Clusters of Workstations, 2009.

    python -m tools.benchmarks.collective_model --bytes 104488 --compute-ms 0.9
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from tools.benchmarks import measure

RANKS = 2, 4, 8, 64, 1024


class Network(NamedTuple):
    """A network.

    Attributes:
        name: the name.
        alpha: seconds for the start of a message.
        beta: seconds for a byte.
    """

    name: str
    alpha: float
    beta: float


ETHERNET = Network("ethernet, 10 Gbit/s", 30e-6, 8 / 10e9)
INFINIBAND = Network("InfiniBand, 200 Gbit/s", 2e-6, 8 / 200e9)
"""The betas are the rates of the names. The alphas are assumptions: the order of size of MPI's
latency over TCP, and over InfiniBand."""


def levels(p: int) -> int:
    """ceil(log2 p), in integers."""
    return (p - 1).bit_length()


def ring(p: int, n: float, network: Network) -> float:
    """The seconds of a ring allreduce of n bytes over p ranks."""
    return 2 * (p - 1) * network.alpha + 2 * n * network.beta * (p - 1) / p


def doubling(p: int, n: float, network: Network) -> float:
    """The seconds of an allreduce by recursive doubling: in each step all ranks swap n bytes."""
    return levels(p) * (network.alpha + n * network.beta)


def tree(p: int, n: float, network: Network) -> float:
    """The seconds of a sum up a binomial tree, and a broadcast down."""
    return 2 * levels(p) * (network.alpha + n * network.beta)


def ring_bytes(p: int, n: float) -> float:
    """The bytes that a rank sends in a ring."""
    return 2 * n * (p - 1) / p


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """alpha and beta with the least sum of squared relative errors of alpha + n beta.

    Args:
        sizes: the bytes of the messages, two different sizes at least.
        seconds: the measured times.
    """
    rows = [(1 / t, n / t) for n, t in zip(sizes, seconds, strict=True)]  # want row . x = 1
    aa = sum(a * a for a, _ in rows)
    ab = sum(a * b for a, b in rows)
    bb = sum(b * b for _, b in rows)
    ra, rb = sum(a for a, _ in rows), sum(b for _, b in rows)
    determinant = aa * bb - ab * ab
    return (ra * bb - rb * ab) / determinant, (aa * rb - ab * ra) / determinant


def best(p: int, n: float, network: Network) -> tuple[float, str]:
    """The seconds of the quickest algorithm, and the name."""
    return min((f(p, n, network), f.__name__) for f in (ring, doubling, tree))


def speedup(p: int, n: float, compute: float, network: Network) -> float:
    """The quotient of a step of one rank and a step of p ranks, with the same whole batch.

    The compute time is shared out evenly, and nothing is hidden:
    speedup = compute / (compute / p + allreduce).
    """
    return compute / (compute / p + best(p, n, network)[0])


def stops_paying(n: float, compute: float, network: Network, most: int = 2**16) -> int:
    """The number of ranks, a power of two, after which twice as many are no quicker.

    1 if two ranks are no quicker than one.
    """
    p = 1
    quickest = compute
    while p < most:
        step = compute / (2 * p) + best(2 * p, n, network)[0]
        if step >= quickest:
            break
        p, quickest = 2 * p, step
    return p


def table(n: float, compute: float, networks: Sequence[Network]) -> list[list[str]]:
    """Rows for each network and number of ranks."""
    rows = []
    for network in networks:
        for p in RANKS:
            seconds, name = best(p, n, network)
            rows.append(
                [
                    network.name,
                    str(p),
                    f"{ring(p, n, network) * 1e3:.3f}",
                    f"{doubling(p, n, network) * 1e3:.3f}",
                    f"{tree(p, n, network) * 1e3:.3f}",
                    name,
                    f"{(compute / p + seconds) * 1e3:.3f}",
                    f"{speedup(p, n, compute, network):.2f}",
                    f"{100 * speedup(p, n, compute, network) / p:.0f} %",
                ]
            )
    return rows


HEAD = [
    *("network", "ranks", "ring", "doubling", "tree", "best", "step, ms", "speedup"),
    "efficiency",
]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The alpha-beta model of an allreduce.")
    parser.add_argument("--bytes", type=float, required=True, help="of all gradients")
    parser.add_argument("--compute-ms", type=float, required=True, help="of a step on one rank")
    options = parser.parse_args(arguments)
    n, compute = options.bytes, options.compute_ms / 1e3
    print(f"{n / 1e3:.0f} kB of gradients, {options.compute_ms} ms of compute; times in ms\n")
    measure.print_table(HEAD, table(n, compute, [ETHERNET, INFINIBAND]))
    for network in (ETHERNET, INFINIBAND):
        p = stops_paying(n, compute, network)
        words = "several ranks never pay" if p == 1 else f"the quickest step has {p} ranks"
        print(f"\n{network.name}: {words}.")


if __name__ == "__main__":
    main()
