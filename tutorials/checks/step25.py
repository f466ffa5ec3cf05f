"""Checks of exercise 25: the sums, and the arrays that backward makes for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_default": Hint(
        "An input has a sum already. What does the method return for it, and in which order?",
        "For each target: gradient if the old sum is None, else old + gradient.",
    ),
    "check_default_sums": Hint(
        "No new gradient comes for an input. What becomes of its old sum, and who else may "
        "hold the array?",
        "Without a gradient the old sum is the result; old + gx is a new array.",
    ),
    "check_gradients": Hint(
        "Many uses meet at one input. Which entry of the table takes the place of which?",
        "sums = the popped entries of the targets; the results go back into the table.",
    ),
    "check_same_variable": Hint(
        "An input stands twice in one function. How often may its old sum be counted?",
        "pop takes the sum out once; the second position starts with None; both results are "
        "added.",
    ),
    "check_calls": Hint(
        "Who calls the new method, and with which sums?",
        "run_backward: function.backward_accumulate(targets, grad_outputs, sums).",
    ),
    "check_nothing_is_written_over": Hint(
        "Who else holds the arrays that arrive?",
        "old + g and old - g make new arrays.",
    ),
    "check_no_negative": Hint(
        "How many operations does the gradient of a difference need if an old sum is there?",
        "Position 1 of a difference: old - g, unbroadcast to the shape of the input.",
    ),
}

GUARDS = ("check_gradients", "check_same_variable")


def check_default(work: Any) -> None:
    """backward_accumulate adds to the sums so far"""
    x, y = work.Variable(np.array(3.0)), work.Variable(np.array(5.0))
    function = (x * y).creator_node
    look = "FunctionNode.backward_accumulate: a result for each target, in the order of targets"
    expect_true(
        "a FunctionNode has backward_accumulate", hasattr(function, "backward_accumulate"), look
    )
    gy = np.array(2.0)
    for targets, sums, right in (
        ((0, 1), (None, None), [10.0, 6.0]),
        ((0, 1), (np.array(1.0), None), [11.0, 6.0]),
        ((1,), (np.array(100.0),), [106.0]),
    ):
        found = function.backward_accumulate(targets, (gy,), sums)
        what = f"backward_accumulate({targets}, 2, {sums}) of 3 * 5"
        expect_equal(what, [float(g) for g in found], right, look)


def check_default_sums(work: Any) -> None:
    """backward_accumulate keeps an old sum without a gradient, and writes into no old sum"""

    class OnlyFirst(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            return (2.0 * inputs[0],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return 2.0 * grad_outputs[0], None

    function, old = OnlyFirst(), np.array([1.0, 2.0])
    found = function.backward_accumulate((0, 1), (np.ones(2),), (old, old))
    look = "FunctionNode.backward_accumulate: old + gx is a new array; without a gx, old stays"
    expect_close("the first sum", found[0], [3.0, 4.0], look)
    expect_true("there is a second sum", found[1] is not None, look)
    expect_close("the second sum, without a gradient", found[1], [1.0, 2.0], look)
    expect_close("the old sum afterwards", old, [1.0, 2.0], look)
    look = "core/backprop.py, run_backward: the targets are inputs with requires_grad"
    constant = work.Variable(np.ones(2), requires_grad=False)
    x = work.Variable(np.ones(2))
    y = work.sum(x * constant)
    y.backward()
    expect_true("a constant gets no gradient", constant.grad is None, look)


def check_gradients(work: Any) -> None:
    """gradients with many uses are as before"""
    x, y = work.Variable(np.array([2.0, 3.0])), work.Variable(np.array([5.0, 7.0]))
    z = (x * y - (y - x)) + (x - y) * 3.0 - (x - x)
    z.grad = np.ones(2)
    z.backward()
    look = "Subtract.backward_accumulate, run_backward: the result takes the place of the old sum"
    expect_close("the gradient of x", x.grad, y.array + 4.0, look)
    expect_close("the gradient of y", y.grad, x.array - 4.0, look)
    row = work.Variable(np.ones(3))
    z = work.sum(np.ones((2, 3)) - row) + work.sum(row - np.ones((4, 1)))
    z.backward()
    look = "Subtract.backward_accumulate: unbroadcast to the shape of the input, before the sum"
    expect_close("the gradient of a broadcast row", row.grad, [2.0, 2.0, 2.0], look)


def check_same_variable(work: Any) -> None:
    """x - x, and other uses of x before"""
    x = work.Variable(np.array(2.0))
    (x - x).backward()
    look = "an input that comes twice has two results: the second is added to the first"
    expect_close("the gradient of x - x", x.grad, 0.0, look)
    x.cleargrad()
    ((x - x) + 5.0 * x).backward()
    expect_close("the gradient of (x - x) + 5 x", x.grad, 5.0, look)


def check_calls(work: Any) -> None:
    """the backward pass calls backward_accumulate, with the sums so far"""
    seen = []

    class Double(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            return (2.0 * inputs[0],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return (2.0 * grad_outputs[0],)

        def backward_accumulate(self, targets: Any, grad_outputs: Any, grad_inputs: Any) -> Any:
            seen.append(grad_inputs)
            (old,) = grad_inputs
            g = 2.0 * grad_outputs[0]
            return (g if old is None else old + g,)

    x = work.Variable(np.array(3.0))
    a, b = Double().apply((x,))[0], Double().apply((x,))[0]
    (a + b).backward()
    look = "core/backprop.py, run_backward: results = function.backward_accumulate(...)"
    found = [[None if g is None else float(g) for g in sums] for sums in seen]
    expect_equal("the sums that two uses of x got", found, [[None], [2.0]], look)
    expect_close("the gradient of 2 x + 2 x", x.grad, 4.0, look)


def check_nothing_is_written_over(work: Any) -> None:
    """the incoming arrays stay as they are"""
    x, y = work.Variable(np.ones(3)), work.Variable(np.ones(3))
    function = (x - y).creator_node
    g, old = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    found = function.backward_accumulate((0, 1), (g,), (old, old))
    look = "Subtract.backward_accumulate: old + g and old - g make new arrays; += changes others'"
    expect_close("the first sum", found[0], [11.0, 22.0, 33.0], look)
    expect_close("the second sum", found[1], [9.0, 18.0, 27.0], look)
    expect_equal("the old sum afterwards", old, np.array([10.0, 20.0, 30.0]), look)
    expect_equal("the gradient afterwards", g, np.array([1.0, 2.0, 3.0]), look)


def check_no_negative(work: Any) -> None:
    """old - g is one operation, in a recorded backward too"""
    x, y, z = (work.Variable(np.array([1.0, 2.0])) for _ in range(3))
    seed = work.Variable(np.ones(2))
    total = (x - z) * (x - z) + (y - z) * (y - z)
    (gz,) = work.grad([total], [z], [seed], enable_double_backprop=True)
    look = "Subtract.backward_accumulate: old - g, without a Negative"
    last = type(gz.creator_node).__name__
    expect_equal("the operation that made the gradient of z", last, "Subtract", look)
    (second,) = work.grad([gz], [z], [work.Variable(np.array([1.0, 10.0]))])
    expect_close("the second order", second.array, [4.0, 40.0], look)


_NODE, _BACKPROP, _ARITHMETIC = (
    "core/function_node.py",
    "core/backprop.py",
    "functions/arithmetic.py",
)

MISTAKES = (
    (
        "the old sums are forgotten",
        mistake("25", _NODE, "results.append(old + gx)", "results.append(gx)"),
    ),
    (
        "the sums are read, and left in the table",
        mistake(
            "25",
            _BACKPROP,
            "gradients.pop(function.inputs[i], None)",
            "gradients.get(function.inputs[i])",
        ),
    ),
    (
        "Subtract adds its second gradient",
        mistake(
            "25", _ARITHMETIC, "-g if old is None else old - g", "-g if old is None else old + g"
        ),
    ),
    (
        "Subtract writes into the old sum",
        mistake("25", _ARITHMETIC, "old - g)", "np.subtract(old, g, out=old))"),
    ),
    (
        "no unbroadcast",
        mistake("25", _ARITHMETIC, "g = unbroadcast(gz, self.inputs[i].shape)", "g = gz"),
    ),
)
