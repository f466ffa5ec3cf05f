"""Drills of forward mode: products with Jacobians and Hessians, by two backward passes."""

import tinynode as tn
from tinynode import functions as F

WITHOUT = {"transforms/linear.py": ["jvp", "linearize"]}


def _functions(matrix):
    def linear(x):
        return F.matmul(matrix, x)

    def wave(x):
        return F.sin(linear(x)) * F.exp(0.1 * x[0])

    def product(x):
        return F.stack([x[0] * x[1], x[1] * x[2] * x[0]])

    return wave, product


def draw_directions(rng):
    return {
        "x": rng.normal(size=3),
        "v": rng.normal(size=3),
        "w": rng.normal(size=3),
        "matrix": rng.normal(size=(4, 3)),
    }


def drill_directions(work, inputs):
    """jvp, bend and hvp, a jvp of a jvp, and no grad is touched"""
    found = []
    passes = []
    original = tn.grad

    def counted(*arguments, **options):
        passes.append(1)
        return original(*arguments, **options)

    tn.grad = counted
    for f in _functions(tn.asarray(inputs["matrix"], requires_grad=False)):
        x = tn.asarray(inputs["x"].copy(), requires_grad=True)
        v, w = (tn.asarray(inputs[name].copy(), requires_grad=False) for name in ("v", "w"))
        passes.clear()
        y, jv = work.jvp(f, x, v)
        found += [len(passes) <= 2, y.array, jv.array, work.bend(f, x, v).array]

        def slope(x, f=f, v=v):
            return work.jvp(f, x, v)[1]

        found.append(work.jvp(slope, x, w)[1].array)

        def cube(x, f=f):
            return F.sum(f(x) * f(x) * f(x))

        found += [work.hvp(cube, x, v).array, x.grad is None]
    tn.grad = original
    return found
