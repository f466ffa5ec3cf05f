"""Checks of exercise 25: the numbers, and how many functions backward runs for them.

Each function that runs gives one array. They are counted by a hook, as step 26 explains. The
graph is recorded, so that the additions of backward are functions as well.
"""

import numpy as np

import tinynode as tn
from tinynode import gradient_check
from tinynode_course.checks import CheckFailed, expect_close, expect_equal, expect_true, solution

HINTS = (
    "Go through target_input_indexes and grad_inputs together, with zip. Position 0 is x, whose "
    "gradient is g; position 1 is y, whose gradient is -g.",
    "Four cases: x or y, and something there or None. Where something is there, the result is one "
    "sum or one difference of Variables.",
    "For x: g if old is None else old + g. For y: -g if old is None else old - g. Return a tuple "
    "of them, as long as target_input_indexes.",
)


class Calls(tn.FunctionHook):
    """Remembers which functions ran."""

    name = "calls of exercise 25"

    def __init__(self):
        self.labels = []

    def forward_preprocess(self, function, in_data):
        self.labels.append(function.label)


def leaf(*numbers):
    return tn.Variable(np.array(numbers))


def gradients_and_calls(ys, wanted, g):
    """The gradients of the wanted Variables, from one g for all ys, and what backward ran."""
    with Calls() as calls:
        gs = tn.grad(ys, wanted, [g] * len(ys), enable_double_backprop=True)
    return gs, calls.labels


def check_one_use(work):
    """Where nothing is there yet."""
    x, y, g = leaf(1.0, 2.0), leaf(5.0, 3.0), leaf(10.0, 20.0)
    (gx, gy), calls = gradients_and_calls([work.subtract(x, y)], [x, y], g)
    expect_close("the gradient of x", gx.array, g.array, "None is there: the result is g itself.")
    expect_close("the gradient of y", gy.array, -g.array, "None is there: the result is -g.")
    look = "g needs no function at all, and -g needs one."
    expect_equal("the functions that backward ran", calls, ["Negative"], look)


def check_some_wanted(work):
    """Where one gradient is asked for."""
    x, y, g = leaf(1.0, 2.0), leaf(5.0, 3.0), leaf(10.0, 20.0)
    look = (
        "The entries of grad_inputs, and the results, belong to target_input_indexes: (0,) for x "
        "alone, (1,) for y alone. So there is one of each here, not two."
    )
    for name, wanted, expected, most in (("x", x, g.array, 0), ("y", y, -g.array, 1)):
        try:
            (got,), calls = gradients_and_calls([work.subtract(x, y)], [wanted], g)
        except (tn.TinynodeError, ValueError, IndexError) as error:
            what = f"the gradient of {name} alone"
            raise CheckFailed(what, "one gradient", str(error), look) from None
        expect_close(f"the gradient of {name} alone", got.array, expected, look)
        if len(calls) > most:
            what = f"how many functions backward ran for {name} alone"
            ran = f"{len(calls)} ({', '.join(calls)})"
            only = "Compute -g only where position 1 is in target_input_indexes."
            raise CheckFailed(what, str(most), ran, only)


def check_nothing_is_overwritten(work):
    """No array that came in has changed."""
    x, y, g = leaf(1.0, 2.0), leaf(5.0, 3.0), leaf(10.0, 20.0)
    tn.grad([x + y, work.subtract(x, y), work.subtract(y, x)], [x, y], [g] * 3)
    look = "The array in grad_inputs may belong to others as well. Make a new one for the sum."
    expect_close("g, which was given to tn.grad", g.array, [10.0, 20.0], look)


def check_several_uses(work):
    """Where something is there: the same numbers."""
    x, y, z, g = leaf(1.0, 2.0), leaf(5.0, 3.0), leaf(4.0, 4.0), leaf(10.0, 20.0)
    ys = [work.subtract(x, y), work.subtract(x, z), work.subtract(y, x), work.subtract(x, y)]
    gs, _ = gradients_and_calls(ys, [x, y, z], g)
    look = "The result takes the place of what was there: it is the sum or the difference of both."
    for name, got, times in zip("xyz", gs, (2, -1, -1), strict=True):
        what = f"the gradient of {name} in x - y, x - z, y - x and x - y"
        expect_close(what, got.array, times * g.array, look)


def check_fewer_arrays(work):
    """Where something is there: fewer arrays."""
    x, g = leaf(1.0, 2.0), leaf(10.0, 20.0)
    others = [leaf(0.0, float(n)) for n in range(5)]
    look = (
        "old + g is one function, and old - g is one. A -g that is added afterwards is one more."
    )
    for name, ys, most in (
        ("x", [work.subtract(x, other) for other in others], 4),
        ("y", [work.subtract(other, x) for other in others], 5),
    ):
        _, calls = gradients_and_calls(ys, [x], g)
        what = f"for five uses as {name} backward ran {len(calls)} functions; {most} are enough"
        expect_true(what, len(calls) <= most, look)


def check_same_variable(work):
    """x - x."""
    x, other, g = leaf(1.0, 2.0), leaf(0.0, 0.0), leaf(10.0, 20.0)
    look = "Two results, one for each position: backward adds them. Do not leave one out."
    gs, _ = gradients_and_calls([work.subtract(x, x)], [x], g)
    expect_close("the gradient of x in x - x", gs[0].array, [0.0, 0.0], look)
    gs, _ = gradients_and_calls([work.subtract(x, other), work.subtract(x, x)], [x], g)
    expect_close("the gradient of x in x - other and x - x", gs[0].array, g.array, look)


def check_double_backprop(work):
    """The second order."""

    def cubes(x, y):
        z, w = work.subtract(x, y), work.subtract(y, x * x)
        return z * z * z + w * w

    rng = np.random.default_rng(0)
    x, y, g, ggx, ggy = (rng.uniform(0.5, 1.5, size=4) for _ in range(5))
    try:
        gradient_check.check_double_backward(cubes, (x, y), g, (ggx, ggy), eps=1e-5)
    except AssertionError as error:
        parts = [line.strip() for line in str(error).splitlines() if line.startswith("  ")]
        what = "the second order of (x - y)^3 + (y - x^2)^2"
        look = "Add Variables, not arrays: the sum needs a graph too."
        expected = "gradients that agree with differences"
        raise CheckFailed(what, expected, "; ".join(parts), look) from None


_SOLUTION = solution(__file__)

_START = _SOLUTION[: _SOLUTION.index("        results = []")]
_END = _SOLUTION[_SOLUTION.index("\n\ndef subtract") :]

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "what was there is forgotten",
        _START + "        return tuple(-g if i else g for i in target_input_indexes)\n" + _END,
    ),
    (
        "two results, whatever is asked for",
        _START
        + """
        gx, gy = grad_inputs if len(grad_inputs) == 2 else (grad_inputs * 2)
        return g if gx is None else gx + g, -g if gy is None else gy - g
"""
        + _END,
    ),
    (
        "the numbers are right, but -g is made each time and then added",
        _SOLUTION.replace("old - g", "old + (-g)"),
    ),
    (
        "the old array is written over",
        _START
        + """
        results = []
        for position, old in zip(target_input_indexes, grad_inputs):
            if old is None:
                results.append(-g if position else g)
            else:
                array = old.array
                array += -g.array if position else g.array
                results.append(old)
        return tuple(results)
"""
        + _END,
    ),
    (
        "the sum is made of arrays: no second order",
        _SOLUTION.replace("old + g", "tn.Variable(old.array + g.array)").replace(
            "old - g", "tn.Variable(old.array - g.array)"
        ),
    ),
    (
        "the position in the list is taken for the position of the input",
        _SOLUTION.replace(
            "for position, old in zip(target_input_indexes, grad_inputs, strict=True):",
            "for position, old in enumerate(grad_inputs):",
        ),
    ),
)
