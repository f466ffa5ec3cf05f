"""Drills of attention in tiles: values, gradients, bytes."""

import importlib
import tracemalloc

import numpy as np

from tinynode_course.drilling import gradients


def _tiled(work):
    return importlib.import_module(f"{work.__name__}.functions.tiled_attention").tiled_attention


def draw_values(rng):
    n, m, d, e = (int(number) for number in rng.integers(2, 8, 4))
    return {
        "arrays": [rng.normal(size=s) for s in ((2, n, d), (2, m, d), (2, m, e))],
        "square": [rng.normal(size=s) for s in ((n, d), (n, d), (n, e))],
        "gy": rng.normal(size=(2, n, e)),
        "tile": int(rng.integers(1, 5)),
    }


def drill_values(work, inputs):
    """Values and gradients, in a batch and causal, with both dtypes"""
    tiled, found = _tiled(work), []
    tile = inputs["tile"]
    for dtype in ("float64", "float32"):
        arrays = [one.astype(dtype) for one in inputs["arrays"]]
        square = [one.astype(dtype) for one in inputs["square"]]
        gy = inputs["gy"].astype(dtype)
        found.append(gradients(work, lambda *xs: tiled(*xs, tile=tile), arrays, gy))
        found.append(
            gradients(work, lambda *xs: tiled(*xs, causal=True, tile=tile), square, gy[0])
        )
    return found


def draw_large(rng):
    scores = rng.normal(size=9) * 400
    return {"scores": scores, "value": rng.normal(size=(9, 2)), "tile": int(rng.integers(1, 4))}


def drill_large(work, inputs):
    """Large scores in three orders, and very negative scores alone"""
    tiled, found = _tiled(work), []
    query = work.Variable(np.array([[1.0], [-1.0]]))
    scores, value = inputs["scores"], inputs["value"]
    order = np.argsort(scores)
    with np.errstate(over="raise", invalid="raise"):
        for places in (np.arange(9), order, order[::-1]):
            key = work.Variable(scores[places][:, None].copy())
            y = tiled(query, key, work.Variable(value[places].copy()), tile=inputs["tile"])
            found.append(y.array)
        key = work.Variable(-2000.0 + 0.001 * scores[:, None])
        once = work.Variable(np.ones((1, 1)))
        found.append(tiled(once, key, work.Variable(value.copy()), tile=inputs["tile"]).array)
    return found


def draw_bytes(rng):
    return {"arrays": list(rng.normal(size=(3, 400, 8)))}


def drill_bytes(work, inputs):
    """The bytes kept by forward, and the most bytes of forward and backward, below a bound"""
    tiled, found = _tiled(work), []
    xs = [work.Variable(array.copy()) for array in inputs["arrays"]]
    tiled(*xs, tile=20)
    tracemalloc.start()
    y = tiled(*xs, tile=20)
    kept, most = tracemalloc.get_traced_memory()
    y.grad = np.ones(y.shape)
    tracemalloc.reset_peak()
    y.backward()
    backward = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    weights = 400 * 400 * 8
    found += [kept < weights / 15, most < weights / 2, backward < weights / 2]
    return [*found, y.array, [x.grad for x in xs]]
