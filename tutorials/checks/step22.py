"""Checks of exercise 22: gradients of gradients, on the learner's own engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_raises, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_first_order": Hint(
        "What must stay as it was for somebody who asks for first derivatives only?",
        "Without the option all gradients are arrays inside; grad returns Variables without a"
        " creator, and writes to no grad.",
    ),
    "check_orders": Hint(
        "A gradient shall have a graph. Which things in backward must then be Variables?",
        "With the option: incoming gradients, retained inputs and outputs are Variables of "
        "the graph.",
    ),
    "check_grad_var": Hint(
        "Where does a gradient with its graph stay, and who clears it?",
        "x.grad_var = gx, x.grad = its array; cleargrad clears both.",
    ),
    "check_several": Hint(
        "Two outputs, or one twice: how many starts does the walk have?",
        "gradients[y.node] begins with ones or grad_outputs[i], and adds for an output that "
        "comes twice.",
    ),
    "check_kept": Hint(
        "The array of a Variable was replaced after forward. What did the function read?",
        "kept: the node's Variable if it still has the kept array, else a new Variable of the"
        " array with the old node.",
    ),
    "check_arrays": Hint(
        "Which operation in a backward still computes with plain arrays?",
        "repeat in place of np.broadcast_to; reshape, sum and T of Variables.",
    ),
    "check_block": Hint(
        "Which turn of axes does NumPy have, and your Variable must have too?",
        "T reverses all axes, mT swaps the last two, transpose takes an order.",
    ),
    "check_cut": Hint(
        "A backward returns plain arrays. Who could notice that the graph ends there?",
        "run_backward calls check_path(function, i, gx): an error in place of a silent zero.",
    ),
    "check_newton": Hint(
        "Newton needs a slope and a curvature. Which of the two is a gradient of a gradient?",
        "x - f'(x) / f''(x).",
    ),
}

LOOK = (
    "sweep() sets gives_variables, FunctionNode.kept gives Variables of the graph, and no "
    "backward computes with arrays"
)


def derivatives(work: Any, f: Any, x: Any, count: int) -> list[Any]:
    """The arrays of f(x) and of its derivatives; each element of f depends on one of x."""
    found = [f(x)]
    for order in range(1, count + 1):
        (g,) = work.grad([found[-1]], [x], enable_double_backprop=True)
        what = f"derivative {order} is a Variable"
        expect_true(what, isinstance(g, work.Variable), LOOK)
        found.append(g)
    return [one.array for one in found]


def check_first_order(work: Any) -> None:
    """backward is as it was, and grad writes to no grad"""
    x = work.Variable(np.array([3.0, -1.0]))
    y = work.square(x) * x
    y.grad = np.array([1.0, 10.0])
    y.backward()
    look = "core/backprop.py: without the option all gradients are arrays, as before"
    expect_close("the gradient of x^3", x.grad, [27.0, 30.0], look)
    expect_true("x.grad is an array", isinstance(x.grad, np.ndarray), look)
    (gx,) = work.grad([work.square(x) * x], [x])
    look = "core/backprop.py, grad: gradients start with ones, and come back as Variables"
    expect_true("grad gives a Variable", isinstance(gx, work.Variable), look)
    expect_close("grad of x^3", gx.array, [27.0, 3.0], look)
    expect_true("the gradient has no creator without the option", gx.creator_node is None, look)
    expect_close("x.grad after grad", x.grad, [27.0, 30.0], "grad returns gradients only")
    gy = work.Variable(np.array([2.0, 5.0]))
    (gx,) = work.grad([work.square(x)], [x], [gy])
    expect_close("grad of x^2 with grad_outputs", gx.array, [12.0, -10.0], "grad_outputs[i]")
    (nothing,) = work.grad([work.square(x)], [work.Variable(np.ones(2))])
    expect_equal("grad for a leaf that is not in the graph", nothing, None, "gradients.get(...)")
    call = work.square(x)
    look = "core/backprop.py, grad: an input with a creator is refused"
    expect_raises(
        "grad for an inner Variable", ValueError, lambda: work.grad([call], [call]), look
    )


def check_orders(work: Any) -> None:
    """derivatives of order 1 to 4"""
    values = np.array([-1.5, 0.5, 2.0])
    x = work.Variable(values.copy())
    found = derivatives(work, lambda x: work.square(work.square(x)), x, 4)
    for order, right in enumerate(
        (4 * values**3, 12 * values**2, 24 * values, 24 + 0 * values), 1
    ):
        expect_close(f"derivative {order} of x^4", found[order], right, LOOK)
    found = derivatives(work, work.exp, x, 3)
    look = "core/function_node.py, kept: the retained output as a Variable of the graph"
    expect_close("derivative 3 of e^x", found[3], np.exp(values), look)
    found = derivatives(work, work.sin, x, 4)
    look = "functions/trigonometric.py: cos(x) for a Variable; Cos.backward is -gy sin(x)"
    for order, right in enumerate((np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin), 1):
        expect_close(f"derivative {order} of sin", found[order], right(values), look)
    found = derivatives(work, lambda x: 1.0 / x, x, 2)
    expect_close("derivative 2 of 1 / x", found[2], 2 / values**3, LOOK)
    found = derivatives(work, work.tanh, x, 2)
    t = np.tanh(values)
    expect_close("derivative 2 of tanh", found[2], -2 * t * (1 - t * t), LOOK)


def check_grad_var(work: Any) -> None:
    """backward leaves a gradient with a graph in grad_var"""
    x = work.Variable(np.array(2.0))
    y = work.square(work.square(x))
    y.backward(enable_double_backprop=True)
    look = "core/backprop.py, write_to_leaves: x.grad_var = gx, and x.grad is its array"
    expect_close("x.grad of x^4 at 2", x.grad, 32.0, look)
    expect_true("x.grad_var is a Variable", isinstance(x.grad_var, work.Variable), look)
    gx = x.grad_var
    x.cleargrad()
    look = "core/variable.py: cleargrad clears both"
    expect_true("x.grad_var after cleargrad", x.grad_var is None, look)
    gx.backward()
    expect_close("the gradient of the gradient", x.grad, 48.0, LOOK)


def check_several(work: Any) -> None:
    """several outputs, several passes, and several axes"""
    x = work.Variable(np.array([2.0, 3.0]))
    y, z = work.square(x), work.sin(x)
    look = "core/backprop.py, grad: begin with all outputs, and add for one that comes twice"
    for what, outputs, right in (
        ("y and z", [y, z], 2 * x.array + np.cos(x.array)),
        ("z and y", [z, y], 2 * x.array + np.cos(x.array)),
        ("y and y", [y, y], 4 * x.array),
    ):
        (gx,) = work.grad(outputs, [x])
        expect_close(f"grad of {what}, for y = x^2 and z = sin(x)", gx.array, right, look)
    look = "core/backprop.py, as_variable: a gradient without a graph requires none"
    expect_equal("requires_grad of a gradient without the option", gx.requires_grad, False, look)
    for _ in range(2):
        y = work.square(x)
        y.grad = np.ones(2)
        y.backward(enable_double_backprop=True)
    look = "core/backprop.py, write_to_leaves: the sum goes to grad_var too"
    expect_close("x.grad_var after two passes", x.grad_var.array, 4 * x.array, look)
    expect_close("x.grad after two passes", x.grad, 4 * x.array, look)
    box = work.Variable(np.arange(24.0).reshape(2, 3, 4))
    look = "core/operators.py: T reverses all axes, mT swaps the last two"
    expect_equal("the shape of T, of (2, 3, 4)", box.T.shape, (4, 3, 2), look)
    expect_equal("the shape of mT, of (2, 3, 4)", box.mT.shape, (2, 4, 3), look)


def check_kept(work: Any) -> None:
    """what backward kept is the array of the forward pass, also after an update"""
    x = work.Variable(np.array([2.0, 3.0]))
    y = work.square(x)
    x.array = np.array([100.0, 100.0])
    (gx,) = work.grad([y], [x], enable_double_backprop=True)
    look = (
        "core/function_node.py, kept: a Variable whose array was replaced is no longer the input"
    )
    expect_close("the gradient of x^2 at (2, 3), after x was set to 100", gx.array, [4, 6], look)


def check_arrays(work: Any) -> None:
    """sums, products and broadcasting can be differentiated twice"""
    rng = np.random.default_rng(0)
    w, x = work.Variable(rng.normal(size=(2, 3))), work.Variable(rng.normal(size=(4, 3)))
    b = work.Variable(rng.normal(size=2))

    def first() -> Any:
        y = work.linear(x, w, b)
        loss = work.sum(work.tanh(y) * y / (2.0 + work.square(y)))
        (gw,) = work.grad([loss], [w], enable_double_backprop=True)
        return work.sum(work.square(gw))

    total = first()
    total.backward()
    for name, leaf in (("w", w), ("x", x), ("b", b)):
        index = (1, 1) if leaf.array.ndim == 2 else (1,)
        before, heights = leaf.array[index], []
        for step in (1e-5, -1e-5):
            leaf.array[index] = before + step
            heights.append(float(first().array))
        leaf.array[index] = before
        measured = (heights[0] - heights[1]) / 2e-5
        look = "shapes.py and statistical.py call repeat; Variable has reshape, sum and T"
        what = f"the gradient of |dL/dw|^2 for {name}{list(index)}"
        expect_close(what, leaf.grad[index], measured, look, rtol=1e-4, atol=1e-7)


def check_block(work: Any) -> None:
    """norms and attention with heads can be differentiated twice"""
    from mynode import nn

    rng = np.random.default_rng(1)
    block, x = nn.Block(4, 2), work.Variable(rng.normal(size=(1, 3, 4)))
    for p in block.parameters():
        p.array = rng.normal(size=p.array.shape)

    def first() -> Any:
        (gx,) = work.grad([work.sum(work.tanh(block(x)))], [x], enable_double_backprop=True)
        return work.sum(work.square(gx))

    first().backward()
    before, direction = x.array, rng.normal(size=x.array.shape)
    heights = []
    for step in (1e-5, -1e-5):
        x.array = before + step * direction
        heights.append(float(first().array))
    x.array = before
    measured = (heights[0] - heights[1]) / 2e-5
    got = float((x.grad * direction).sum())
    look = "core/operators.py: transpose, T and mT as NumPy's arrays have them"
    expect_close("the gradient of |dL/dx|^2 of a Block", got, measured, look, rtol=1e-4)


def check_cut(work: Any) -> None:
    """a backward that computes with arrays is refused, not cut in silence"""

    class Cube(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            self.x = inputs[0]
            return (inputs[0] ** 3,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            gy = grad_outputs[0]
            return (getattr(gy, "array", gy) * 3.0 * self.x * self.x,)

    x = work.Variable(np.array([1.0, 2.0]))
    y = Cube().apply((x,))[0]
    (gx,) = work.grad([y], [x])
    expect_close("the first order of Cube", gx.array, [3.0, 12.0], LOOK)
    look = "core/backprop.py: run_backward calls check_path(function, i, gx)"
    error = expect_raises(
        "grad with a graph, through Cube", TypeError,
        lambda: work.grad([y], [x], enable_double_backprop=True), look,
    )  # fmt: skip
    expect_true("the message names Cube", "Cube" in str(error), look)


def check_newton(work: Any) -> None:
    """Newton's method finds a minimum on your engine"""
    x = work.Variable(np.zeros(2))
    for _ in range(8):
        (g,) = work.grad([work.exp(x) - 3.0 * x], [x], enable_double_backprop=True)
        (h,) = work.grad([g], [x])
        x = work.Variable(x.array - g.array / h.array)
    expect_close("the minimum of e^x - 3 x", x.array, np.log([3.0, 3.0]), LOOK)


_BACKPROP, _NODE = "core/backprop.py", "core/function_node.py"

MISTAKES = (
    (
        "retained arrays come as Variables that are not in the graph",
        mistake("22", _NODE, "            x.node = node\n", "", ("x is None or ", "True or ")),
    ),
    (
        "the gradient of a recorded backward is no Variable at the end",
        mistake("22", _BACKPROP, "function.gives_variables = double", "pass"),
    ),
    (
        "grad ignores grad_outputs",
        mistake("22", _BACKPROP, "grad_outputs is None else grad_outputs[i]", "True else None"),
    ),
    (
        "grad writes to the leaves",
        mistake(
            "22",
            _BACKPROP,
            "    found = [gradients.get",
            "    write_to_leaves(gradients)\n    found = [gradients.get",
        ),
    ),
    (
        "the sign of the derivative of cos",
        mistake("22", "functions/trigonometric.py", "(-gy * (sin", "(gy * (sin"),
    ),
    (
        "mT turns all axes of a stack",
        mistake(
            "22",
            "core/operators.py",
            "return mynode.matrix_transpose(self)",
            "return mynode.permute_dims(self, tuple(reversed(range(self.ndim))))",
        ),
    ),
    (
        "cleargrad leaves grad_var",
        mistake(
            "22",
            "core/variable.py",
            "        self.grad = None\n        self.grad_var = None\n\n",
            "        self.grad = None\n\n",
        ),
    ),
    (
        "arrays cut the graph in silence",
        mistake("22", _BACKPROP, "        check_path(function, i, gx)\n", ""),
    ),
)
