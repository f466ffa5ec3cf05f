"""Checks of exercise 18: a root, a variance, a norm, a residual connection, and depth."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_gradients,
    expect_raises,
    expect_true,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_sqrt": Hint(
        "Which is known after forward, so that backward needs no second root?",
        "gx = gy / (2 y), with the output y.",
    ),
    "check_var": Hint(
        "From which number does each element differ, and over which axes is the mean taken?",
        "var = mean((x - m)^2), with m = mean(x, axis, keepdims=True).",
    ),
    "check_norm": Hint(
        "Which numbers share a mean: those of a row, or those of a column? Where does eps stand?",
        "(x - m) / sqrt(v + eps) * gamma + beta, over the last axes, as many as gamma has.",
    ),
    "check_layer": Hint(
        "A new layer should change nothing but the scale. With which numbers do its two "
        "parameters begin?",
        "gamma: ones. beta: zeros. forward: layer_norm(x, gamma, beta, eps).",
    ),
    "check_residual": Hint(
        "Two paths lead around the layers. What does the gradient do where they part?",
        "x + (the layers of x).",
    ),
    "check_depth": Hint(
        "Each part passed alone. Where in twelve layers could a gradient get lost?",
        "A residual has the derivative 1 + f'(x): the 1 needs the sum with x itself.",
    ),
}

_RNG = np.random.default_rng(18)
X = _RNG.normal(size=(3, 4)) * 2 + 1
GAMMA, BETA = _RNG.normal(size=4), _RNG.normal(size=4)


def _norm(x: Any, eps: float = 1e-5) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + eps)


def check_sqrt(work: Any) -> None:
    """sqrt, and its gradient"""
    x = np.array([[0.25, 1.0, 9.0], [2.0, 1e-8, 1e8]])
    look = "functions/exponential.py, Sqrt"
    expect_close("sqrt(x)", work.sqrt(work.Variable(x)).array, np.sqrt(x), look)
    look = "Sqrt.backward: gy / (2 y), with the output y"
    expect_gradients("sqrt", work.sqrt, [x[:, :1] + X[:2] ** 2], work.Variable, look)
    single = work.Variable(np.array([4.0, 9.0], np.float32))
    y = work.sqrt(single)
    y.grad = np.ones(2, np.float32)
    y.backward()
    kinds = [y.array.dtype.name, single.grad.dtype.name]
    near = work.Variable(np.array([1e-8, 1e-4, 0.0]))
    y = work.sqrt(near)
    y.grad = np.ones(3)
    with np.errstate(divide="ignore"):
        y.backward()
    look = "Sqrt.backward: gy / (2 y), and nothing is added to y. The gradient at 0 is infinite"
    expect_close("the gradient of sqrt near 0", near.grad, [5000.0, 50.0, np.inf], look)
    look = "A float32 array stays float32; Python's 0.5 has no dtype of its own"
    expect_equal("the dtypes of sqrt and its gradient", kinds, ["float32", "float32"], look)
    expect_close("x after sqrt and backward", single.array, [4.0, 9.0], "forward changes no input")


def check_var(work: Any) -> None:
    """var over axes, and its gradient"""
    look = "functions/statistical.py, var: the mean of (x - m)^2, with m over the same axes"
    for axis in (None, 0, -1, (0, 1)):
        for keepdims in (False, True):
            got = work.var(work.Variable(X), axis, keepdims=keepdims).array
            expected = np.var(X, axis=axis, keepdims=keepdims)
            expect_close(f"var(x, {axis}, keepdims={keepdims})", got, expected, look)
    far = work.var(work.Variable(X + 1e7), -1).array
    look = "Subtract the mean before the square: mean(x^2) - m^2 loses digits"
    expect_close("var of numbers near 1e7", far, np.var(X, axis=-1), look, rtol=1e-4)
    look = "var is made of mean and square: no .array between them"
    expect_gradients("var", lambda x: work.var(x, -1), [X], work.Variable, look)


def check_norm(work: Any) -> None:
    """layer_norm, and its gradients"""
    x, gamma, beta = (work.Variable(one) for one in (X, GAMMA, BETA))
    look = "functions/normalization.py: (x - m) / sqrt(v + eps), over the last axis"
    ones = work.Variable(np.ones(4))
    expect_close("layer_norm(x, ones)", work.layer_norm(x, ones).array, _norm(X), look)
    look = "first times gamma, then plus beta"
    got = work.layer_norm(x, gamma, beta).array
    expect_close("layer_norm(x, gamma, beta)", got, _norm(X) * GAMMA + BETA, look)
    small = work.Variable(X * 1e-3)
    look = "eps is added to the variance, inside of the root"
    got = work.layer_norm(small, ones, None, 1e-4).array
    expect_close("layer_norm of small numbers, eps=1e-4", got, _norm(X * 1e-3, 1e-4), look)
    stack = _RNG.normal(size=(2, 3, 4))
    got = work.layer_norm(work.Variable(stack), ones).array
    expect_close("layer_norm of a stack", got, _norm(stack), "axes: the trailing ones, of gamma")
    expect_close("x after layer_norm", x.array, X, "layer_norm changes no input")
    look = "no .array between the operations: the mean and the variance depend on x, too"
    inputs = [X, GAMMA, BETA]
    expect_gradients("layer_norm", work.layer_norm, inputs, work.Variable, look)
    flat = work.Variable(np.full((1, 4), 7.0))
    y = work.layer_norm(flat, ones)
    y.grad = np.ones((1, 4))
    y.backward()
    look = "The variance of equal numbers is 0; eps inside of the root avoids a division by 0"
    expect_close("layer_norm of equal numbers", y.array, np.zeros((1, 4)), look)
    expect_close("its gradient", flat.grad, np.zeros((1, 4)), look)
    expect_raises(
        "layer_norm of rows of 4 with gamma of 3", ValueError,
        lambda: work.layer_norm(x, work.Variable(np.ones(3))), "the check of the shapes is given",
    )  # fmt: skip


def check_layer(work: Any) -> None:
    """the layer LayerNorm"""
    from mynode import nn

    layer = nn.LayerNorm(4)
    found = [(p.name, p.array.tolist()) for p in layer.parameters()]
    expected = [("gamma", [1.0] * 4), ("beta", [0.0] * 4)]
    look = "LayerNorm.__init__: gamma begins as ones, beta as zeros"
    expect_equal("the parameters of LayerNorm(4)", found, expected, look)
    layer.gamma.array, layer.beta.array = GAMMA, BETA
    look = "LayerNorm.forward: layer_norm(x, self.gamma, self.beta, self.eps)"
    got = layer(work.Variable(X)).array
    expect_close("LayerNorm(4)(x)", got, _norm(X) * GAMMA + BETA, look)
    rough = nn.LayerNorm(4, 0.5)(work.Variable(X)).array
    expect_close("LayerNorm(4, eps=0.5)(x)", rough, _norm(X, 0.5), look)


def check_residual(work: Any) -> None:
    """Residual adds its input"""
    from mynode import nn

    work.seed(4)
    linear = nn.Linear(4, 4)
    block = nn.Residual(linear, work.relu)
    x = work.Variable(X.copy())
    branch = np.maximum(X @ linear.weight.array.T, 0)
    look = "nn/layers.py: x + super().forward(x)"
    expect_close("Residual(linear, relu)(x)", block(x).array, X + branch, look)
    expect_close("x after Residual", x.array, X, "The sum is a new array: x stays as it is")
    expect_equal("its parameters", len(block.parameters()), 2, "Residual is a Sequential")
    look = "the gradient reaches x by both paths"
    expect_gradients("Residual", block, [X], work.Variable, look)


def check_depth(work: Any) -> None:
    """a network of 12 layers learns"""
    from mynode import nn

    work.seed(0)
    layers = [nn.Residual(nn.LayerNorm(8), nn.Linear(8, 8), work.relu) for _ in range(10)]
    model = nn.Sequential(nn.Linear(2, 8), *layers, nn.LayerNorm(8), nn.Linear(8, 2))
    points = np.random.default_rng(0).normal(size=(64, 2))
    labels = (points[:, 0] * points[:, 1] > 0).astype(int)
    optimizer = nn.Adam(model, lr=0.01)
    lengths, value = [0.0], 0.0
    for number in range(25):
        loss = work.softmax_cross_entropy(model(work.Variable(points)), labels)
        optimizer.cleargrads()
        loss.backward()
        if number == 0:
            weights = [p for p in model.parameters() if p.name == "weight"]
            lengths = [float(np.linalg.norm(p.grad)) for p in weights]
        optimizer.update()
        value = float(loss.array)
    look = "Each part passed by itself: does LayerNorm stand in the graph, does Residual add?"
    shortest = min(lengths)
    expect_true(f"the shortest gradient, {shortest:.1e}, is over 0.001", shortest > 1e-3, look)
    expect_true(f"the loss after 25 updates, {value:.2f}, is below 0.3", value < 0.3, look)


_EXP, _STAT = "functions/exponential.py", "functions/statistical.py"
_NORM, _LAYERS = "functions/normalization.py", "nn/layers.py"
_MODULE = "nn/normalization_layers.py"
_ROOT = "sqrt(var(x, axes, keepdims=True) + eps)"
_ADD = "return x + super().forward(x)"

MISTAKES = (
    (
        "the root's gradient is multiplied by y in place of divided",
        mistake("18", _EXP, "gy * 0.5 / y", "gy * 0.5 * y"),
    ),
    (
        "a small number keeps the root's gradient from infinity",
        mistake("18", _EXP, "gy * 0.5 / y", "gy * 0.5 / (y + 1e-6)"),
    ),
    (
        "the root is computed in float64",
        mistake("18", _EXP, "np.sqrt(x),", "np.sqrt(x.astype(float)),"),
    ),
    (
        "the variance is divided by n - 1",
        mistake(
            "18", _STAT, "    return mean(square(x - mean(x, axis, keepdims=True)), axis, ",
            "    n = math.prod(x.shape[i] for i in normalize_axes(axis, x.ndim))\n"
            "    return n / (n - 1) * mean(square(x - mean(x, axis, keepdims=True)), axis, ",
        ),
    ),
    (
        "the variance is measured from the mean of all numbers",
        mistake("18", _STAT, "x - mean(x, axis, keepdims=True)", "x - mean(x)"),
    ),
    (
        "the variance is mean(x^2) - m^2",
        mistake(
            "18", _STAT, "mean(square(x - mean(x, axis, keepdims=True)), axis, keepdims=keepdims)",
            "mean(square(x), axis, keepdims=keepdims)"
            " - square(mean(x, axis, keepdims=keepdims))",
        ),
    ),
    ("eps is added outside of the root",
     mistake("18", _NORM, _ROOT, "(sqrt(var(x, axes, keepdims=True)) + eps)")),
    (
        "the norm is taken over the batch",
        mistake("18", _NORM, "tuple(range(-gamma.ndim, 0))", "(0,)"),
    ),
    (
        "the mean is not subtracted",
        mistake("18", _NORM, "x - mean(x, axes, keepdims=True)", "x"),
    ),
    ("the variance takes the place of the root",
     mistake("18", _NORM, _ROOT, "(var(x, axes, keepdims=True) + eps)")),
    (
        "beta is added before gamma multiplies",
        mistake(
            "18", _NORM, " * gamma\n", "\n",
            ("y if beta is None else y + beta", "gamma * (y if beta is None else y + beta)"),
        ),
    ),
    (
        "the mean is a number, without its gradient",
        mistake("18", _NORM, "x - mean(x, axes, keepdims=True)",
                "x - mean(x, axes, keepdims=True).array"),
    ),
    ("eps of the layer is forgotten", mistake("18", _MODULE, ", self.eps)", ")")),
    ("gamma begins as zeros", mistake("18", _MODULE, "np.ones(shape)", "np.zeros(shape)")),
    ("the input is not added", mistake("18", _LAYERS, _ADD, "return super().forward(x)")),
    (
        "the input is changed in place",
        mistake("18", _LAYERS, _ADD,
                "y = super().forward(x)\n        x.array += y.array\n        return x + 0.0 * y"),
    ),
    (
        "the input is added without a gradient",
        mistake("18", _LAYERS, _ADD, "return super().forward(x) + x.array"),
    ),
)  # fmt: skip
