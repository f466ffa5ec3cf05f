"""Drills of sequences: a recurrent cell, rows of a table, attention."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients, raised


def draw_sigmoid(rng):
    return {
        "x": rng.normal(size=5) * 3,
        "gy": rng.normal(size=5),
        "large": np.array([-1000.0, 0.0, 1000.0]),
    }


def drill_sigmoid(work, inputs):
    """sigmoid: values, gradients, dtypes, and no overflow"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs["x"].astype(dtype)]
        found.append(gradients(work, work.sigmoid, arrays, inputs["gy"].astype(dtype)))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        return [*found, work.sigmoid(work.Variable(inputs["large"])).array]


def draw_softmax(rng):
    return {
        "x": rng.normal(size=(3, 4)),
        "gy": rng.normal(size=(3, 4)),
        "large": rng.normal(size=(2, 3)) * 900,
    }


def drill_softmax(work, inputs):
    """softmax over the last axis: values, gradients, dtypes, and no overflow"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs["x"].astype(dtype)]
        found.append(gradients(work, work.softmax, arrays, inputs["gy"].astype(dtype)))
    return [*found, work.softmax(work.Variable(inputs["large"])).array]


def draw_embedding(rng):
    return {
        "w": rng.normal(size=(5, 3)),
        "indices": rng.integers(0, 5, 7),
        "gy": rng.normal(size=(7, 3)),
    }


def drill_embedding(work, inputs):
    """embedding: a row that comes twice gets both gradients"""
    found = []
    for dtype in ("float64", "float32"):

        def function(w):
            return work.embedding(inputs["indices"], w)

        found.append(
            gradients(work, function, [inputs["w"].astype(dtype)], inputs["gy"].astype(dtype))
        )
    return found


def draw_attention(rng):
    n, m, d, e = (int(number) for number in rng.integers(2, 5, 4))
    mask = rng.integers(0, 2, (n, m)).astype(bool)
    mask[:, 0] = True
    return {
        "arrays": [rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=(m, e))],
        "square": [rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.normal(size=(n, e))],
        "mask": mask,
        "gy": rng.normal(size=(n, e)),
    }


def drill_attention(work, inputs):
    """Attention: plain, with a mask, and causal; values, gradients, dtypes"""
    attention = work.scaled_dot_product_attention
    found = []
    for dtype in ("float64", "float32"):
        arrays = [one.astype(dtype) for one in inputs["arrays"]]
        square = [one.astype(dtype) for one in inputs["square"]]
        gy = inputs["gy"].astype(dtype)
        found.append(gradients(work, attention, arrays, gy))
        found.append(
            gradients(work, lambda q, k, v: attention(q, k, v, mask=inputs["mask"]), arrays, gy)
        )
        found.append(gradients(work, lambda q, k, v: attention(q, k, v, causal=True), square, gy))
    return found


def draw_cell(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "x": rng.normal(size=(4, 2, 3)),
        "h": rng.normal(size=(2, 4)),
        "words": rng.integers(0, 6, 5),
    }


def drill_cell(work, inputs):
    """The recurrent cell over a sequence: gates, states, gradients of all parameters"""
    nn = importlib.import_module(f"{work.__name__}.nn")
    work.seed(inputs["seed"])
    cell, table = nn.GRUCell(3, 4), nn.Embedding(6, 3)
    h = work.Variable(inputs["h"])
    found = [gate.array for gate in cell.gates(work.Variable(inputs["x"][0]), h)]
    for x in inputs["x"]:
        h = cell(work.Variable(x), h)
        found.append(h.array)
    work.sum(h * h).backward()
    found += [[p.name, p.grad] for p in cell.parameters()]
    rows = table(inputs["words"])
    wrong = raised(lambda: cell(work.Variable(np.zeros((2, 5))), h), work.InvalidType)
    return [*found, rows.array, wrong]
