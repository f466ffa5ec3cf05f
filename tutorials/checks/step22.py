"""Checks of exercise 22: derivatives of known functions, and minima of known valleys."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import CheckFailed, expect_close, expect_equal, expect_true, solution

HINTS = (
    "Start with found = [f(x)], and n times append the gradient of found[-1] with respect to x.",
    "tn.grad(..., enable_double_backprop=True): without it the gradient is a leaf, and "
    "a leaf has no path to x. Zeros like x are tn.Variable(x.xp.zeros_like(x.array)).",
    "newton: in each step _, g, h = derivatives(f, x, 2), then x = tn.Variable((x - g / h).array)."
    " Without .array, the new x hangs onto the graph of the old one.",
)


def polynomial(x):
    return x * x * x * x - 2.0 * x * x


def expect_derivatives(work, name, f, x, expected, look):
    """``derivatives`` gives these arrays, each in a Variable of the shape of x."""
    n = len(expected) - 1
    found = work.derivatives(f, x, n)
    what = f"derivatives of {name}, n = {n}"
    is_sequence = isinstance(found, list | tuple)
    expect_true(f"{what}: a list", is_sequence, "Append each derivative to a list, and return it.")
    expect_equal(f"{what}: the length of the list", len(found), n + 1, "f(x) itself comes first.")
    for order, (got, right) in enumerate(zip(found, expected, strict=True)):
        about = f"{what}: derivative {order}" if order else f"{what}: f(x)"
        if got is None:
            zeros = "Where tn.grad gives None the derivative is zero: zeros like x."
            raise CheckFailed(about, "a Variable", "None", look if np.any(right) else zeros)
        is_variable = isinstance(got, tn.Variable)
        expect_true(f"{about} is a Variable", is_variable, "tn.grad gives Variables.")
        expect_close(about, got.array, right, look, rtol=1e-9, atol=1e-9)


def check_first_and_second(work):
    """f, its first and its second derivative."""
    x = tn.Variable(np.array([-1.5, 0.5, 2.0]))
    v = x.array
    expected = [v**4 - 2 * v**2, 4 * v**3 - 4 * v, 12 * v**2 - 4]
    look = (
        "Each derivative is the gradient of the one before it, not of f(x). And that one needs a "
        "graph: enable_double_backprop=True."
    )
    expect_derivatives(work, "x^4 - 2 x^2", polynomial, x, expected, look)


def check_higher(work):
    """Derivatives of a higher order."""
    x = tn.Variable(np.array([[0.3, -1.0, 2.0]]))
    s, c = np.sin(x.array), np.cos(x.array)
    look = "Every one of them needs a graph, for the next one: enable_double_backprop=True."
    expect_derivatives(work, "sin(x)", F.sin, x, [s, c, -s, -c, s, c, -s], look)


def check_zero(work):
    """A derivative that is zero."""
    x = tn.Variable(np.array([1.0, 2.0]))
    zero = np.zeros(2)

    def line(x):
        return 3.0 * x

    look = "The slope of a line is constant, so all derivatives after it are zeros."
    expect_derivatives(work, "3 x", line, x, [3 * x.array, zero + 3.0, zero, zero, zero], look)


def check_no_grad_is_touched(work):
    """The grad of x is as it was."""
    x = tn.Variable(np.array([1.0, 2.0]))
    x.grad = np.array([10.0, 20.0])
    work.derivatives(polynomial, x, 2)
    look = "x.grad belongs to the user. tn.grad returns gradients and writes to no grad."
    expect_close("x.grad after derivatives(...)", x.grad, [10.0, 20.0], look)


def check_one_step(work):
    """One step of Newton's method."""
    x = tn.Variable(np.array([2.0, -1.2, 0.9]))
    v = x.array
    expected = v - (4 * v**3 - 4 * v) / (12 * v**2 - 4)
    got = work.newton(polynomial, x, 1)
    expect_true("newton gives a Variable", isinstance(got, tn.Variable), "Return the new x.")
    look = "x - g / h, where g is the first derivative of f and h is the second."
    expect_close("x^4 - 2 x^2: x after one step", got.array, expected, look)
    expect_equal("x^4 - 2 x^2: x after no step", work.newton(polynomial, x, 0).array, v, look)
    expect_equal("the x that was given", x.array, np.array([2.0, -1.2, 0.9]), "Leave it alone.")


def check_minimum(work):
    """The minimum after several steps."""

    def valley(x):
        return F.exp(x) - 3.0 * x

    got = work.newton(valley, tn.Variable(np.zeros(2)), 8)
    look = "Does every step begin where the one before has ended?"
    expect_close("e^x - 3 x: x after 8 steps", got.array, np.log([3.0, 3.0]), look)


def check_no_graph_grows(work):
    """Each step begins at a leaf."""
    ranks = []

    def valley(x):
        ranks.append(x.rank)
        return F.exp(x) - 3.0 * x

    got = work.newton(valley, tn.Variable(np.zeros(2)), 5)
    look = "Make a new leaf of the new x in each step: tn.Variable((...).array)."
    expect_equal("the ranks of x, step by step", ranks, [0] * len(ranks), look)
    expect_equal("the rank of the result", got.rank, 0, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "enable_double_backprop is left out",
        _SOLUTION.replace(", enable_double_backprop=True", ""),
    ),
    (
        "None is left in the list",
        _SOLUTION.replace("tn.Variable(x.xp.zeros_like(x.array)) if g is None else g", "g"),
    ),
    (
        "backward adds to x.grad, which is never cleared",
        _SOLUTION
        + """
def derivatives(f, x, n):
    found = [f(x)]
    for _ in range(n):
        tn.functions.sum(found[-1]).backward(enable_double_backprop=True)
        found.append(x.grad_var)
    return found
""",
    ),
    (
        "backward with cleargrad: right, but the user's grad is lost",
        _SOLUTION
        + """
def derivatives(f, x, n):
    found = [f(x)]
    for _ in range(n):
        x.cleargrad()
        if found[-1].creator_node is not None:
            tn.functions.sum(found[-1]).backward(enable_double_backprop=True)
        zero = tn.Variable(x.xp.zeros_like(x.array))
        found.append(zero if x.grad_var is None else x.grad_var)
    return found
""",
    ),
    (
        "each step of Newton's method hangs onto the graph of the one before",
        _SOLUTION.replace("tn.Variable((x - g / h).array)", "x - g / h"),
    ),
    (
        "Newton's method divides the value by the slope: that finds a zero, not a minimum",
        _SOLUTION.replace("_, g, h =", "g, h, _ ="),
    ),
)
