"""What the checks of exercises are written with.

Requirement: who reads the message of a failed check is learning, and did not write the check. So
a message has no traceback and no name of a test: it says what was looked at, what was expected,
what came instead (with shape and dtype, where they matter), and where to look.

    expect_close("the gradient of exp at 2", work.gradient(2.0), np.exp(2.0),
                 look="the derivative of exp(x) is exp(x) itself")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

LONGEST = 200
"""So many characters of a value are shown."""

MOST_NUMBERS = 6
"""So many numbers of an array are shown."""


class CheckFailed(AssertionError):  # noqa: N818 - what it says, to learners too
    """A learner's work is not right yet.

    Attributes:
        what: What was looked at, such as "the gradient of exp at 2".
        expected: What should have come, in words.
        got: What came, in words.
        look: Where to look, or what to think about.
    """

    def __init__(self, what: str, expected: str, got: str, look: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}. {look}")
        self.what = what
        self.expected = expected
        self.got = got
        self.look = look


def expect_equal(what: str, got: Any, expected: Any, look: str) -> None:
    """The two are equal; arrays are equal if their shapes and all their elements are.

    Raises:
        CheckFailed: They are not.
    """
    if _has_shape(got) or _has_shape(expected):
        _expect_same_numbers(what, got, expected, look, 0.0, 0.0)
    elif not _equal(got, expected):
        raise CheckFailed(what, show(expected), show(got), look)


def expect_close(
    what: str, got: Any, expected: Any, look: str, rtol: float = 1e-6, atol: float = 1e-9
) -> None:
    """The two have the same shape, and |got - expected| <= atol + rtol * |expected| everywhere.

    A NaN is close to a NaN and to nothing else. Variables are compared by their arrays.

    Raises:
        CheckFailed: They do not.
    """
    _expect_same_numbers(what, got, expected, look, rtol, atol)


def expect_true(what: str, condition: Any, look: str) -> None:
    """The condition, which ``what`` puts into words, is true.

    Raises:
        CheckFailed: It is not.
    """
    if not bool(condition):
        raise CheckFailed(what, "yes", "no", look)


def expect_raises(
    what: str, error_class: type[BaseException], call: Callable[[], Any], look: str
) -> BaseException:
    """``call()`` raises such an error, which is returned so that its message can be looked at.

    Raises:
        CheckFailed: It raises another error, or none.
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


def show(value: Any) -> str:
    """A value for a message: arrays with shape and dtype, and their first elements."""
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


def _fail_at(places: Any, what: str, got: Any, expected: Any, look: str) -> NoReturn:
    """Show both, and the first place where they differ if there are many."""
    left, right = _array(got), _array(expected)
    wanted, came = show(expected), show(got)
    if wanted == came:  # a difference in later digits than are shown
        wanted, came = f"{wanted}, exactly", f"{came}, with a difference in further digits"
    if right.size > 1:
        place = tuple(int(index) for index in places[0])
        shown = ", ".join(str(index) for index in place)
        came += f"; {len(places)} of {right.size} differ, first at [{shown}]: "
        came += f"{left[place]:.10g} instead of {right[place]:.10g}"
    raise CheckFailed(what, wanted, came, look)


def _has_shape(value: Any) -> bool:
    return hasattr(value, "shape")


def _array(value: Any) -> Any:
    """A number, an array or a Variable's array, as a NumPy array; None if it is none of these."""
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
    except Exception:  # an array in a list, or an __eq__ that has a mistake
        return False


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
