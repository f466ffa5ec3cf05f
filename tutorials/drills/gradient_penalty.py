"""Drills of the gradient penalty: the loss, and its gradient by the parameters."""

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def draw_penalty(rng):
    n, d, classes = (int(number) for number in rng.integers(2, 5, 3))
    return {
        "x": rng.normal(size=(n, d)),
        "t": rng.integers(0, classes, n),
        "w": rng.normal(size=(classes, d)),
        "weights": [0.0, float(rng.uniform(0.1, 2))],
    }


def drill_penalty(work, inputs):
    """The penalized loss, its gradients, and no grad of x"""
    found = []
    for weight in inputs["weights"]:
        for wants in (False, True):
            w = nn.Parameter(inputs["w"].copy())

            def model(x, w=w):
                return F.tanh(F.linear(x, w)) * 2.0

            x = tn.asarray(inputs["x"].copy(), requires_grad=wants)
            loss = work.penalized_cross_entropy(model, x, tn.asarray(inputs["t"]), weight)
            (g,) = tn.grad([loss], [w])
            found += [loss.array, g.array, x.array, x.grad is None]
    return found
