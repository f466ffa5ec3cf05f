"""Exercise 2: is Sin's backward the derivative of its forward?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_equal, expect_true, solution

HINTS = (
    "forward stores nothing by itself: in backward, the input box is self.inputs[0].",
    "grad_outputs is a tuple with one array: (gy,) = grad_outputs. Return a tuple as well.",
    "backward ends with `return (gy * np.cos(x),)`, where x is self.inputs[0].array.",
)


def _variable(values: Any) -> Any:
    from engine02 import Variable

    return Variable(np.array(values))


def _gradient(y: Any, gy: Any) -> Any:
    """What the backward of y's creator returns, after a look at its form."""
    gradients = y.creator_node.backward((0,), (np.array(gy),))
    look = "Sin.backward: return (gx,) with a comma"
    expect_true("backward returns a tuple", isinstance(gradients, tuple), look)
    expect_equal("the number of gradients", len(gradients), 1, look)
    return gradients[0]


def check_forward(work: Any) -> None:
    """sin(x) has the value of the sine"""
    y = work.sin(_variable([0.0, np.pi / 2, 2.0]))
    expected = [0.0, 1.0, np.sin(2.0)]
    expect_close("sin of [0, pi/2, 2]", y.array, expected, "Sin.forward")


def check_derivative(work: Any) -> None:
    """the derivative of the sine is the cosine"""
    look = "Sin.backward: the cosine of the input x, not of the output"
    for value in (0.0, 0.5, 2.0, -1.0):
        gx = _gradient(work.sin(_variable(value)), 1.0)
        expect_close(f"the gradient at x = {value}, for gy = 1", gx, np.cos(value), look)


def check_chain(work: Any) -> None:
    """backward multiplies by the gradient that comes from behind"""
    look = "Sin.backward: gx = gy * (local derivative). Is gy in it?"
    gx = _gradient(work.sin(_variable(0.5)), -3.0)
    expect_close("the gradient at x = 0.5, for gy = -3", gx, -3 * np.cos(0.5), look)
    from engine02 import square

    x = _variable([0.5, 1.5])
    middle = work.sin(x)
    y = square(middle)
    (gm,) = y.creator_node.backward((0,), (np.ones(2),))
    gx = _gradient(middle, gm)
    expected = 2 * np.sin([0.5, 1.5]) * np.cos([0.5, 1.5])
    expect_close("the gradient of square(sin(x)) at [0.5, 1.5]", gx, expected, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("gy is left out", _SOLUTION.replace("(gy * np.cos(x),)", "(np.cos(x),)")),
    (
        "the cosine of the output",
        _SOLUTION.replace("self.inputs[0].array", "self.outputs[0].array"),
    ),
    ("no tuple comes back", _SOLUTION.replace("(gy * np.cos(x),)", "gy * np.cos(x)")),
)
