"""Exercise 12: are the gradients right, and is exactly the needed part kept?"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import CheckFailed, Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_pick": Hint(
        "What stands in the result at a position that nobody asked for?",
        "pick: a tuple as long as arrays, with None at all other positions.",
    ),
    "check_values": Hint(
        "What does forward compute before any derivative is asked for?",
        "tanh(x) by np.tanh.",
    ),
    "check_gradients": Hint(
        "Which array does your formula need: the input, or the output? In which form does the"
        " kept array come back?",
        "exp: gy y. tanh: gy (1 - y^2). square: 2 gy x. sin: gy cos(x). multiply: both "
        "inputs. The kept arrays come in a tuple: (y,) = self.get_retained_outputs().",
    ),
    "check_own_operation": Hint(
        "In which order do the kept arrays come back, and are they the arrays or copies?",
        "As in the call of retain: the order of the indexes, and the arrays themselves.",
    ),
    "check_retained": Hint(
        "Write the formula of the gradient. Which arrays stand in it, and which do not?",
        "The derivative of e^x is y. Of tanh: 1 - y^2. Of relu: y > 0. Of x / y: z and y. An "
        "addition needs nothing.",
    ),
    "check_memory": Hint(
        "The Variables are gone. Which line of yours still holds an array that no formula needs?",
        "Arrays are kept by retain_inputs and retain_outputs only.",
    ),
    "check_whole_graph": Hint(
        "Does the kept output lead back to the operation that keeps it?",
        "Keep the array of an output: no Variable, no node.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_values", "FunctionNode.retain_outputs"): Hint(
        "Which arrays may be kept for backward, and who keeps them until then?",
        "retain_outputs(indexes) notes the positions; apply keeps only the arrays at these "
        "positions.",
    ),
}

VALUES = (0.5, -1.0, 2.0)

# name: the derivative, the number of retained inputs, and of retained outputs
UNARY: dict[str, tuple[Any, int, int]] = {
    "square": (lambda x: 2 * x, 1, 0),
    "exp": (np.exp, 0, 1),
    "sin": (np.cos, 1, 0),
    "tanh": (lambda x: 1 - np.tanh(x) ** 2, 0, 1),
    "relu": (lambda x: 1.0 * (x > 0), 0, 1),
    "negative": (lambda x: -np.ones_like(x), 0, 0),
}
BINARY = {
    "add": [(0, 0)],
    "subtract": [(0, 0)],
    "multiply": [(2, 0)],
    "divide": [(2, 0), (1, 1)],  # gy = -gz x / y^2, or -gz z / y
    "linear": [(2, 0)],
}
"""The numbers of inputs and outputs that functions of two inputs may retain."""


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """In this block, the garbage collector does not run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def check_pick(work: Any) -> None:
    """pick leaves out the arrays at other positions"""
    from mynode.core.function_node import pick

    look = "core/function_node.py: pick gives a tuple as long as arrays, with None elsewhere"
    for indexes, expected in (
        ((), (None,) * 3),
        ((0,), ("a", None, None)),
        ((2, 1), (None, "b", "c")),
    ):
        expect_equal(
            f"pick(('a', 'b', 'c'), {indexes})", pick(("a", "b", "c"), indexes), expected, look
        )


def check_values(work: Any) -> None:
    """tanh has the right value"""
    y = work.tanh(work.Variable(np.array(VALUES)))
    expect_close(f"tanh at {list(VALUES)}", y.array, np.tanh(VALUES), "Tanh.forward")


def check_gradients(work: Any) -> None:
    """all gradients are right"""
    for name, (derivative, _, _) in UNARY.items():
        x = work.Variable(np.array(VALUES))
        y = getattr(work, name)(x)
        y.grad = gy = np.array([1.0, 10.0, -2.0])
        y.backward()
        expected = gy * derivative(np.array(VALUES))
        look = f"the backward of {name}: the retained arrays come in a tuple: (x,) = ..."
        expect_close(f"the gradient of {name} at {list(VALUES)}", x.grad, expected, look)
    x, w = work.Variable(np.array(3.0)), work.Variable(np.array(5.0))
    ((x - w) * (x + 2.0 * w)).backward()
    look = "Multiply.backward: x, y = self.get_retained_inputs()"
    expect_close("the gradient of (x - w)(x + 2 w) for x", x.grad, 11.0, look)
    expect_close("the gradient of (x - w)(x + 2 w) for w", w.grad, -17.0, look)


def check_own_operation(work: Any) -> None:
    """an operation may retain any of its inputs and outputs"""

    class Both(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((1,))
            self.retain_outputs((1, 0))
            return inputs[0] + 1.0, inputs[1] * 2.0

    a, b = work.Variable(np.array(1.0)), work.Variable(np.array(2.0))
    function = Both()
    outputs = function.apply((a, b))
    look = "core/function_node.py: get_retained_... in the order of the indexes"
    (kept,) = function.get_retained_inputs()
    expect_true(
        "retain_inputs((1,)) keeps the array of input 1, and no copy", kept is b.array, look
    )
    kept = function.get_retained_outputs()
    what = "retain_outputs((1, 0)) keeps the arrays of outputs 1 and 0, in this order"
    expect_equal(what, [float(y) for y in kept], [4.0, 2.0], look)
    is_same = kept[0] is outputs[1].array
    look = "core/function_node.py, apply: keep the arrays that the outputs have, and no copies"
    expect_true("a retained output is the array of the Variable", is_same, look)


def check_retained(work: Any) -> None:
    """each operation keeps what its formula needs"""
    for name, (_, inputs, outputs) in UNARY.items():
        look = f"the forward of {name}: which arrays stand in the formula of the gradient?"
        function = getattr(work, name)(work.Variable(np.array(VALUES))).creator_node
        number = len(function.get_retained_inputs())
        expect_equal(f"the number of inputs that {name} retains", number, inputs, look)
        number = len(function.get_retained_outputs())
        expect_equal(f"the number of outputs that {name} retains", number, outputs, look)
    for name, wanted in BINARY.items():
        look = f"the forward of {name}: which arrays stand in the formula of the gradient?"
        x, y = work.Variable(np.array([VALUES])), work.Variable(np.array([VALUES]))
        function = getattr(work, name)(x, y).creator_node
        kept = function.get_retained_inputs(), function.get_retained_outputs()
        what = f"the numbers of inputs and of outputs that {name} retains"
        found = (len(kept[0]), len(kept[1]))
        expect_equal(what, found, found if found in wanted else wanted[0], look)
    loss = work.softmax_cross_entropy(work.Variable(np.array([VALUES])), np.array([2]))
    function = loss.creator_node
    kept = function.get_retained_inputs() + function.get_retained_outputs()
    look = "SoftmaxCrossEntropy.forward: retain the scores, or log p, and the labels"
    shapes = sorted(array.shape for array in kept)
    expect_equal("the shapes of the retained arrays", shapes, [(1,), (1, 3)], look)
    others = [None] * (len(function.outputs) - 1)
    (gx, _) = function.backward((0,), (np.array(2.0), *others))
    p = np.exp(VALUES) / np.exp(VALUES).sum()
    expect_close("the gradient of 2 losses", gx, [2.0 * (p - [0.0, 0.0, 1.0])], look)


def check_memory(work: Any) -> None:
    """nothing else stays in memory"""
    for name, (_, inputs, outputs) in UNARY.items():
        with without_collector():
            x = work.Variable(np.array(VALUES))
            y = getattr(work, name)(x)
            graph = y.creator_node
            arrays = weakref.ref(x.array), weakref.ref(y.array)
            del x, y
            alive = arrays[0]() is not None, arrays[1]() is not None
            del graph
        for what, is_alive, wanted in (("input", alive[0], inputs), ("output", alive[1], outputs)):
            if is_alive != bool(wanted):
                raise CheckFailed(
                    f"the {what} of {name}, after the Variables are dropped",
                    "kept" if wanted else "gone",
                    "kept" if is_alive else "gone",
                    f"FunctionNode.apply, the forward of {name}: keep arrays by retain_... only",
                )


def check_whole_graph(work: Any) -> None:
    """a dropped graph goes at once, with its arrays"""
    with without_collector():
        x = work.Variable(np.array(0.5))
        y = work.tanh(work.exp(x))
        graph, array = weakref.ref(y.creator_node), weakref.ref(y.array)
        del y
        look = "keep the array of an output, not its Variable or its node"
        expect_true("the operation is gone", graph() is None, look)
        expect_true("the array of its output is gone", array() is None, look)


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    for name in ("tanh", "square", "exp", "negative", "sin", "relu", "sum"):
        expect_careful(work, name, getattr(work, name), [[0.5, -1.0, 2.0]])
    for name in ("add", "subtract", "multiply", "divide"):
        expect_careful(work, name, getattr(work, name), [0.5, -1.0], [2.0, 3.0])
    labels = np.array([0])
    expect_careful(
        work,
        "softmax_cross_entropy",
        lambda x: work.softmax_cross_entropy(x, labels),
        [[0.5, -1.0, 2.0]],
    )


_EXP, _SIN, _FUNCTION = (
    "functions/exponential.py",
    "functions/trigonometric.py",
    "core/function_node.py",
)

MISTAKES = (
    (
        "Exp keeps its input, and computes e^x twice",
        mistake(
            "12",
            _EXP,
            "self.retain_outputs((0,))",
            "self.retain_inputs((0,))",
            ("(y,) = self.get_retained_outputs()", "(x,) = self.get_retained_inputs()"),
            ("gy * y,", "gy * np.exp(x),"),
        ),
    ),
    (
        "Tanh keeps its input in an attribute, too",
        mistake(
            "12",
            _SIN,
            "        self.retain_outputs((0,))\n",
            "        self.x = x\n        self.retain_outputs((0,))\n",
        ),
    ),
    (
        "Sin retains nothing",
        mistake("12", _SIN, "        self.retain_inputs((0,))\n", ""),
    ),
    (
        "all inputs are still kept in apply",
        mistake(
            "12",
            _FUNCTION,
            "        self.connect(",
            "        self.input_arrays = arrays\n        self.connect(",
        ),
    ),
    (
        "the Variables of the outputs are kept",
        mistake(
            "12",
            _FUNCTION,
            "        return outputs\n",
            "        self.kept = outputs\n        return outputs\n",
        ),
    ),
    (
        "retained outputs are copies",
        mistake("12", _FUNCTION, "pick(results, ", "pick([y.copy() for y in results], "),
    ),
)
