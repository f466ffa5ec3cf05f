"""Exercise 14: which functions does the learner's check blame?"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_true,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_right_ones": Hint(
        "Two numbers say how fast L changes. Do both walk along the same directions, with all "
        "inputs at once?",
        "The sum over the inputs of (gradient * direction), against (L(eps) - L(-eps)) / (2 eps). "
        "An input without a gradient adds 0.",
    ),
    "check_suspects": Hint(
        "A bug hides behind special inputs. Which numbers of your check are the same everywhere?",
        "L = the sum of g * f(x + step * d), with the drawn g and the drawn d of each input.",
    ),
    "check_every_input": Hint(
        "Which inputs count in your slope, and which of them walk?",
        "slope = the sum over all inputs of np.sum(x.grad * d); each input moves by step * d.",
    ),
    "check_walk": Hint(
        "At which two points do you call the function, and how far apart are they?",
        "array + eps * d and array - eps * d; compare gets rtol and atol.",
    ),
    "check_data_stay": Hint(
        "A measurement moves numbers. Whose?",
        "array + step * d is a new array.",
    ),
}

X = np.array([[0.7, -1.3, 0.4], [1.9, -0.6, -2.1]])
Y = np.array([[1.2, 0.5, -0.8], [0.9, 2.2, -1.4]])

Rule = Callable[[list[Any], Any], Any]


def _operation(work: Any, forward: Callable[..., Any], backward: Rule) -> Callable[..., Any]:
    """A function of arrays, with gradients by backward(arrays, g), as a function of Variables."""

    class Operation(work.FunctionNode):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any) -> Any:
            self.arrays = [one.copy() for one in inputs]
            return (np.asarray(forward(*inputs)),)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            return backward(self.arrays, grad_outputs[0])

    def operation(*inputs: Any) -> Any:
        return Operation().apply(inputs)[0]

    return operation


def _judged(work: Any, function: Callable[..., Any], arrays: list[Any], **options: Any) -> str:
    """What check_gradients says: the text of its error, or "" if it is silent."""
    check = importlib.import_module(f"{work.__name__}.gradient_check").check_gradients
    work.seed(14)
    try:
        check(function, arrays, **options)
    except AssertionError as error:
        return str(error) or "an AssertionError"
    return ""


def _expect_silence(work: Any, what: str, function: Any, arrays: list[Any], look: str) -> None:
    said = _judged(work, function, arrays)
    if said:
        raise CheckFailed(f"check_gradients of {what}, which is right", "no error", said, look)


def _expect_blame(work: Any, what: str, function: Any, arrays: list[Any], look: str) -> None:
    said = _judged(work, function, arrays)
    if not said:
        expected = "an AssertionError"
        raise CheckFailed(f"check_gradients of {what}", expected, "no error", look)


def check_right_ones(work: Any) -> None:
    """right functions are not blamed, whatever the number of inputs and their shapes"""
    look = "both slopes by g and the same directions; all inputs walk at once"
    for name, shapes in (
        ("add", ((3, 1), (4,))),
        ("subtract", ((), (2, 2))),
        ("multiply", ((2, 3), (3,))),
        ("divide", ((2, 1, 4), (3, 1))),
        ("linear", ((2, 3), (4, 3), (4,))),
        ("tanh", ((2, 3),)),
        ("exp", ((),)),
        ("relu", ((4,),)),
    ):
        rng = np.random.default_rng(0)
        arrays = [np.asarray(rng.uniform(0.5, 2.0, size=shape)) for shape in shapes]
        what = f"{name} for inputs of shapes {', '.join(map(str, shapes))}"
        _expect_silence(work, what, getattr(work, name), arrays, look)
    look = "the gradient of an input that has no path is a zero: x.grad is None"
    _expect_silence(work, "a function that leaves y out", lambda x, y: work.exp(x), [X, Y], look)


def _suspects() -> list[tuple[str, int, Callable[..., Any], Rule, bool]]:
    """Six functions: the name, the number of inputs, forward, backward, and if backward is right.

    Tanh is wrong nearly everywhere. Product is right if both inputs are equal, Share if g has one
    number everywhere, Flip along a direction that has one number everywhere.
    """
    return [
        ("Tanh", 1, np.tanh, lambda a, g: (g * (1 - np.tanh(a[0])),), False),
        (
            "SoftSign",
            1,
            lambda x: x / (1 + abs(x)),
            lambda a, g: (g / (1 + abs(a[0])) ** 2,),
            True,
        ),
        (
            "LeakyReLU",
            1,
            lambda x: np.where(x > 0, x, 0.1 * x),
            lambda a, g: (np.where(a[0] > 0, g, 0.1 * g),),
            True,
        ),
        ("Product", 2, lambda a, b: a * b, lambda a, g: (g * a[0], g * a[1]), False),
        (
            "Share",
            1,
            lambda x: x / x.sum(),
            lambda a, g: ((g - g.mean()) / a[0].sum(),),
            False,
        ),
        ("Flip", 1, lambda x: x[::-1].copy(), lambda a, g: (g.copy(),), False),
    ]


def check_suspects(work: Any) -> None:
    """of six functions, the four with a bug are blamed, and the two others are not"""
    why = "special inputs, gradients or directions hide this bug: use those that are drawn"
    for name, number, forward, backward, right in _suspects():
        function = _operation(work, forward, backward)
        arrays = [abs(X) if name == "Share" else X, Y][:number]
        if right:
            _expect_silence(work, name, function, arrays, "backward is right away from 0")
        else:
            _expect_blame(work, f"{name}, which is wrong", function, arrays, why)


def check_every_input(work: Any) -> None:
    """a bug in the gradient of any input is found, also deep inside of a function"""
    for place in range(3):

        def backward(arrays: list[Any], g: Any, place: int = place) -> Any:
            a, b, c = arrays
            gradients = [g * b + 0.0 * a, g * a, g * np.cos(c)]
            gradients[place] = gradients[place] * 1.001
            return tuple(gradients)

        function = _operation(work, lambda a, b, c: a * b + np.sin(c), backward)
        look = "add gradient times direction over all inputs, and let all of them walk"
        what = f"an error of one part in a thousand in the gradient of input {place}"
        _expect_blame(work, what, function, [X, Y, X + Y], look)
    wrong = _operation(work, np.exp, lambda a, g: (g * np.exp(-a[0]),))
    look = "x.grad after y.backward() goes through the whole graph"
    _expect_blame(work, "sum(x * wrong(x))", lambda x: work.sum(x * wrong(x)), [X], look)


def check_walk(work: Any) -> None:
    """the walk goes eps to both sides, along drawn directions"""
    seen: list[Any] = []

    def wave(x: Any) -> Any:
        seen.append(x.array.copy())
        return work.sin(4.0 * x)

    said = _judged(work, wave, [X], eps=0.5, rtol=1e3, atol=1e3)
    expect_equal("check_gradients with wide tolerances", said, "", "give rtol and atol to compare")
    walks = [array - X for array in seen if not np.array_equal(array, X)]
    look = "call the function at x + eps d and at x - eps d"
    expect_true("the function is called beside x", len(walks) >= 2, look)
    look = "one point is array + eps * d, the other array - eps * d"
    expect_close("the middle of all points", X + sum(walks) / len(walks), X, look, atol=1e-12)
    farthest = max(abs(walk).max() for walk in walks) / 0.5
    expect_true("the points lie some eps away", 0.01 < farthest < 10.0, "multiply d by eps")
    look = "differences with eps = 0.5 are too coarse for this wave: pass eps on"
    expect_true("eps = 0.5 is too coarse", _judged(work, wave, [X], eps=0.5) != "", look)
    expect_true(
        "the direction is not the same number everywhere",
        float(np.ptp(walks[0].ravel())) > 1e-6,
        "use the drawn directions",
    )


def check_data_stay(work: Any) -> None:
    """the arrays of the caller stay as they were"""
    x, y = X.copy(), Y.copy()
    _judged(work, work.multiply, [x, y])
    look = "array + step * d is a new array; array += step * d moves the caller's"
    expect_equal("the first array", x, X, look)
    expect_equal("the second array", y, Y, look)


_PATH = "gradient_check.py"
_MEASURED = "measured = (heights[0] - heights[1]) / (2 * eps)"

MISTAKES = (
    (
        "the slope of the first input only",
        mistake(
            "14", _PATH, "zip(inputs, directions, strict=True)", "[(inputs[0], directions[0])]"
        ),
    ),
    (
        "the difference is divided by eps",
        mistake("14", _PATH, _MEASURED, "measured = (heights[0] - heights[1]) / eps"),
    ),
    (
        "the walk goes to one side",
        mistake("14", _PATH, "for step in (eps, -eps):", "for step in (2 * eps, 0.0):"),
    ),
    (
        "g is forgotten in the measurement",
        mistake(
            "14", _PATH, "np.sum(g * function(*moved).array)", "np.sum(function(*moved).array)"
        ),
    ),
    (
        "g is all ones",
        mistake("14", _PATH, "np.asarray(rng.normal(size=y.shape))", "np.ones(y.shape)"),
    ),
    (
        "the direction is all ones",
        mistake("14", _PATH, "np.asarray(rng.normal(size=array.shape))", "np.ones(array.shape)"),
    ),
    (
        "an input without a path is an error",
        mistake("14", _PATH, "if x.grad is not None:", "if True:"),
    ),
    (
        "a tolerance that hides small mistakes",
        mistake("14", _PATH, "measured, rtol, atol)\n", "measured, 1e-2, atol)\n"),
    ),
    (
        "eps is ignored",
        mistake("14", _PATH, "for step in (eps, -eps):", "for step in (1e-5, -1e-5):"),
    ),
    (
        "the data of the caller walk",
        mistake(
            "14",
            _PATH,
            "Variable(np.asarray(array + step * d))",
            "Variable(np.add(array, step * d, out=array))",
        ),
    ),
)
