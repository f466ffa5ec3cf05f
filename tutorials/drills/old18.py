"""Drills of the double check: three functions, twice differentiable."""

import numpy as np

import tinynode as tn
from tinynode import functions as F

OPERATIONS = {"cumulative_sum": "CumulativeSum", "softplus": "Softplus", "dot": "Dot"}


def draw_orders(rng):
    n = int(rng.integers(3, 8))
    names = ("x", "b", "g", "h")
    return {name: rng.normal(size=n) for name in names} | {"single": float(rng.uniform(1, 2))}


def drill_orders(work, inputs):
    """cumulative_sum, softplus and dot: values, gradients, gradients of gradients"""
    found = []
    for dtype in ("float64", "float32"):
        for name, operation in OPERATIONS.items():
            xs = [tn.Variable(inputs[one].astype(dtype)) for one in ("x", "b")]
            xs = xs if name == "dot" else xs[:1]
            y = getattr(work, name)(*xs)
            g = inputs["g"] if name != "dot" else np.asarray(inputs["single"])
            seed = tn.asarray(g.astype(dtype), requires_grad=True)
            grads = tn.grad([y], xs, [seed], enable_double_backprop=True)
            is_own = type(y.creator_node) is getattr(work, operation)
            found += [name, is_own, y.array, [one.array for one in grads]]
            total = F.sum(sum(one * inputs["h"].astype(dtype) for one in grads))
            if name == "cumulative_sum":
                total = total + F.sum(xs[0])
            second = tn.grad([total], [*xs, seed])
            found.append([None if one is None else one.array for one in second])
    return found


def draw_linear(rng):
    return {"x": rng.normal(size=4), "g": rng.normal(size=4)}


def drill_linear(work, inputs):
    """The gradient of a cumulative sum has a graph back to the gradient, and none to x"""
    x, g = (tn.asarray(inputs[name].copy(), requires_grad=True) for name in ("x", "g"))
    (gx,) = tn.grad([work.cumulative_sum(x)], [x], [g], enable_double_backprop=True)
    second = tn.grad([F.sum(gx * gx)], [x, g])
    return [gx.array, [None if one is None else one.array for one in second]]
