"""Checks of exercise 26: hooks see each operation; NaNHook names the first NaN."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal
from tinynode_course.mynode import mistake

HINTS = {
    "check_calls": Hint(
        "Who should hear of an operation, at which moment, and also if nothing is recorded?",
        "apply ends with a loop over hooks.active: hook.applied(...). run_backward: "
        "backward_preprocess before, after_backward after.",
    ),
    "check_forward": Hint(
        "A function got a NaN and gave a NaN. Did the function make it?",
        "Made here: has_nan(what it gave) and not has_nan(what it was given).",
    ),
    "check_backward": Hint(
        "A backward may run operations of its own. Which of them should be named?",
        "depth counts open backwards; judge only at depth 0, and keep the first.",
    ),
    "check_new_start": Hint(
        "What is left in the hook from the last program, and after an error?",
        "__enter__: first = None, depth = 0, then super().__enter__().",
    ),
}

LOOK = "hooks.py, NaNHook: (type(function).__name__, 'forward') of the first, and keep it"


def recorder(work: Any) -> Any:
    """A hook that notes what it is told."""

    class Recorder(work.FunctionHook):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.said: list[str] = []

        def applied(self, function: Any, inputs: Any, outputs: Any) -> None:
            self.said.append(f"{type(function).__name__} {outputs[0].array:.2f}")

        def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
            self.said.append(f"before {type(function).__name__} {float(out_grad[0]):.2f}")

        def after_backward(self, function: Any, targets: Any, grads: Any, gxs: Any) -> None:
            self.said.append(f"after {type(function).__name__} {float(gxs[0]):.2f}")

    return Recorder()


def check_calls(work: Any) -> None:
    """a hook is told of each operation, forward and backward"""
    x = work.Variable(np.array(3.0))
    with recorder(work) as hook:
        work.negative(work.square(x)).backward()
    right = ["Square 9.00", "Negative -9.00", "before Negative 1.00", "after Negative -1.00"]
    right += ["before Square -1.00", "after Square -6.00"]
    look = "core/function_node.py, apply, and core/backprop.py, run_backward: tell all hooks"
    expect_equal("what a hook is told of -(3^2) and its gradient", hook.said, right, look)
    work.square(x)
    expect_equal("the hook after its block", len(hook.said), 6, "hooks.active has open hooks only")
    with recorder(work) as outer, recorder(work) as inner, work.no_backprop_mode():
        work.square(x)
    look = "core/function_node.py, apply: the loop over hooks stands outside of `if wanted`"
    expect_equal(
        "two hooks, without a graph", (outer.said, inner.said), (["Square 9.00"],) * 2, look
    )
    expect_close("the gradient of x", x.grad, -6.0, "a hook changes nothing")


def nan_in_backward(work: Any) -> Any:
    """An operation whose backward divides 0 by 0."""

    class Root(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            self.retain_outputs((0,))
            return (np.sqrt(inputs[0]),)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (y,) = self.get_retained_outputs()
            return (grad_outputs[0] / (2.0 * y),)

    return Root


def first_of(hook: Any, program: Any) -> Any:
    """What the hook remembers of a program."""
    with np.errstate(all="ignore"), hook:
        program()
    return hook.first


def check_forward(work: Any) -> None:
    """a NaN that was made in forward"""
    from mynode.hooks import NaNHook

    root, zero = nan_in_backward(work), work.Variable(np.array([0.0, 1.0]))

    def two() -> None:
        work.exp(zero / (zero * 2.0))
        root().apply((work.Variable(np.array([-1.0])),))

    def handed_in() -> None:
        work.exp(work.Variable(np.array([np.nan, 1.0])))

    def fine() -> None:
        work.sum(work.square(zero)).backward()

    expect_equal("first, for a clean program", first_of(NaNHook(), fine), None, LOOK)
    got = first_of(NaNHook(), two)
    expect_equal("first, for exp(0 / 0) and a bad root", got, ("Divide", "forward"), LOOK)
    look = "exp was handed a NaN, and did not make it: look at the inputs too"
    expect_equal("first, for exp of a NaN", first_of(NaNHook(), handed_in), None, look)


def check_backward(work: Any) -> None:
    """a NaN that was made in backward, also in a recorded one"""
    from mynode.hooks import NaNHook

    root = nan_in_backward(work)

    def masked() -> None:
        x = work.Variable(np.array([0.0, 4.0]))
        y = work.sum(root().apply((x * 1.0,))[0] * np.array([0.0, 1.0]))
        y.backward()

    def recorded() -> None:
        x = work.Variable(np.array([0.0, 4.0]))
        y = work.sum(root().apply((x * 1.0,))[0] * np.array([0.0, 1.0]))
        y.backward(enable_double_backprop=True)

    look = "an operation inside of a backward is at depth 1: the outer one is named"
    expect_equal(
        "first, for 0 / 0 in backward", first_of(NaNHook(), masked), ("Root", "backward"), look
    )
    got = first_of(NaNHook(), recorded)
    expect_equal("first, for the same, recorded", got, ("Root", "backward"), look)


def check_new_start(work: Any) -> None:
    """the same hook once more"""
    from mynode.hooks import NaNHook

    class Fails(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] + 1.0,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise ArithmeticError("a backward that fails")

    zero = work.Variable(np.array(0.0))
    hook = NaNHook()
    first_of(hook, lambda: zero / zero)

    def fails() -> None:
        with contextlib.suppress(ArithmeticError):
            Fails().apply((zero,))[0].backward()

    look = "__enter__: first = None, and depth = 0, since an error may have ended a backward"
    expect_equal("first, for a program without a NaN", first_of(hook, fails), None, look)
    got = first_of(hook, lambda: zero / zero)
    expect_equal("first, after an error in a backward", got, ("Divide", "forward"), look)


_HOOKS, _NODE, _BACKPROP = "hooks.py", "core/function_node.py", "core/backprop.py"

MISTAKES = (
    (
        "the last NaN is named",
        mistake("26", _HOOKS, "self.first is None and ", ""),
    ),
    (
        "who was handed a NaN is blamed",
        mistake("26", _HOOKS, " and not has_nan(given)", ""),
    ),
    (
        "operations inside of a backward are named",
        mistake("26", _HOOKS, " and self.depth == 0", ""),
    ),
    (
        "the depth is not taken back",
        mistake("26", _HOOKS, "        self.depth -= 1\n", ""),
    ),
    (
        "the hook never starts anew",
        mistake(
            "26",
            _HOOKS,
            "        self.first = None\n        self.depth = 0  # an error",
            "        self.depth = 0  # an error",
        ),
    ),
    (
        "hooks are told of recorded operations only",
        mistake(
            "26",
            _NODE,
            "        for hook in hooks.active:\n            hook.applied(self, inputs, outputs)\n",
            "        for hook in hooks.active if wanted else ():\n"
            "            hook.applied(self, inputs, outputs)\n",
        ),
    ),
)
