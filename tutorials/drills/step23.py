"""Drills of an optimised gradient: tanh, by a function that can be differentiated again."""

import importlib

from tinynode_course.drilling import gradients


def _behind(y):
    """The names of the operations behind a Variable."""
    seen, waiting = [], [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in seen:
            seen.append(function)
            waiting += [node.creator_node for node in function.inputs]
    return sorted(type(function).__name__ for function in seen)


def draw_orders(rng):
    return {"x": rng.normal(size=5), "g": rng.normal(size=5), "h": rng.normal(size=5)}


def drill_orders(work, inputs):
    """tanh: derivatives of the orders 1 to 3, with the operations behind the first"""
    found = []
    for dtype in ("float64", "float32"):
        x, g = (work.Variable(inputs[name].astype(dtype)) for name in ("x", "g"))
        found.append(gradients(work, work.tanh, [x.array], g.array))
        y = work.tanh(x)
        for order in range(3):
            (y,) = work.grad([y], [x], [g], enable_double_backprop=True)
            found += [y.array.copy(), _behind(y) if order == 0 else None]
    return found


def drill_one_by_one(work, inputs):
    """TanhGrad: values, the wanted gradients only, for arrays and for Variables"""
    functions = importlib.import_module(f"{work.__name__}.functions.trigonometric")
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs[name].astype(dtype) for name in ("x", "g")]
        h = inputs["h"].astype(dtype)

        def function(y, gy):
            return functions.TanhGrad().apply((y, gy))[0]

        found.append(gradients(work, function, arrays, h))
        node = function(*map(work.Variable, arrays)).creator_node
        for double in (False, True):
            node.gives_variables = double
            for targets in ((0,), (1,), (0, 1)):
                grads = node.backward(targets, (work.Variable(h) if double else h,))
                found += [None if one is None else getattr(one, "array", one) for one in grads]
    return found


draw_one_by_one = draw_orders
