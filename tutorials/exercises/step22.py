"""Exercise 22: derivatives of any order, and Newton's method.

``f`` maps a Variable to a Variable of the same shape. Each element of the result depends on one
element of x only.

1. ``derivatives(f, x, n)``: a list of n + 1 Variables: f(x), its first derivative, its second, ...
   Where ``tn.grad`` gives None, the derivative is zero: put zeros there, a Variable of the shape
   of x. (``x.xp`` is the library of the array of x, as ``tn.namespace_of`` gives it.)
2. ``newton(f, x, steps)``: x after ``steps`` steps of Newton's method, x - f'(x) / f''(x).
   Each step makes a new leaf of its result, so that the graph does not grow. The returned x is
   a leaf too.
"""

import tinynode as tn  # noqa: F401 - for you to use
from tinynode import functions as F  # noqa: F401 - for you to use


def derivatives(f, x, n):
    """[f(x), f'(x), f''(x), ...] up to the n-th derivative."""
    raise NotImplementedError("tn.grad([y], [x], ...) gives a list with one gradient")


def newton(f, x, steps):
    """Where the minimum of f is, by Newton's method from x."""
    raise NotImplementedError("derivatives(f, x, 2) has all that a step needs")
