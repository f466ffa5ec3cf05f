"""Drills of gradient checks: the names of the wrong functions, and six right gradients."""

import numpy as np

import tinynode as tn

SHAPES = {"Tanh": 1, "SoftSign": 1, "LeakyReLU": 1, "Product": 2, "Transpose": 1, "Share": 1}


def draw_gradients(rng):
    shape = [int(n) for n in rng.permutation([2, 3])]
    positive = [rng.uniform(0.3, 2.0, shape) for _ in range(2)]
    signs = rng.choice([-1.0, 1.0], shape)
    return {"positive": positive, "signs": signs, "g": rng.normal(size=shape)}


def drill_gradients(work, inputs):
    """Six functions: values, gradients, and gradients of gradients; three names"""
    found = [sorted(work.FOUND)]
    for name, number in SHAPES.items():
        signs = 1.0 if name == "Share" else inputs["signs"]
        xs = [tn.Variable(one * signs) for one in inputs["positive"][:number]]
        (y,) = getattr(work, name)().apply(tuple(xs))
        g = inputs["g"].T if name == "Transpose" else inputs["g"]
        grads = tn.grad([y], xs, [tn.Variable(g.copy())], enable_double_backprop=True)
        found += [name, y.array, [one.array for one in grads]]
        total = tn.functions.sum(sum(one * one * 0.5 for one in grads))
        if name not in ("LeakyReLU", "Transpose"):
            found += [one.array for one in tn.grad([total], xs)]
    return found


def draw_special(rng):
    return {
        "x": [np.array([30.0, -30.0, float(rng.normal())]), rng.normal(size=()), np.zeros((0,))]
    }


def drill_special(work, inputs):
    """Tanh at large numbers, at a single number, at none"""
    found = []
    for x in inputs["x"]:
        v = tn.Variable(np.asarray(x))
        (y,) = work.Tanh().apply((v,))
        found += [one.array for one in tn.grad([y], [v], [tn.Variable(np.ones_like(v.array))])]
    return found
