"""Exercise forward_mode: derivatives along a direction, by two calls of tn.grad.

All functions get Variables of float64: x requires a gradient, v has the shape of x. The results
are Variables. No small steps, and no loop over rows: the checks count the backward passes.

1. ``jvp(f, x, v)``: the value y = f(x), and J v, by the dummy u. J v must have a graph of its own,
   back to x: then the jvp of a jvp works. Which argument of tn.grad does it?
2. ``hvp(f, x, v)``: the Hessian of f times v, as the jvp of the gradient. f gives a single number.
3. ``bend(f, x, v)``: the second derivative of f(x + t v) with respect to the number t, at t = 0.
   It is the jvp of a jvp.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def jvp(f, x, v):
    """The value of f at x, and J v: f: x: (n) -> y: (m). J v: (m)."""
    raise NotImplementedError("write jvp")


def hvp(f, x, v):
    """The Hessian times v: f: x: (n) -> y: (). The result: (n)."""
    raise NotImplementedError("write hvp")


def bend(f, x, v):
    """d^2/dt^2 f(x + t v) at t = 0: f: x: (n) -> y: (m). The result: (m)."""
    raise NotImplementedError("write bend")


def product(x):
    return F.stack([x[0] * x[1], x[1] * x[2], F.sin(x[0])])


if __name__ == "__main__":  # python forward_mode.py
    x = tn.asarray(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    v = tn.asarray(np.array([1.0, 0.0, 1.0]), requires_grad=False)
    print("jvp ", jvp(product, x, v)[1].array, "expected", [2.0, 2.0, np.cos(1.0)])
    print("hvp ", hvp(lambda x: F.sum(x**3.0), x, v).array, "expected", [6.0, 0.0, 18.0])
    print("bend", bend(product, x, v).array, "expected", [0.0, 0.0, -np.sin(1.0)])
