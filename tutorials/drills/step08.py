"""Drills of layers: an activation, a matrix with a bias, parameters of modules."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients, raised


def _nn(work):
    return importlib.import_module(f"{work.__name__}.nn")


def draw_relu(rng):
    x = rng.normal(size=(3, 4)) * 2
    x[0, 0] = 0.0
    return {"x": x, "gy": rng.normal(size=(3, 4))}


def drill_relu(work, inputs):
    """relu: values, gradients, also at 0, and no array is written to"""
    found = []
    for dtype in ("float64", "float32"):
        arrays, gy = [inputs["x"].astype(dtype)], inputs["gy"].astype(dtype)
        found.append(gradients(work, work.relu, arrays, gy))
    return found


def draw_linear(rng):
    n, a, b = (int(number) for number in rng.integers(1, 5, 3))
    return {
        "x": rng.normal(size=(n, a)),
        "w": rng.normal(size=(b, a)),
        "b": rng.normal(size=b),
        "gy": rng.normal(size=(n, b)),
    }


def drill_linear(work, inputs):
    """linear with and without a bias: values, gradients, refusals"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs[name].astype(dtype) for name in ("x", "w", "b")]
        gy = inputs["gy"].astype(dtype)
        found += [
            gradients(work, work.linear, arrays, gy),
            gradients(work, work.linear, arrays[:2], gy),
        ]
    x, w = work.Variable(np.zeros((2, 3))), work.Variable(np.zeros((3, 2)))
    return [*found, bool(raised(lambda: work.linear(x, w)))]


def draw_modules(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "sizes": [int(n) for n in rng.integers(1, 5, 4)],
        "rows": rng.normal(size=(2, 5)),
    }


def drill_modules(work, inputs):
    """Parameters of modules in modules, each once, in order; first values from the seed"""
    nn = _nn(work)
    work.seed(inputs["seed"])
    a, b, c, d = inputs["sizes"]

    class Model(nn.Module):
        def __init__(self):
            self.first = nn.Linear(5, a)
            self.scale = nn.Parameter(np.ones(a), name="scale")
            self.more = [nn.Linear(a, b, bias=False), (nn.Linear(b, c), 3.0)]
            self.again = self.first
            self.chain = nn.Sequential(nn.Linear(c, d), work.relu, nn.Linear(d, 2))
            self.number = work.Variable(np.zeros(2))

        def forward(self, x):
            return self.chain(self.more[1][0](self.more[0](work.relu(self.first(x)) * self.scale)))

    model = Model()
    parameters = model.parameters()
    found = [[p.name, p.array] for p in parameters]
    x = work.Variable(inputs["rows"])
    y = model(x)
    total = work.sum(y * y)
    total.backward()
    found += [[p.grad for p in parameters], y.array, total.array]
    model.cleargrads()
    return [*found, [p.grad is None for p in parameters], raised(lambda: nn.Module()(x))]
