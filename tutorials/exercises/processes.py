"""Exercise processes: a weighted mean, the ring, and its cost.

The ranks are entries of lists: ``parts[r]`` is the array (n,) of rank r. A call of
``network.exchange(sent)`` is a step of the ring. ``sent[r]`` is the array that rank r sends to
rank r + 1. The last rank sends to rank 0. The result is a list: entry r is what rank r receives.

1. Write ``weighted_mean``. A rank without examples has the count 0, and its mean loss is 0 / 0. So
   its gradient is NaN, and must not count.
2. Write ``reduce_scatter``: p - 1 steps, and in each step every rank sends a piece. On the page,
   rank r ends with the sum of piece r + 1. Here rank r ends with the sum of piece **r**, as in
   MPI. So which piece does rank r send in step s?
3. Write ``allgather``: p - 1 steps. Rank r begins with the finished piece r.
4. Write ``ring_allreduce``: cut each part into p pieces, run both, and put the pieces together.
   ``np.array_split`` also cuts a length that p does not divide. The arrays of the caller stay as
   they are.
5. Write ``step_seconds``: the computing takes a p-th of the time. A message of b bytes takes
   alpha + beta b, and all ranks send at the same time.
"""

import numpy as np


def weighted_mean(gradients, counts):
    """The sum of counts[r] * gradients[r], divided by the sum of counts. -> (n,)"""
    raise NotImplementedError("write weighted_mean")


def reduce_scatter(pieces, network):
    """Change the lists: pieces[r][r] becomes the sum of the pieces r of all ranks."""
    raise NotImplementedError("write reduce_scatter")


def allgather(pieces, network):
    """Change the lists: pieces[r][i] becomes pieces[i][i], for each rank r and each piece i."""
    raise NotImplementedError("write allgather")


def ring_allreduce(parts, network):
    """For each rank an array with the sum of all parts: p arrays (n,) of the same dtype."""
    raise NotImplementedError("write ring_allreduce")


def step_seconds(compute, ranks, size, alpha, beta):
    """The seconds of a step with ring allreduce of ``size`` bytes.

    ``compute`` is the time of the whole batch on a single rank. A single rank sends nothing.
    """
    raise NotImplementedError("write step_seconds")


class Network:
    """A ring that counts its steps, and the bytes that each rank sends."""

    def __init__(self, ranks):
        self.steps = 0
        self.bytes = [0] * ranks

    def exchange(self, sent):
        """What each rank receives: a copy of what the rank before it sends."""
        self.steps += 1
        self.bytes = [old + x.nbytes for old, x in zip(self.bytes, sent, strict=True)]
        return [sent[r - 1].copy() for r in range(len(sent))]


if __name__ == "__main__":  # python processes.py
    means = [np.array([1.0, 2.0]), np.array([4.0, 8.0]), np.array([np.nan, np.nan])]
    print("[2. 4.] is expected:", weighted_mean(means, [2, 1, 0]))
    ring = Network(3)
    for rank, total in enumerate(ring_allreduce([np.arange(7.0) * r for r in (1, 10, 100)], ring)):
        print("rank", rank, "has", total)
    print("4 steps are expected:", ring.steps, "with", ring.bytes, "bytes")
    for p in (1, 2, 8, 64):
        print(p, "ranks:", step_seconds(0.002, p, 104_488, 50e-6, 0.8e-9), "seconds")
