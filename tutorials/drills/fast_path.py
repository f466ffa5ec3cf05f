"""Drills of the fast path: one array, two dtypes, a reason for the others."""

import numpy as np

import tinynode as tn


def draw_fast(rng):
    return {"x": rng.normal(size=(3, 4)), "g": rng.normal(size=(3, 4))}


def drill_fast(work, inputs):
    """forward_fast: values, a new array, the same retained input; a Fallback names the dtype"""
    found = []
    for dtype in ("float64", "float32"):
        x = inputs["x"].astype(dtype)
        function = work.Softsign()
        (y,) = function.forward_fast((x,))
        found += [y, x, y is x]
    for dtype in ("float16", "int64", "int32"):
        result = work.Softsign().forward_fast((inputs["x"].astype(dtype),))
        found += [type(result).__name__, dtype in str(getattr(result, "reason", result))]
    for place in range(2):
        x = tn.Variable(inputs["x"].copy())
        function = work.Softsign()
        if place:
            function.forward = function.forward_fast
        (y,) = function.apply((x,))
        (g,) = tn.grad([y], [x], [tn.Variable(inputs["g"].copy())])
        found += [y.array, g.array]
    return found


def draw_one_array(rng):
    return {"rows": int(rng.integers(300, 500))}


def drill_one_array(work, inputs):
    """forward_fast makes one array"""
    import tracemalloc

    x = np.ones((inputs["rows"], 1000))
    work.Softsign().forward_fast((x,))
    tracemalloc.start()
    work.Softsign().forward_fast((x,))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(most / x.nbytes)
