"""Exercise 4: is grad_of right, does it leave the boxes alone, and does it survive long chains?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tinynode.learn.checks import CheckFailed, expect_close, expect_equal, expect_true, solution

HINTS = (
    "Two things change from one operation to the next: the box where you are, and the gradient "
    "there. Keep both in local variables.",
    "`while y is not x:` is a good beginning. In the loop: one backward, then one box further. "
    "Think of the leaf, which has no creator_node.",
    "In the loop: function = y.creator_node; return None if that is None; then "
    "(gradient,) = function.backward((0,), (gradient,)) and (y,) = function.inputs.",
)


def _chain() -> list[Any]:
    """The boxes x, a, b, y of y = sin(exp(square(x))), at x = 0.3."""
    import engine04 as engine

    boxes = [engine.Variable(np.array(0.3))]
    for operation in (engine.square, engine.exp, engine.sin):
        boxes.append(operation(boxes[-1]))
    return boxes


def check_leaf(work: Any) -> None:
    """the gradient with respect to the leaf is right"""
    x, _, b, y = _chain()
    expected = np.cos(b.array) * b.array * 2 * 0.3
    look = "grad_of: each backward gets the gradient that the one before returned"
    expect_close("the gradient of sin(exp(x * x)) at x = 0.3", work.grad_of(y, x), expected, look)


def check_inner_boxes(work: Any) -> None:
    """it stops at the box that was asked for"""
    x, _, b, y = _chain()
    look = "grad_of: stop when you have reached x, also if it is no leaf"
    expect_close("the gradient with respect to the box before the last", work.grad_of(y, b),
                 np.cos(b.array), look)  # fmt: skip
    expect_close("the gradient of b with respect to x", work.grad_of(b, x),
                 b.array * 2 * 0.3, look)  # fmt: skip
    expect_close("the gradient of y with respect to y", work.grad_of(y, y), 1.0, look)


def check_unrelated(work: Any) -> None:
    """a box that is not in the chain gives None"""
    from engine04 import Variable

    y = _chain()[-1]
    look = "grad_of: what happens at the leaf, if x was not met on the way?"
    expect_equal("grad_of(y, another box)", work.grad_of(y, Variable(np.array(0.3))), None, look)


def check_nothing_is_written(work: Any) -> None:
    """no box has a gradient afterwards"""
    boxes = _chain()
    work.grad_of(boxes[-1], boxes[0])
    look = "grad_of: keep the gradient in a local variable, not in a box"
    for name, box in zip("xaby", boxes, strict=True):
        expect_true(f"the grad of box {name} is None", box.grad is None, look)


def check_long_chain(work: Any) -> None:
    """a chain of 100,000 operations works"""
    from engine04 import Variable, negative

    x = Variable(np.array(2.0))
    y = x
    for _ in range(100_001):
        y = negative(y)
    look = "grad_of: a function that calls itself stops at about 1,000. Use while"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # Python's own: a higher one would let recursion pass
    try:
        found = work.grad_of(y, x)
    except RecursionError:
        raise CheckFailed(
            "the gradient of 100,001 minus signs", "-1.0", "a RecursionError", look
        ) from None
    finally:
        sys.setrecursionlimit(limit)
    expect_close("the gradient of 100,001 minus signs", found, -1.0, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "recursion, with a higher limit",
        """
import sys

import numpy as np

sys.setrecursionlimit(10_000)

def grad_of(y, x, gradient=None):
    gradient = np.ones_like(y.array) if gradient is None else gradient
    if y is x or y.creator_node is None:
        return gradient if y is x else None
    (gradient,) = y.creator_node.backward((0,), (gradient,))
    return grad_of(y.creator_node.inputs[0], x, gradient)
""",
    ),
    (
        "it lets y.backward() do the work, which writes into the boxes",
        """
def grad_of(y, x):
    y.backward()
    return x.grad
""",
    ),
    (
        "it goes to the leaf, whatever x is",
        _SOLUTION.replace("y is not x", "y.creator_node is not None"),
    ),
    (
        "each operation starts from 1 again",
        _SOLUTION.replace(
            "backward((0,), (gradient,))", "backward((0,), (np.ones_like(y.array),))"
        ),
    ),
)
