"""Checks of exercise 23: one function in backward, right to the third order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_gradient_function": Hint(
        "Hold y still: what is the gradient of tanh then? Hold gy still: what now?",
        "gx = gy (1 - y^2). For h: the gradient of y is -2 h gy y, that of gy is h (1 - y^2).",
    ),
    "check_first_order": Hint(
        "Which function now computes the gradient, so that the graph can name it?",
        "Tanh.backward returns gradient_by(TanhGrad(), y, gy).",
    ),
    "check_wanted": Hint(
        "Nobody asked for one of the two gradients. What stands at its position?",
        "None for a position that is not in target_input_indexes.",
    ),
    "check_higher_orders": Hint(
        "Which of your retained values come as Variables, so that a third order exists?",
        "y, gy = self.get_retained_inputs(); operations of Variables only.",
    ),
}

GUARDS = ("check_higher_orders",)

VALUES = np.array([0.3, -1.2, 2.0])


def behind(y: Any) -> list[str]:
    """The names of the operations behind a Variable."""
    seen, waiting = [], [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in seen:
            seen.append(function)
            waiting += [node.creator_node for node in function.inputs]
    return sorted(type(function).__name__ for function in seen)


def check_gradient_function(work: Any) -> None:
    """TanhGrad is a function of y and gy"""
    from mynode.functions.trigonometric import TanhGrad

    y, gy = np.tanh(VALUES), np.array([2.0, -1.0, 0.5])
    variables = work.Variable(y.copy()), work.Variable(gy.copy())
    (gx,) = TanhGrad().apply(variables)
    expect_close("TanhGrad of y and gy", gx.array, gy * (1 - y * y), "gx = gy (1 - y^2)")
    for name, variable, before in zip(("y", "gy"), variables, (y, gy), strict=True):
        look = "forward may write into arrays that it made itself, and into no others"
        expect_equal(f"{name} after TanhGrad", variable.array, before, look)
    gx.grad = h = np.array([1.0, 3.0, -2.0])
    gx.backward()
    look = "TanhGrad.backward: -2 h gy y for y, h (1 - y^2) for gy"
    expect_close("the gradient of y", variables[0].grad, -2 * h * gy * y, look)
    expect_close("the gradient of gy", variables[1].grad, h * (1 - y * y), look)


def check_first_order(work: Any) -> None:
    """the gradient of tanh is right, as arrays and with a graph"""
    x = work.Variable(VALUES.copy())
    y = work.tanh(x)
    y.grad = np.array([1.0, 10.0, -2.0])
    y.backward()
    right = np.array([1.0, 10.0, -2.0]) * (1 - np.tanh(VALUES) ** 2)
    look = "Tanh.backward: return gradient_by(TanhGrad(), y, gy)"
    expect_close("the gradient of tanh", x.grad, right, look)
    expect_true("x.grad is an array", isinstance(x.grad, np.ndarray), look)
    gy = work.Variable(np.ones(3))
    (gx,) = work.grad([work.tanh(x)], [x], [gy], enable_double_backprop=True)
    found = behind(gx)
    expect_equal("the operations behind the gradient of tanh", found, ["Tanh", "TanhGrad"], look)


def check_wanted(work: Any) -> None:
    """only wanted gradients are computed"""
    from mynode.functions.trigonometric import TanhGrad

    y, gy = (work.Variable(np.array([0.5, -0.2])) for _ in range(2))
    (gx,) = TanhGrad().apply((y, gy))
    look = "TanhGrad.backward: None for a position that is not in target_input_indexes"
    for targets in ((0,), (1,)):
        found = gx.creator_node.backward(targets, (np.ones(2),))
        given = tuple(i for i, g in enumerate(found) if g is not None)
        expect_equal(f"the gradients of TanhGrad.backward({targets}, ...)", given, targets, look)


def check_higher_orders(work: Any) -> None:
    """the second and the third order of tanh"""
    x = work.Variable(VALUES.copy())
    g, t = work.tanh(x), np.tanh(VALUES)
    s = 1 - t * t
    for order, right in enumerate((s, -2 * t * s, -2 * s * s + 4 * t * t * s), 1):
        (g,) = work.grad([g], [x], enable_double_backprop=True)
        look = "TanhGrad.backward computes with its retained inputs y and gy, and with h"
        expect_close(f"derivative {order} of tanh", g.array, right, look)


_PATH = "functions/trigonometric.py"

MISTAKES = (
    (
        "the factor 2 is missing",
        mistake("23", _PATH, "-2.0 * h * gy * y", "-h * gy * y"),
    ),
    (
        "forward writes into y",
        mistake("23", _PATH, "gx = 1.0 - y * y", "gx = y\n        gx *= -y\n        gx += 1.0"),
    ),
    (
        "both gradients, whatever is asked for",
        mistake("23", _PATH, " if 0 in target_input_indexes else None", ""),
    ),
    (
        "the gradient is composed, as before",
        mistake(
            "23",
            _PATH,
            "return gradient_by(TanhGrad(), y, gy)",
            "return (gy * (1.0 - y * y),)",
        ),
    ),
    (
        "the gradient of gy is that of y",
        mistake("23", _PATH, "gradient_by(TanhGrad(), y, h)[0]", "h * y"),
    ),
)
