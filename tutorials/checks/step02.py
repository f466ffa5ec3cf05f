"""Step 2: is each backward the derivative of its forward, times the gradient of the output?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_grad_is_none": Hint(
        "What does a box know of a gradient before any backward pass?",
        "A new box has grad None: one more line in Variable.__init__.",
    ),
    "check_base_class": Hint(
        "What should the base class do for an operation whose author wrote no derivative?",
        "FunctionNode.backward raises NotImplementedError, as forward does.",
    ),
    "check_sin": Hint(
        "Which three things make a new operation: which class, which method, which short "
        "function?",
        "Sin is a class with forward; sin(x) is Sin().apply((x,))[0].",
    ),
    "check_derivatives": Hint(
        "Where is the derivative taken: at the number that came in, or at the number that "
        "went out?",
        "square: 2 x; negative: -1; exp: e^x; sin: cos(x); each at the input x, which apply "
        "keeps in self.input_arrays.",
    ),
    "check_chain_rule": Hint(
        "Somebody hands you the gradient of the output. Where does this number stand in your "
        "formula?",
        "gx = gy * (local derivative); (gy,) = grad_outputs, and a tuple goes back.",
    ),
    "check_chain": Hint(
        "Three backward calls follow each other. What does each call get, and from whom?",
        "dy/dx = dy/db * db/da * da/dx: each backward multiplies what came by its own derivative.",
    ),
    "check_backward_changes_nothing": Hint(
        "To whom do the arrays belong that your backward reads, and does a line write into one?",
        "gy * 2.0 makes a new array; gy *= 2.0 writes into the array of somebody else.",
    ),
}

GUARDS = ("check_sin",)

VALUES = np.array([0.5, -1.0, 2.0])
DERIVATIVES = {
    "square": 2.0 * VALUES,
    "negative": -np.ones(3),
    "exp": np.exp(VALUES),
    "sin": np.cos(VALUES),
}


def _gradient(name: str, y: Any, gy: Any) -> Any:
    """What the backward of y's creator returns, after a look at its form."""
    gradients = y.creator_node.backward((0,), (np.array(gy),))
    look = f"backward of {name}: return (gx,) with a comma"
    expect_true(f"backward of {name} returns a tuple", isinstance(gradients, tuple), look)
    expect_equal("the number of gradients", len(gradients), 1, look)
    return gradients[0]


def check_grad_is_none(work: Any) -> None:
    """a new box has no gradient"""
    x = work.Variable(np.array(1.0))
    look = "Variable.__init__: one more line, self.grad = None"
    expect_true("Variable has the attribute grad", hasattr(x, "grad"), look)
    expect_equal("x.grad of a new box", x.grad, None, look)
    expect_equal("y.grad of a result", work.square(x).grad, None, look)


def check_base_class(work: Any) -> None:
    """an operation without backward says so"""

    class Floor(work.FunctionNode):
        def forward(self, inputs):
            return (np.floor(inputs[0]),)

    (y,) = Floor().apply((work.Variable(np.array(1.5)),))
    look = "FunctionNode.backward: raise NotImplementedError, as forward does"
    try:
        y.creator_node.backward((0,), (np.array(1.0),))
    except NotImplementedError:
        return
    expect_true("backward of an operation without one raises an error", False, look)


def check_sin(work: Any) -> None:
    """sin(x) has the value of the sine, and remembers its operation"""
    x = work.Variable(VALUES.copy())
    y = work.sin(x)
    expect_close("sin of [0.5, -1, 2]", y.array, np.sin(VALUES), "Sin.forward")
    look = "sin: it has to go through apply"
    expect_equal("the class of y.creator_node", type(y.creator_node).__name__, "Sin", look)


def check_derivatives(work: Any) -> None:
    """backward of all four operations gives the derivative, for gy = 1"""
    for name, right in DERIVATIVES.items():
        y = getattr(work, name)(work.Variable(VALUES.copy()))
        gx = _gradient(name, y, np.ones(3))
        look = f"backward of {name}: the derivative at the input x, not at the output"
        expect_close(f"the gradient of {name} at [0.5, -1, 2], gy = 1", gx, right, look)


def check_chain_rule(work: Any) -> None:
    """backward of all four operations multiplies by gy"""
    gy = np.array([-3.0, 0.5, 2.0])
    for name, right in DERIVATIVES.items():
        y = getattr(work, name)(work.Variable(VALUES.copy()))
        gx = _gradient(name, y, gy)
        look = f"backward of {name}: gx = gy * (local derivative). Is gy in it?"
        expect_close(f"the gradient of {name}, gy = [-3, 0.5, 2]", gx, gy * right, look)


def check_chain(work: Any) -> None:
    """three backward calls give the derivative of exp(-x * x)"""
    x = work.Variable(np.array(1.5))
    a = work.square(x)
    b = work.negative(a)
    y = work.exp(b)
    gradient = np.array(1.0)
    for name, box in (("exp", y), ("negative", b), ("square", a)):
        gradient = _gradient(name, box, gradient)
    right = -2.0 * 1.5 * np.exp(-(1.5**2))
    expect_close("the gradient of exp(-x * x) at 1.5", gradient, right, "each backward once more")


def check_backward_changes_nothing(work: Any) -> None:
    """backward returns gradients, and changes neither gy nor the boxes"""
    for name in DERIVATIVES:
        x = work.Variable(VALUES.copy())
        y = getattr(work, name)(x)
        gy = np.array([1.0, 2.0, 3.0])
        y.creator_node.backward((0,), (gy,))
        look = f"backward of {name}: no assignment to arrays, no *="
        expect_close("gy after backward", gy, [1.0, 2.0, 3.0], look)
        expect_close("x.array after backward", x.array, VALUES, look)


_EXP = "return (gy * np.exp(x),)"
_SIN = "return (gy * np.cos(x),)"

MISTAKES = (
    ("gy is left out", mistake("02", "functions/trigonometric.py", _SIN, "return (np.cos(x),)")),
    (
        "the cosine of the output",
        mistake(
            "02",
            "functions/trigonometric.py",
            "(x,) = self.input_arrays",
            "x = self.outputs[0].array",
        ),
    ),
    (
        "no tuple comes back",
        mistake("02", "functions/exponential.py", _EXP, "return gy * np.exp(x)"),
    ),
    (
        "Negative forgets its sign",
        mistake("02", "functions/arithmetic.py", "return (-gy,)", "return (gy,)"),
    ),
    (
        "gy is changed in place",
        mistake(
            "02",
            "functions/exponential.py",
            _EXP,
            "gy *= np.exp(x)\n        return (gy,)",
        ),
    ),
    (
        "boxes have no grad",
        mistake("02", "core/variable.py", "        self.grad = None", "        pass"),
    ),
)
