"""Step 4: does y.backward() find the gradients, and does the package fit a line?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_chain": Hint(
        "Begin at the result and go back. Which gradient does each operation get, and where "
        "does its answer go?",
        "For an operation: gradients of its outputs in, gradients of its inputs out; each "
        "x.grad is set.",
    ),
    "check_given_start": Hint(
        "What is the gradient of the result itself, and what if somebody has set another one?",
        "y.grad begins as ones of the shape of y, only if y.grad is None.",
    ),
    "check_operators": Hint(
        "Which of the two operands stands on the left, and which method does Python call then?",
        "For 2.0 - x Python calls x.__rsub__(2.0): the other operand is on the left, so the "
        "result is other - self.",
    ),
    "check_two_inputs": Hint(
        "Move only the first input a little, then only the second. How does the result move "
        "each time?",
        "z = x + y: (gz, gz). z = x - y: (gz, -gz). z = x * y: (gz * y, gz * x).",
    ),
    "check_tree": Hint(
        "A result has two ways back. Which of the inputs does your walk still have to visit?",
        "The list gets the creators of all inputs of each operation that ran.",
    ),
    "check_long_chain": Hint(
        "What happens to a gradient that passes 100,001 minus signs, and how deep does your "
        "walk go?",
        "A loop with a list, while waiting: pop one, run one, add its creators. Python stops "
        "a recursion at about 1,000 calls.",
    ),
    "check_line": Hint(
        "Each part passed alone. Which gradient of the loss decides in which direction w and "
        "b move?",
        "w - 0.1 * w.grad with a new box in each round: dw = 2 e x, db = 2 e, where e is the "
        "error.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_operators", "Add.forward"): Hint(
        "How many arrays come in, and in which form must the one result leave forward?",
        "x, y = inputs; the result is a tuple of one array: (x + y,).",
    ),
    ("check_operators", "Subtract.forward"): Hint(
        "Which of the two arrays is taken away, and in which form must the result leave forward?",
        "x, y = inputs; the result is a tuple of one array: (x - y,).",
    ),
}


def _box(work: Any, value: float) -> Any:
    return work.Variable(np.array(value))


def check_chain(work: Any) -> None:
    """y.backward() finds the gradient of a chain"""
    x = _box(work, 0.8)
    work.sin(work.exp(work.negative(work.square(x)))).backward()
    bell = np.exp(-(0.8**2))
    look = "backward: the loop goes on until a leaf; run_backward sets x.grad"
    expect_true("x has a gradient", x.grad is not None, look)
    look = "run_backward: each operation gets the gradients of its outputs, and sets x.grad"
    expect_close("the gradient of sin(exp(-x * x)) at 0.8", x.grad,
                 np.cos(bell) * bell * -2 * 0.8, look)  # fmt: skip


def check_given_start(work: Any) -> None:
    """y.backward() begins with y.grad, if y.grad is set"""
    x = work.Variable(np.array([1.0, 2.0]))
    y = work.square(x)
    y.grad = np.array([10.0, -1.0])
    y.backward()
    look = "backward: `if y.grad is None:` before setting ones"
    expect_close("the gradient of square at [1, 2], gy = [10, -1]", x.grad, [20.0, -4.0], look)


def check_operators(work: Any) -> None:
    """the operators + - * and the minus sign have the right values"""
    x, y = _box(work, 3.0), _box(work, 0.5)
    cases = (
        ("x + y", lambda: x + y, 3.5, "Add.forward, Operators.__add__"),
        ("x - y", lambda: x - y, 2.5, "Subtract.forward, Operators.__sub__"),
        ("x * y", lambda: x * y, 1.5, "Multiply.forward, Operators.__mul__"),
        ("-x", lambda: -x, -3.0, "Negative.forward, Operators.__neg__"),
        ("x + 1.0", lambda: x + 1.0, 4.0, "Operators.__add__"),
        ("1.0 + x", lambda: 1.0 + x, 4.0, "Operators.__radd__"),
        ("x - 1.0", lambda: x - 1.0, 2.0, "Operators.__sub__"),
        ("1.0 - x", lambda: 1.0 - x, -2.0, "Operators.__rsub__"),
        ("x * 2.0", lambda: x * 2.0, 6.0, "Operators.__mul__"),
        ("2.0 * x", lambda: 2.0 * x, 6.0, "Operators.__rmul__"),
    )
    for text, compute, right, concerned in cases:
        result = compute()
        look = "core/operators.py: each operator has two methods. Is it class Variable(Operators)?"
        is_box = isinstance(result, work.Variable)
        expect_true(f"{text} is a Variable", is_box, look)
        look = f"{concerned}: which operand is on the left? Did an operation write into x?"
        expect_close(f"{text} for x = 3, y = 0.5", result.array, right, look)
    result = np.array([2.0, 3.0]) * work.Variable(np.array([1.0, 10.0]))
    look = "core/operators.py: the line __array_ufunc__ = None, and class Variable(Operators)"
    is_box = isinstance(result, work.Variable)
    expect_true("np.array([2.0, 3.0]) * x is a Variable", is_box, look)
    expect_close("np.array([2.0, 3.0]) * x for x = [1, 10]", result.array, [2.0, 30.0], look)


def check_two_inputs(work: Any) -> None:
    """operations with two inputs send a gradient to both"""
    for text, operation, right in (
        ("x + y", work.add, (1.0, 1.0)),
        ("x - y", work.subtract, (1.0, -1.0)),
        ("x * y", work.multiply, (0.5, 3.0)),
    ):
        x, y = _box(work, 3.0), _box(work, 0.5)
        z = operation(x, y)
        z.grad = np.array(10.0)
        z.backward()
        name = operation.__name__.capitalize()
        look = f"{name}.backward returns gx and gy; run_backward hands them to x and y, in order"
        for letter, box, factor in (("x", x, right[0]), ("y", y, right[1])):
            what = f"the gradient of {letter} in {text} at x = 3, y = 0.5, gz = 10"
            expect_true(f"{what} is set", box.grad is not None, look)
            expect_close(what, box.grad, 10.0 * factor, look)


def check_tree(work: Any) -> None:
    """the walk goes into both inputs"""
    x, y = _box(work, 0.5), _box(work, 2.0)
    (work.sin(x) * work.square(y) - 2.0 * work.exp(_box(work, 0.0))).backward()
    look = "backward: put the creators of all inputs into the list"
    expect_close("the gradient of x in sin(x) * square(y)", x.grad, np.cos(0.5) * 4.0, look)
    expect_close("the gradient of y in sin(x) * square(y)", y.grad, np.sin(0.5) * 4.0, look)


def check_long_chain(work: Any) -> None:
    """a chain of 100,000 operations works"""
    x = _box(work, 2.0)
    y = x
    for _ in range(100_001):
        y = work.negative(y)
    look = "backward: a function that calls itself stops at about 1,000. Use while"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # Python's own: a higher one would let recursion pass
    try:
        y.backward()
    except RecursionError:
        raise CheckFailed(
            "the gradient of 100,001 minus signs", "-1.0", "a RecursionError", look
        ) from None
    finally:
        sys.setrecursionlimit(limit)
    look = "Negative.backward: an odd number of minus signs; run_backward hands each gradient on"
    expect_close("the gradient of 100,001 minus signs", x.grad, -1.0, look)


def check_line(work: Any) -> None:
    """the package fits a line: w comes to 2, and b to -1"""
    w, b = _box(work, 0.0), _box(work, 0.0)
    for _ in range(40):
        for x in (-1.0, -0.5, 0.0, 0.5, 1.0):
            loss = work.square(w * x + b - (2.0 * x - 1.0))
            loss.backward()
            w = work.Variable(w.array - 0.1 * w.grad)
            b = work.Variable(b.array - 0.1 * b.grad)
    look = "the checks above say which gradient is wrong"
    expect_equal("the shape of w", np.shape(w.array), (), look)
    expect_close("w after 40 epochs", w.array, 2.0, look, atol=1e-3)
    expect_close("b after 40 epochs", b.array, -1.0, look, atol=1e-3)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    for name in ("square", "exp", "negative", "sin"):
        expect_careful(work, name, getattr(work, name), [0.5, -1.0])
    for name in ("add", "subtract", "multiply"):
        expect_careful(work, name, getattr(work, name), [0.5, -1.0], [2.0, 3.0])


_LOOP = """    while waiting:
        function = waiting.pop()
        if function is None:  # a leaf has no creator
            continue
        run_backward(function)
        waiting += [x.creator_node for x in function.inputs]
"""
_RECURSION = """    import sys

    sys.setrecursionlimit(10_000)
    walk(y)


def walk(y):
    if y.creator_node is not None:
        run_backward(y.creator_node)
        for x in y.creator_node.inputs:
            walk(x)
"""

MISTAKES = (
    (
        "recursion, with a higher limit",
        mistake("04", "core/backprop.py", _LOOP, _RECURSION),
    ),
    (
        "y.grad is always 1",
        mistake("04", "core/backprop.py", "if y.grad is None:", "if True:"),
    ),
    (
        "only the first input is followed",
        mistake("04", "core/backprop.py", "for x in function.inputs]",
                "for x in function.inputs[:1]]"),
    ),
    (
        "the gradients of a product are exchanged",
        mistake("04", "functions/arithmetic.py", "gz * y, gz * x", "gz * x, gz * y"),
    ),
    (
        "the second gradient of a difference has the wrong sign",
        mistake("04", "functions/arithmetic.py", "gz, -gz", "gz, gz"),
    ),
    (
        "2.0 - x is x - 2.0",
        mistake("04", "core/operators.py", "mynode.subtract(other, self)",
                "mynode.subtract(self, other)"),
    ),
    (
        "numbers of NumPy take the box apart",
        mistake("04", "core/operators.py", "    __array_ufunc__ = None", "    unused = None"),
    ),
)  # fmt: skip
