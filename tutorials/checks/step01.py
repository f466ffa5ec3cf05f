"""Step 1: is Exp an operation, with the right numbers and the right edges?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_equal, expect_true, solution

HINTS = (
    "An operation is a class with a forward, and a short function beside it. Read Square again.",
    "forward takes a tuple of arrays: (x,) = inputs. It returns a tuple: mind the comma.",
    "forward ends with `return (np.exp(x),)`, and exp(x) is `return Exp().apply((x,))[0]`.",
)


def _variable(work: Any, values: Any) -> Any:
    """A Variable of the engine that the learner's classes are built on."""
    from engine01 import Variable

    return Variable(np.array(values))


def check_value(work: Any) -> None:
    """exp(x) has the value e^x"""
    y = work.exp(_variable(work, 0.0))
    look = "exp: apply returns a tuple. Its one output is apply(...)[0]"
    expect_true("exp(x) returns one Variable", hasattr(y, "array"), look)
    look = "Exp.forward: its argument is a tuple. Take the one array out: (x,) = inputs"
    expect_close("exp of 0.0", y.array, 1.0, look)
    expect_close("exp of 1.0", work.exp(_variable(work, 1.0)).array, np.e, look)
    y = work.exp(_variable(work, [0.0, -1.0, 2.0])).array
    expect_close("exp of [0, -1, 2]", y, np.exp([0.0, -1.0, 2.0]), look)


def check_edges(work: Any) -> None:
    """the result remembers that Exp made it, and from what"""
    look = "exp: it has to go through apply, which ties the graph together"
    x = _variable(work, 0.5)
    y = work.exp(x)
    expect_true("y.creator_node is an Exp", isinstance(y.creator_node, work.Exp), look)
    expect_true("y.creator_node.inputs[0] is x", y.creator_node.inputs[0] is x, look)
    expect_true("y.creator_node.outputs[0] is y", y.creator_node.outputs[0] is y, look)
    expect_equal("x.creator_node of the leaf x", x.creator_node, None, look)


def check_each_use_is_new(work: Any) -> None:
    """exp(exp(x)) uses two Exp objects"""
    look = "exp: make a new Exp() in each call. One object is one use"
    x = _variable(work, 0.5)
    y = work.exp(x)
    z = work.exp(y)
    expect_true("two calls make two Exp objects", z.creator_node is not y.creator_node, look)
    expect_true("the first one still has x as its input", y.creator_node.inputs[0] is x, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the comma is missing, so forward returns no tuple",
        _SOLUTION.replace("return (np.exp(x),)", "return np.exp(x)"),
    ),
    (
        "a new Variable is made by hand: right number, no graph",
        _SOLUTION.replace("import FunctionNode", "import FunctionNode, Variable").replace(
            "Exp().apply((x,))[0]", "Variable(np.exp(x.array))"
        ),
    ),
    (
        "one object is used for all calls",
        _SOLUTION.replace("def exp(x)", "THE_ONE = Exp()\n\n\ndef exp(x)").replace(
            "Exp().apply", "THE_ONE.apply"
        ),
    ),
)
