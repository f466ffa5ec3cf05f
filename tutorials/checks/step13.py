"""Exercise 13: does the graph have the right beginning and the right end?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import Hint, expect_close, expect_equal, expect_raises, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_no_backprop_mode": Hint(
        "Which value must the setting have after the block, if the block was inside of "
        "another, or ended by an error?",
        "try: yield; finally: the value from before goes back. apply records no graph then.",
    ),
    "check_requires_grad": Hint(
        "Which inputs make a result worth a gradient, and what of data, whole numbers and "
        "plain numbers?",
        "None means: true for floating dtypes. An output wants a gradient if any input does; "
        "as_operands makes boxes that want none.",
    ),
    "check_targets": Hint(
        "Nobody wants the gradient of the data. Who tells backward, and what does backward "
        "return at this position?",
        "targets = the positions i whose input has requires_grad; backward returns None "
        "elsewhere.",
    ),
    "check_again": Hint(
        "What is left of the first backward pass when the second begins?",
        "A new table in each pass; y.grad goes into the table, then y.grad is None.",
    ),
    "check_errors": Hint(
        "In which two cases does nobody know where backward could begin?",
        "check_start(y) refuses a leaf, and an array of several numbers without y.grad.",
    ),
    "check_unchain": Hint(
        "Which single reference makes a Variable a leaf again, and how do you reach all "
        "Variables behind a result?",
        "unchain: the node forgets its creator. unchain_backward: unchain_all(self.node).",
    ),
    "check_windows": Hint(
        "What should flow on into the next window, and what should stop at its edge?",
        "The value of h stays, the creators behind h are cut: each window has a graph of its own.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_no_backprop_mode", "FunctionNode.apply"): Hint(
        "The setting says that nobody wants a graph. What must an operation leave undone then?",
        "apply connects inputs and outputs only if config.enable_backprop is true and an input "
        "wants a gradient.",
    ),
}


def count(y: Any) -> int:
    """The number of operations behind y."""
    seen, waiting = {None}, [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += [node.creator_node for node in function.inputs]
    return len(seen) - 1


def check_no_backprop_mode(work: Any) -> None:
    """no_backprop_mode records no graph, and puts the setting back"""
    x = work.Variable(np.array(3.0))
    look = "configuration.py: set config.enable_backprop, and keep the value from before"
    with work.no_backprop_mode():
        expect_equal(
            "config.enable_backprop in the block", work.config.enable_backprop, False, look
        )
        y = x * x
        with work.no_backprop_mode():
            pass
        what = "config.enable_backprop after an inner block"
        expect_equal(what, work.config.enable_backprop, False, look)
    expect_equal("config.enable_backprop after the block", work.config.enable_backprop, True, look)
    what = "the creator of a result of the block"
    expect_equal(what, y.creator_node, None, "core/function_node.py: apply asks config")
    look = "core/function_node.py, apply: without a graph an output wants no gradient"
    expect_equal("requires_grad of a result of the block", y.requires_grad, False, look)
    expect_close("the result of the block", y.array, 9.0, "core/function_node.py, apply")
    try:
        with work.no_backprop_mode():
            raise KeyError
    except KeyError:
        pass
    look = "configuration.py: try: yield, finally: put the old value back"
    what = "config.enable_backprop after an error in a block"
    expect_equal(what, work.config.enable_backprop, True, look)


def check_requires_grad(work: Any) -> None:
    """outputs want a gradient if an input does; integers and numbers want none"""
    x, data = work.Variable(np.array(3.0)), work.Variable(np.array(5.0), requires_grad=False)
    whole = work.Variable(np.array([1, 2]))
    look = "core/variable.py: requires_grad=None means: true for floating-point numbers"
    found = (x.requires_grad, data.requires_grad, whole.requires_grad)
    expect_equal("requires_grad of 3.0, of data, of integers", found, (True, False, False), look)
    look = "core/function_node.py, apply: an output wants a gradient if an input does"
    found = ((x * data).requires_grad, (data * data).requires_grad, (whole * whole).requires_grad)
    expect_equal(
        "requires_grad of x * data, data * data, integers", found, (True, False, False), look
    )
    expect_equal("the creator of data * data", (data * data).creator_node, None, look)
    look = "functions/arithmetic.py, as_operands: Variable(..., requires_grad=False)"
    nodes = (2.0 * x - 1.0).creator_node.inputs
    found = tuple(node.requires_grad for node in nodes)
    expect_equal("requires_grad of the inputs of (2 x) - 1", found, (True, False), look)


def check_targets(work: Any) -> None:
    """backward asks for wanted gradients only"""
    asked = []

    class Sum(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] + inputs[1] + inputs[2],)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            asked.append(target_input_indexes)
            return grad_outputs[0], None, grad_outputs[0]

    x, data, w = (work.Variable(np.array(2.0), requires_grad=wish) for wish in (True, False, True))
    Sum().apply((x, data, w))[0].backward()
    look = "core/backprop.py, run_backward: the positions of inputs with requires_grad"
    expect_equal("target_input_indexes", asked, [(0, 2)], look)
    expect_equal(
        "the gradients", (float(x.grad), data.grad, float(w.grad)), (1.0, None, 1.0), look
    )
    look = "functions/arithmetic.py, Multiply.backward: None for a position that is not asked for"
    gx, gy = (x * data).creator_node.backward((0,), (np.array(1.0),))
    expect_equal("Multiply.backward((0,), ...)", (float(gx), gy), (2.0, None), look)
    gx, gy = (data * x).creator_node.backward((1,), (np.array(1.0),))
    expect_equal("Multiply.backward((1,), ...)", (gx, float(gy)), (None, 2.0), look)
    images = work.Variable(np.ones((2, 3)), requires_grad=False)
    y = work.linear(images, work.Variable(np.ones((1, 3))))
    look = "functions/network.py, Linear.backward: None for a position that is not asked for"
    gradients = y.creator_node.backward((1,), (np.ones((2, 1)),))
    expect_equal("the gradient of data in Linear.backward((1,), ...)", gradients[0], None, look)


def check_again(work: Any) -> None:
    """backward may run again: gradients add up, and y.grad is used up"""
    x = work.Variable(np.array(3.0))
    y = work.square(x) * x
    for times in (1, 2, 3):
        y.backward()
        look = (
            "run_backward: add up in the table"
            if times == 1
            else "write_to_leaves: x.grad + gx; backward: begin with a new table"
        )
        expect_close(f"the gradient of x^3 at 3, {times} times", x.grad, 27.0 * times, look)
    x = work.Variable(np.array([1.0, 2.0]))
    y = work.square(x)
    y.grad = np.array([10.0, 1.0])
    y.backward()
    expect_close("the gradient from y.grad = [10, 1]", x.grad, [20.0, 4.0], look)
    look = "backward: set y.grad = None; run_backward: pop takes gradients of outputs out"
    expect_true("y.grad is None after backward", y.grad is None, look)


def check_errors(work: Any) -> None:
    """backward says why it cannot start"""
    look = "core/backprop.py, backward: check_start(y) before anything else happens"
    x = work.Variable(np.array([1.0, 2.0]))
    expect_raises("backward of a leaf", ValueError, work.Variable(np.array(1.0)).backward, look)
    expect_raises("backward of an array of two numbers", ValueError, work.square(x).backward, look)
    one = work.square(work.Variable(np.array([3.0])))
    one.backward()  # an array of a single number


def check_unchain(work: Any) -> None:
    """unchain cuts the graph, unchain_backward frees all of it"""
    x = work.Variable(np.array(0.5))
    a = work.tanh(x)
    b = work.square(a)
    a.unchain()
    b.backward()
    look = "core/variable_node.py, unchain: the node forgets its creator"
    expect_true("x has no gradient after a.unchain()", x.grad is None, look)
    expect_close("the gradient of a", a.grad, 2 * a.array, look)
    look = "core/variable.py, unchain_backward: unchain_all(self.node)"
    a = work.tanh(x)
    b = work.square(a)
    c = a * b
    c.unchain_backward()
    found = [v.creator_node for v in (a, b, c)]
    expect_equal("the creators after c.unchain_backward()", found, [None] * 3, look)
    y = x
    for _ in range(20_000):
        y = y + 0.0
    y.unchain_backward()
    expect_equal("the operations behind a chain of 20,000, unchained", count(y), 0, look)


def check_windows(work: Any) -> None:
    """truncated backpropagation: the values flow, the gradients stay in the last window"""
    numbers = (1.0, -0.5, 0.3, 0.8, -1.2, 0.4, 0.1)
    for length, window in ((7, 3), (6, 3), (7, 100)):
        w, h = work.Variable(np.array(0.7)), work.Variable(np.array(0.0), requires_grad=False)
        value = slope = 0.0
        for step, number in enumerate(numbers[:length]):
            if step % window == 0:
                h.unchain_backward()
                slope = 0.0
            h = work.tanh(w * h + number)
            before, value = value, np.tanh(0.7 * value + number)
            slope = (1 - value * value) * (before + 0.7 * slope)
        h.backward()
        about = f"{length} numbers in windows of {window}"
        look = "core/variable_node.py, unchain_all: cut the creators, and keep the arrays"
        expect_close(f"the last h, {about}", h.array, value, look)
        expect_equal(
            f"the operations behind h, {about}", count(h), 3 * ((length - 1) % window + 1), look
        )
        expect_close(f"the gradient of w, {about}", w.grad, slope, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    data = work.Variable(np.array([2.0, -3.0]), requires_grad=False)
    for name in ("add", "subtract", "multiply", "divide"):
        operation = getattr(work, name)
        y = operation(data, data)
        expect_equal(f"{name} of data: requires_grad", y.requires_grad, False, "apply")
        expect_careful(work, name, operation, [0.5, -1.0], [2.0, 3.0])


_BACKPROP, _VARIABLE, _CONFIGURATION = "core/backprop.py", "core/variable.py", "configuration.py"
_FUNCTION, _ARITHMETIC = "core/function_node.py", "functions/arithmetic.py"
_NODE = "core/variable_node.py"

MISTAKES = (
    (
        "a second backward writes into the gradient of the first, after the lesson of step 5",
        mistake(
            "13",
            "core/backprop.py",
            "            x.grad = gx if x.grad is None else x.grad + gx\n",
            "            if x.grad is None:\n                x.grad = gx\n"
            "            else:\n                x.grad += gx\n",
        ),
    ),
    (
        "no_backprop_mode always ends with True",
        mistake(
            "13",
            _CONFIGURATION,
            "config.enable_backprop = before",
            "config.enable_backprop = True",
        ),
    ),
    (
        "after an error the setting stays",
        mistake(
            "13",
            _CONFIGURATION,
            "    try:\n        yield\n    finally:\n        config.enable_backprop = before",
            "    yield\n    config.enable_backprop = before",
        ),
    ),
    (
        "apply records a graph without a wish",
        mistake("13", _FUNCTION, "        if wanted:\n", "        if config.enable_backprop:\n"),
    ),
    (
        "backward asks for all gradients",
        mistake(
            "13",
            _BACKPROP,
            "enumerate(function.inputs) if node.requires_grad",
            "enumerate(function.inputs)",
        ),
    ),
    (
        "y.grad is not used up",
        mistake("13", _BACKPROP, "    y.grad = None  # used up\n", ""),
    ),
    (
        "unchain_backward cuts the result only",
        mistake("13", _NODE, "            waiting += node.creator_node.inputs\n", ""),
    ),
    (
        "a plain number wants a gradient",
        mistake(
            "13",
            _ARITHMETIC,
            "y = Variable(np.asarray(y, np.result_type(x.array, y)), requires_grad=False)",
            "y = Variable(np.asarray(y, np.result_type(x.array, y)))",
        ),
    ),
    (
        "an array of many numbers begins with ones",
        mistake("13", _BACKPROP, "y.grad is None and y.array.size != 1", "False"),
    ),
)
