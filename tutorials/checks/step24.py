"""Checks of exercise 24: right second orders pass the learner's check, wrong ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import CheckFailed, Hint, expect_raises
from tinynode_course.mynode import mistake

HINTS = {
    "check_right_functions": Hint(
        "The gradient depends on two things. Which, and did you move both?",
        "gx is a function of x and of gy: compare the gradients of both with measured ones.",
    ),
    "check_linear_functions": Hint(
        "What does no path mean for a derivative?",
        "None is an exact zero: put zeros in its place.",
    ),
    "check_wrong_functions": Hint(
        "Which wrong second derivative would pass, and which of your comparisons leaves a gap?",
        "grad([gx], [x, gy], [Variable(x_grad_grad)]) against numerical_grad of the same, by "
        "compare.",
    ),
    "check_data_stay": Hint(
        "A measurement moves numbers. Whose?",
        "Copies of x_data, y_grad and x_grad_grad.",
    ),
}

X, GY, GGX = np.array([0.3, -1.2, 0.8]), np.array([2.0, -1.0, 0.5]), np.array([1.0, 3.0, -2.0])


def judge(function: Any, x: Any = X, gy: Any = GY, ggx: Any = GGX) -> None:
    """Run the learner's check on copies."""
    from mynode.gradient_check import check_double_backward

    check_double_backward(function, x.copy(), gy.copy(), ggx.copy())


def check_right_functions(work: Any) -> None:
    """right functions pass"""
    functions = {
        "square": work.square,
        "exp": work.exp,
        "tanh": work.tanh,
        "sin": work.sin,
        "sigmoid": work.sigmoid,
        "x^2 sin(x)": lambda x: work.square(x) * work.sin(x),
        "1 / (1 + x^2)": lambda x: 1.0 / (1.0 + work.square(x)),
    }
    for name, function in functions.items():
        try:
            judge(function)
        except AssertionError as error:
            look = "gx depends on x and on gy: move both, and compare both gradients"
            raise CheckFailed(f"the check of {name}", "no complaint", str(error), look) from None


def check_linear_functions(work: Any) -> None:
    """linear functions pass: no path is a zero"""
    look = "grad gives None where no path leads to x: put zeros in its place"
    for name, function in (("negative", work.negative), ("3 x", lambda x: 3.0 * x)):
        try:
            judge(function)
        except (AssertionError, AttributeError, TypeError) as error:
            raise CheckFailed(f"the check of {name}", "no complaint", str(error), look) from None
    x = np.arange(6.0).reshape(2, 3)
    judge(lambda x: work.sum(x, axis=1), x, np.array([1.0, -2.0]), np.ones((2, 3)) + x)


def wrong(work: Any, second: Any) -> Any:
    """y = x^3, with a first order that is right, and a second order that may be wrong."""

    class CubeGrad(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            x, gy = inputs
            self.retain_inputs((0, 1))
            return (3.0 * x * x * gy,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            x, gy = self.get_retained_inputs()
            return second(x, gy, grad_outputs[0])

    class Cube(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            return (inputs[0] ** 3,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (x,), (gy,) = self.get_retained_inputs(), grad_outputs
            if isinstance(gy, work.Variable):
                return CubeGrad().apply((x, gy))
            return (3.0 * x * x * gy,)

    return lambda x: Cube().apply((x,))[0]


def check_wrong_functions(work: Any) -> None:
    """wrong second orders are refused"""
    cases = {
        "right": lambda x, gy, h: (6.0 * x * gy * h, 3.0 * x * x * h),
        "no factor 2 for x": lambda x, gy, h: (3.0 * x * gy * h, 3.0 * x * x * h),
        "a wrong sign for gy": lambda x, gy, h: (6.0 * x * gy * h, -3.0 * x * x * h),
        "no gradient for x": lambda x, gy, h: (None, 3.0 * x * x * h),
        "h is forgotten": lambda x, gy, h: (6.0 * x * gy, 3.0 * x * x * h),
    }
    look = "compare the gradients of x and of gy with the measured ones, for this x_grad_grad"
    for name, second in cases.items():
        function = wrong(work, second)
        if name == "right":
            judge(function)
        else:
            what = f"the check of a cube with {name}"
            expect_raises(what, AssertionError, lambda f=function: judge(f), look)


def check_data_stay(work: Any) -> None:
    """the data are as they were"""
    from mynode.gradient_check import check_double_backward

    x, gy, ggx = X.copy(), GY.copy(), GGX.copy()
    check_double_backward(work.square, x, gy, ggx)
    for name, got, right in (("x_data", x, X), ("y_grad", gy, GY), ("x_grad_grad", ggx, GGX)):
        if not np.array_equal(got, right):
            look = "numerical_grad moves elements: give it copies"
            raise CheckFailed(name, str(right), str(got), look)


_PATH = "gradient_check.py"

MISTAKES = (
    (
        "None is no zero",
        mistake(
            "24",
            _PATH,
            "np.zeros_like(theirs) if ours is None else ours.array",
            "ours.array",
        ),
    ),
    (
        "gy is not compared",
        mistake(
            "24",
            _PATH,
            'zip(("x", "gy"), found, measured, strict=True)',
            'zip(("x",), found, measured)',
        ),
    ),
    (
        "an input without a gradient is passed over",
        mistake(
            "24",
            _PATH,
            "np.zeros_like(theirs) if ours is None else ours.array",
            "theirs if ours is None else ours.array",
        ),
    ),
    (
        "x_grad_grad is left out",
        mistake("24", _PATH, "[x, gy], [Variable(x_grad_grad)])", "[x, gy])"),
    ),
)
