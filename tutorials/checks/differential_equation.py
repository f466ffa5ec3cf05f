"""Checks of the damped spring: the loss of functions with known derivatives, and the solution."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_square": Hint(
        "Put the curve t^2 into the equation. What is left over?",
        "residual = y'' + 0.5 y' + 4 y; the mean of its square, plus the conditions.",
    ),
    "check_conditions": Hint(
        "Two facts hold at time 0. How much does a curve pay that breaks one?",
        "(y(0) - 1)^2 + y'(0)^2.",
    ),
    "check_straight": Hint(
        "A line has no bend. Which value stands for an exact zero here?",
        "tn.grad gives None where no path leads: a zero.",
    ),
    "check_gradient": Hint(
        "Must the loss reach the parameters through both derivatives?",
        "enable_double_backprop=True for y' and for y''.",
    ),
    "check_solve": Hint(
        "What does the loss say at the end: is it still falling?",
        "16 hidden numbers with tanh, random biases, times with the middle 0, 400 steps of "
        "Adam, a rate that falls.",
    ),
}

TIMES = np.linspace(0.0, 2.0, 9)[:, None]


def exact(t):
    """The solution of the equation, exp(-t/4) (cos wt + sin wt / 4w), w^2 = 4 - 1/16."""
    w = np.sqrt(4.0 - 1.0 / 16.0)
    return np.exp(-t / 4.0) * (np.cos(w * t) + np.sin(w * t) / (4.0 * w))


def loss(work, network):
    """The learner's loss of a function."""
    with tn.using_device("numpy"):
        result = work.loss_of(network, TIMES.copy())
    look = "Return it as it is: no float, no array."
    expect_true("the loss is a Variable", isinstance(result, tn.Variable), look)
    expect_equal("the shape of the loss", result.shape, (), "F.mean and F.sum give the shape ().")
    return result


def check_square(work):
    """The loss of y = t * t is right."""
    residual = 2.0 + 0.5 * 2.0 * TIMES + 4.0 * TIMES**2
    expected = np.mean(residual**2) + 1.0
    look = (
        "y = t^2 has y' = 2 t and y'' = 2; y(0) = 0 and y'(0) = 0. Residual: y'' + 0.5 y' + 4 y."
    )
    expect_close("the loss of t * t", loss(work, lambda t: t * t).array, expected, look)


def check_conditions(work):
    """The conditions at t = 0 are a part of the loss."""
    residual = np.exp(TIMES) * 5.5
    look = "y = exp(t) has y(0) = 1, so this condition holds; and y'(0) = 1, which costs 1."
    expected = np.mean(residual**2) + 1.0
    expect_close("the loss of exp(t)", loss(work, F.exp).array, expected, look)
    residual = -4.0 * np.sin(2 * TIMES) + 0.5 * 2 * np.cos(2 * TIMES) + 4 * np.sin(2 * TIMES)
    look = "y = sin(2 t) has y(0) = 0, which costs 1; and y'(0) = 2, which costs 4."
    expected = np.mean(residual**2) + 1.0 + 4.0
    expect_close(
        "the loss of sin(2 t)", loss(work, lambda t: F.sin(2.0 * t)).array, expected, look
    )


def check_straight(work):
    """A straight line has a loss too."""
    look = "y = 1 - t has y'' = 0, and tn.grad says None for an exact zero."
    try:
        found = loss(work, lambda t: 1.0 - t)
    except Exception as error:
        got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        raise CheckFailed("the loss of 1 - t", "a number", got, look) from error
    expected = np.mean((-0.5 + 4.0 * (1.0 - TIMES)) ** 2) + 1.0
    expect_close("the loss of 1 - t", found.array, expected, look)


def check_gradient(work):
    """The gradient of the loss is right."""
    data = np.array(0.7)
    a = tn.asarray(data, device="numpy", requires_grad=True)
    loss(work, lambda t: F.tanh(a * t)).backward()
    look = "Both derivatives need enable_double_backprop=True: backward must reach y and y''."
    if a.grad is None:
        raise CheckFailed("the gradient by a, for y = tanh(a t)", "a number", "None", look)
    ends = [float(loss(work, lambda t, b=b: F.tanh(b * t))) for b in (data + 1e-5, data - 1e-5)]
    slope = (ends[0] - ends[1]) / 2e-5
    expect_close("the gradient by a, for y = tanh(a t)", a.grad, np.array(slope), look, rtol=1e-4)


def check_solve(work):
    """solve gives the damped spring, with an error below 0.05."""
    network = work.solve()
    look = "Return the trained nn.Module; the exact solution as a formula does not count."
    is_module = isinstance(network, nn.Module) and len(network.parameters()) > 1
    expect_true("solve returns a Module with parameters", is_module, look)
    times = np.linspace(0.0, 3.0, 61)[:, None]
    with tn.no_backprop_mode():
        y = tn.to_host(tn.as_variable(network(tn.asarray(times))).array)
    expect_equal("the shape for times of (61, 1)", y.shape, (61, 1), "One number for each time.")
    error = float(np.abs(y - exact(times)).max())
    look = (
        "Draw it with tn.show.lines. If the loss still falls: more steps, or a larger lr. Hidden "
        "biases of 0 let all curves bend at the same time, and relu has no second derivative."
    )
    expect_true(f"the largest error, {error:.3f}, is below 0.05", error < 0.05, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("no graph of the derivatives", _SOLUTION.replace(", enable_double_backprop=True", "")),
    (
        "no graph of y''",
        _SOLUTION.replace(
            "    ddy = derivative(dy, t)\n",
            "    ddy = tn.grad([F.sum(dy)], [t])[0]\n"
            "    ddy = tn.asarray(np.zeros(t.shape)) if ddy is None else ddy\n",
        ),
    ),
    ("the friction has the wrong sign", _SOLUTION.replace("ddy + 0.5", "ddy - 0.5")),
    ("no condition for the speed", _SOLUTION.replace(" + F.sum(dy[0] ** 2)", "")),
    ("y(0) = 0 as on the page", _SOLUTION.replace("(y[0] - 1.0)", "y[0]")),
    ("None is no number", _SOLUTION.replace("if slope is None else slope", "if False else slope")),
    ("not trained", _SOLUTION.replace("range(400)", "range(4)")),
    ("relu bends, but has no second derivative", _SOLUTION.replace("F.tanh", "F.relu")),
)
