"""Checks of exercise 26: programs with NaNs in known places."""

import contextlib

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import expect_equal, solution

HINTS = (
    "A function made a NaN if has_nan(what it gave) and not has_nan(what it was given). Remember "
    "its label only if self.first is None still.",
    "Keep a number self.depth, as CountMine does on the page: backward_preprocess adds 1, and "
    "after_backward takes 1 off before anything else. Judge only at depth 0.",
    "added(self, function) sets self.first = None and self.depth = 0. applied compares "
    "outputs and inputs, after_backward compares grad_inputs and grad_outputs.",
)


class NaiveSqrt(tn.FunctionNode):
    """The square root; where x is 0 and the gradient is 0, its backward divides 0 by 0."""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (tn.namespace_of(inputs[0]).sqrt(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (y,) = self.get_retained_outputs()
        return (grad_outputs[0] / (2.0 * y),)


class Fails(tn.FunctionNode):
    """Its backward raises an error."""

    def forward(self, inputs):
        return (inputs[0] + 1.0,)

    def backward(self, target_input_indexes, grad_outputs):
        raise ArithmeticError("a backward that fails")


def leaf(*numbers):
    return tn.Variable(np.array(numbers))


def first_of(hook, program):
    """What the hook remembers of a program."""
    with np.errstate(all="ignore"), hook:
        program()
    return hook.first


def masked_root():
    """The root where x is above 0, else 0: the forward is clean, the backward is not."""
    x = leaf(0.0, 4.0)
    F.sum(F.where(x > 0, NaiveSqrt().apply((x * 1.0,))[0], 0.0)).backward()


def check_clean(work):
    """A program without a NaN."""

    def program():
        F.sum(F.log(leaf(1.0, 2.0))).backward()

    look = "first is None as long as no function has made a NaN."
    expect_equal("first, for log of 1 and 2", first_of(work.NaNHook(), program), None, look)


def check_forward(work):
    """A NaN that was made in forward."""

    def log_of_minus_one():
        F.exp(F.log(leaf(2.0, -1.0)) * 2.0)

    def root_then_log():
        F.log(F.sqrt(leaf(-4.0)) * 0.0 + leaf(1.0))
        F.log(leaf(-1.0))

    look = "The label of the function, and the word forward: (function.label, 'forward')."
    got = first_of(work.NaNHook(), log_of_minus_one)
    expect_equal("first, for exp(log(x) * 2) at -1", got, ("Log", "forward"), look)
    look = "Two functions make a NaN here. Remember the first one, and keep it."
    got = first_of(work.NaNHook(), root_then_log)
    expect_equal("first, for a bad root and a bad log after it", got, ("Sqrt", "forward"), look)


def check_handed_in(work):
    """A NaN that was handed in."""

    def nan_in_the_data():
        F.exp(leaf(float("nan"), 1.0))

    def and_one_made():
        F.exp(leaf(float("nan"), 1.0))
        F.log(leaf(-1.0))

    look = "exp was handed a NaN: it did not make it. Look at its inputs too."
    got = first_of(work.NaNHook(), nan_in_the_data)
    expect_equal("first, for exp of a NaN", got, None, look)
    got = first_of(work.NaNHook(), and_one_made)
    expect_equal("first, for exp of a NaN, then log of -1", got, ("Log", "forward"), look)


def check_backward(work):
    """A NaN that was made in backward."""
    look = (
        "The backward of NaiveSqrt divides 0 by 0. The Divide runs inside of it, at depth 1, so "
        "it is not named; NaiveSqrt is."
    )
    got = first_of(work.NaNHook(), masked_root)
    expect_equal("first, for a masked root at 0", got, ("NaiveSqrt", "backward"), look)


def check_handed_in_backward(work):
    """A NaN that backward began with."""

    def program():
        y = F.tanh(leaf(1.0, 2.0)) * 2.0
        y.grad = np.array([np.nan, 1.0])
        y.backward()

    look = "The NaN came in with the gradient of the output: nobody has made it."
    got = first_of(work.NaNHook(), program)
    expect_equal("first, for a backward that begins with a NaN", got, None, look)


def check_new_start(work):
    """The same hook once more."""
    hook = work.NaNHook()
    first_of(hook, masked_root)

    def clean():
        F.exp(leaf(1.0))

    look = "added is called when the hook is registered: set first to None there."
    expect_equal("first, for a clean program after a bad one", first_of(hook, clean), None, look)

    def fails():
        with contextlib.suppress(ArithmeticError):
            F.sum(Fails().apply((leaf(1.0),))[0]).backward()

    first_of(hook, fails)
    look = "An error ended a backward, so your depth was never taken back. added may do that."
    got = first_of(hook, masked_root)
    expect_equal("first, after an error in a backward", got, ("NaiveSqrt", "backward"), look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the last NaN is named, not the first",
        _SOLUTION.replace("self.first is None and ", ""),
    ),
    (
        "who was handed a NaN is blamed",
        _SOLUTION.replace(" and not has_nan(given)", ""),
    ),
    (
        "functions inside of a backward are named",
        _SOLUTION.replace(" and self.depth == 0", ""),
    ),
    (
        "the depth is not taken back in after_backward",
        _SOLUTION.replace("        self.depth -= 1\n", ""),
    ),
    (
        "the hook never starts anew",
        _SOLUTION.replace("def added(", "def was_added("),
    ),
    (
        "forward only",
        _SOLUTION.replace(
            '        self.judge(function, "backward", grad_outputs, grad_inputs)', ""
        ),
    ),
    (
        "a FunctionHook that looks at what functions are given: it names the one after",
        """
import numpy as np
import tinynode as tn


class NaNHook(tn.FunctionHook):
    name = "first NaN"

    def __init__(self):
        self.first = None

    def added(self, function):
        self.first = None

    def forward_preprocess(self, function, in_data):
        if self.first is None and any(np.isnan(x).any() for x in in_data):
            self.first = function.label, "forward"
""",
    ),
)
