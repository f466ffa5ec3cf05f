"""Exercise 8: are the gradients right, and is exactly what they need kept?"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_equal, expect_true, solution

HINTS = (
    "retain_inputs and retain_outputs are called in forward, with a tuple of positions: (0,) has "
    "a comma. Their get_... partners are called in backward, and return tuples.",
    "The derivative of e^x at x is e^x, and that is y. So Exp needs no input in its backward.",
    "Exp: self.retain_outputs((0,)) in forward, (y,) = self.get_retained_outputs() in backward. "
    "Sin: the same with inputs, and np.cos(x).",
)

VALUES = (0.5, -1.0, 2.0)


def _variable() -> Any:
    from engine08 import Variable

    return Variable(np.array(VALUES))


def _check_gradient(function: Callable[..., Any], derivative: Any, look: str) -> None:
    """On its own, and in a chain, where gy is not 1."""
    from engine08 import square

    name = function.__name__
    x = _variable()
    function(x).backward()
    expect_close(f"the gradient of {name} at {list(VALUES)}", x.grad, derivative, look)
    x = _variable()
    y = function(x)
    square(y).backward()
    what = f"the gradient of square({name}(x)) at {list(VALUES)}"
    expect_close(what, x.grad, 2 * y.array * derivative, look)


def check_exp(work: Any) -> None:
    """exp has the right value and the right gradient"""
    y = work.exp(_variable())
    expect_close(f"exp at {list(VALUES)}", y.array, np.exp(VALUES), "Exp.forward")
    look = "Exp.backward: gx = gy * y. The retained arrays come in a tuple: (y,) = ..."
    _check_gradient(work.exp, np.exp(VALUES), look)


def check_sin(work: Any) -> None:
    """sin has the right value and the right gradient"""
    y = work.sin(_variable())
    expect_close(f"sin at {list(VALUES)}", y.array, np.sin(VALUES), "Sin.forward")
    look = "Sin.backward: gx = gy * cos(x). The retained arrays come in a tuple: (x,) = ..."
    _check_gradient(work.sin, np.cos(VALUES), look)


def check_retained(work: Any) -> None:
    """Exp retains one output, Sin retains one input"""
    function = work.exp(_variable()).creator_node
    look = "Exp.forward: self.retain_outputs((0,)), and no retain_inputs"
    expect_equal("the inputs that Exp retains", len(function.get_retained_inputs()), 0, look)
    expect_equal("the outputs that Exp retains", len(function.get_retained_outputs()), 1, look)
    function = work.sin(_variable()).creator_node
    look = "Sin.forward: self.retain_inputs((0,)), and no retain_outputs"
    expect_equal("the inputs that Sin retains", len(function.get_retained_inputs()), 1, look)
    expect_equal("the outputs that Sin retains", len(function.get_retained_outputs()), 0, look)


def _survivors(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether the arrays of input and output outlive their Variables, while the graph is held."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        x = _variable()
        y = function(x)
        graph = y.creator_node
        arrays = weakref.ref(x.array), weakref.ref(y.array)
        del x, y
        alive = arrays[0]() is not None, arrays[1]() is not None
        del graph
        return alive
    finally:
        if was_on:
            gc.enable()


def check_memory(work: Any) -> None:
    """nothing else stays in memory"""
    look = "keep arrays by retain_... only: an attribute such as self.x keeps its array as well"
    of_input, of_output = _survivors(work.exp)
    expect_true("Exp lets its input go", not of_input, look)
    expect_true("Exp keeps its output", of_output, look)
    of_input, of_output = _survivors(work.sin)
    expect_true("Sin keeps its input", of_input, look)
    expect_true("Sin lets its output go", not of_output, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "Exp keeps its input, and computes e^x twice",
        _SOLUTION.replace("self.retain_outputs((0,))", "self.retain_inputs((0,))")
        .replace("(y,) = self.get_retained_outputs()", "(x,) = self.get_retained_inputs()")
        .replace("grad_outputs[0] * y", "grad_outputs[0] * np.exp(x)"),
    ),
    (
        "Sin keeps its output as well",
        _SOLUTION.replace(
            "self.retain_inputs((0,))", "self.retain_inputs((0,)); self.retain_outputs((0,))"
        ),
    ),
    (
        "Exp keeps its input in an attribute, too",
        _SOLUTION.replace("self.retain_o", "self.x = inputs[0]; self.retain_o"),
    ),
    (
        "Exp uses x in place of y",
        _SOLUTION.replace("outputs[0] * y", "outputs[0] * np.exp(y)"),
    ),
    (
        "Sin does not retain anything",
        _SOLUTION.replace("self.retain_inputs((0,))", "pass"),
    ),
)
