"""Drills of backward_accumulate: a subtraction that adds its gradients up."""

import numpy as np

import tinynode as tn


def draw_accumulate(rng):
    return {
        "g": rng.normal(size=3),
        "old": rng.normal(size=(2, 3)),
        "kinds": [int(n) for n in rng.permutation(9)],
    }


def drill_accumulate(work, inputs):
    """backward_accumulate: gradients for the targets, added to old ones in new arrays"""
    found = []
    for kind in inputs["kinds"]:
        targets = ((0,), (1,), (0, 1))[kind % 3]
        old = [tn.asarray(row.copy(), requires_grad=True) for row in inputs["old"]]
        has = (kind // 3 != 0, kind // 3 != 1)
        given = tuple(old[i] if has[i] else None for i in targets)
        g = tn.asarray(inputs["g"].copy(), requires_grad=True)
        z = work.subtract(tn.Variable(np.ones(3)), tn.Variable(np.zeros(3)))
        results = z.creator_node.backward_accumulate(targets, (g,), given)
        found += [
            kind,
            [one.rank for one in results],
            [one.array for one in results],
            type(results).__name__,
        ]
        found += [g.array, [one.array for one in old]]
    return found


def draw_graphs(rng):
    return {"x": rng.normal(size=3), "w": rng.normal(size=3), "g": rng.normal(size=3)}


def drill_graphs(work, inputs):
    """Graphs with many differences: gradients of the first and of the second order"""
    found = []
    for formula in (_one, _two):
        x, w = (tn.Variable(inputs[name].copy()) for name in ("x", "w"))
        y = formula(work.subtract, x, w)
        grads = tn.grad(
            [y], [x, w], [tn.Variable(inputs["g"].copy())], enable_double_backprop=True
        )
        found += [y.array, [one.array for one in grads]]
        total = tn.functions.sum(grads[0] * grads[0] * grads[1])
        second = tn.grad([total], [x, w])
        found.append([None if one is None else one.array for one in second])
    return found


def _one(minus, x, w):
    return minus(minus(x, w) * x, minus(w, x) * w * x)


def _two(minus, x, w):
    a = minus(x, w)
    return minus(a * a * a, minus(a, minus(x * w, a)))
