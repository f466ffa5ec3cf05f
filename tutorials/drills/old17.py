"""Drills of an optimised gradient: two functions, twice differentiable, with few arrays."""

import tinynode as tn

WITHOUT = {"functions/trigonometric.py": ["Tanh", "TanhGrad"]}


def draw_orders(rng):
    return {"x": rng.normal(size=5), "g": rng.normal(size=5), "h": rng.normal(size=5)}


def drill_orders(work, inputs):
    """tanh: the value, and derivatives of the orders 1 to 3"""
    found = []
    for dtype in ("float64", "float32"):
        x, g = (tn.Variable(inputs[name].astype(dtype)) for name in ("x", "g"))
        y = work.tanh(x)
        found += [y.array, type(y.creator_node).__name__]
        for _ in range(3):
            (y,) = tn.grad([y], [x], [g], enable_double_backprop=True)
            found.append(y.array.copy())
    return found


def drill_one_by_one(work, inputs):
    """TanhGrad gives the gradients that are asked for; Tanh keeps its output, not its input"""
    x, gy, h = (tn.Variable(inputs[name].copy()) for name in ("x", "g", "h"))
    y = work.tanh(x)
    (gx,) = work.TanhGrad().apply((y, gy))
    found = [gx.array]
    for targets in ((0,), (1,), (0, 1)):
        grads = gx.creator_node.backward(targets, (h,))
        found.append([None if one is None else one.array for one in grads])
    (creator,) = y.creator_node.backward((0,), (gy,))
    kept = y.creator_node.get_retained_outputs()
    return [
        *found,
        len(kept),
        kept[0].array,
        type(creator.creator_node).__name__,
        inputs["x"],
        x.array,
    ]


draw_one_by_one = draw_orders
