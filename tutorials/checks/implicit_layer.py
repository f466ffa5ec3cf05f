"""Checks of Kepler's equation: the solution, both orders of its gradient, and what is kept."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
    solution,
)

HINTS = {
    "check_solution": Hint(
        "Put your result into the equation. What is left over?",
        "Newton: E - (E - e sin E - M) / (1 - e cos E), 20 rounds.",
    ),
    "check_shapes_and_dtypes": Hint(
        "Which number in your loop has 64 bits?",
        "Numbers of Python, functions of xp.",
    ),
    "check_gradient": Hint(
        "Differentiate the equation itself, on both sides. How does E move with M, and with e?",
        "(1 - e cos E) dE = dM + sin E de.",
    ),
    "check_second_order": Hint(
        "Where in backward does a Variable become an array?",
        "F.cos and F.sin of the retained Variables.",
    ),
    "check_cost": Hint(
        "Which two arrays stand in the formula of the gradient?",
        "e and E: retain_inputs((1,)), retain_outputs((0,)).",
    ),
    "check_training": Hint(
        "The descent goes elsewhere. Which sign has the gradient of e?",
        "dE/de = sin E / (1 - e cos E).",
    ),
}

M = np.array([-2.5, -0.4, 0.0, 0.3, 1.7, 3.0])
E = np.array([0.05, 0.8, 0.5, 0.9, 0.6, 0.3])


def found(work, m, e):
    """The learner's solution of two arrays, on NumPy."""
    with tn.using_device("numpy"):
        result = work.kepler(tn.asarray(m), tn.asarray(e))
    expect_true("the result is a Variable", isinstance(result, tn.Variable), "Use apply.")
    return result.array


def check_solution(work):
    """The equation holds."""
    angle = found(work, M, E)
    look = "Newton: E - (E - e sin E - M) / (1 - e cos E), for 20 rounds."
    expect_close("E - e sin E", angle - E * np.sin(angle), M, look, atol=1e-10)
    circle = found(work, M, np.zeros(6))
    expect_close("E on a circle, e = 0", circle, M, "Without eccentricity, E is M.", atol=1e-12)


def check_shapes_and_dtypes(work):
    """Shape and dtype are those of the inputs."""
    for shape in (), (2, 3), (0,):
        m, e = np.full(shape, 0.5), np.full(shape, 0.2)
        look = "Functions of xp work on any shape."
        expect_equal(f"the shape for inputs of {shape}", found(work, m, e).shape, shape, look)
    single = found(work, M.astype("float32"), E.astype("float32"))
    look = "Numbers of Python keep the dtype; np.array(0.85) and np.float64 do not."
    expect_equal("the dtype for float32", str(single.dtype), "float32", look)


def check_gradient(work):
    """The gradients of M and e are right."""
    with tn.using_device("numpy"):
        m, e = tn.asarray(M, requires_grad=True), tn.asarray(E, requires_grad=True)
        angle = work.kepler(m, e)
        gy = np.linspace(1.0, 2.0, 6)
        gradients = tn.grad([angle], [m, e], [tn.asarray(gy)])
    slope = 1.0 / (1.0 - E * np.cos(angle.array))
    expected = gy * slope, gy * slope * np.sin(angle.array)
    for name, gradient, right in zip(("M", "e"), gradients, expected, strict=True):
        look = "Differentiate the equation: dE - de sin E - e cos E dE = dM. Times dL/dE."
        if gradient is None:
            raise CheckFailed(f"the gradient of {name}", "an array", "None", look)
        expect_close(f"the gradient of {name}", gradient.array, right, look)


def check_second_order(work):
    """The gradients of second order are right."""
    rng = np.random.default_rng(3)
    gy, *weights = (rng.normal(size=6) for _ in range(3))
    with tn.using_device("numpy"):
        work.kepler(tn.asarray(M), tn.asarray(E))
        try:
            gradient_check.check_double_backward(work.kepler, (M, E), gy, tuple(weights), eps=1e-5)
        except Exception as error:
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            look = "Backward uses F.cos, F.sin and the retained Variables, no arrays."
            raise CheckFailed("the second order", "that of differences", got, look) from error


def check_cost(work):
    """Only e and E are kept, by one function."""
    n = 1000
    with tn.using_device("numpy"), tn.hooks.MemoryHook() as memory:
        m = tn.asarray(np.linspace(-3.0, 3.0, n), requires_grad=True)
        e = tn.asarray(np.full(n, 0.5), requires_grad=True)
        angle = work.kepler(m, e)
        look = "forward gets arrays, and its loop leaves no functions in the graph."
        expect_equal("the number of functions", len(memory.calls), 1, look)
        kept = memory.current_bytes()
    look = "retain_inputs((1,)) keeps e, retain_outputs((0,)) keeps E: 2 arrays of 8,000 bytes."
    expect_equal("the bytes kept for 1,000 elements", kept, 2 * 8 * n, look)
    expect_true("the result has a creator", angle.creator is not None, "Use Kepler().apply.")


def check_training(work):
    """A descent along the gradient finds the eccentricity of an orbit."""
    with tn.using_device("numpy"):
        m = tn.asarray(np.linspace(0.2, 3.0, 8))
        target = work.kepler(m, tn.asarray(np.full(8, 0.6))).array
        e = tn.asarray(np.array([0.2]), requires_grad=True)
        for _ in range(60):
            e.cleargrad()
            angle = work.kepler(m, F.broadcast_to(e, (8,)))
            F.mean_squared_error(angle, tn.asarray(target)).backward()
            if e.grad is None:
                raise CheckFailed("the gradient of e", "a number", "None", "See check 03.")
            e.array = e.array - 0.5 * e.grad
    look = "From observed angles E, 60 steps find e. The gradient of e leads elsewhere."
    expect_close("the eccentricity found", e.array, np.array([0.6]), look, rtol=1e-3)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    ("too few rounds", _SOLUTION.replace("range(20)", "range(1)")),
    ("the slope has the wrong sign", _SOLUTION.replace("1.0 - e * F.cos", "1.0 + e * F.cos")),
    ("the gradient of e is that of M", _SOLUTION.replace("gm * F.sin(angle)", "gm")),
    (
        "the arrays are used, so the second order is lost",
        _SOLUTION.replace("F.cos(angle)", "F.cos(angle.array)"),
    ),
    (
        "a loop of Variables",
        _SOLUTION[: _SOLUTION.index("def kepler")]
        + """def kepler(m, e):
    angle = m + 0.85 * e * F.sign(F.sin(m))
    for _ in range(20):
        angle = angle - (angle - e * F.sin(angle) - m) / (1.0 - e * F.cos(angle))
    return angle
""",
    ),
    (
        "all inputs are retained",
        _SOLUTION.replace("retain_inputs((1,))", "retain_inputs((0, 1))").replace(
            "(e,) = self", "_, e = self"
        ),
    ),
    (
        "the result is float64",
        _SOLUTION.replace("return (angle,)", 'return (angle.astype("float64"),)'),
    ),
)
