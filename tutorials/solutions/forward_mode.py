"""Exercise forward_mode, solved: derivatives along a direction, by two calls of tn.grad."""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def jvp(f, x, v):
    """The value of f at x, and J v: f: x: (n) -> y: (m). J v: (m)."""
    y = f(x)
    u = tn.asarray(np.ones(y.shape), requires_grad=True)
    (g,) = tn.grad([y], [x], [u], enable_double_backprop=True)
    (jv,) = tn.grad([g], [u], [v], enable_double_backprop=True)
    return y, jv


def hvp(f, x, v):
    """The Hessian times v: f: x: (n) -> y: (). The result: (n)."""

    def gradient(x):
        (g,) = tn.grad([f(x)], [x], enable_double_backprop=True)
        return g

    return jvp(gradient, x, v)[1]


def bend(f, x, v):
    """d^2/dt^2 f(x + t v) at t = 0: f: x: (n) -> y: (m). The result: (m)."""

    def slope(x):
        return jvp(f, x, v)[1]

    return jvp(slope, x, v)[1]


def product(x):
    return F.stack([x[0] * x[1], x[1] * x[2], F.sin(x[0])])
