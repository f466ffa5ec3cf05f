"""Drills of Jacobians: rows, columns, colours."""

import numpy as np

import tinynode as tn
from tinynode import functions as F

WITHOUT = {
    "transforms/colouring.py": ["colour_columns", "sparse_jacobian"],
    "transforms/jacobians.py": ["jacobian"],
}


def draw_dense(rng):
    return {"matrix": rng.normal(size=(4, 3)), "x": rng.normal(size=3)}


def drill_dense(work, inputs):
    """by_rows and by_columns, with counted passes"""
    matrix = tn.asarray(inputs["matrix"], requires_grad=False)
    calls = []

    def f(x):
        calls.append(1)
        return F.sin(F.matmul(matrix, x)) * x[1]

    found = [work.by_rows(f, inputs["x"].copy()), len(calls)]
    return [*found, work.by_columns(f, inputs["x"].copy()), len(calls)]


def draw_sparse(rng):
    patterns = [rng.integers(0, 3, (6, 5)) == 0 for _ in range(5)]
    return {"patterns": patterns, "weights": rng.normal(size=(6, 5)), "x": rng.normal(size=5)}


def drill_sparse(work, inputs):
    """colours and by_colours, for random patterns, with counted passes"""
    found = []
    for pattern in inputs["patterns"]:
        matrix = tn.asarray(np.where(pattern, inputs["weights"], 0.0), requires_grad=False)
        calls = []

        def f(x, matrix=matrix, calls=calls):
            calls.append(1)
            return F.matmul(matrix, F.sin(x))

        found.append([int(colour) for colour in work.colours(pattern)])
        found += [work.by_colours(f, inputs["x"].copy(), pattern), len(calls)]
    return found


def draw_cheapest(rng):
    return {"cases": rng.permuted(np.array([[3, 5, 8]] * 8), axis=1)}


def drill_cheapest(work, inputs):
    """cheapest: the way with the fewest passes"""
    return [work.cheapest(*(int(n) for n in case)) for case in inputs["cases"]]
