"""Checks of exercise 10: first values, dropout, weight decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_he_normal": Hint(
        "What does relu do to the mean square of a signal, and which variance makes up for this?",
        "he_normal: the variance is 2 / fan_in. Linear takes its weight from "
        "initializer((out_size, in_size)).",
    ),
    "check_deep_signal": Hint(
        "The signal passes thirty layers. By which factor does its mean square change in each?",
        "mean square after a layer = fan_in * variance / 2 * mean square before: 1 for "
        "variance 2 / fan_in.",
    ),
    "check_mask": Hint(
        "Some numbers are dropped. By which factor must the others grow so that the mean stays?",
        "kept = a random number >= ratio, one for each element; the result is x * kept / (1 -"
        " ratio).",
    ),
    "check_gradient": Hint(
        "Which numbers could pass forward, and what may pass backward?",
        "y = x * mask, and Multiply knows: gx = gy * mask. The mask has the dtype of x.",
    ),
    "check_evaluation": Hint(
        "Who reads the network outside of training, and what should dropout do then?",
        "return x if config.train is false, or ratio is 0.",
    ),
    "check_adamw": Hint(
        "Does the decay pass through the moments, or go straight to the parameter?",
        "p - lr * weight_decay * p first; then a step of Adam with the gradient alone.",
    ),
}

PLACES = {
    ("check_evaluation", "Dropout.__init__"): Hint(
        "The layer is made long before it is called. Which number must it remember?",
        "self.ratio = ratio.",
    ),
}


def check_he_normal(work: Any) -> None:
    """he_normal has the variance 2 / fan_in, and Linear takes an initializer"""
    from mynode import nn
    from mynode.nn.initializers import he_normal, lecun_normal

    look = "nn/initializers.py: the deviation is the root of 2 / fan_in"
    for shape, fan_in in (((200, 100), 100), ((50, 4, 3, 3), 36)):
        work.seed(0)
        draws = he_normal(shape)
        what = f"fan_in times the variance of he_normal({shape})"
        expect_close(what, fan_in * draws.var(), 2.0, look, rtol=0.1)
    work.seed(0)
    half = np.sqrt(0.5) * he_normal((3, 5))
    work.seed(0)
    look = "nn/initializers.py: the same draws as lecun_normal, with another deviation"
    expect_close("he_normal / sqrt(2), by the same seed", half, lecun_normal((3, 5)), look)

    def threes(shape: Any) -> Any:
        return np.full(shape, 3.0)

    look = "nn/layers.py, Linear: self.weight = Parameter(initializer((out_size, in_size)), ...)"
    weight = nn.Linear(2, 4, initializer=threes).weight.array
    expect_equal("the weight of Linear(2, 4, initializer=threes)", weight, threes((4, 2)), look)
    work.seed(0)
    usual = nn.Linear(5, 3).weight.array
    work.seed(0)
    expect_close("the weight without an initializer", usual, lecun_normal((3, 5)), look)


def check_deep_signal(work: Any) -> None:
    """the signal lives through thirty layers"""
    from mynode import nn
    from mynode.nn.initializers import he_normal

    work.seed(0)
    h = work.Variable(np.random.default_rng(0).normal(size=(64, 128)))
    for _ in range(30):
        h = work.relu(nn.Linear(128, 128, initializer=he_normal)(h))
    size = float((h.array**2).mean())
    look = "he_normal: relu halves the mean square, so the variance is twice that of lecun_normal"
    expect_true(
        f"the mean square after 30 layers is {size:.2g}, from 0.05 to 20", 0.05 < size < 20, look
    )


def check_mask(work: Any) -> None:
    """dropout keeps the mean, and drops the wanted share"""
    for ratio in (0.2, 0.5, 0.75):
        work.seed(0)
        x = work.Variable(np.ones((100, 100)))
        y = work.dropout(x, ratio).array
        look = "functions/draws.py: random numbers from 0 to 1; dropped if less than ratio"
        expect_close(f"the dropped share, ratio {ratio}", (y == 0).mean(), ratio, look, atol=0.03)
        look = "functions/draws.py: the others are multiplied by 1 / (1 - ratio)"
        expect_close("the kept ones", y[y != 0], np.full((y != 0).sum(), 1 / (1 - ratio)), look)
    look = (
        "functions/draws.py: a new mask for each call, and a number of the mask for each element"
    )
    again = work.dropout(x, 0.75).array
    expect_true("a second call draws another mask", bool((again != y).any()), look)
    work.seed(1)
    one = work.dropout(x, 0.5).array
    work.seed(1)
    look = "functions/draws.py: draw with get_generator(), so that seed works"
    expect_equal("dropout by the same seed", work.dropout(x, 0.5).array, one, look)


def check_gradient(work: Any) -> None:
    """the gradient passes where the number passed, and float32 stays"""
    work.seed(0)
    x = work.Variable(np.arange(1.0, 13.0).reshape(3, 4).astype(np.float32))
    before = x.array.copy()
    y = work.dropout(x, 0.5)
    look = "functions/draws.py: (kept / (1 - ratio)).astype(x.dtype)"
    expect_equal("the dtype of dropout of float32", str(y.dtype), "float32", look)
    y.grad = np.full((3, 4), 10.0, np.float32)
    y.backward()
    look = "functions/draws.py: return x * mask; Multiply knows the gradient"
    expect_close("the gradient for gy = 10", x.grad, 10.0 * y.array / x.array, look, rtol=1e-5)
    expect_equal("x after dropout", x.array, before, "make a new array")


def check_evaluation(work: Any) -> None:
    """outside of training nothing is dropped"""
    from mynode import nn

    x = work.Variable(np.arange(8.0))
    look = "functions/draws.py: return x if not config.train"
    with work.using_config("train", False):
        expect_equal("dropout with config.train False", work.dropout(x, 0.5).array, x.array, look)
    dropped = work.dropout(work.Variable(np.ones(100)), 0.5).array
    expect_true("after the block dropout drops again", bool((dropped == 0).any()), look)
    expect_equal("dropout with ratio 0", work.dropout(x, 0.0).array, x.array, look)
    layer = nn.Dropout(0.9)
    work.seed(0)
    share = float((layer(work.Variable(np.ones(1000))).array == 0).mean())
    expect_close("the share that nn.Dropout(0.9) drops", share, 0.9, "nn/layers.py", atol=0.05)
    share = float((nn.Dropout()(work.Variable(np.ones(1000))).array == 0).mean())
    expect_close("the share that nn.Dropout() drops", share, 0.5, "nn/layers.py", atol=0.06)
    expect_equal("the parameters of Dropout", len(layer.parameters()), 0, "nn/layers.py: Dropout")


def check_adamw(work: Any) -> None:
    """AdamW, step by step"""
    from mynode import nn

    grads = [np.array([0.5, -2.0]), np.array([0.1, 0.1]), np.array([-1.0, 4.0])]
    p, start = nn.Parameter(np.array([1.0, 2.0])), np.array([1.0, 2.0])
    optimizer = nn.AdamW([p], lr=0.1, weight_decay=0.5)
    old, value, m, v = p.array, start.copy(), 0.0, 0.0
    for t, g in enumerate(grads, 1):
        p.grad = g
        optimizer.update()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        value = value - 0.1 * 0.5 * value - 0.1 * step
        look = "AdamW.update_one: p - lr * weight_decay * p, and the moments see the gradient only"
        expect_close(f"the parameter after step {t} of AdamW", p.array, value, look)
    look = "AdamW.update_one returns a new array: a graph may still keep the old one"
    expect_close("the old array, after the steps", old, start, look)
    usual = nn.AdamW([nn.Parameter(np.ones(1))]).weight_decay
    expect_equal("the usual weight decay", usual, 0.01, "AdamW.__init__")


_DRAWS, _INIT, _OPTIMIZERS = "functions/draws.py", "nn/initializers.py", "nn/optimizers.py"

MISTAKES = (
    (
        "the kept numbers are not made larger",
        mistake("10", _DRAWS, "kept / (1.0 - ratio)", "1.0 * kept"),
    ),
    (
        "dropout drops in evaluation, too",
        mistake("10", _DRAWS, "    if not config.train:\n        return x\n", ""),
    ),
    (
        "the share that stays is the ratio",
        mistake("10", _DRAWS, "random(x.shape) >= ratio", "random(x.shape) < ratio"),
    ),
    (
        "float32 becomes float64",
        mistake("10", _DRAWS, ".astype(x.dtype)", ".astype(float)"),
    ),
    (
        "a mask for each row",
        mistake(
            "10", _DRAWS, "random(x.shape) >=", "random((*x.shape[:1], *([1] * (x.ndim - 1)))) >="
        ),
    ),
    (
        "he_normal is lecun_normal",
        mistake("10", _INIT, "math.sqrt(2 /", "math.sqrt(1 /"),
    ),
    (
        "Linear does not use the initializer",
        mistake("10", "nn/layers.py", "Parameter(initializer(", "Parameter(lecun_normal("),
    ),
    (
        "the decay is a part of the gradient",
        mistake(
            "10",
            _OPTIMIZERS,
            "super().update_one(smaller, grad, moments",
            "super().update_one(array, grad + self.weight_decay * array, moments",
        ),
    ),
    (
        "the decay changes the array in place",
        mistake(
            "10",
            _OPTIMIZERS,
            "        smaller = array - self.lr * self.weight_decay * array\n",
            "        array -= self.lr * self.weight_decay * array\n        smaller = array\n",
        ),
    ),
)
