"""Drills of the automatic backward: chains, operators, products."""

import numpy as np

from tinynode_course.drilling import gradients

SIGNS = ("x + w", "x - w", "x * w", "-x", "x + 2.5", "2.5 + x", "x - 2.5", "2.5 - x", "x * 2.5")
SIGNS += ("2.5 * x", "work.sin(x) * work.exp(w)", "work.exp(x) - work.square(-w)")


def draw_operators(rng):
    return {
        "x": rng.normal(size=(2, 3)),
        "w": rng.normal(size=(2, 3)),
        "gy": rng.normal(size=(2, 3)),
        "number": float(rng.normal()),
    }


def drill_operators(work, inputs):
    """The operators between Variables and numbers: values, gradients, dtypes, operands"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs[name].astype(dtype) for name in ("x", "w")]
        for text in SIGNS:
            words = text.replace("2.5", repr(inputs["number"]))

            def function(x, w, words=words):
                return eval(words, {"x": x, "w": w, "work": work})

            found += [text, gradients(work, function, arrays, inputs["gy"].astype(dtype))]
    return found


def draw_chain(rng):
    words = [str(rng.choice(["exp", "square", "negative", "sin"])) for _ in range(5)]
    return {"words": words, "x": rng.uniform(-0.4, 0.4, 3), "gy": rng.normal(size=3)}


def drill_chain(work, inputs):
    """The gradient of a chain, from a gradient that the user has set"""

    def function(x):
        for word in inputs["words"]:
            x = getattr(work, word)(x)
        return x

    return gradients(work, function, [inputs["x"]], inputs["gy"])


def draw_ones(rng):
    return {"x": rng.normal(size=()), "array": rng.normal(size=3)}


def drill_ones(work, inputs):
    """backward starts from 1, and an array on the left leaves the operator to the Variable"""
    x = work.Variable(np.asarray(inputs["x"]))
    y = work.sin(work.square(x))
    y.backward()
    leaf = work.Variable(inputs["array"])
    products = [inputs["array"] * leaf, np.float64(2.0) - leaf]
    return [x.grad, [(isinstance(leaf, type(z)), z.array) for z in products]]


def draw_long(rng):
    return {"length": int(rng.integers(20_000, 30_000)), "x": rng.normal(size=2)}


def drill_long(work, inputs):
    """A chain of many thousand operations needs no recursion"""

    def function(x):
        for _ in range(inputs["length"]):
            x = x + 0.001
        return x

    return gradients(work, function, [inputs["x"]], np.ones(2))


def draw_line(rng):
    return {
        "x": rng.uniform(-1, 1, 8),
        "y": rng.normal(size=8),
        "rate": float(rng.uniform(0.01, 0.1)),
    }


def drill_line(work, inputs):
    """A line is fitted by gradients: the path of slope and intercept"""
    a, b = np.zeros(8), np.zeros(8)
    for _ in range(5):
        slope, intercept = work.Variable(a.copy()), work.Variable(b.copy())
        x, y = work.Variable(inputs["x"].copy()), work.Variable(inputs["y"].copy())
        error = work.square(slope * x + intercept - y)
        error.grad = np.ones(8)
        error.backward()
        a = a - inputs["rate"] * slope.grad.sum()
        b = b - inputs["rate"] * intercept.grad.sum()
    return [a, b]
