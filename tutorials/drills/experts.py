"""Drills of experts: rows that go and come back, choices, weights, balance, and the layer."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients


def _module(work, name):
    return importlib.import_module(f"{work.__name__}.{name}")


def draw_rows(rng):
    rows = int(rng.integers(4, 8))
    return {
        "x": rng.normal(size=(5, 3)),
        "gy": rng.normal(size=(rows, 3)),
        "indices": np.array([int(n) for n in rng.integers(0, rows - 1, 5)]),
        "rows": rows,
    }


def drill_rows(work, inputs):
    """put_rows, values and gradients, of two dtypes"""
    routing = _module(work, "functions.routing")
    found = []
    for dtype in ("float64", "float32"):
        arrays, gy = [inputs["x"].astype(dtype)], inputs["gy"].astype(dtype)

        def function(x):
            return routing.put_rows(x, inputs["indices"], inputs["rows"])

        found.append(gradients(work, function, arrays, gy))
    return found


def draw_choices(rng):
    return {"logits": rng.integers(-3, 4, size=(8, 5)) / 2.0, "k": int(rng.integers(2, 4))}


def drill_choices(work, inputs):
    """choose, also of equal logits"""
    routing = _module(work, "functions.routing")
    return [routing.choose(inputs["logits"].copy(), k) for k in (1, inputs["k"])]


def draw_weights(rng):
    order = rng.permuted(np.tile(np.arange(4), (6, 1)), axis=1)
    return {"logits": rng.normal(size=(6, 4)), "gy": rng.normal(size=(6, 4)), "order": order}


def drill_weights(work, inputs):
    """gate_weights and balance_loss of one and of several choices, with gradients"""
    routing = _module(work, "functions.routing")
    found = []
    for k in (1, 2, 3):
        chosen = inputs["order"][:, :k].copy()

        def weights(logits, chosen=chosen):
            return routing.gate_weights(work.softmax(logits), chosen)

        def balance(logits, chosen=chosen):
            return routing.balance_loss(work.softmax(logits), chosen)

        found.append(gradients(work, weights, [inputs["logits"]], inputs["gy"]))
        found.append(gradients(work, balance, [inputs["logits"]], np.array(1.0)))
    return found


def draw_layer(rng):
    bias = rng.normal(size=4) / 10
    bias[int(rng.integers(0, 4))] = -40.0
    return {
        "x": rng.normal(size=(7, 3)),
        "gy": rng.normal(size=(7, 2)),
        "gate": rng.normal(size=(4, 3)),
        "bias": bias,
        "weights": rng.normal(size=(4, 2, 3)),
        "k": int(rng.integers(2, 4)),
    }


def drill_layer(work, inputs):
    """The layer: its output, the rows of each expert, and all gradients"""
    nn = _module(work, "nn")
    experts = _module(work, "nn.experts")
    found = []

    class Noted(nn.Module):
        def __init__(self, number):
            self.number = number
            self.weight = nn.Parameter(inputs["weights"][number].copy())

        def forward(self, x):
            found.append([self.number, x.array.copy()])
            return work.linear(x, self.weight)

    for k in (1, inputs["k"]):
        layer = experts.Experts(3, [Noted(number) for number in range(4)], k)
        layer.gate.weight.array = inputs["gate"].copy()
        layer.gate.bias.array = inputs["bias"].copy()
        x = work.Variable(inputs["x"].copy())
        y = layer(x)
        y.grad = inputs["gy"].copy()
        y.backward()
        found += [y.array, x.grad.copy(), layer.chosen, layer.balance.array]
        found += [None if p.grad is None else p.grad.copy() for p in layer.parameters()]
        layer.cleargrads()
        layer.balance.backward()
        found.append(layer.gate.weight.grad)
    return found
