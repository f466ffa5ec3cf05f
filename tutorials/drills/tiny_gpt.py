"""Drills of the small GPT: attention with a window, the most probable characters."""

import numpy as np

import tinynode as tn


def draw_attention(rng):
    n, d, e = (int(number) for number in rng.integers(2, 7, 3))
    lead = [int(rng.integers(1, 3))] if rng.integers(0, 2) else []
    shapes = ([*lead, n, d], [*lead, n, d], [*lead, n, e])
    return {
        "arrays": [rng.normal(size=shape) for shape in shapes],
        "g": rng.normal(size=shapes[2]),
        "windows": [1, int(rng.integers(2, 4)), 100],
    }


def drill_attention(work, inputs):
    """windowed_attention: values and gradients for small and large windows"""
    found = []
    for window in inputs["windows"]:
        xs = [tn.Variable(array.copy()) for array in inputs["arrays"]]
        y = work.windowed_attention(*xs, window)
        grads = tn.grad([y], xs, [tn.Variable(inputs["g"].copy())])
        found += [y.array, [None if one is None else one.array for one in grads]]
    return found


def draw_top(rng):
    scores = rng.integers(-3, 4, (5, 8)) * 1.0
    scores[0] *= 300.0
    scores[0, 0] = 900.0
    return {"scores": scores, "k": [int(k) for k in rng.integers(1, 9, 5)]}


def drill_top(work, inputs):
    """top_k: ties go to the lower number; large scores; the scores do not change"""
    found = []
    for scores, k in zip(inputs["scores"], inputs["k"], strict=True):
        given = scores.copy()
        found += [np.asarray(work.top_k(given, k)), given]
    return found
