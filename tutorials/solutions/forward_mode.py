"""Exercise forward_mode, solved: forward mode from two backward passes."""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def jvp(f, x, v):
    """J v at x: the derivative of f along v. x, v: (n,) arrays -> (m,) array."""
    x = tn.asarray(x)
    y = f(x)
    u = tn.asarray(np.ones(y.shape))
    (g,) = tn.grad([y], [x], [u], enable_double_backprop=True)
    (tangent,) = tn.grad([g], [u], [tn.asarray(v)])
    return tangent.array


def slope_along(f, start, end, t):
    """d/dt f(start + t (end - start)): the change of f on the way from start to end."""
    return jvp(f, start + t * (end - start), end - start)


def hessian_product(f, x, v):
    """H v at x, for an f with a single number as the result."""

    def gradient(x):
        (gx,) = tn.grad([f(x)], [x], enable_double_backprop=True)
        return gx

    return jvp(gradient, x, v)


def wave(x):
    """(2,) -> (3,)"""
    return F.stack([F.sin(x[0]) * x[1], F.exp(x[0]), x[0] * x[1]])


if __name__ == "__main__":  # python forward_mode.py
    point, direction = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    print("J v", jvp(wave, point, direction))
    print("H v", hessian_product(lambda x: F.sum(wave(x) ** 2), point, direction))
