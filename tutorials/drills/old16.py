"""Drills of gradients that are Variables: derivatives of any order, Newton's method."""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def _polynomial(numbers):
    def f(x):
        y = 0.0 * x
        for number in numbers:
            y = y * x + number
        return y

    return f


def draw_derivatives(rng):
    return {
        "numbers": [float(n) for n in rng.normal(size=4)],
        "x": rng.normal(size=(2, 3)),
        "order": int(rng.integers(3, 6)),
    }


def drill_derivatives(work, inputs):
    """Derivatives of polynomials and of sines, also where they are zero; no grad is touched"""
    found = []
    for f in (_polynomial(inputs["numbers"]), F.sin, _line):
        for dtype in ("float64", "float32"):
            x = tn.Variable(inputs["x"].astype(dtype))
            x.grad = kept = np.ones_like(x.array)
            values = work.derivatives(f, x, inputs["order"])
            found += [
                [type(v).__name__ for v in values],
                [v.array for v in values],
                kept,
                x.grad,
                x.array,
            ]
    return found


def _line(x):
    return 3.0 * x


def draw_newton(rng):
    return {"factor": float(rng.uniform(2, 4)), "x": rng.uniform(0, 0.5, 3)}


def drill_newton(work, inputs):
    """Newton's method, step by step; each step begins at a leaf"""
    ranks = []

    def valley(x):
        ranks.append(x.rank)
        return F.exp(x) - inputs["factor"] * x

    found = []
    for steps in (0, 1, 2, 6):
        x = tn.Variable(inputs["x"].copy())
        y = work.newton(valley, x, steps)
        found += [type(y).__name__, y.rank, y.array, x.array]
    return [*found, ranks]
