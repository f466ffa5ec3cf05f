"""Exercise 5: do contributions add up, on four graphs?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.learn.checks import CheckFailed, expect_close, expect_true, solution

HINTS = (
    "The gradient of a box is the sum of what all its uses send. Which line stores a gradient?",
    "There are two cases: x.grad is None, or x.grad has a contribution already.",
    "x.grad = gx if x.grad is None else x.grad + gx (and not +=, which changes the array that "
    "other boxes hold, too).",
)

ADD = "backward: the contributions of all uses of a box are added"


def _variable(*values: float) -> Any:
    from engine05 import Variable

    return Variable(np.array(values))


def _not_this(self: Any) -> None:
    what, look = "backward(y)", "backward: repair its own line. y.backward() is for comparing"
    raise CheckFailed(what, "a walk of its own", "a call of y.backward()", look)


def check_x_times_x(work: Any) -> None:
    """x * x: both inputs are the same box"""
    from engine05 import Variable

    x = _variable(3.0, -0.5)
    whole = Variable.backward
    Variable.backward = _not_this
    try:
        work.backward(x * x)
    finally:
        Variable.backward = whole
    expect_close("the gradient of x * x at [3, -0.5]", x.grad, [6.0, -1.0], ADD)


def check_x_plus_x(work: Any) -> None:
    """x + x: the two contributions are one array"""
    x = _variable(3.0, -0.5)
    y = x + x
    work.backward(y)
    expect_close("the gradient of x + x", x.grad, [2.0, 2.0], ADD)
    look = "backward: x.grad + gx makes a new array, x.grad += gx changes the one that is there"
    expect_close("the gradient of the result itself", y.grad, [1.0, 1.0], look)


def check_diamond(work: Any) -> None:
    """sin(x) * square(x): two ways lead from x to the result"""
    from engine05 import sin, square

    values = np.array([3.0, -0.5])
    x = _variable(*values)
    y = sin(x) * square(x)
    work.backward(y)
    expected = np.cos(values) * values**2 + np.sin(values) * 2 * values
    expect_close("the gradient of sin(x) * square(x)", x.grad, expected, ADD)


def check_shared_array(work: Any) -> None:
    """x + (x + w): a sum must not leak into other boxes"""
    x, w = _variable(1.0), _variable(2.0)
    inner = x + w
    y = x + inner
    work.backward(y)
    look = (
        "backward: Add gives the same array to several boxes. x.grad += gx changes it for all of "
        "them; x.grad + gx makes a new one"
    )
    expect_close("the gradient of w in x + (x + w)", w.grad, [1.0], look)
    expect_close("the gradient of x in x + (x + w)", x.grad, [2.0], ADD)
    expect_close("the gradient of the inner sum", inner.grad, [1.0], look)


def check_three_uses(work: Any) -> None:
    """x * x + x: also three uses of a box are added"""
    x = _variable(3.0)
    y = x * x + x
    work.backward(y)
    expect_close("the gradient of x * x + x at 3", x.grad, [7.0], ADD)
    expect_true("y.grad is still an array of ones", np.all(y.grad == 1.0), ADD)


_SOLUTION = solution(__file__)
_STORE = "gx if x.grad is None else x.grad + gx"

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "adding in place",
        _SOLUTION.replace(_STORE, "gx if x.grad is None else np.add(x.grad, gx, out=x.grad)"),
    ),
    (
        "y.backward() does the work",
        """
def backward(y):
    y.backward()
""",
    ),
    (
        "the first contribution wins",
        _SOLUTION.replace(_STORE, "x.grad if x.grad is not None else gx"),
    ),
    (
        "the larger one wins",
        _SOLUTION.replace(_STORE, "gx if x.grad is None else max(gx[0], x.grad[0]) + 0 * gx"),
    ),
    (
        "two uses by one operation are counted, two operations are not",
        _SOLUTION.replace(_STORE, "gx * sum(v is x for v in function.inputs)"),
    ),
)
