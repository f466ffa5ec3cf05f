"""Checks of exercise 9: each new part, then a network that learns the digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.nn.datasets import load_digits
from tinynode_course.checks import (
    expect_close,
    expect_equal,
    expect_gradients,
    expect_raises,
    expect_true,
)
from tinynode_course.mynode import reference

HINTS = (
    "Begin with what the page shows: functions/network.py, random.py, nn/initializers.py, "
    "nn/module.py, nn/layers.py, SGD. Then relu, the losses and Adam, which the page leaves out.",
    "ReLU: the gradient passes where x > 0: gy * (x > 0), with (x,) = self.input_arrays. "
    "SoftmaxCrossEntropy.backward: p = exp(log_softmax(x)); subtract 1 at each row's label; "
    "divide by the number of rows; multiply by gloss. The gradient of the labels is None.",
    "Adam.update_one: m = b1 * moments.get('m', 0.0) + (1 - b1) * grad, v likewise with "
    "grad * grad; divide m by 1 - b1**count and v by 1 - b2**count; return the new array and "
    "{'m': m, 'v': v}.",
)

_RNG = np.random.default_rng(12)
X, W, B = _RNG.normal(size=(4, 3)), _RNG.normal(size=(2, 3)), _RNG.normal(size=2)
LABELS = np.array([1, 0, 2, 1])


def check_relu(work: Any) -> None:
    """relu, and its gradient"""
    x = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
    look = "functions/activation.py: forward is np.maximum(x, 0)"
    expect_close("relu(x)", work.relu(work.Variable(x)).array, np.maximum(x, 0), look)
    v = work.Variable(x)
    y = work.relu(v)
    y.grad = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    y.backward()
    look = "ReLU.backward: gy where x is above 0, else 0; at 0 itself 0"
    expect_close("the gradient of relu", v.grad, [0.0, 0.0, 0.0, 4.0, 5.0], look)


def check_linear(work: Any) -> None:
    """linear, and its gradients"""
    y = work.linear(X, work.Variable(W), work.Variable(B))
    look = "functions/network.py: y = x @ w.T, plus the bias if there is one"
    expect_close("linear(x, w, b)", y.array, X @ W.T + B, look)
    look = "Linear.backward: gx = gy W, gW = gy^T x, gb = the sum of the rows of gy"
    expect_gradients("linear(x, w)", work.linear, [X, W], work.Variable, look)
    expect_gradients("linear(x, w, b)", work.linear, [X, W, B], work.Variable, look)


def check_cross_entropy(work: Any) -> None:
    """softmax_cross_entropy, and its gradient"""
    p = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    expected = -np.log(p[np.arange(4), LABELS]).mean()
    look = "SoftmaxCrossEntropy.forward: the mean over the rows of -log(p[label])"
    loss = work.softmax_cross_entropy(work.Variable(X), LABELS)
    expect_close("the loss", loss.array, expected, look)
    look = "SoftmaxCrossEntropy.backward: (p - one_hot) / n, times gloss"
    expect_gradients(
        "softmax_cross_entropy",
        lambda x: work.softmax_cross_entropy(x, LABELS),
        [X],
        work.Variable,
        look,
    )
    large = work.Variable(np.array([[1000.0, 0.0], [0.0, -1000.0]]))
    loss = work.softmax_cross_entropy(large, np.array([0, 0])).array
    look = "exp(1000) is inf. Subtract the largest score of each row before exp"
    expect_close("the loss of large scores, all right", loss, 0.0, look)


def check_mean_squared_error(work: Any) -> None:
    """mean_squared_error, and its gradient"""
    t = X[::-1].copy()
    got = work.mean_squared_error(work.Variable(X), t).array
    look = "functions/loss.py: mean of the squared difference"
    expect_close("mean_squared_error", got, np.mean((X - t) ** 2), look)
    expect_gradients("mean_squared_error", work.mean_squared_error, [X, t], work.Variable, look)


def check_module(work: Any) -> None:
    """Module finds parameters"""
    from mynode import nn

    class Inner(nn.Module):
        def __init__(self) -> None:
            self.a = nn.Parameter(np.zeros(1))
            self.other = work.Variable(np.zeros(1))
            self.number = 3

    class Outer(nn.Module):
        def __init__(self) -> None:
            self.first = Inner()
            self.rest = [nn.Parameter(np.zeros(2)), (Inner(),)]
            self.again = self.first

        def forward(self, x: Any) -> Any:
            return x

    model = Outer()
    wanted = [model.first.a, model.rest[0], model.rest[1][0].a]
    found = list(model.parameters())
    look = "Module.parameters: walk vars(self), modules inside, lists and tuples; each once"
    expect_equal("the number of parameters", len(found), 3, look)
    same = all(a is b for a, b in zip(found, wanted, strict=True))
    expect_true("the parameters come in the order of assignment", same, look)
    expect_equal("model(5)", model(5), 5, "__call__ calls forward")
    for p in found:
        p.grad = np.ones(p.array.shape)
    model.cleargrads()
    cleared = all(p.grad is None for p in found)
    expect_true("model.cleargrads() clears all gradients", cleared, "Module.cleargrads")


def check_layers(work: Any) -> None:
    """Linear and Sequential"""
    from mynode import nn

    work.seed(0)
    layer = nn.Linear(200, 100)
    weight = layer.weight.array.copy()
    expect_equal("the weight's shape", weight.shape, (100, 200), "Linear: (out_size, in_size)")
    look = "lecun_normal: the deviation is the root of 1 / fan_in"
    expect_close("200 times the weight's variance", 200 * weight.var(), 1.0, look, rtol=0.1)
    expect_close("the first bias", layer.bias.array, np.zeros(100), "zeros")
    expect_true("a layer without bias has none", nn.Linear(2, 2, bias=False).bias is None, "bias")
    work.seed(0)
    again = nn.Linear(200, 100).weight.array
    expect_close("the weight after the same seed", again, weight, "random.py: seed starts anew")
    model = nn.Sequential(nn.Linear(3, 5), work.relu, nn.Linear(5, 2))
    expect_equal("the parameters of a Sequential", len(model.parameters()), 4, "self.layers")
    first, second = model.layers[0], model.layers[2]
    hidden = np.maximum(X @ first.weight.array.T + first.bias.array, 0)
    expected = hidden @ second.weight.array.T + second.bias.array
    look = "Sequential.forward: each layer gets the output of the layer before"
    expect_close("the output of a Sequential", model(X).array, expected, look)


def check_optimizers(work: Any) -> None:
    """SGD and Adam, step by step"""
    from mynode import nn

    grads = [np.array([0.5, -2.0]), np.array([0.1, 0.1]), np.array([-1.0, 4.0])]
    p = nn.Parameter(np.array([1.0, 2.0]))
    before = p.array
    optimizer = nn.SGD([p], lr=0.1)
    p.grad = grads[0]
    optimizer.update()
    expect_close("a step of SGD", p.array, [0.95, 2.2], "p - lr * g")
    look = "step returns a new array: a graph may still keep the old one"
    expect_close("the old array, after the step", before, [1.0, 2.0], look)
    optimizer.cleargrads()
    expect_true("cleargrads clears", p.grad is None, "Optimizer.cleargrads")
    look = "update raises a ValueError for a parameter whose grad is None"
    expect_raises("update without a gradient", ValueError, optimizer.update, look)
    p = nn.Parameter(np.array([1.0, 2.0]))
    optimizer = nn.Adam([p], lr=0.1)
    value, m, v = np.array([1.0, 2.0]), 0.0, 0.0
    for t, g in enumerate(grads, 1):
        p.grad = g
        optimizer.update()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        value = value - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        look = (
            "Adam.update_one: the formula of the docstring; m and v go on in moments, t is count"
        )
        expect_close(f"the parameter after step {t} of Adam", p.array, value, look)


def train(work: Any, x: Any, labels: Any, rounds: int) -> Any:
    """A trained network of two layers."""
    from mynode import nn

    work.seed(0)
    order = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(x.shape[1], 64), work.relu, nn.Linear(64, 10))
    optimizer = nn.Adam(model, lr=0.005)
    for _ in range(rounds):
        for batch in np.array_split(order.permutation(len(x)), len(x) // 32):
            loss = work.softmax_cross_entropy(model(x[batch]), labels[batch])
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    return model


def check_digits(work: Any) -> None:
    """your framework reads digits"""
    digits = load_digits()
    model = train(work, digits.train_images[:1000], digits.train_labels[:1000], 8)
    scores = model(digits.held_out_images).array
    right = float((scores.argmax(axis=1) == digits.held_out_labels).mean())
    look = (
        "Each part passed by itself. Do cleargrads, backward and update see the same Parameters?"
    )
    expect_true(f"of new digits {right:.0%} are right, at least 90 %", right >= 0.9, look)


def _wrong(path: str, right: str, wrong: str) -> dict[str, str]:
    text = reference("09")[path]
    assert right in text, right
    return {path: text.replace(right, wrong)}


MISTAKES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "relu lets the gradient pass everywhere",
        _wrong("functions/activation.py", "gy * (x > 0)", "gy"),
    ),
    (
        "the gradient of the loss is not divided by the number of rows",
        _wrong("functions/cross_entropy.py", "gx * (gloss / max(len(labels), 1))", "gx * gloss"),
    ),
    (
        "the loss forgets the gradient that comes in",
        _wrong("functions/cross_entropy.py", "(gloss / max(len(labels), 1))", "(1 / len(labels))"),
    ),
    (
        "exp of large scores overflows",
        _wrong("functions/cross_entropy.py", "x - x.max(axis=1, keepdims=True)", "x"),
    ),
    (
        "labels get a gradient of zeros, so integers are added up",
        _wrong(
            "core/backprop.py",
            "        if gx is None:  # labels have no gradient\n            continue\n",
            "",
        ),
    ),
    (
        "the parameters of modules in lists are not found",
        _wrong("nn/module.py", "isinstance(value, list | tuple)", "isinstance(value, tuple)"),
    ),
    (
        "Adam does not correct its means",
        _wrong("nn/optimizers.py", "m / (1 - b1**count)", "m"),
    ),
    (
        "SGD changes the array in place",
        _wrong(
            "nn/optimizers.py",
            "return array - self.lr * grad, moments",
            "array -= self.lr * grad\n        return array, moments",
        ),
    ),
    (
        "the gradient of the bias is that of the first row",
        _wrong("functions/network.py", "rows.sum(axis=0)", "rows[0]"),
    ),
)
