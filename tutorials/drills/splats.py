"""Drills of splats: weights, pictures and gradients with both dtypes, and the numbers kept."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients


def _module(work):
    return importlib.import_module(f"{work.__name__}.functions.splats")


def draw_splats(rng):
    n, height, width = (int(number) for number in rng.integers(2, 7, 3))
    return {
        "arrays": [
            rng.uniform([0, 0], [height, width], size=(n, 2)),
            rng.uniform(0.6, 2.5, n),
            rng.normal(size=(n, 3)),
        ],
        "gy": rng.normal(size=(height, width, 3)),
    }


def drill_splats(work, inputs):
    """weights_of, the picture and its gradients, with both dtypes, and no input changes"""
    module, found = _module(work), []
    height, width = inputs["gy"].shape[:2]
    for dtype in ("float64", "float32"):
        arrays = [one.astype(dtype) for one in inputs["arrays"]]
        found.append(module.weights_of(*(one.copy() for one in arrays[:2]), height, width))
        parts = gradients(
            work, lambda *xs: module.splats(*xs, height, width), arrays, inputs["gy"].astype(dtype)
        )
        found += [parts, [str(part.dtype) for part in parts]]
    return found


def draw_kept(rng):
    return draw_splats(rng)


def drill_kept(work, inputs):
    """the numbers that the operation keeps"""
    xs = [work.Variable(one.copy()) for one in inputs["arrays"]]
    node = _module(work).splats(*xs, 20, 20).creator_node
    held = [*node.get_retained_inputs(), *node.get_retained_outputs()]
    held += [one for one in vars(node).values() if isinstance(one, np.ndarray)]
    return [sum(one.size for one in held) <= 6 * len(inputs["arrays"][1])]
