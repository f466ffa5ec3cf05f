"""Solution 22: derivatives of any order, and Newton's method."""

import tinynode as tn


def derivatives(f, x, n):
    """[f(x), f'(x), f''(x), ...] up to the n-th derivative."""
    found = [f(x)]
    for _ in range(n):
        (g,) = tn.grad([found[-1]], [x], enable_double_backprop=True)
        found.append(tn.Variable(x.xp.zeros_like(x.array)) if g is None else g)
    return found


def newton(f, x, steps):
    """Where the minimum of f is, by Newton's method from x."""
    for _ in range(steps):
        _, g, h = derivatives(f, x, 2)
        x = tn.Variable((x - g / h).array)
    return x
