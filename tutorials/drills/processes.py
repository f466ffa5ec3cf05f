"""Drills of processes: weighted means, the ring, its cost."""

import numpy as np


def draw_mean(rng):
    counts = [int(n) for n in rng.integers(0, 4, 4)]
    counts[0] += 1
    counts[int(rng.integers(1, 4))] = 0
    gradients = rng.normal(size=(4, 5))
    gradients[np.array(counts) == 0] = np.nan
    return {"gradients": gradients, "counts": counts}


def drill_mean(work, inputs):
    """weighted_mean: ranks without examples do not count, and no array changes"""
    gradients = [row.copy() for row in inputs["gradients"]]
    return [work.weighted_mean(gradients, inputs["counts"]), gradients]


class _Ring:
    def __init__(self):
        self.sent = []

    def exchange(self, sent):
        self.sent.append([one.size for one in sent])
        return [sent[rank - 1].copy() for rank in range(len(sent))]


def draw_ring(rng):
    return {
        "cases": [
            rng.normal(size=(int(rng.integers(1, 6)), int(rng.integers(1, 12)))) for _ in range(6)
        ]
    }


def drill_ring(work, inputs):
    """ring_allreduce, its two halves, and what each rank sends in each step"""
    found = []
    for parts in inputs["cases"]:
        for dtype in ("float64", "float32"):
            network, given = _Ring(), [row.astype(dtype) for row in parts]
            results = work.ring_allreduce(given, network)
            found += [[one.copy() for one in results], network.sent]
            results[0][:] = 0.0  # each rank has memory of its own
            found += [results[1:], given]
        p = len(parts)
        pieces = [list(np.array_split(row, p)) for row in parts]
        network = _Ring()
        work.reduce_scatter(pieces, network)
        found += [[pieces[r][r] for r in range(p)], network.sent]
        work.allgather(pieces, network)
        found += [pieces, network.sent]
    return found


def draw_cost(rng):
    return {
        "cases": [
            [
                float(rng.uniform(0.1, 1)),
                int(rng.integers(1, 9)),
                float(rng.uniform(1e3, 1e6)),
                float(rng.uniform(1e-6, 1e-4)),
                float(rng.uniform(1e-10, 1e-8)),
            ]
            for _ in range(6)
        ]
    }


def drill_cost(work, inputs):
    """step_seconds, also for a single rank"""
    cases = [*inputs["cases"], [1.0, 1, 1e6, 1e-4, 1e-8]]
    return [float(work.step_seconds(*case)) for case in cases]
