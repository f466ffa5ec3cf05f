"""Step 5: do the contributions of all uses add up?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal
from tinynode_course.mynode import mistake

HINTS = {
    "check_x_times_x": Hint(
        "Two contributions arrive at the same box. What happens to the first when the second "
        "comes?",
        "x.grad is the sum of all contributions; the first one starts the sum.",
    ),
    "check_x_plus_x": Hint(
        "The two contributions are the same array. Which array does your sum write to?",
        "x.grad + gx makes a new array; x.grad += gx writes into an array that others hold.",
    ),
    "check_diamond": Hint(
        "Two ways lead from x to the result. How do the contributions of both ways meet?",
        "dx = cos(x) * x^2 + sin(x) * 2 x: a sum of two ways.",
    ),
    "check_shared_array": Hint(
        "An addition hands one array to two boxes. Who sees the change if you write into the "
        "array?",
        "Never write into gx: x.grad = x.grad + gx is another array.",
    ),
    "check_three_uses": Hint(
        "How many contributions does a box get that is used three times, and how many survive"
        " in your lines?",
        "x * x + x at 3: 3 + 3 + 1 = 7.",
    ),
    "check_used_once": Hint(
        "A box is used once. Does your sum begin with something that does not belong to the "
        "gradient?",
        "The first contribution is stored as it is, for x.grad is None.",
    ),
    "check_two_backwards": Hint(
        "What should a second backward do with the gradient of the first, and how does one "
        "start anew?",
        "Gradients of leaves add up; cleargrad sets grad to None, and touches no array.",
    ),
    "check_parabola": Hint(
        "Which sum does the gradient of a parameter hold at the moment when the parameter moves?",
        "cleargrad for each parameter, then backward, then p.array - 0.1 * p.grad.",
    ),
}

GUARDS = ("check_used_once",)

ADD = "run_backward: the contributions of all uses of a box are added"
LEAK = (
    "run_backward: Add gives the same array to several boxes. x.grad += gx changes it for all of "
    "them; x.grad + gx makes a new array"
)
VALUES = np.array([3.0, -0.5])


def _box(work: Any, *values: float) -> Any:
    return work.Variable(np.array(values))


def _backward(y: Any) -> Any:
    """Run backward from ones; returns the array that was given as y.grad."""
    start = np.ones_like(y.array)
    y.grad = start
    y.backward()
    return start


def check_x_times_x(work: Any) -> None:
    """x * x: both inputs are the same box"""
    x = _box(work, *VALUES)
    _backward(x * x)
    expect_close("the gradient of x * x at [3, -0.5]", x.grad, [6.0, -1.0], ADD)


def check_x_plus_x(work: Any) -> None:
    """x + x: the two contributions are one array"""
    x = _box(work, *VALUES)
    start = _backward(x + x)
    expect_close("the gradient of x + x", x.grad, [2.0, 2.0], ADD)
    expect_close("the array that was given as y.grad", start, [1.0, 1.0], LEAK)


def check_diamond(work: Any) -> None:
    """sin(x) * square(x): two ways lead from x to the result"""
    x = _box(work, *VALUES)
    _backward(work.sin(x) * work.square(x))
    expected = np.cos(VALUES) * VALUES**2 + np.sin(VALUES) * 2 * VALUES
    expect_close("the gradient of sin(x) * square(x)", x.grad, expected, ADD)


def check_shared_array(work: Any) -> None:
    """x + (x + w): a sum must not leak into other boxes"""
    x, w = _box(work, 1.0), _box(work, 2.0)
    _backward(x + (x + w))
    expect_close("the gradient of w in x + (x + w)", w.grad, [1.0], LEAK)
    expect_close("the gradient of x in x + (x + w)", x.grad, [2.0], ADD)


def check_three_uses(work: Any) -> None:
    """x * x + x: also three uses of a box are added"""
    x = _box(work, 3.0)
    _backward(x * x + x)
    expect_close("the gradient of x * x + x at 3", x.grad, [7.0], ADD)


def check_used_once(work: Any) -> None:
    """x * w: a box that is used once gets one contribution"""
    x, w = _box(work, 3.0), _box(work, 5.0)
    _backward(work.exp(x * 0.0) * w)
    expect_close("the gradient of w in exp(0 * x) * w", w.grad, [1.0], ADD)


def check_two_backwards(work: Any) -> None:
    """a second backward adds to the first; cleargrad forgets"""
    x = _box(work, 3.0)
    _backward(x * x)
    _backward(x + x)
    expect_close("the gradient of x * x, then of x + x", x.grad, [8.0], ADD)
    x.cleargrad()
    look = "cleargrad: self.grad = None"
    expect_equal("x.grad after cleargrad", x.grad, None, look)
    _backward(x * x)
    expect_close("the gradient of x * x after cleargrad", x.grad, [6.0], look)


def check_parabola(work: Any) -> None:
    """the package fits a parabola, by one loss for all points"""
    parameters = [work.Variable(np.array(0.0)) for _ in range(3)]
    p, q, r = parameters
    for _ in range(150):
        loss = 0.0
        for x in (-1.0, -0.5, 0.0, 0.5, 1.0):
            loss = loss + work.square(p * x * x + q * x + r - (2.0 * x * x - x - 1.0))
        for parameter in parameters:
            parameter.cleargrad()
        loss.backward()
        for parameter in parameters:
            parameter.array = parameter.array - 0.1 * parameter.grad
    look = "the checks above say which gradient is wrong"
    found = np.array([float(parameter.array) for parameter in parameters])
    expect_close("p, q, r after 150 epochs", found, [2.0, -1.0, -1.0], look, atol=1e-2)


_STORE = "x.grad = gx if x.grad is None else x.grad + gx"
_PATH = "core/backprop.py"

MISTAKES = (
    (
        "adding in place",
        mistake("05", _PATH, _STORE,
                "if x.grad is None:\n            x.grad = gx\n"
                "        else:\n            x.grad += gx"),
    ),
    ("the last contribution wins", mistake("05", _PATH, _STORE, "x.grad = gx")),
    (
        "the first contribution wins",
        mistake("05", _PATH, _STORE, "x.grad = x.grad if x.grad is not None else gx"),
    ),
    (
        "the larger contribution wins",
        mistake("05", _PATH, _STORE,
                "x.grad = gx if x.grad is None else np.maximum(x.grad, gx)"),
    ),
    (
        "two uses by one operation are counted, two operations are not",
        mistake("05", _PATH, _STORE, "x.grad = gx * sum(v is x for v in function.inputs)"),
    ),
    (
        "cleargrad does nothing",
        mistake("05", "core/variable.py", "        self.grad = None\n\n    def backward",
                "        pass\n\n    def backward"),
    ),
)  # fmt: skip
