"""Checks of exercise 8: each new part, then a network that learns spirals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import reference

HINTS = {
    "check_relu": Hint(
        "Move a negative input a little. Does the result move? And a positive one?",
        "y = max(x, 0); gx = gy where x > 0, else 0; 0 at x = 0.",
    ),
    "check_linear": Hint(
        "Which shapes have x, W and gy? Which product of two of them has the shape of the third?",
        "y = x W^T + b. gx = gy W, gW = gy^T x, gb = the sum of the rows of gy. More axes in "
        "front are rows: gy.reshape(-1, w.shape[0]).",
    ),
    "check_module": Hint(
        "Where can a parameter hide in an object, and how do you avoid to find one twice?",
        "A walk over vars(self): a Parameter is found, a Module or a list is opened, and a "
        "set of ids remembers what was seen.",
    ),
    "check_layers": Hint(
        "A sum of n products has n times the variance of one. Which variance must each weight"
        " have?",
        "lecun_normal: the deviation is the root of 1 / fan_in. Sequential: each layer gets "
        "the output of the layer before.",
    ),
    "check_spirals": Hint(
        "Each part passed alone. Which parameters does the training move, and does each get a"
        " gradient?",
        "parameters() finds the weight and the bias of each layer; the loss falls if all move.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_layers", "Sequential.forward"): Hint(
        "What does the second layer get, and what leaves the chain at the end?",
        "for layer in self.layers: x = layer(x); then x is the result.",
    ),
}

_RNG = np.random.default_rng(12)
X, W, B = _RNG.normal(size=(4, 3)), _RNG.normal(size=(2, 3)), _RNG.normal(size=2)


def check_relu(work: Any) -> None:
    """relu, and its gradient"""
    x = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
    look = "ReLU.forward in functions/activation.py is np.maximum(x, 0)"
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
    look = "Linear.forward in functions/network.py: y = x @ w.T, plus the bias if there is one"
    expect_close("linear(x, w, b)", y.array, X @ W.T + B, look)
    look = "Linear.backward: gx = gy W, gW = gy^T x, gb = the sum of the rows of gy"
    expect_gradients("linear(x, w)", work.linear, [X, W], work.Variable, look)
    expect_gradients("linear(x, w, b)", work.linear, [X, W, B], work.Variable, look)
    look = "Linear.backward: rows of more axes in front: gy.reshape(-1, w.shape[0])"
    stack = np.random.default_rng(1).normal(size=(2, 4, 3))
    expect_gradients("linear of a stack", work.linear, [stack, W, B], work.Variable, look)


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
    expect_equal("model(5)", model(5), 5, "Module.__call__ calls forward")
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
    look = "lecun_normal: the deviation is the root of 1 / fan_in; normal() in random.py uses it"
    expect_close("200 times the weight's variance", 200 * weight.var(), 1.0, look, rtol=0.1)
    look = "Linear.__init__ in nn/layers.py: the bias begins as zeros"
    expect_close("the first bias", layer.bias.array, np.zeros(100), look)
    look = "Linear.__init__ in nn/layers.py: bias=False makes no bias"
    expect_true("a layer without bias has none", nn.Linear(2, 2, bias=False).bias is None, look)
    work.seed(0)
    again = nn.Linear(200, 100).weight.array
    expect_close("the weight after the same seed", again, weight, "random.py, seed() starts anew")
    model = nn.Sequential(nn.Linear(3, 5), work.relu, nn.Linear(5, 2))
    look = "Sequential.__init__: self.layers; Module.parameters looks into lists"
    expect_equal("the parameters of a Sequential", len(model.parameters()), 4, look)
    first, second = model.layers[0], model.layers[2]
    hidden = np.maximum(X @ first.weight.array.T + first.bias.array, 0)
    expected = hidden @ second.weight.array.T + second.bias.array
    look = "Sequential.forward: each layer gets the output of the layer before"
    expect_close("the output of a Sequential", model(X).array, expected, look)


def check_spirals(work: Any) -> None:
    """your network learns two spirals"""
    from mynode import nn

    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    radius = rng.uniform(0.2, 1.0, 100)
    angle = 4.0 * radius + np.pi * labels
    points = 2.0 * (radius * np.stack([np.cos(angle), np.sin(angle)])).T
    targets = (2.0 * labels - 1.0)[:, None]
    work.seed(0)
    net = nn.Sequential(nn.Linear(2, 32), work.relu, nn.Linear(32, 1))
    for _ in range(300):
        difference = net(points) - targets
        loss = work.mean(difference * difference)
        net.cleargrads()
        loss.backward()
        for p in net.parameters():
            p.array = p.array - 0.1 * p.grad
    right = float((np.sign(net(points).array) == targets).mean())
    look = "Each part passed by itself. Does Sequential call all layers, and parameters find all?"
    expect_true(f"{right:.0%} of the points are right, at least 90 %", right >= 0.9, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    expect_careful(work, "relu", work.relu, [[0.5, -1.0, 2.0]])
    expect_careful(work, "linear", work.linear, X, W, B)


def _wrong(path: str, right: str, wrong: str) -> dict[str, str]:
    text = reference("08")[path]
    assert right in text, right
    return {path: text.replace(right, wrong)}


MISTAKES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "relu writes to its input",
        _wrong("functions/activation.py", "np.maximum(x, 0)", "np.maximum(x, 0, out=x)"),
    ),
    (
        "the gradient of relu is float64 for float32",
        _wrong("functions/activation.py", "gy * (x > 0)", "gy * (x > 0).astype(float)"),
    ),
    (
        "relu lets the gradient pass everywhere",
        _wrong("functions/activation.py", "gy * (x > 0)", "gy"),
    ),
    (
        "the parameters of modules in lists are not found",
        _wrong("nn/module.py", "isinstance(value, list | tuple)", "isinstance(value, tuple)"),
    ),
    (
        "the gradient of the bias is that of the first row",
        _wrong("functions/network.py", "rows.sum(axis=0)", "rows[0]"),
    ),
    (
        "a parameter with two names comes twice",
        _wrong("nn/module.py", "            seen.add(id(value))\n", ""),
    ),
    (
        "the deviation is 1 / fan_in, and no root",
        _wrong(
            "nn/initializers.py", "math.sqrt(1 / math.prod(shape[1:]))", "1 / math.prod(shape[1:])"
        ),
    ),
)
