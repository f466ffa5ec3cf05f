"""Exercise 6: is the naive order wrong on one graph, and right on the other?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_true, solution

HINTS = (
    "Use an inner box twice: by an operation near the end, and by one further back.",
    "waiting.pop() takes what was put in last, so the last input of an operation is followed "
    "first. Put the short way to the shared box there.",
    "naive_fails: a = square(x), then square(square(a)) + a. naive_works: the same sum, with its "
    "two parts exchanged.",
)

POINT = 1.1


def _functions(y: Any) -> list[Any]:
    """All operations that y was computed by."""
    found: list[Any] = []
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.append(function)
            waiting += [x.creator_node for x in function.inputs]
    return found


def _graph(make: Any) -> tuple[Any, Any]:
    from engine06 import Variable

    x = Variable(np.array(POINT))
    y = make(x)
    what = f"{make.__name__}(x) returns a Variable that was computed from x"
    look = f"{make.__name__}: end with return, and begin with x"
    uses_x = isinstance(y, Variable) and any(x in f.inputs for f in _functions(y))
    expect_true(what, uses_x, look)
    return x, y


def _measured(make: Any) -> float:
    """The slope, by a central difference."""
    from engine06 import Variable

    eps = 1e-5
    high, low = (float(make(Variable(np.array(POINT + d))).array) for d in (eps, -eps))
    return (high - low) / (2 * eps)


def _naive(make: Any) -> float:
    from engine06 import naive_backward

    x, y = _graph(make)
    naive_backward(y)
    return float(x.grad)


def _check_rank_is_right(make: Any) -> None:
    x, y = _graph(make)
    y.backward()
    look = f"{make.__name__}: use the engine's operations as they are"
    expect_close("the gradient by rank, against the measured one", x.grad, _measured(make), look,
                 rtol=1e-5, atol=1e-5)  # fmt: skip


def _shared_inner_boxes(functions: list[Any]) -> list[Any]:
    """The boxes, other than leaves, that two different operations use."""
    users: dict[Any, set[Any]] = {}
    for function in functions:
        for x in function.inputs:
            if x.creator_node is not None:
                users.setdefault(x, set()).add(function)
    return [x for x, using in users.items() if len(using) > 1]


def check_size(work: Any) -> None:
    """both graphs have four operations or more"""
    for make in (work.naive_fails, work.naive_works):
        count = len(_functions(_graph(make)[1]))
        what = f"{make.__name__} has {count} operations, and that is at least 4"
        expect_true(what, count >= 4, f"{make.__name__}: use more operations")


def check_naive_fails(work: Any) -> None:
    """naive_backward is wrong on the first graph"""
    _check_rank_is_right(work.naive_fails)
    naive, right = _naive(work.naive_fails), _measured(work.naive_fails)
    what = f"the naive gradient, {naive:.4f}, differs from the right one, {right:.4f}"
    look = (
        "naive_fails: use an inner box twice (x itself does not count), so that its creator comes "
        "out of the list before the other user of that box"
    )
    expect_true(what, abs(naive - right) > 1e-3, look)


def check_naive_works(work: Any) -> None:
    """naive_backward is right on the second graph, which has a branch at an inner box"""
    _check_rank_is_right(work.naive_works)
    shared = _shared_inner_boxes(_functions(_graph(work.naive_works)[1]))
    look = "naive_works: compute a box from x, and use it in two different operations"
    expect_true("an inner box is used by two operations", bool(shared), look)
    look = (
        "naive_works: the last input of an operation is followed first. Let that be the longer "
        "way to the shared box, and let the first input be the shared box itself"
    )
    expect_close("the naive gradient", _naive(work.naive_works), _measured(work.naive_works), look,
                 rtol=1e-5, atol=1e-5)  # fmt: skip


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "only the leaf is used twice",
        """
from engine06 import square

def naive_fails(x):
    return square(x * x) + x * square(x)

def naive_works(x):
    return x + square(x) + x * x
""",
    ),
    (
        "the shared box is used twice by the same operation",
        _SOLUTION
        + """
def naive_works(x):
    a = square(square(x))
    return square(a + a)
""",
    ),
    (
        "the two are exchanged",
        _SOLUTION + "\nnaive_fails, naive_works = naive_works, naive_fails\n",
    ),
    (
        "the graphs of the step",
        _SOLUTION.replace("square(square(a))", "square(a)"),
    ),
)
