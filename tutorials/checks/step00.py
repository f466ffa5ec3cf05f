"""Exercise 0: does the update go downhill, and far enough?"""

from __future__ import annotations

from typing import Any

import numpy as np

import tinynode as tn
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_true, solution

HINTS = {
    "check_update": Hint(
        "A gradient points uphill, to a larger loss. Which sign moves a parameter downhill, "
        "and how far does the step go?",
        "new parameter = old parameter - learning_rate * gradient, for each parameter.",
    ),
    "check_learning_rate": Hint(
        "What does the loss do with a rate ten times as large, and with a rate ten times as "
        "small?",
        "The answer lies between 1 and 10: try numbers between the best two.",
    ),
}

WANTED = 0.15


def _parameter(values: list[float], gradient: list[float]) -> Any:
    p = tn.Variable(np.array(values))
    p.grad = np.array(gradient)
    return p


def check_update(work: Any) -> None:
    """update moves each parameter against its gradient"""
    p, q = _parameter([1.0, 2.0], [10.0, -10.0]), _parameter([5.0], [3.0])
    work.update([p, q], 0.1)
    look = "update: which sign stands between p.array and the gradient?"
    expect_close("the parameter [1, 2], gradient [10, -10], rate 0.1", p.array, [0.0, 3.0], look)
    look = "update: the loop must reach each parameter"
    expect_close("the second parameter, 5, gradient 3, rate 0.1", q.array, [4.7], look)
    p = _parameter([1.0], [1.0])
    work.update([p], 0.25)
    look = "update: use the argument learning_rate"
    expect_close("the parameter 1, gradient 1, rate 0.25", p.array, [0.75], look)


def check_learning_rate(work: Any) -> None:
    """the loss is below 0.15 after 30 iterations"""
    rate = work.LEARNING_RATE
    losses = work.train(rate)
    look = "train: leave it as it was, with 30 iterations"
    expect_close("the loss before training", losses[0], 0.6898, look, rtol=0.01)
    expect_true("train returns 31 losses", len(losses) == 31, look)
    if not losses[-1] < WANTED:
        grew = not losses[-1] < losses[0]
        look = (
            "The loss grew. If update is right, the learning rate is too large"
            if grew
            else "The loss falls, and too slowly: try a larger learning rate, then a smaller one"
        )
        what = f"the loss after 30 iterations with LEARNING_RATE = {rate}"
        raise CheckFailed(what, f"less than {WANTED}", f"{losses[-1]:.3f}", look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("uphill", _SOLUTION.replace("p.array - learning", "p.array + learning")),
    ("the learning rate of the page", _SOLUTION.replace("RATE = 3.0", "RATE = 1.0")),
    ("a learning rate that jumps", _SOLUTION.replace("RATE = 3.0", "RATE = 30.0")),
    ("the argument is not used", _SOLUTION.replace("- learning_rate *", "- LEARNING_RATE *")),
    ("more iterations", _SOLUTION.replace("iterations=30", "iterations=300")),
)
