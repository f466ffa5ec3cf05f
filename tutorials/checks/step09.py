"""Checks of exercise 9: losses and optimizers, then a network that learns the digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.nn.datasets import load_digits
from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import Hint, expect_close, expect_gradients, expect_raises, expect_true
from tinynode_course.mynode import reference

HINTS = {
    "check_cross_entropy": Hint(
        "How does the loss move if one score grows: the score of the label, and the score of "
        "another class?",
        "loss = the mean of -log p[label]; gradient of the scores = (p - one_hot) / n, times "
        "gloss. Subtract the largest score of a row before exp.",
    ),
    "check_mean_squared_error": Hint(
        "What is averaged, and over how many numbers?",
        "The mean of (x - t)^2; the gradient of x is 2 (x - t) / n.",
    ),
    "check_optimizers": Hint(
        "Which numbers does a step need, which of them must last until the next step, and "
        "which are counted?",
        "SGD: p - lr g. Adam: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2; both divided by"
        " 1 - b^t; p - lr m / (sqrt(v) + eps).",
    ),
    "check_digits": Hint(
        "Each part passed alone. Which objects do the loss, the clearing and the update talk "
        "about?",
        "In each round: cleargrads, backward, update, on the same list of parameters.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_cross_entropy", "run_backward"): Hint(
        "Labels are whole numbers and have no gradient. What comes from backward in their place?",
        "Where gx is None, run_backward goes on to the next input: continue.",
    ),
}

_RNG = np.random.default_rng(12)
X = _RNG.normal(size=(4, 3))
LABELS = np.array([1, 0, 2, 1])


def check_cross_entropy(work: Any) -> None:
    """softmax_cross_entropy, and its gradient"""
    p = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    expected = -np.log(p[np.arange(4), LABELS]).mean()
    look = "SoftmaxCrossEntropy.forward, log_softmax: the mean over the rows of -log(p[label])"
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
    look = "log_softmax: exp(1000) is inf. Subtract the largest score of each row before exp"
    expect_close("the loss of large scores, all right", loss, 0.0, look)
    x = work.Variable(X)
    loss = work.softmax_cross_entropy(x, LABELS)
    (2.0 * loss + work.softmax_cross_entropy(x, LABELS[::-1].copy())).backward()
    p = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    one_hot = np.eye(3)
    right = (2.0 * (p - one_hot[LABELS]) + p - one_hot[LABELS[::-1]]) / 4.0
    look = "core/backprop.py, run_backward: a gradient None is left out, the others are added up"
    expect_close("the gradient of 2 L(labels) + L(other labels)", x.grad, right, look)
    labels = work.Variable(LABELS.copy())
    work.softmax_cross_entropy(x, labels).backward()
    expect_true("the labels have no gradient", labels.grad is None, look)


def check_mean_squared_error(work: Any) -> None:
    """mean_squared_error, and its gradient"""
    t = X[::-1].copy()
    got = work.mean_squared_error(work.Variable(X), t).array
    look = "mean_squared_error: the mean of the squared difference"
    expect_close("mean_squared_error", got, np.mean((X - t) ** 2), look)
    expect_gradients("mean_squared_error", work.mean_squared_error, [X, t], work.Variable, look)


def check_optimizers(work: Any) -> None:
    """SGD and Adam, step by step"""
    from mynode import nn

    grads = [np.array([0.5, -2.0]), np.array([0.1, 0.1]), np.array([-1.0, 4.0])]
    p = nn.Parameter(np.array([1.0, 2.0]))
    before = p.array
    optimizer = nn.SGD([p], lr=0.1)
    p.grad = grads[0]
    optimizer.update()
    expect_close("a step of SGD", p.array, [0.95, 2.2], "SGD.update_one: p - lr * g")
    look = "SGD.update_one returns a new array: a graph may still keep the old one"
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
    look = "Adam.update_one: eps stands outside of the root, and m starts at 0"
    p = nn.Parameter(np.array([1.0]))
    optimizer = nn.Adam([p], lr=1.0, eps=1.0)
    p.grad = np.array([1.0])
    optimizer.update()
    expect_close("a step of Adam with eps = 1, g = 1", p.array, [0.5], look)
    p, q = nn.Parameter(np.array([1.0])), nn.Parameter(np.array([1.0]))
    optimizer = nn.SGD([p, q], lr=1.0)
    p.grad = np.array([1.0])
    expect_raises("update without one of two gradients", ValueError, optimizer.update, look)
    look = "Optimizer.update: look for missing gradients first, in a loop of its own"
    expect_close("the first parameter after the refusal", p.array, [1.0], look)


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
        "Each part passed by itself, for a few steps. Adam.update_one: does the divisor hold "
        "after many steps, with eps? Optimizer.update: does it move all parameters?"
    )
    expect_true(f"of new digits {right:.0%} are right, at least 90 %", right >= 0.9, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    x = np.array([[0.5, -1.0, 2.0], [3.0, 1.0, -2.0]])  # X may have been written to
    labels = np.array([1, 0])
    expect_careful(work, "relu", work.relu, [[0.5, -1.0, 2.0]])
    expect_careful(
        work, "softmax_cross_entropy", lambda x: work.softmax_cross_entropy(x, labels), x
    )
    t = np.ones(x.shape, np.float32)
    expect_careful(
        work, "mean_squared_error", lambda x: work.mean_squared_error(x, t), x, again=False
    )


def _wrong(path: str, right: str, wrong: str) -> dict[str, str]:
    text = reference("09")[path]
    assert right in text, right
    return {path: text.replace(right, wrong)}


MISTAKES: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "the loss writes to the scores",
        _wrong(
            "functions/cross_entropy.py",
            "    shifted = x - x.max(axis=1, keepdims=True)",
            "    x -= x.max(axis=1, keepdims=True)\n    shifted = x",
        ),
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
        "eps stands inside of the root",
        _wrong(
            "nn/optimizers.py",
            "(root + self.eps)",
            "np.sqrt(v / (1 - b2**count) + self.eps)",
        ),
    ),
)
