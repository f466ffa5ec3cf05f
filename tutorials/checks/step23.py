"""Checks of exercise 23: one function in backward, right to the third order, and no needless work.

Which functions run is seen by a hook, as step 26 explains.
"""

import numpy as np

import tinynode as tn
from tinynode import gradient_check
from tinynode_course.checks import (
    CheckFailed,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = (
    "Tanh.backward is two lines: take gy out of grad_outputs and y out of get_retained_outputs(), "
    "and return TanhGrad().apply((y, gy)), which is a tuple already.",
    "gx = gy (1 - y^2). Hold y still: it is gy times a constant. Hold gy still: it is a constant "
    "minus a multiple of the square of y. TanhGrad retains both its inputs.",
    "The gradient of y is -2 h gy y, that of gy is h (1 - y^2). Begin with None for both, and "
    "compute the first only if 0 in target_input_indexes, the second only if 1 is.",
)


class Calls(tn.FunctionHook):
    """Remembers which functions ran."""

    name = "calls of exercise 23"

    def __init__(self):
        self.labels = []

    def forward_preprocess(self, function, in_data):
        self.labels.append(function.label)


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape or (5,))


def refuse(error, what, look):
    """Say what a gradient check of the package has found."""
    parts = [line.strip() for line in str(error).splitlines() if line.startswith("  ")]
    raise CheckFailed(what, "gradients that agree with differences", "; ".join(parts), look)


def check_forward(work):
    """tanh as it was."""
    x = numbers(0, 2, 3)
    look = "The forward of Tanh was right: put it back."
    expect_close("tanh(x)", work.tanh(tn.Variable(x)).array, np.tanh(x), look)


def check_gradient_function(work):
    """TanhGrad is a function of y and gy."""
    y, gy = np.tanh(numbers(1)), numbers(2)
    variables = tn.Variable(y.copy()), tn.Variable(gy.copy())
    (gx,) = work.TanhGrad().apply(variables)
    expect_close("TanhGrad of y and gy", gx.array, gy * (1 - y * y), "gx = gy (1 - y^2).")
    for name, variable, before in zip(("y", "gy"), variables, (y, gy), strict=True):
        look = "forward may write into arrays that it made itself, and into no others."
        expect_equal(f"{name} after TanhGrad", variable.array, before, look)


def check_first_order(work):
    """The gradient of tanh, by one function."""
    x, gy = tn.Variable(numbers(3)), tn.Variable(numbers(4))
    y = work.tanh(x)
    with Calls() as calls:
        (gx,) = tn.grad([y], [x], [gy])
    look = "Tanh.backward applies TanhGrad to y, which get_retained_outputs() gives, and gy."
    expect_close("the gradient of x", gx.array, gy.array * (1 - y.array**2), look)
    look = "Tanh.backward applies TanhGrad, and the formula stands in TanhGrad.forward, on arrays."
    expect_equal("the functions that backward ran", calls.labels, ["TanhGrad"], look)


def check_second_order(work):
    """The second order, for many inputs."""
    for seed, shape in enumerate([(5,), (2, 3), (1,)]):
        x, gy, ggx = (numbers(10 * seed + k, *shape) for k in range(3))
        try:
            gradient_check.check_double_backward(work.tanh, x, gy, ggx, eps=1e-5)
        except AssertionError as error:
            look = (
                "A gradient that is None: is what it depends on an input of TanhGrad, and does "
                "backward return a gradient for it? A wrong number: derive gx by y, and by gy."
            )
            refuse(error, "the second-order gradient of tanh", look)


def check_third_order(work):
    """The third order too."""
    x, gy, ggx = numbers(5), numbers(6), numbers(7)

    def gradient(x, gy):
        (gx,) = tn.grad([work.tanh(x)], [x], [gy], enable_double_backprop=True)
        return gx

    try:
        gradient_check.check_double_backward(
            gradient, (x, gy), ggx, (numbers(8), numbers(9)), eps=1e-5
        )
    except AssertionError as error:
        look = "The backward of TanhGrad must work with Variables, without .array."
        refuse(error, "the third-order gradient of tanh", look)


def check_targets(work):
    """Only what target_input_indexes asks for is computed."""
    y, gy = tn.Variable(np.tanh(numbers(1))), tn.Variable(numbers(2))
    ran = {}
    for name, wanted in (("y", [y]), ("gy", [gy]), ("both", [y, gy])):
        (gx,) = work.TanhGrad().apply((y, gy))
        with Calls() as calls:
            tn.grad([gx], wanted)
        ran[name] = len(calls.labels)
    look = "if 0 in target_input_indexes: the gradient of y; if 1 is: the gradient of gy."
    for name, other in (("y", "gy"), ("gy", "y")):
        what = (
            f"functions that the backward of TanhGrad ran: {ran[name]} for {name} alone, "
            f"{ran['both']} for both; what is for {other} alone is left out"
        )
        expect_true(what, 0 < ran[name] < ran["both"], look)


_SOLUTION = solution(__file__)
_BACKWARD = "def backward(self, target_input_indexes, grad_outputs):\n        (h,)"
_RETAINED = "y, gy = self.get_retained_inputs()"

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "TanhGrad has no backward",
        _SOLUTION.replace(_BACKWARD, _BACKWARD.replace("backward", "back", 1)),
    ),
    (
        "TanhGrad is right in the first order, but the gradient of y is taken for 1 - y^2 too",
        _SOLUTION.replace("-2.0 * h * gy * y", "h * (1.0 - y * y)"),
    ),
    (
        "the gradient of gy is forgotten: gx is taken for a function of y alone",
        _SOLUTION.replace("return gradient_of_y, gradient_of_gy", "return gradient_of_y, None"),
    ),
    (
        "both are computed, whatever was asked for",
        _SOLUTION.replace("if 0 in target_input_indexes", "if True").replace(
            "if 1 in target_input_indexes", "if True"
        ),
    ),
    (
        "the second order is computed with arrays: nothing is left for the third",
        _SOLUTION.replace(
            _RETAINED, "y, gy = (tn.Variable(v.array) for v in self.get_retained_inputs())"
        ),
    ),
    (
        "the gradient is composed: no function of its own",
        _SOLUTION.replace("return TanhGrad().apply((y, gy))", "return (gy * (1.0 - y * y),)"),
    ),
    (
        "gy is written over in place",
        _SOLUTION.replace(
            "gx = 1.0 - y * y\n        gx *= gy", "gx = gy\n        gx *= 1.0 - y * y"
        ),
    ),
)
