"""Drills of backward_accumulate: gradients that are added up where they are made."""

import numpy as np


def draw_accumulate(rng):
    return {
        "g": rng.normal(size=3),
        "old": rng.normal(size=(2, 3)),
        "kinds": [int(n) for n in rng.permutation(9)],
    }


def drill_accumulate(work, inputs):
    """backward_accumulate of sums, differences and products: new arrays, in the targets' order"""
    found = []
    for kind in inputs["kinds"]:
        targets = ((0,), (1,), (0, 1))[kind % 3]
        has = (kind // 3 != 0, kind // 3 != 1)
        for function in (work.subtract, work.add, work.multiply):
            old = [row.copy() for row in inputs["old"]]
            given = tuple(old[i] if has[i] else None for i in targets)
            g = inputs["g"].copy()
            z = function(work.Variable(np.ones(3) * 2.0), work.Variable(np.ones(3) * 3.0))
            results = z.creator_node.backward_accumulate(targets, (g,), given)
            found += [kind, list(results), g, old]
        z = work.Variable(np.ones((2, 3))) - work.Variable(np.ones((2, 1)))
        sums = (inputs["old"][:, :1] if kind % 2 else None,)
        found.append(list(z.creator_node.backward_accumulate((1,), (inputs["old"],), sums)))
    return found


def draw_calls(rng):
    return {"x": rng.normal(size=3), "w": rng.normal(size=3), "row": rng.normal(size=(2, 1))}


def drill_calls(work, inputs):
    """The backward pass hands over the sums so far; gradients of two orders, also broadcast"""
    seen = []

    class Double(work.FunctionNode):
        def forward(self, inputs):
            return (2.0 * inputs[0],)

        def backward(self, target_input_indexes, grad_outputs):
            return (2.0 * grad_outputs[0],)

        def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
            (old,) = grad_inputs
            seen.append([list(target_input_indexes), old is None])
            g = 2.0 * grad_outputs[0]
            return (g if old is None else old + g,)

    def double(x):
        return Double().apply((x,))[0]

    found = []
    for formula in (_one, _two, _three):
        leaves = [work.Variable(inputs[name].copy()) for name in ("x", "w", "row")]
        x, w, row = leaves
        y = work.sum(formula(work.subtract, double(x) - double(w) * double(x), w, double(row)))
        y.backward()
        found += [y.array, [leaf.grad for leaf in leaves], sorted(seen)]
        grads = work.grad([y], leaves, enable_double_backprop=True)
        total = work.sum(grads[0] * grads[0] * grads[1])
        for some in (grads, work.grad([total], leaves)):
            found.append([None if one is None else one.array for one in some])
        seen.clear()
    return found


def _one(minus, x, w, row):
    return minus(minus(x, w) * x, minus(w, x) * w * x)


def _two(minus, x, w, row):
    a = minus(x, w)
    return minus(a * a * a, minus(a, minus(x * w, row)))


def _three(minus, x, w, row):
    return minus(minus(x, x), minus(row * w, minus(w, row) * x)) * minus(row, x)
