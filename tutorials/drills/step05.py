"""Drills of branches: contributions add up, into a new array."""

import numpy as np

from tinynode_course.drilling import gradients

FORMULAS = (
    "x * x",
    "x + x",
    "x - x * w + w",
    "x + x + x",
    "x * w + w * x - x",
    "work.sin(x) * x + w * 3.0",
    "w - x - w",
)


def draw_branches(rng):
    order = [int(place) for place in rng.permutation(len(FORMULAS))]
    return {
        "order": order,
        "x": rng.normal(size=3),
        "w": rng.normal(size=3),
        "gy": rng.normal(size=3),
    }


def drill_branches(work, inputs):
    """A Variable with several uses gets the sum of their gradients"""
    found = []
    for place in inputs["order"]:

        def function(x, w, text=FORMULAS[place]):
            return eval(text, {"x": x, "w": w, "work": work})

        found += [place, gradients(work, function, [inputs["x"], inputs["w"]], inputs["gy"])]
    return found


def draw_no_alias(rng):
    return {"x": rng.normal(size=4), "w": rng.normal(size=4), "gy": rng.normal(size=4)}


def drill_no_alias(work, inputs):
    """Gradients add up in new arrays: no array of the user or of another gradient changes"""
    x, w = work.Variable(inputs["x"].copy()), work.Variable(inputs["w"].copy())
    found = []
    first = inputs["gy"].copy()
    y = x + w
    y.grad = first
    y.backward()
    kept = [x.grad, w.grad]
    copies = [one.copy() for one in kept]
    z = x + x
    z.grad = inputs["gy"].copy()
    z.backward()
    found += [x.grad, w.grad, first, kept, copies]
    z = x - w
    z.grad = second = inputs["gy"].copy()
    z.backward()
    return [*found, x.grad, w.grad, first, second, kept]


def draw_cleargrad(rng):
    return {"x": rng.normal(size=2), "times": int(rng.integers(2, 5))}


def drill_cleargrad(work, inputs):
    """Gradients add up from one backward to the next, until cleargrad"""
    x = work.Variable(inputs["x"].copy())
    found = []
    for place in range(inputs["times"] + 1):
        y = x * x
        y.grad = np.ones(2)
        y.backward()
        found.append(x.grad.copy())
        if place == 1:
            x.cleargrad()
            found.append(x.grad is None)
    return found
