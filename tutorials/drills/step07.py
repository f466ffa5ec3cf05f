"""Drills of broadcasting: shapes, sums over axes, division."""

import numpy as np

from tinynode_course.drilling import gradients, raised

SIGNS = ("x + w", "x - w", "x * w", "x / w")


def _pair(rng):
    shape = [int(n) for n in rng.integers(2, 4, int(rng.integers(1, 4)))]
    other = [1 if rng.integers(0, 2) else n for n in shape][int(rng.integers(0, len(shape) + 1)) :]
    return (shape, other) if rng.integers(0, 2) else (other, shape)


def draw_operators(rng):
    pairs = []
    for _ in range(5):
        left, right = _pair(rng)
        y = np.broadcast_shapes(tuple(left), tuple(right))
        values = rng.uniform(0.5, 2.0, right) * rng.choice([-1.0, 1.0], right)
        pairs.append([rng.normal(size=left), np.asarray(values), rng.normal(size=y)])
    return {"pairs": pairs}


def drill_operators(work, inputs):
    """The operators broadcast: values, and gradients in the shapes of the inputs"""
    found = []
    for x, w, gy in inputs["pairs"]:
        for dtype in ("float64", "float32"):
            for text in SIGNS:

                def function(x, w, text=text):
                    return eval(text, {"x": x, "w": w})

                arrays = [np.asarray(x, dtype), np.asarray(w, dtype)]
                found.append(gradients(work, function, arrays, np.asarray(gy, dtype)))
    return found


def draw_shapes(rng):
    x = rng.normal(size=(2, 1, 3))
    return {
        "x": x,
        "wide": rng.normal(size=(4, 2, 5, 3)),
        "narrow": rng.normal(size=(2, 1, 3)),
        "six": rng.normal(size=(3, 2)),
    }


def drill_shapes(work, inputs):
    """broadcast_to, sum_to and reshape, in arrays of their own"""
    wide = inputs["wide"].shape
    found = [
        gradients(work, lambda x: work.broadcast_to(x, wide), [inputs["x"]], inputs["wide"]),
        gradients(work, lambda x: work.sum_to(x, (2, 1, 3)), [inputs["wide"]], inputs["narrow"]),
        gradients(work, lambda x: work.reshape(x, (3, 2)), [inputs["x"]], inputs["six"]),
        gradients(work, lambda x: work.reshape(x, (-1, 2)), [inputs["x"]], inputs["six"]),
    ]
    y = work.broadcast_to(work.Variable(inputs["x"].copy()), wide)
    y.array[0] = 0.0  # a copy, so that the other rows stay
    return [*found, y.array, y.shape, y.ndim, y.size, str(y.dtype)]


AXES = (None, 0, -1, 1, (0, 2), (0, -1), [1])


def draw_sums(rng):
    return {
        "x": rng.normal(size=(2, 3, 4)),
        "order": [int(n) for n in rng.permutation(len(AXES))[:5]],
    }


def drill_sums(work, inputs):
    """sum and mean over an axis, several or all, with and without kept axes"""
    found = []
    for place in inputs["order"]:
        axis = AXES[place]
        numpy_axis = tuple(axis) if isinstance(axis, list) else axis
        for keepdims in (False, True):
            for name in ("sum", "mean"):
                shape = np.sum(inputs["x"], axis=numpy_axis, keepdims=keepdims).shape
                gy = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)

                def function(x, name=name, axis=axis, keepdims=keepdims):
                    return getattr(work, name)(x, axis=axis, keepdims=keepdims)

                found.append(gradients(work, function, [inputs["x"]], gy))
    return found


def draw_numbers(rng):
    return {
        "x": rng.uniform(1, 2, (2, 3)),
        "row": rng.normal(size=3),
        "number": float(rng.uniform(1, 2)),
        "gy": rng.normal(size=(2, 3)),
    }


def _leaf_shapes(y):
    """The shapes of the leaves of a graph; later stages hold nodes of Variables."""
    found, waiting = [], [y.creator_node]
    while waiting:
        for one in waiting.pop().inputs:
            if one.creator_node is None:
                found.append(one.shape)
            else:
                waiting.append(one.creator_node)
    return found


def drill_numbers(work, inputs):
    """Numbers and arrays beside a Variable, in their own shapes; a shape that does not fit"""
    found = []
    for dtype in ("float64", "float32"):
        for text in ("number / x", "x / number", "row - x", "x * row", "number - x / row"):
            names = {"row": inputs["row"].astype(dtype), "number": inputs["number"]}

            def function(x, text=text, names=names):
                return eval(text, {"x": x, **names})

            arrays, gy = [inputs["x"].astype(dtype)], inputs["gy"].astype(dtype)
            found.append(gradients(work, function, arrays, gy))
    one = work.Variable(inputs["x"].copy())
    for other in (inputs["number"], inputs["row"]):
        for y in (one * other, other - one):
            shapes = _leaf_shapes(y)
            shapes.remove(one.shape)
            found.append(all(shape == np.shape(other) for shape in shapes))
    x, w = work.Variable(np.zeros((2, 3))), work.Variable(np.zeros((3, 2)))
    return [
        *found,
        [bool(raised(lambda s=s: eval(s, {"x": x, "w": w}))) for s in SIGNS],
    ]


def draw_check_shape(rng):
    return {"x": rng.normal(size=(1, 3))}


def drill_check_shape(work, inputs):
    """A gradient of another shape than its input is refused"""

    class Wrong(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

        def backward(self, target_input_indexes, grad_outputs):
            return (np.ones((2, 3)),)

    y = Wrong().apply((work.Variable(inputs["x"]),))[0]
    y.grad = np.ones((1, 3))
    return raised(y.backward, ValueError)


def draw_again(rng):
    return {"x": rng.normal(size=3), "w": rng.normal(size=(2, 3)), "gy": rng.normal(size=(2, 3))}


def drill_again(work, inputs):
    """The lesson of step 5: a second backward does not write into the gradient of the first"""
    x, w = work.Variable(inputs["x"].copy()), work.Variable(inputs["w"].copy())
    found, held = [], []
    for _ in range(2):
        y = x * w + x
        y.grad = inputs["gy"].copy()
        y.backward()
        found += [x.grad.copy(), w.grad.copy()]
        held += [x.grad, w.grad]
    return [*found, held]
