"""Hidden checks of the capstone gradient_penalty: a linear model, by its formula."""

import numpy as np

import tinynode as tn
from tinynode import nn
from tinynode_course.checks import expect_close, expect_true

LOOK = "The slope needs a graph, and the penalty is the mean of the squares of its rows."


def _model():
    tn.seed(3)
    return nn.Linear(2, 3, dtype="float64")


def check_value(work):
    """The value, for a model of one layer."""
    model = _model()
    w, b = model.weight.array, model.bias.array
    x, t = np.array([[0.5, -1.0], [2.0, 0.3]]), np.array([2, 0])
    scores = x @ w.T + b if w.shape == (3, 2) else x @ w + b
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    c = -np.log(p[[0, 1], t])
    slope = (p - np.eye(3)[t]) @ (w if w.shape == (3, 2) else w.T)
    expected = (c + 0.7 * (slope**2).sum(axis=1)).mean()
    got = work.penalized_cross_entropy(model, tn.Variable(x), tn.Variable(t), 0.7)
    expect_close("the penalized loss", got.array, expected, LOOK)


def check_gradient(work):
    """The parameters get gradients of the penalty too."""
    x, t = np.array([[0.5, -1.0]]), np.array([1])
    grads = []
    for weight in (0.0, 5.0):
        model = _model()
        loss = work.penalized_cross_entropy(model, tn.Variable(x), tn.Variable(t), weight)
        loss.backward()
        grads.append(model.weight.grad)
    differ = not np.allclose(grads[0], grads[1])
    expect_true("the gradient of the weights depends on the penalty", differ, LOOK)
