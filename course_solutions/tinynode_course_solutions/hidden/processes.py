"""Hidden checks of the elective processes: other lengths, and the best number of ranks."""

import numpy as np

from tinynode_course.checks import expect_close, expect_equal


class Ring:
    """A ring that counts steps, and the bytes of all ranks."""

    def __init__(self):
        self.steps = self.bytes = 0

    def exchange(self, sent):
        self.steps += 1
        self.bytes += sum(x.nbytes for x in sent)
        return [sent[r - 1].copy() for r in range(len(sent))]


LOOK = "Take three ranks with letters, as on the page, and follow each piece on paper."


def check_five_ranks(work):
    """Lengths around a multiple of 5."""
    for n in (1, 24, 25, 26):
        parts = [np.arange(float(n)) * 10**r for r in range(5)]
        network = Ring()
        got = work.ring_allreduce(parts, network)
        for r in range(5):
            expect_close(f"{n} numbers: rank {r}", got[r], np.arange(float(n)) * 11111, LOOK)
        expect_equal(f"{n} numbers: the steps", network.steps, 8, LOOK)
        expect_equal(f"{n} numbers: the bytes of all", network.bytes, 8 * 8 * n, LOOK)


def check_the_mean_by_the_ring(work):
    """Weights and ring together: the mean over all examples, on every rank."""
    examples = np.random.default_rng(5).normal(size=(9, 4))
    counts = [5, 1, 3]
    means = [part.mean(axis=0) for part in np.split(examples, np.cumsum(counts)[:-1])]
    weighted = [n * mean / 9 for n, mean in zip(counts, means, strict=True)]
    got = work.ring_allreduce(weighted, Ring())
    for r in range(3):
        expect_close(f"rank {r}", got[r], work.weighted_mean(means, counts), LOOK)
        expect_close(f"rank {r}", got[r], examples.mean(axis=0), LOOK)


def check_cost(work):
    """The fastest number of ranks is neither the smallest nor the largest."""
    seconds = [work.step_seconds(1.0, p, 1e6, 1e-2, 1e-8) for p in (1, 2, 4, 8, 16, 32)]
    look = "compute / p gets smaller with p, and 2 (p - 1) alpha larger."
    expect_equal("the fastest of 1, 2, 4, 8, 16, 32 ranks", int(np.argmin(seconds)), 3, look)
    by_hand = 1 / 8 + 14 * (1e-2 + 1e-8 * 1e6 / 8)
    expect_close("the seconds of 8 ranks", seconds[3], by_hand, look)
