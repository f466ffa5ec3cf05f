"""Drills of the implicit layer: Kepler's equation, two orders of gradients."""

import tinynode as tn
from tinynode import functions as F


def draw_orders(rng):
    m, e = rng.uniform(-6, 6, (3, 3)), rng.uniform(0, 0.95, (3, 3))
    m[0], e[0] = rng.uniform(0.02, 0.2, 3), rng.uniform(0.97, 0.99, 3)  # many rounds
    return {"m": m, "e": e, "g": rng.normal(size=(3, 3))}


def drill_orders(work, inputs):
    """The solution, its gradients, and gradients of gradients; dtypes"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs[name].astype(dtype) for name in ("m", "e")]
        m, e = (tn.asarray(array, requires_grad=True) for array in arrays)
        y = work.kepler(m, e)
        g = tn.asarray(inputs["g"].astype(dtype))
        grads = tn.grad([y], [m, e], [g], enable_double_backprop=True)
        kept = y.creator_node
        found += [len(kept.get_retained_inputs()), len(kept.get_retained_outputs()), y.rank]
        found += [y.array, [one.array for one in grads], arrays]
        if dtype == "float64":
            second = tn.grad([F.sum(grads[0] * grads[1])], [m, e])
            found.append([one.array for one in second])
    return found
