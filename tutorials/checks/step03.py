"""Step 3: is the slope measured well, and does the judge find planted mistakes?"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_slope": Hint(
        "Two heights and a distance give a slope. Which two places do you measure, and what "
        "do you put back?",
        "slope = (f(x + eps) - f(x - eps)) / (2 eps), summed with the weights grad_outputs; "
        "then the old number goes back into the array.",
    ),
    "check_two_inputs": Hint(
        "One number moves. Which outputs change, and which weight does each output have?",
        "The number for one element is the sum over all outputs of grad_output * (difference "
        "of the output) / (2 eps).",
    ),
    "check_eps": Hint(
        "How far apart are the two places at which you measure, and by which distance do you "
        "divide?",
        "The two places are x + eps and x - eps: their distance is 2 eps.",
    ),
    "check_right_ones": Hint(
        "A measurement is never exact. How much difference do you allow?",
        "compare(name, gx, measured, rtol, atol) allows atol + rtol * |measured|.",
    ),
    "check_wrong_ones": Hint(
        "Think of one element, of a sign, of a factor. Which wrong gradients would your "
        "comparison still call right?",
        "gx comes from backward with y_grad, measured comes from numerical_grad with the same"
        " y_grad: compare all elements.",
    ),
    "check_data_stay": Hint(
        "A measurement moves numbers. Whose numbers do you move: your own, or those of the "
        "caller?",
        "Measure on x_data.copy().",
    ),
}

POINTS = np.array([0.3, -1.2, 2.0])
GY = np.array([2.0, -1.0, 0.5])


def _tools(work: Any) -> Any:
    return importlib.import_module(f"{work.__name__}.gradient_check")


def check_slope(work: Any) -> None:
    """numerical_grad measures a slope, times grad_outputs"""
    x = POINTS.copy()
    found = _tools(work).numerical_grad(lambda: (np.sin(x),), (x,), (GY,))
    look = "numerical_grad: return a tuple, with an array for each input"
    expect_true("numerical_grad returns a tuple", isinstance(found, tuple), look)
    look = "numerical_grad: (f(x + eps) - f(x - eps)) / (2 * eps), times grad_outputs"
    expect_close("the measured gradient of sin", found[0], GY * np.cos(POINTS), look, rtol=1e-5)
    look = "numerical_grad: put each element back before the next one"
    expect_equal("x after numerical_grad", x, POINTS, look)


def check_two_inputs(work: Any) -> None:
    """numerical_grad measures for each input, and adds up all outputs"""
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    gz, gw = np.array([[1.0, 10.0]]), np.array([[5.0, 0.5]])
    found = _tools(work).numerical_grad(lambda: (x * y, x + y), (x, y), (gz, gw))
    look = "numerical_grad: the sum over all outputs of grad_output * output"
    expect_equal("the number of gradients for two inputs", len(found), 2, look)
    expect_close("the gradient of the first input", found[0], gz * y + gw, look)
    expect_close("the gradient of the second input", found[1], gz * x + gw, look)


def check_eps(work: Any) -> None:
    """numerical_grad uses eps"""
    x = np.array(1.0)
    (found,) = _tools(work).numerical_grad(lambda: (x**3,), (x,), (np.array(1.0),), eps=0.5)
    look = "numerical_grad: a central difference, over the distance 2 * eps"
    expect_close("the slope of x ** 3 at 1, eps = 0.5", found, 3.25, look)


def check_right_ones(work: Any) -> None:
    """check_backward accepts a right backward"""
    for name in ("square", "exp", "sin", "negative"):
        answer = _judged(work, getattr(work, name))
        if answer is not None:
            what = f"check_backward({name}, x, gy)"
            look = "check_backward: a measurement is never exact. Compare by compare"
            raise CheckFailed(what, "no error", f"AssertionError: {answer}", look)


def check_wrong_ones(work: Any) -> None:
    """check_backward raises an AssertionError for a wrong backward"""
    planted: tuple[tuple[str, Any, Any], ...] = (
        ("the wrong sign", np.cos, lambda x, gy: gy * np.sin(x)),
        ("gy left out", np.sin, lambda x, gy: np.cos(x)),
        ("an error of one part in a thousand", np.exp, lambda x, gy: 1.001 * gy * np.exp(x)),
        ("a mistake for negative x only", np.square, lambda x, gy: gy * 2.0 * np.abs(x)),
        ("a gradient of another element", np.sin, lambda x, gy: (gy * np.cos(x))[::-1]),
    )
    look = "check_backward: give y_grad to both, compare all elements, keep the tolerance small"
    for what, forward, backward in planted:
        answer = _judged(work, _operation(work, forward, backward))
        if answer is None:
            what = f"check_backward of a backward with {what}"
            raise CheckFailed(what, "an AssertionError", "no error", look)


def check_data_stay(work: Any) -> None:
    """check_backward leaves x_data and y_grad as they were"""
    x, gy = POINTS.copy(), GY.copy()
    _tools(work).check_backward(work.exp, x, gy)
    look = "check_backward: make the Variable of x_data.copy()"
    expect_equal("x_data after check_backward", x, POINTS, look)
    expect_equal("y_grad after check_backward", gy, GY, look)


def _judged(work: Any, function: Callable[..., Any]) -> str | None:
    """What check_backward says of a function: the text of its error, or None."""
    try:
        _tools(work).check_backward(function, POINTS.copy(), GY.copy())
    except AssertionError as error:
        return str(error)
    return None


def _operation(work: Any, forward: Any, backward: Any) -> Callable[..., Any]:
    """A function like square, made of a forward of x and a backward of (x, gy)."""

    class Operation(work.FunctionNode):
        def forward(self, inputs):
            self.x = inputs[0].copy()
            return (forward(inputs[0]),)

        def backward(self, target_input_indexes, grad_outputs):
            return (backward(self.x, grad_outputs[0]),)

    def operation(x):
        return Operation().apply((x,))[0]

    return operation


_PATH = "gradient_check.py"
_COMPARE = "np.allclose(gx, measured, rtol=rtol, atol=atol)"

MISTAKES = (
    (
        "eps is ignored",
        mistake("03", _PATH, "before + eps, before - eps", "before + 1e-3, before - 1e-3"),
    ),
    (
        "the element is not put back",
        mistake("03", _PATH, "            x[index] = before\n", ""),
    ),
    (
        "only the first output counts",
        mistake(
            "03",
            _PATH,
            "sum(np.sum(gy * y) for gy, y in zip(grad_outputs, f(), strict=True))",
            "np.sum(grad_outputs[0] * f()[0])",
        ),
    ),
    ("compared with ==", mistake("03", _PATH, _COMPARE, "np.all(gx == measured)")),
    (
        "a tolerance that hides small mistakes",
        mistake("03", _PATH, _COMPARE, "np.allclose(gx, measured, rtol=0.1, atol=0.1)"),
    ),
    (
        "only tried with gy = 1",
        mistake("03", _PATH, "x = Variable(x_data.copy())",
                "y_grad = np.ones_like(y_grad)\n    x = Variable(x_data.copy())"),
    ),
    (
        "an eps that is too small",
        mistake("03", _PATH, "y_grad, eps=1e-5,", "y_grad, eps=1e-15,"),
    ),
)  # fmt: skip
