"""Exercise processes, solved: a weighted mean, the ring, and its cost."""

import numpy as np


def weighted_mean(gradients, counts):
    """The sum of counts[r] * gradients[r], divided by the sum of counts. -> (n,)"""
    total = np.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        if count > 0:
            total = total + count * gradient
    return total / sum(counts)


def reduce_scatter(pieces, network):
    """Change the lists: pieces[r][r] becomes the sum of the pieces r of all ranks."""
    p = len(pieces)
    for s in range(p - 1):
        received = network.exchange([pieces[r][(r - 1 - s) % p] for r in range(p)])
        for r in range(p):
            i = (r - 2 - s) % p
            pieces[r][i] = pieces[r][i] + received[r]


def allgather(pieces, network):
    """Change the lists: pieces[r][i] becomes pieces[i][i], for each rank r and each piece i."""
    p = len(pieces)
    for s in range(p - 1):
        received = network.exchange([pieces[r][(r - s) % p] for r in range(p)])
        for r in range(p):
            pieces[r][(r - 1 - s) % p] = received[r]


def ring_allreduce(parts, network):
    """For each rank an array with the sum of all parts: p arrays (n,) of the same dtype."""
    p = len(parts)
    pieces = [list(np.array_split(part, p)) for part in parts]
    reduce_scatter(pieces, network)
    allgather(pieces, network)
    return [np.concatenate(own) for own in pieces]


def step_seconds(compute, ranks, size, alpha, beta):
    """The seconds of a step with ring allreduce of ``size`` bytes.

    ``compute`` is the time of the whole batch on a single rank. A single rank sends nothing.
    """
    message = alpha + beta * size / ranks
    return compute / ranks + 2 * (ranks - 1) * message


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
