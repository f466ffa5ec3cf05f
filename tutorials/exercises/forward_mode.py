"""Exercise forward_mode: forward mode from two backward passes.

u J is linear in u. So its derivative with respect to u, along v, is J v.

1. Write ``jvp(f, x, v)`` with two calls of ``tn.grad``. The first call computes g = u J for a
   dummy u, and records a graph. The second call differentiates g with respect to u, along v.
2. Write ``slope_along(f, start, end, t)``: the derivative of f(start + t (end - start)) with
   respect to the number t. Call ``jvp``: which direction is v?
3. Write ``hessian_product(f, x, v)``: the Hessian of f times v is a ``jvp`` of the gradient of f.
   The gradient has to be a function of Variables, with a graph.
"""

import numpy as np

import tinynode as tn  # noqa: F401 - for your code
from tinynode import functions as F


def jvp(f, x, v):
    """J v at x: the derivative of f along v. x, v: (n,) arrays -> (m,) array."""
    raise NotImplementedError("write jvp")


def slope_along(f, start, end, t):
    """d/dt f(start + t (end - start)): the change of f on the way from start to end."""
    raise NotImplementedError("write slope_along")


def hessian_product(f, x, v):
    """H v at x, for an f with a single number as the result."""
    raise NotImplementedError("write hessian_product")


def wave(x):
    """(2,) -> (3,)"""
    return F.stack([F.sin(x[0]) * x[1], F.exp(x[0]), x[0] * x[1]])


if __name__ == "__main__":  # python forward_mode.py
    point, direction = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    print("J v", jvp(wave, point, direction))
    print("H v", hessian_product(lambda x: F.sum(wave(x) ** 2), point, direction))
