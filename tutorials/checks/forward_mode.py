"""Checks of forward_mode: products with the Jacobian and the Hessian, and the passes they take."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_true,
    solution,
)

HINTS = {
    "check_jvp": Hint(
        "A backward pass gives u J. In which of its two arguments is this a linear function?",
        "g = u J is linear in u: its derivative with respect to u, with weights v, is J v.",
    ),
    "check_exact": Hint(
        "How many backward passes do you need for forty results, and do you take any small steps?",
        "One dummy u of the shape of y; tn.grad twice.",
    ),
    "check_nested": Hint(
        "Does the result of the second call lead back to x?",
        "The second tn.grad has enable_double_backprop=True too.",
    ),
    "check_hvp": Hint(
        "Of which function is the Hessian the Jacobian?",
        "H v = jvp(gradient, x, v)[1].",
    ),
    "check_bend": Hint(
        "What is the slope along a line a function of?",
        "slope(x) = jvp(f, x, v)[1]; bend is the jvp of slope along v.",
    ),
}

MATRIX = np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 3.0], [0.25, 1.5, -2.0]])
POINT = np.array([0.3, -0.2, 0.5])
DIRECTION = np.array([1.0, -2.0, 0.5])


class Counted(tn.FunctionHook):
    """Counts backward passes."""

    name = "counted by the check"

    def __init__(self):
        self.passes = 0

    def sweep_began(self, sweep):
        self.passes += 1


def turned(x):
    """x: (3) -> (3), with a Jacobian that is not symmetric."""
    return F.tanh(F.matmul(x, MATRIX))


def jacobian_of_turned(x):
    return (1 - np.tanh(x @ MATRIX) ** 2)[:, None] * MATRIX.T


def at(numbers, requires_grad):
    return tn.asarray(np.array(numbers, dtype=float), requires_grad=requires_grad)


def result(what, look, function, f, x=POINT, v=DIRECTION):
    """What the learner's function gives, and the number of backward passes."""
    with Counted() as counted:
        try:
            found = function(f, at(x, True), at(v, False))
        except NotImplementedError:
            raise
        except Exception as error:
            got = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise CheckFailed(what, "a result", got, look) from error
    return found, counted.passes


def expect_variable(what, found, look):
    if not isinstance(found, tn.Variable):
        raise CheckFailed(what, "a Variable", repr(found)[:60], look)


def value_and_jv(work, what, look, f, **options):
    found, passes = result(what, look, work.jvp, f, **options)
    if not isinstance(found, tuple) or len(found) != 2:
        got = type(found).__name__
        raise CheckFailed(what, "a tuple of two: y and J v", got, "return y, jv")
    expect_variable(f"y of {what}", found[0], "The value of f, as f gave it.")
    expect_variable(f"J v of {what}", found[1], look)
    return found[0], found[1], passes


def check_jvp(work):
    """jvp gives the value and J v."""
    look = "Without enable_double_backprop=True the first call gives a g without a graph."
    y, jv, _ = value_and_jv(work, "jvp(f, x, v)", look, turned)
    expect_close("the value", y, np.tanh(POINT @ MATRIX), "Return y = f(x) first.")
    jacobian = jacobian_of_turned(POINT)
    if np.allclose(jv.array, DIRECTION @ jacobian):
        look = "v J is the product of reverse mode: v is a direction of x, not a weight of y."
        raise CheckFailed("jvp(f, x, v)[1]", "J v", "v J", look)
    look = "g = u J is linear in u: its derivative with respect to u, with weights v, is J v."
    expect_close("J v", jv, jacobian @ DIRECTION, look, rtol=1e-6)


def check_exact(work):
    """jvp is as exact as a gradient, and takes two backward passes for any number of results."""
    _, jv, _ = value_and_jv(work, "jvp(f, x, v)", "", turned)
    look = "Small steps lose half of the digits: use tn.grad, twice."
    exact = jacobian_of_turned(POINT) @ DIRECTION
    expect_close("J v, to 12 digits", jv, exact, look, rtol=1e-12, atol=1e-13)
    wide = np.linspace(-1.0, 1.0, 120).reshape(3, 40)

    def many(x):
        return F.matmul(x, wide)

    _, jv, passes = value_and_jv(work, "jvp of a function with 40 results", "", many)
    expect_close("J v of a function with 40 results", jv, DIRECTION @ wide, "J v: (m).")
    look = "No loop over the results: one dummy u, of the shape of y."
    expect_true(f"the backward passes of jvp, {passes} for 40 results, are 2", passes <= 2, look)


def check_nested(work):
    """J v has a graph back to x."""
    look = "The second call of tn.grad needs enable_double_backprop=True too."
    x = at(POINT, True)
    _, jv = work.jvp(lambda x: x**3.0, x, at(DIRECTION, False))
    expect_variable("J v", jv, look)
    expect_true("J v requires a gradient", jv.requires_grad, look)
    (gx,) = tn.grad([F.sum(jv)], [x])
    expect_true("the gradient of J v reaches x", gx is not None, look)
    expect_close("the gradient of J v", gx, 6 * POINT * DIRECTION, look)


def valley(x):
    """A single number with a full Hessian."""
    return F.sum(F.exp(F.matmul(x, MATRIX)))


def check_hvp(work):
    """hvp gives the Hessian times v."""
    look = "Differentiate the gradient along v: jvp(gradient, x, v)[1]."
    hv, passes = result("hvp(f, x, v)", look, work.hvp, valley)
    expect_variable("hvp(f, x, v)", hv, look)
    hessian = (MATRIX * np.exp(POINT @ MATRIX)) @ MATRIX.T
    expect_close("H v", hv, hessian @ DIRECTION, look, rtol=1e-11)
    look = "One pass for the gradient, and two for its jvp: no loop over the Hessian's rows."
    expect_true(f"the backward passes of hvp, {passes}, are 3 at most", passes <= 3, look)


def check_bend(work):
    """bend gives the second derivative along a line."""
    look = "slope(x) = jvp(f, x, v)[1] is a function of x. bend is the jvp of slope, along v."
    found, _ = result("bend(f, x, v)", look, work.bend, turned)
    expect_variable("bend(f, x, v)", found, look)
    y, rate = np.tanh(POINT @ MATRIX), DIRECTION @ MATRIX
    right = -2 * y * (1 - y * y) * rate**2
    if np.allclose(found.array, jacobian_of_turned(POINT) @ DIRECTION):
        raise CheckFailed("bend(f, x, v)", "the second derivative", "the first: J v", look)
    expect_close("bend of tanh(x W)", found, right, look, rtol=1e-11)


_SOLUTION = solution(__file__)
_DOUBLE = ", enable_double_backprop=True"

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the product of reverse mode",
        _SOLUTION.replace("tn.grad([g], [u], [v]", "tn.grad([y], [x], [v]"),
    ),
    ("the first call has no graph", _SOLUTION.replace(f"[u]{_DOUBLE}", "[u]", 1)),
    ("the second call has no graph", _SOLUTION.replace(f"[v]{_DOUBLE}", "[v]", 1)),
    (
        "small steps",
        _SOLUTION.replace(
            "    return y, jv\n",
            "    return y, (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6\n",
        ),
    ),
    (
        "a pass for each result",
        _SOLUTION.replace(
            "    return y, jv\n",
            "    rows = [tn.grad([y], [x], [tn.asarray(e)], enable_double_backprop=True)[0]\n"
            "            for e in np.eye(y.size)]\n"
            "    return y, F.matmul(F.stack(rows), v)\n",
        ),
    ),
    ("the value is left out", _SOLUTION.replace("    return y, jv\n", "    return jv\n")),
    (
        "bend stops at the slope",
        _SOLUTION.replace("return jvp(slope, x, v)[1]", "return slope(x)"),
    ),
    (
        "the gradient of hvp has no graph",
        _SOLUTION.replace(f"[f(x)], [x]{_DOUBLE}", "[f(x)], [x]"),
    ),
    (
        "the Hessian's square",
        _SOLUTION.replace(
            "return jvp(gradient, x, v)[1]", "return jvp(gradient, x, jvp(gradient, x, v)[1])[1]"
        ),
    ),
)
