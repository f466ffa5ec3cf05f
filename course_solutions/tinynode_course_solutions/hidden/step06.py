"""Hidden checks of step 6: random graphs, whose long and short ways meet."""

import numpy as np

from tinynode_course.checks import expect_close

LOOK = "An operation runs after all that read its outputs: the highest rank first."


def _random_graph(work, x, seed):
    """A box that was computed from x by twelve random operations."""
    rng = np.random.default_rng(seed)
    boxes = [work.sin(x)]
    for _ in range(12):
        a, b = (boxes[int(i)] for i in rng.integers(len(boxes), size=2))
        kind = rng.integers(4)
        y = a + b if kind == 0 else a - b if kind == 1 else a * b if kind == 2 else work.sin(a)
        boxes.append(y)
    return boxes[-1] + boxes[-2] * boxes[0]


def check_random_graphs(work):
    """The gradients of 20 random graphs agree with differences."""
    point, eps = np.array([0.7, -0.4]), 1e-6
    for seed in range(20):
        x = work.Variable(point.copy())
        y = _random_graph(work, x, seed)
        y.grad = np.ones(2)
        y.backward()
        high, low = (
            np.asarray(_random_graph(work, work.Variable(point + step), seed).array)
            for step in (eps, -eps)
        )
        slope = (high - low) / (2 * eps)
        what = f"the gradient of random graph {seed}"
        expect_close(what, x.grad, slope, LOOK, rtol=1e-5, atol=1e-6)
