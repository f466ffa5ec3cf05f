"""Functions for the checks of exercises.

Requirement: the reader of a failed check is a learner, not the author of the check. So a message
has no traceback and no name of a test. The message names the checked quantity, the expected value,
the actual value (arrays with shape and dtype), and a place to look.

    expect_close("the gradient of exp at 2", work.gradient(2.0), np.exp(2.0),
                 look="the derivative of exp(x) is exp(x) itself")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

LONGEST = 200
"""The most characters of a value in a message."""

MOST_NUMBERS = 6
"""The most numbers of an array in a message."""


@dataclass(frozen=True)
class Hint:
    """The words about a check in ``HINTS``: a question without code, and the formula or the rule.

    The place, the puzzle and the lines are found from the learner's work (``hints``).
    """

    question: str
    formula: str


def solution(checks: str) -> str:
    """The solution beside a module of checks, ``solution(__file__)``.

    Each of ``MISTAKES``, the wrong answers that the checks must refuse, is a changed solution.
    """
    path = Path(checks)
    return (path.parent.parent / "solutions" / path.name).read_text(encoding="utf-8")


class CheckFailed(AssertionError):  # noqa: N818 - learners read the name
    """A learner's work is not right yet.

    Attributes:
        what: The checked quantity, such as "the gradient of exp at 2".
        expected: The expected value, in words.
        got: The actual value, in words.
        look: A place to look, or a fact to think about.
    """

    def __init__(self, what: str, expected: str, got: str, look: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}. {look}")
        self.what = what
        self.expected = expected
        self.got = got
        self.look = look


def expect_equal(what: str, got: Any, expected: Any, look: str) -> None:
    """Check equality; arrays are equal if shapes and all elements are equal.

    Raises:
        CheckFailed: The values differ.
    """
    if expected is not None and (_has_shape(got) or _has_shape(expected)):
        _expect_same_numbers(what, got, expected, look, 0.0, 0.0)
    elif not _equal(got, expected):
        wanted = "None" if expected is None else show(expected)
        raise CheckFailed(what, wanted, show(got), look)


def expect_close(
    what: str, got: Any, expected: Any, look: str, rtol: float = 1e-6, atol: float = 1e-9
) -> None:
    """Check equal shapes, and |got - expected| <= atol + rtol * |expected| for all elements.

    A NaN is close to NaN only. Variables are compared by their arrays.

    Raises:
        CheckFailed: A shape or an element differs.
    """
    _expect_same_numbers(what, got, expected, look, rtol, atol)


def expect_true(what: str, condition: Any, look: str) -> None:
    """Check a condition; ``what`` is the condition in words.

    Raises:
        CheckFailed: The condition is false.
    """
    if not bool(condition):
        raise CheckFailed(what, "yes", "no", look)


def expect_raises(
    what: str, error_class: type[BaseException], call: Callable[[], Any], look: str
) -> BaseException:
    """Check for an error in ``call()``; returns the error, for a look at the message.

    Raises:
        CheckFailed: ``call()`` raises another error, or none.
    """
    try:
        result = call()
    except error_class as error:
        return error
    except Exception as error:
        got = f"{type(error).__name__}: {_cut(str(error))}"
        raise CheckFailed(what, f"the error {error_class.__name__}", got, look) from error
    got = f"no error; it returned {show(result)}"
    raise CheckFailed(what, f"the error {error_class.__name__}", got, look)


def leads_to(held: Any, variable: Any) -> bool:
    """True if an entry of ``inputs`` or ``outputs`` is a Variable of ``mynode``, or leads to one.

    From step 11 on, ``inputs`` has the Variable's node and ``outputs`` a weak reference to a node.
    """
    held = held() if callable(held) else held
    return held is not None and (held is variable or held is getattr(variable, "node", None))


def show(value: Any) -> str:
    """A value for a message: of an array the first elements, shape and dtype."""
    if value is None:
        return "None (nothing was returned or set)"
    if not _has_shape(value):
        return _cut(repr(value))
    array = _array(value)
    if array is None:
        return _cut(repr(value))
    kind = "array" if isinstance(value, np.ndarray) else type(value).__name__
    if isinstance(value, np.generic):
        return f"{value} ({value.dtype})"
    return f"{_numbers(array)}: {kind}, shape {array.shape}, {array.dtype}"


def _numbers(array: Any) -> str:
    flat = [f"{number:.8g}" if _is_real(array) else str(number) for number in array.flat[:7]]
    if array.size > MOST_NUMBERS:
        return "[" + ", ".join(flat[:MOST_NUMBERS]) + ", ...]"
    return flat[0] if array.ndim == 0 else "[" + ", ".join(flat) + "]"


def _is_real(array: Any) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _expect_same_numbers(
    what: str, got: Any, expected: Any, look: str, rtol: float, atol: float
) -> None:
    right = _array(expected)
    if right is None:
        raise TypeError(f"the check of {what!r} expects {expected!r}, which is no number or array")
    left = _array(got)
    if left is None:
        raise CheckFailed(what, show(expected), show(got), look)
    if left.shape != right.shape:
        came = f"{show(got)}: the shape is another one"
        wanted = f"{show(expected)}, of shape {right.shape}" if not right.ndim else show(expected)
        raise CheckFailed(what, wanted, came, look)
    wrong = ~np.atleast_1d(_close(left, right, rtol, atol))
    if wrong.any():
        _fail_at(np.argwhere(wrong), what, got, expected, look)


def _close(left: Any, right: Any, rtol: float, atol: float) -> Any:
    if rtol == 0.0 and atol == 0.0:
        return (left == right) | ((left != left) & (right != right))  # a NaN is not itself
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        return np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)


def _fail_at(indexes: Any, what: str, got: Any, expected: Any, look: str) -> NoReturn:
    """Fail with both values, and for arrays with the first differing element."""
    left, right = _array(got), _array(expected)
    wanted, came = show(expected), show(got)
    if wanted == came:  # a difference in omitted digits
        wanted, came = f"{wanted}, exactly", f"{came}, with a difference in further digits"
    if right.size > 1:
        first = tuple(int(number) for number in indexes[0])
        shown = ", ".join(map(str, first))
        came += f"; {len(indexes)} of {right.size} differ, first at [{shown}]: "
        came += f"{left[first]:.10g} instead of {right[first]:.10g}"
    raise CheckFailed(what, wanted, came, look)


def _has_shape(value: Any) -> bool:
    return hasattr(value, "shape")


def _array(value: Any) -> Any:
    """A number, an array or a Variable's array as a NumPy array; None for other values."""
    inner = getattr(value, "array", None)
    if _has_shape(inner) and not isinstance(value, np.ndarray | np.generic):
        value = inner
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biufc" else None


def _equal(got: Any, expected: Any) -> bool:
    try:
        return bool(got == expected)
    except Exception:  # an array in a list, or a wrong __eq__
        return False


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def expect_gradients(
    what: str, function: Callable[..., Any], inputs: Sequence[Any], variable: Any, look: str
) -> None:
    """Check the gradients of a function of Variables against small steps.

    Args:
        what: the function in words.
        function: takes a Variable for each input, and returns a Variable.
        inputs: arrays of float64.
        variable: the learner's class Variable.
        look: a place to look.

    Raises:
        CheckFailed: A gradient is missing or differs.
    """
    xs = [variable(array.copy()) for array in inputs]
    y = function(*xs)
    gy = np.random.default_rng(1).normal(size=y.array.shape)
    y.grad = gy
    y.backward()
    for number, (x, array) in enumerate(zip(xs, inputs, strict=True)):
        measured = np.zeros_like(array)
        for index in np.ndindex(*array.shape):
            heights = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[index] += step
                others = [moved if k == number else one for k, one in enumerate(inputs)]
                heights.append(np.sum(gy * function(*map(variable, others)).array))
            measured[index] = (heights[0] - heights[1]) / 2e-5
        of = f"{what}, with respect to input {number}"
        expect_close(f"the gradient of {of}", x.grad, measured, look, rtol=1e-5, atol=1e-7)
