"""Exercise 7: does last_output work, and does nothing stay in memory because of it?"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_true, solution

HINTS = (
    "Which of the three references in the circle does nobody need, except for last_output?",
    "weakref.ref(v) makes a weak reference to v. Called, it gives v, or None if v is gone.",
    "In apply: self.output = weakref.ref(outputs[0]). In last_output: return self.output().",
)


def _apply(work: Any) -> tuple[Any, Any, Any]:
    """A leaf, a Watched, and its output."""
    from engine07 import Variable

    x = Variable(np.array([3.0, 4.0]))
    function = work.Watched()
    (y,) = function.apply((x,))
    return x, function, y


def check_while_held(work: Any) -> None:
    """last_output() is the output, while somebody holds it"""
    _, function, y = _apply(work)
    look = "last_output: return the very Variable that apply returned, not its node or a copy"
    expect_true("last_output() is y", function.last_output() is y, look)


def check_gradient(work: Any) -> None:
    """Watched still is a Square"""
    x, _, y = _apply(work)
    y.grad = np.ones(2)
    y.backward()
    look = "apply: call super().apply(inputs), and return what it returns"
    expect_close("the gradient of the square at [3, 4]", x.grad, [6.0, 8.0], look)


def check_after_it_went(work: Any) -> None:
    """last_output() is None when the Variable is gone"""
    _, function, y = _apply(work)
    was_on = gc.isenabled()
    gc.disable()
    try:
        del y
        look = "apply: hold the output weakly, with weakref.ref"
        is_none = function.last_output() is None
        expect_true("last_output() is None after `del y`", is_none, look)
    finally:
        if was_on:
            gc.enable()


def check_memory(work: Any) -> None:
    """without the collector, the array and the graph go at once"""
    was_on = gc.isenabled()
    gc.disable()
    try:
        x, function, y = _apply(work)
        array, graph = weakref.ref(y.array), weakref.ref(function)
        del x, function, y
        look = "Watched: something still refers to the output. Which reference is it?"
        expect_true("the array of the output is gone", array() is None, look)
        expect_true("the operation is gone", graph() is None, look)
    finally:
        if was_on:
            gc.enable()


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "a weak reference to a copy, which goes at once",
        _SOLUTION.replace("import Square", "import Square, Variable").replace(
            "weakref.ref(outputs[0])", "weakref.ref(Variable(outputs[0].array))"
        ),
    ),
    (
        "the array is held in place of the Variable",
        _SOLUTION.replace("import Square", "import Square, Variable")
        .replace("weakref.ref(outputs[0])", "outputs[0].array")
        .replace("return self.output()", "return Variable(self.output)"),
    ),
    (
        "a weak reference beside the strong one",
        _SOLUTION.replace("outputs = super()", "self.result = outputs = super()"),
    ),
    (
        "a circle through a function that remembers the Variable",
        """
from engine07 import Square

class Watched(Square):
    def apply(self, inputs):
        (y,) = super().apply(inputs)
        self.last_output = lambda: y
        return (y,)
""",
    ),
)
