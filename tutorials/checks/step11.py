"""Exercise 11: are the gradients right, and does no graph stay in memory?"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_nodes": Hint(
        "Who holds whom? Which of the two references must not keep the other object alive?",
        "Variable holds its node strongly; the node holds the Variable by weakref.ref.",
    ),
    "check_edges": Hint(
        "Follow the references from a result to the leaves. Which of them must be strong, and"
        " which would close a circle?",
        "inputs: the nodes themselves. outputs: weakref.ref of each node.",
    ),
    "check_gradients": Hint(
        "Two contributions meet at one node. Which entry of the table holds their sum?",
        "gradients[node] = gx for the first one, gradients[node] + gx for further ones.",
    ),
    "check_leaves": Hint(
        "When is the gradient of an inner node used up, and who keeps the gradients of leaves?",
        "pop takes an output's gradient out of the table; what is left at the end belongs to "
        "leaves, and adds to x.grad.",
    ),
    "check_dropped_variables": Hint(
        "The Variable is gone, and its node is there. What does the backward pass still need?",
        "The table has nodes as keys. write_to_leaves skips a node whose Variable is gone.",
    ),
    "check_memory": Hint(
        "Draw the references as arrows. Where can you walk in a circle?",
        "Variable -> node -> function -> input nodes; the way from function to outputs is weak.",
    ),
    "check_long_chain": Hint(
        "How deep does Python have to call itself for a chain of 20,000 operations?",
        "A loop with a heap, and no recursion.",
    ),
}

PLACES = {
    ("check_gradients", "write_to_leaves"): Hint(
        "Which gradients are left in the table at the end, and what if a box is gone?",
        "For each node of the table: x = node.get_variable_or_none(); if x lives, gx is added to "
        "x.grad, or begins it.",
    ),
}


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


def check_nodes(work: Any) -> None:
    """a Variable has a node, and the node holds the Variable weakly"""
    x = work.Variable(np.array(3.0), name="x")
    look = "core/variable.py: __init__ makes self.node = VariableNode(self)"
    expect_true("a Variable has the attribute node", hasattr(x, "node"), look)
    expect_true("x.node is a VariableNode", isinstance(x.node, work.VariableNode), look)
    look = "core/variable_node.py: VariableNode.__init__"
    facts = (x.node.name, x.node.creator_node, x.node.rank)
    expect_equal(
        "the name, the creator and the rank of the node of a leaf", facts, ("x", None, 0), look
    )
    expect_equal("the shape of the node of a number", x.node.shape, (), look)
    look = "core/variable_node.py: get_variable_or_none calls the weak reference"
    expect_true("x.node.get_variable_or_none() is x", x.node.get_variable_or_none() is x, look)
    with without_collector():
        node = x.node
        del x
        look = "core/variable_node.py: self._variable = weakref.ref(variable)"
        expect_true(
            "after `del x`, the node has no Variable", node.get_variable_or_none() is None, look
        )


def check_edges(work: Any) -> None:
    """an operation holds nodes: of its inputs strongly, of its outputs weakly"""
    x = work.Variable(np.array(3.0))
    y = work.square(x)
    look = "core/variable.py: creator_node and rank are properties that ask self.node"
    expect_true(
        "y.creator_node is y.node.creator_node", y.creator_node is y.node.creator_node, look
    )
    expect_equal(
        "the ranks of x, of y and of y.node", (x.rank, y.rank, y.node.rank), (0, 1, 1), look
    )
    look = "core/function_node.py, apply: self.inputs = tuple(x.node for x in inputs)"
    expect_true("y.creator_node.inputs[0] is x.node", y.creator_node.inputs[0] is x.node, look)
    look = "core/function_node.py, apply: weakref.ref(y.node) for each output"
    output = y.creator_node.outputs[0]
    expect_true("outputs holds a weak reference", isinstance(output, weakref.ref), look)
    expect_true("the weak reference gives y.node", output() is y.node, look)


def check_gradients(work: Any) -> None:
    """the gradients are those of step 6"""
    look = "core/backprop.py, run_backward: add to an entry that is there already"
    x = work.Variable(np.array(3.0))
    a = work.square(x)
    (work.square(a) + a * x).backward()
    expect_close("the gradient of x^4 + x^3 at 3", x.grad, 135.0, look)
    expect_true("a has no grad: only leaves have one", a.grad is None, look)
    x, w = work.Variable(np.array([0.5, -1.0])), work.Variable(np.array([2.0, 3.0]))
    y = work.exp(x) * w - work.sin(w)
    y.grad = np.array([1.0, 10.0])
    y.backward()
    look = "functions/: backward reads self.input_arrays, as since step 2"
    gy = np.array([1.0, 10.0])
    expect_close("the gradient of x", x.grad, gy * np.exp(x.array) * w.array, look)
    expect_close("the gradient of w", w.grad, gy * (np.exp(x.array) - np.cos(w.array)), look)


def check_leaves(work: Any) -> None:
    """leaves have gradients that add up; inner Variables have none"""
    x = work.Variable(np.array(3.0))
    y = work.square(x)
    z = work.sin(y)
    z.backward()
    look = "core/backprop.py, run_backward: take the gradients of the outputs out: gradients.pop"
    expect_true("the inner Variable y has no grad", y.grad is None, look)
    look = "core/backprop.py, write_to_leaves: add to a grad that is there already"
    work.square(x).backward()
    expect_close("the gradient of x after two backwards", x.grad, 6 * np.cos(9.0) + 6.0, look)


def check_dropped_variables(work: Any) -> None:
    """Variables may be dropped before backward"""
    with without_collector():
        x = work.Variable(np.array(3.0))
        y = x + x
        w = work.Variable(np.array(2.0))
        z = work.square(y) * w
        array, variable = weakref.ref(y), weakref.ref(w)
        del y, w
        look = "core/function_node.py, apply: store nodes only, and no Variable"
        expect_true("the inner Variable is gone", array() is None, look)
        expect_true("the leaf w is gone", variable() is None, look)
        z.backward()
        look = "core/backprop.py: the way goes over nodes; write_to_leaves skips what is gone"
        expect_close("the gradient of x", x.grad, 48.0, look)


def check_memory(work: Any) -> None:
    """without the collector, arrays and graph go at once"""
    with without_collector():
        for backward in (False, True):
            x = work.Variable(np.array(3.0))
            y = work.square(x * x)
            if backward:
                y.backward()
            parts = {
                "the array of y": weakref.ref(y.array),
                "the node of y": weakref.ref(y.node),
                "the operation": weakref.ref(y.creator_node),
            }
            del y
            after = "after backward and `del y`" if backward else "after `del y`"
            look = "which object still refers to y, to its node or to its operation, in a circle?"
            for name, part in parts.items():
                expect_true(f"{name} is gone {after}", part() is None, look)


def check_long_chain(work: Any) -> None:
    """a chain of 20,000 operations works, and goes"""
    x = y = work.Variable(np.array(1.0))
    for _ in range(20_000):
        y = y + 0.0
    expect_equal("the rank of the last node", y.node.rank, 20_000, "core/function_node.py, apply")
    y.backward()
    expect_close("the gradient of x", x.grad, 1.0, "core/backprop.py: a loop, no recursion")


_BACKPROP, _NODE, _FUNCTION = "core/backprop.py", "core/variable_node.py", "core/function_node.py"

MISTAKES = (
    (
        "an operation holds its outputs strongly",
        mistake(
            "11",
            _FUNCTION,
            "        return outputs\n",
            "        self.kept = outputs\n        return outputs\n",
        ),
    ),
    (
        "a node holds its Variable strongly",
        mistake(
            "11",
            _NODE,
            "self._variable = weakref.ref(variable)",
            "self._variable = lambda: variable",
        ),
    ),
    (
        "the gradients of outputs stay in the table",
        mistake("11", _BACKPROP, "gradients.pop(output(), None)", "gradients.get(output())"),
    ),
    (
        "an entry of the table is replaced in place of added to",
        mistake("11", _BACKPROP, "gx if node not in gradients else gradients[node] + gx", "gx"),
    ),
    (
        "a leaf's gradient is replaced in place of added to",
        mistake("11", _BACKPROP, "x.grad = gx if x.grad is None else x.grad + gx", "x.grad = gx"),
    ),
    (
        "Variables that are gone are not skipped",
        mistake("11", _BACKPROP, "        if x is not None:\n    ", ""),
    ),
)
