"""Drills of portability: any array library, dtypes, two orders of gradients."""

import tinynode as tn
from tinynode import functions as F


def draw_orders(rng):
    shape = [int(n) for n in rng.integers(2, 5, 2)]
    x = rng.normal(size=shape)
    x[0, 0] = 900.0
    return {"x": x, "g": rng.normal(size=shape[0]), "h": rng.normal(size=shape)}


def drill_orders(work, inputs):
    """The value without an overflow, dtypes, and gradients of two orders; no NumPy in the file"""
    found = [sorted(name for name in vars(work) if name in ("np", "numpy"))]
    for dtype in ("float64", "float32"):
        x = tn.Variable(inputs["x"].astype(dtype))
        (y,) = work.LogCosh().apply((x,))
        g = tn.Variable(inputs["g"].astype(dtype))
        (gx,) = tn.grad([y], [x], [g], enable_double_backprop=True)
        (second,) = tn.grad([F.sum(gx * inputs["h"].astype(dtype))], [x])
        found += [y.array, gx.array, second.array, x.array]
    return found
