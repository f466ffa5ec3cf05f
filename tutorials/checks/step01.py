"""Step 1: boxes, and operations that remember their boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.careful import CARE, expect_careful
from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    leads_to,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_box": Hint(
        "Which facts does a box keep, and what does a box that nobody computed say of its "
        "creator?",
        "Variable(array, name) keeps the array itself, the name, and None as the creator.",
    ),
    "check_values": Hint(
        "What does forward get, and in which form must the result leave forward?",
        "forward takes a tuple of arrays, (x,) = inputs, and returns a tuple: mind the comma."
        " Exp and Negative differ from Square in one line each.",
    ),
    "check_edges": Hint(
        "Who ties a result to the operation, and the operation to the boxes?",
        "apply: self.inputs are the boxes that came in, self.outputs the boxes that go out; "
        "each output has self as the creator.",
    ),
    "check_each_use_is_new": Hint(
        "One object stands for one use. How many objects do two calls make with your lines?",
        "exp(x) is apply of a new Exp(): a new object in each call.",
    ),
    "check_two_outputs": Hint(
        "An operation returns two arrays. How many boxes does your loop make, and who is the "
        "creator of each?",
        "outputs = a box for each array of the tuple; every box gets the same creator.",
    ),
    "check_missing_comma": Hint(
        "What does Python make of a result in brackets without a comma, and who could notice?",
        "apply: a result of forward that is no tuple is a TypeError.",
    ),
    "check_care": CARE,
}

PLACES = {
    ("check_values", "FunctionNode.apply"): Hint(
        "The boxes are made. Which references lead from a result back to the box that came in?",
        "y.creator_node = self for each output y; then self.inputs and self.outputs, as tuples.",
    ),
    ("check_values", "negative"): Hint(
        "One object stands for one use. What does the function make, and which part of the "
        "answer does it return?",
        "negative(x) is apply of a new Negative() to the tuple (x,), and of the outputs the "
        "first: [0].",
    ),
}

GUARDS = ("check_box", "check_missing_comma")

FUNCTIONS = (("square", np.square), ("negative", np.negative), ("exp", np.exp))


def check_box(work: Any) -> None:
    """a Variable keeps an array and a name, and a leaf has no creator"""
    array = np.array([1.0, 2.0])
    x = work.Variable(array, name="x")
    look = "Variable.__init__ in core/variable.py"
    expect_true("x.array is the given array", x.array is array, look)
    expect_equal("x.name", x.name, "x", look)
    expect_equal("x.creator_node of the leaf x", x.creator_node, None, look)
    expect_equal("the name of Variable(array)", work.Variable(array).name, None, look)


def check_values(work: Any) -> None:
    """square, negative and exp have the right values"""
    values = [0.0, -1.0, 2.0]
    for name, right in FUNCTIONS:
        y = getattr(work, name)(work.Variable(np.array(values)))
        look = f"{name}: apply returns a tuple. Its one output is apply(...)[0]"
        expect_true(f"{name}(x) returns one Variable", isinstance(y, work.Variable), look)
        expect_close(f"{name} of [0, -1, 2]", y.array, right(values), f"the forward of {name}")
        y = getattr(work, name)(work.Variable(np.array(0.5)))
        look = "FunctionNode.apply: put np.asarray(result) into the box"
        expect_true(f"{name} of 0.5: y.array is an array", isinstance(y.array, np.ndarray), look)


def check_edges(work: Any) -> None:
    """each result remembers its operation, and each operation its boxes"""
    for name, _ in FUNCTIONS:
        look = f"{name}: it has to go through apply, which ties the graph together"
        x = work.Variable(np.array(0.5))
        y = getattr(work, name)(x)
        expect_true(
            f"{name}(x).creator_node is a FunctionNode",
            isinstance(y.creator_node, work.FunctionNode),
            look,
        )
        expect_equal("the class of y.creator_node", type(y.creator_node).__name__,
                     name.capitalize(), look)  # fmt: skip
        look = "FunctionNode.apply: set self.inputs and self.outputs"
        node = y.creator_node
        expect_true("y.creator_node.inputs[0] is x", leads_to(node.inputs[0], x), look)
        expect_true("y.creator_node.outputs[0] is y", leads_to(node.outputs[0], y), look)


def check_each_use_is_new(work: Any) -> None:
    """exp(exp(x)) uses two Exp objects"""
    for name, _ in FUNCTIONS:
        look = f"{name}: make a new object of the class in each call. One object is one use"
        x = work.Variable(np.array(0.5))
        y = getattr(work, name)(x)
        z = getattr(work, name)(y)
        expect_true("two calls make two objects", z.creator_node is not y.creator_node, look)
        first = y.creator_node.inputs[0]
        expect_true("the first object still has x as its input", leads_to(first, x), look)


def check_two_outputs(work: Any) -> None:
    """an operation may have two outputs"""

    class Parts(work.FunctionNode):
        def forward(self, inputs):
            (x,) = inputs
            return np.floor(x), x - np.floor(x)

    whole, rest = Parts().apply((work.Variable(np.array(2.25)),))
    look = "FunctionNode.apply: make a box for each array that forward returns"
    expect_close("the first output of Parts at 2.25", whole.array, 2.0, look)
    expect_close("the second output of Parts at 2.25", rest.array, 0.25, look)
    look = "FunctionNode.apply: set creator_node of each output"
    expect_true("both have one creator", whole.creator_node is rest.creator_node, look)


def check_missing_comma(work: Any) -> None:
    """a forward that returns an array, not a tuple, is refused with a TypeError"""

    class Double(work.FunctionNode):
        def forward(self, inputs):
            (x,) = inputs
            return 2 * x

    x = work.Variable(np.array([1.0, 2.0, 3.0]))
    look = "FunctionNode.apply: look at the type of what forward returned"
    expect_raises(
        "Double().apply((x,)) with a forward without comma",
        TypeError,
        lambda: Double().apply((x,)),
        look,
    )


def check_care(work: Any) -> None:
    """dtype, purity and aliasing: float32 stays float32, and no array is written"""
    for name in ("square", "exp", "negative"):
        expect_careful(work, name, getattr(work, name), [0.5, -1.0], backward=False)


MISTAKES = (
    (
        "the comma is missing in Exp",
        mistake("01", "functions/exponential.py", "return (np.exp(x),)", "return np.exp(x)"),
    ),
    (
        "a new Variable is made by hand: right number, no graph",
        mistake(
            "01",
            "functions/exponential.py",
            "return Exp().apply((x,))[0]",
            "import mynode\n\n    return mynode.Variable(np.exp(x.array))",
        ),
    ),
    (
        "one object is used for all calls",
        mistake(
            "01",
            "functions/exponential.py",
            'def exp(x):\n    """e^x."""\n    return Exp()',
            'THE_ONE = Exp()\n\n\ndef exp(x):\n    """e^x."""\n    return THE_ONE',
        ),
    ),
    (
        "apply does not look for a tuple",
        mistake("01", "core/function_node.py", "if not isinstance(results, tuple):", "if False:"),
    ),
    (
        "only the first output gets its creator",
        mistake("01", "core/function_node.py", "for y in outputs:", "for y in outputs[:1]:"),
    ),
    (
        "the outputs are not kept",
        mistake("01", "core/function_node.py", "self.outputs = outputs", "self.outputs = ()"),
    ),
)
