"""Drills of norms and residuals: a root, a variance, layer_norm, a deep network."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients, raised


def draw_sqrt(rng):
    return {"x": rng.uniform(0.1, 9.0, (2, 4)), "gy": rng.normal(size=(2, 4))}


def drill_sqrt(work, inputs):
    """sqrt: values, gradients, dtypes"""
    return [
        gradients(work, work.sqrt, [inputs["x"].astype(dtype)], inputs["gy"].astype(dtype))
        for dtype in ("float64", "float32")
    ]


def draw_var(rng):
    shape = tuple(int(n) for n in rng.integers(2, 5, 3))
    axes = [None, int(rng.integers(0, 3)), -1, (0, 2)]
    shapes = [np.zeros(shape).sum(axis=axis).shape for axis in axes]
    return {
        "x": rng.normal(size=shape),
        "far": rng.normal(size=(3, 4)) + 1e7,
        "axes": axes,
        "gys": [np.asarray(rng.normal(size=one)) for one in shapes],
    }


def drill_var(work, inputs):
    """var over an axis, several and all: values, gradients, dtypes; numbers far from 0"""
    found = []
    for dtype in ("float64", "float32"):
        for axis, gy in zip(inputs["axes"], inputs["gys"], strict=True):

            def function(x, axis=axis):
                return work.var(x, axis)

            found.append(gradients(work, function, [inputs["x"].astype(dtype)], gy.astype(dtype)))
        found.append(work.var(work.Variable(inputs["x"].astype(dtype)), -1, keepdims=True).array)
    return [*found, work.var(work.Variable(inputs["far"]), -1).array]


def draw_norm(rng):
    n, size = (int(number) for number in rng.integers(2, 6, 2))
    return {
        "x": rng.normal(size=(n, size)) * 3 + rng.normal(),
        "stack": rng.normal(size=(2, n, size)),
        "gamma": rng.normal(size=size),
        "beta": rng.normal(size=size),
        "eps": float(rng.uniform(0.01, 0.5)),
        "gy": rng.normal(size=(n, size)),
    }


def drill_norm(work, inputs):
    """layer_norm: values, all gradients, dtypes, stacks, eps; gamma of another size is refused"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs[name].astype(dtype) for name in ("x", "gamma", "beta")]
        found.append(gradients(work, work.layer_norm, arrays, inputs["gy"].astype(dtype)))
    x, stack = work.Variable(inputs["x"]), work.Variable(inputs["stack"])
    gamma = work.Variable(inputs["gamma"])
    found.append(work.layer_norm(x, gamma, None, inputs["eps"]).array)
    found.append(work.layer_norm(stack, gamma).array)
    longer = work.Variable(np.ones(len(inputs["gamma"]) + 1))
    return [*found, raised(lambda: work.layer_norm(x, longer), ValueError)]


def draw_network(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "depth": int(rng.integers(3, 8)),
        "x": rng.normal(size=(4, 3)),
        "gy": rng.normal(size=(4, 3)),
    }


def drill_network(work, inputs):
    """Residual and LayerNorm in a deep network: values, gradients of all parameters"""
    nn = importlib.import_module(f"{work.__name__}.nn")
    work.seed(inputs["seed"])
    layers = [
        nn.Residual(nn.LayerNorm(3), nn.Linear(3, 3), work.relu) for _ in range(inputs["depth"])
    ]
    model = nn.Sequential(*layers, nn.LayerNorm(3, 0.01))
    found = gradients(work, model, [inputs["x"]], inputs["gy"])
    return [*found, [[p.name, p.array, p.grad] for p in model.parameters()]]
