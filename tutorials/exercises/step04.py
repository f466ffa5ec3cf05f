"""Exercise 4: one gradient, from a chain of any length.

grad_of(y, x) returns the gradient of y with respect to x, where x is any box in the chain before
y, not only the leaf. The gradient of y with respect to y itself is an array of ones.
If x is not in the chain, it returns None. No box's grad is written to.

The version below does all that by recursion. It stops working at about a thousand operations.
Write it as a loop.
"""

import numpy as np
from engine04 import Variable  # noqa: F401 - Variable.backward is a loop to learn from


def grad_of(y, x):
    return walk(y, x, np.ones_like(y.array))


def walk(y, x, gy):
    if y is x:
        return gy
    if y.creator_node is None:
        return None
    (before,) = y.creator_node.inputs
    (gx,) = y.creator_node.backward((0,), (gy,))
    return walk(before, x, gx)
