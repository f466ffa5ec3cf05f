"""Drills of vmap: arrays with a hidden axis."""

import numpy as np

MATMULS = (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
)


def draw_operations(rng):
    shapes = [[], [3], [2, 3], [4, 2, 3], [1, 3], [2, 1]]
    arrays = [rng.normal(size=(int(rng.choice([1, 5])), *shape)) for shape in shapes]
    products = [
        [rng.normal(size=(n, *a)), rng.normal(size=(m, *b))]
        for a, b in MATMULS
        for n, m in ((4, 4), (1, 4), (4, 1))
    ]
    return {"arrays": arrays, "products": products}


def drill_operations(work, inputs):
    """shape, ndim, sums, products, and matmul of vectors, matrices and stacks"""
    found = []
    for raw in inputs["arrays"]:
        x = work.Batched(raw)
        found += [list(x.shape), x.ndim, (x + 2.0).raw, (2.0 * x).raw, work.XP.sum(x).raw]
        for axis in range(-x.ndim, x.ndim):
            found.append(work.XP.sum(x, axis=axis).raw)
        for other in inputs["arrays"][:4]:
            if x.ndim == 0 or other.ndim == 1 or raw.shape[1:] == other.shape[1:]:
                found += [(x * work.Batched(other)).raw, (work.Batched(other) + x).raw]
    for one, other in inputs["products"]:
        found.append((work.Batched(one) @ work.Batched(other)).raw)
    return found


def draw_functions(rng):
    cube = rng.normal(size=(2, 3, 4))
    return {
        "cube": cube,
        "x": rng.normal(size=(3, 6)),
        "w": rng.normal(size=(6, 3, 2)),
        "b": rng.normal(size=()),
        "axes": [1, 0, None],
    }


def drill_functions(work, inputs):
    """vmap over several axes, shared arguments, and a result that is the same for all"""
    x, w, b = inputs["x"], inputs["w"], inputs["b"]
    layer = work.softmax_layer
    found = [
        work.vmap(layer, (1, 0, None))(x, w, b),
        work.vmap(layer, (-1, None, None))(x, w[0], b),
    ]
    found.append(work.vmap(layer, (None, 0, None))(x[:, 0], w, b))
    found.append(np.asarray(work.vmap(lambda x, y: y + 0.0, (1, None))(x, x[:, 1])))
    found.append(work.vmap(lambda x, y: x @ y, (0, 1))(w[:, :, 0], x))
    for axis in (0, 1, 2, -1, -2):
        found.append(work.vmap(lambda x: x * 2.0, (axis,))(inputs["cube"]))
    return [*found, x, w]
