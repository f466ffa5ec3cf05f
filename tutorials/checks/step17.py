"""Checks of exercise 17: gates, a cell, attention, and a text that is learned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import reference

HINTS = {
    "check_sigmoid": Hint(
        "Where does e^-x become too large, and which function has the same curve without that?",
        "sigmoid(x) = (1 + tanh(x / 2)) / 2; the gradient is gy y (1 - y).",
    ),
    "check_softmax": Hint(
        "The sum of a row is 1. What do the other numbers do if one score grows?",
        "y = e^(x - max) / sum, over the last axis; gx = y (gy - the sum of gy y over the "
        "last axis).",
    ),
    "check_embedding": Hint(
        "A row is read three times. How many gradients come back to it?",
        "forward: x[indices]. backward: zeros of the shape of x, then np.add.at(gx, indices, gy).",
    ),
    "check_cell": Hint(
        "A gate near 0 should keep the state. Which of the two terms has the factor z?",
        "z = sigmoid(A x + B h), r likewise, n = tanh(E x + F (r h)), h' = h + z (n - h).",
    ),
    "check_gates": Hint(
        "Which line takes the array out of the graph, so that a gradient ends there?",
        "Operations of Variables from the first line to the last: no .array between.",
    ),
    "check_attention": Hint(
        "Which axis adds up to 1, by which number are scores divided, and what does a "
        "forbidden place get before the softmax?",
        "softmax(query key^T / sqrt(d)) value; a forbidden score is minus infinity; causal is"
        " np.tri(n, m); with a mask, both hold.",
    ),
    "check_reading": Hint(
        "Each part passed alone. Does the state go on from letter to letter, and does its "
        "gradient come back?",
        "h = cell(table(codes), h) in each step; the loss is a sum over the steps of a window.",
    ),
    "check_care": CARE,
}

_RNG = np.random.default_rng(15)
X = _RNG.normal(size=(3, 4))


def _softmax(x: Any) -> Any:
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def check_sigmoid(work: Any) -> None:
    """sigmoid, and its gradient"""
    look = "Sigmoid.forward: 1 / (1 + e^-x)"
    expect_close("sigmoid(x)", work.sigmoid(work.Variable(X)).array, 1 / (1 + np.exp(-X)), look)
    far = work.Variable(np.array([-1000.0, 0.0, 1000.0]))
    with np.errstate(over="raise"):
        try:
            got = work.sigmoid(far).array
        except FloatingPointError:
            got = "an overflow of exp"
    look = "Sigmoid.forward: use tanh in place of exp"
    expect_close("sigmoid of -1000, 0 and 1000", got, [0.0, 0.5, 1.0], look)
    look = "Sigmoid.backward: gy * y * (1 - y)"
    expect_gradients("sigmoid", work.sigmoid, [X], work.Variable, look)


def check_softmax(work: Any) -> None:
    """softmax over the last axis, and its gradient"""
    x = _RNG.normal(size=(2, 3, 4))
    look = "Softmax.forward: e^x divided by the sum over the last axis"
    expect_close("softmax(x)", work.softmax(work.Variable(x)).array, _softmax(x), look)
    large = work.softmax(work.Variable(np.array([[1000.0, 0.0]]))).array
    look = "Softmax.forward: exp(1000) is inf. Subtract the largest number first"
    expect_close("softmax of 1000 and 0", large, [[1.0, 0.0]], look)
    look = "Softmax.backward: y * (gy - the sum of gy * y over the last axis)"
    expect_gradients("softmax", work.softmax, [x], work.Variable, look)


def check_embedding(work: Any) -> None:
    """embedding, and its gradient"""
    from mynode import nn

    indices = np.array([2, 0, 2, 2])
    w = work.Variable(X)
    y = work.embedding(indices, w)
    expect_close("embedding(indices, w)", y.array, X[indices], "TakeRows.forward: x[indices]")
    y.grad = np.ones((4, 4))
    y.backward()
    look = "TakeRows.backward: index 2 comes three times, so three gradients add up: np.add.at"
    expect_close("the gradient of w", w.grad, np.outer([1.0, 0.0, 3.0], np.ones(4)), look)
    layer = nn.Embedding(5, 2)
    shapes = [p.array.shape for p in layer.parameters()]
    expect_equal("the parameters of Embedding(5, 2)", shapes, [(5, 2)], "weight: (rows, size)")
    got = layer(np.array([4])).array
    expect_close("a row of the layer", got, layer.weight.array[4:], "Embedding.forward")


def _cell(work: Any) -> Any:
    from mynode import nn

    work.seed(3)
    cell = nn.GRUCell(4, 2)
    for p in cell.parameters():
        p.array = _RNG.normal(size=p.array.shape)
    return cell


def check_cell(work: Any) -> None:
    """GRUCell computes its formulas"""
    cell = _cell(work)
    h = _RNG.normal(size=(3, 2))
    look = "six layers Linear; those of the state have no bias"
    expect_equal("the number of parameters of GRUCell", len(cell.parameters()), 9, look)

    def of(layer: Any, x: Any) -> Any:
        y = x @ layer.weight.array.T
        return y if layer.bias is None else y + layer.bias.array

    z = 1 / (1 + np.exp(-of(cell.update_x, X) - of(cell.update_h, h)))
    r = 1 / (1 + np.exp(-of(cell.reset_x, X) - of(cell.reset_h, h)))
    n = np.tanh(of(cell.new_x, X) + of(cell.new_h, r * h))
    look = "GRUCell.forward, GRUCell.gates: h' = (1 - z) h + z n, with n = tanh(E x + F (r h))"
    got = cell(work.Variable(X), work.Variable(h)).array
    expect_close("the next state", got, (1 - z) * h + z * n, look)


def check_gates(work: Any) -> None:
    """closed gates keep the state, and gradients pass"""
    cell = _cell(work)
    h = _RNG.normal(size=(3, 2))
    expect_gradients("GRUCell", cell, [X, h], work.Variable, "no .array between the operations")
    cell.update_x.bias.array = np.full(2, -1000.0)
    kept = cell(work.Variable(X), work.Variable(h)).array
    expect_close("the state behind closed gates", kept, h, "z near 0: the state stays")


def check_attention(work: Any) -> None:
    """attention, with and without a mask"""
    q, k, v = (_RNG.normal(size=shape) for shape in ((3, 4), (5, 4), (5, 2)))
    attend = work.scaled_dot_product_attention
    boxes = [work.Variable(one) for one in (q, k, v)]
    weights = _softmax(q @ k.T / math.sqrt(4))
    look = "scores = query key^T / sqrt(d); the weights are the softmax of each row"
    expect_close("attention", attend(*boxes).array, weights @ v, look)
    expect_gradients("attention", attend, [q, k, v], work.Variable, look)
    square = _RNG.normal(size=(4, 4))
    scores = np.where(np.tri(4) > 0, square @ square.T / 2, -np.inf)
    box = work.Variable(square)
    look = "causal: query i looks at keys 0 to i; the scores of other keys are -inf"
    got = attend(box, box, box, causal=True).array
    expect_close("causal attention", got, _softmax(scores) @ square, look)
    mask = np.array([[True, False, True, True]] * 4)
    expected = _softmax(np.where(mask, square @ square.T / 2, -np.inf)) @ square
    got = attend(box, box, box, mask=mask).array
    expect_close("attention with a mask", got, expected, "False in the mask: the score is -inf")
    expected = _softmax(np.where(mask & (np.tri(4) > 0), square @ square.T / 2, -np.inf)) @ square
    got = attend(box, box, box, mask=mask, causal=True).array
    look = "masked: with a mask and causal, both hold: mask & np.tri(...)"
    expect_close("causal attention with a mask", got, expected, look)


def check_reading(work: Any) -> None:
    """your network learns a text"""
    from mynode import nn

    text = "the loss is a leaf of the tree of the text. a letter is a leaf of the loss. "
    names = sorted(set(text))
    codes = np.array([names.index(letter) for letter in text])
    work.seed(0)
    table, cell, output = nn.Embedding(len(names), 8), nn.GRUCell(8, 32), nn.Linear(32, len(names))
    model = nn.Sequential(table, cell, output)
    optimizer = nn.Adam(model, lr=0.02)
    places, h = np.arange(19) * 4, work.Variable(np.zeros((19, 32)))
    mean = 0.0
    for _ in range(30):
        h.unchain()
        loss: Any = 0.0
        for _ in range(8):
            h = cell(table(codes[places % len(codes)]), h)
            places = places + 1
            loss = work.softmax_cross_entropy(output(h), codes[places % len(codes)]) + loss
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        mean = float(loss.array) / 8
    look = "A guess costs 2.6. Each part passed by itself: does the state go on, and its gradient?"
    expect_true(f"the loss of the last window, {mean:.2f}, is below 1.2", mean < 1.2, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    expect_careful(work, "sigmoid", work.sigmoid, [[0.5, -1.0, 2.0]])
    expect_careful(work, "softmax", work.softmax, [[0.5, -1.0, 2.0]])
    expect_careful(work, "tanh", work.tanh, [[0.5, -1.0, 2.0]])
    indices = np.array([1, 0, 1])
    expect_careful(work, "embedding", lambda w: work.embedding(indices, w), np.ones((3, 2)))


def _wrong(path: str, right: str, wrong: str) -> dict[str, str]:
    text = reference("17")[path]
    assert right in text, right
    return {path: text.replace(right, wrong)}


MISTAKES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "the gate is turned round",
        _wrong("nn/recurrent_layers.py", "h + z * (n - h)", "n + z * (h - n)"),
    ),
    (
        "the reset gate is forgotten",
        _wrong("nn/recurrent_layers.py", "self.new_h(r * h)", "self.new_h(h)"),
    ),
    (
        "of an index that comes twice, one gradient is lost",
        _wrong("functions/indexing.py", "np.add.at(gx, indices, gy)", "gx[indices] += gy"),
    ),
    (
        "exp of -1000 overflows in the sigmoid",
        _wrong("functions/exponential.py", "0.5 * np.tanh(0.5 * x) + 0.5", "1 / (1 + np.exp(-x))"),
    ),
    (
        "the gradient of softmax forgets the sum",
        _wrong(
            "functions/activation.py",
            "y * (gy - (gy * y).sum(axis=-1, keepdims=True))",
            "gy * y * (1.0 - y)",
        ),
    ),
    (
        "the scores are not divided by the root of d",
        _wrong("functions/network.py", " / math.sqrt(query.shape[1])", ""),
    ),
    (
        "causal attention looks at the next place too",
        _wrong("functions/network.py", "scores.shape[-2:], dtype", "scores.shape[-2:], 1, dtype"),
    ),
    (
        "the mask is turned round",
        _wrong(
            "functions/network.py", "np.where(mask, 0.0, -np.inf)", "np.where(mask, -np.inf, 0.0)"
        ),
    ),
)
