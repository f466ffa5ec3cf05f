"""One helper for the care that every operation owes to its arrays: dtype, aliasing and purity.

Requirement: a wrong formula shows at once, but a careless one only in a larger program. So each
step checks its operations for three rules, with the same words:

- dtype: float32 stays float32, in the result and in the gradients;
- purity: neither forward nor backward writes to an input, to the result or to a given gradient;
- aliasing: no result and no gradient shares memory with an input, and a gradient that somebody
  holds is not written by a later backward.

    expect_careful(work, "exp", work.exp, np.array([0.5, -1.0]))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_true

CARE = Hint(
    "Three rules hold for every operation: the dtype stays, no array of others is written, no "
    "memory is shared. Which rule does the message name?",
    "float32 stays float32 beside a number of Python. a = a * b makes an array, a *= b writes "
    "into one. A view shares memory, a copy does not.",
)
"""The hint of a check of care."""


@dataclass
class _Kept:
    """An array, its name in messages, and its values from before."""

    name: str
    array: Any
    before: Any

    def expect_unchanged(self, where: str, look: str) -> None:
        """Fail if the array was written since the copy was made."""
        what = f"{self.name} after {where}"
        expect_equal(
            what, self.array, self.before, f"{look} writes to {self.name}: make a new one"
        )


def expect_careful(
    work: Any,
    name: str,
    function: Callable[..., Any],
    *arrays: Any,
    view: bool = False,
    backward: bool = True,
    again: bool = True,
) -> None:
    """Check an operation for dtype, purity and aliasing, on float32 copies of arrays.

    Args:
        work: The learner's package.
        name: The operation in words.
        function: Takes a Variable for each array, and returns a Variable.
        arrays: The inputs.
        view: True if the result may share memory with its input, as that of reshape.
        backward: False where the package has no backward pass yet.
        again: False for several operations in one: the backward pass is not run twice.

    Raises:
        CheckFailed: A rule is broken.
    """
    xs = [work.Variable(np.array(array, np.float32)) for array in arrays]
    inputs = [_kept(f"input {i} of {name}", x.array) for i, x in enumerate(xs)]
    y = function(*xs)
    forward = f"the forward of {name}"
    for kept in inputs:
        kept.expect_unchanged(forward, forward)
        _expect_apart(f"the result of {name}", y.array, kept, forward, allowed=view)
    look = f"{forward}: a number of Python keeps float32, a new array needs dtype=x.dtype"
    expect_equal(f"the dtype of {name} for float32", str(y.array.dtype), "float32", look)
    if not backward:
        return
    gy = np.linspace(0.5, 1.5, y.array.size, dtype=np.float32).reshape(y.array.shape)
    others = [_kept(f"the result of {name}", y.array), _kept(f"y.grad of {name}", gy)]
    _run_backward(y, gy)
    first = _expect_careful_gradients(name, xs, [*inputs, *others], inputs)
    if again:
        _expect_the_same_again(name, xs, y, gy, first)
    held = [_kept(f"the x.grad of input {i}", _array_of(x.grad)) for i, x in enumerate(xs)]
    y = function(*xs)  # each leaf has a gradient already
    _run_backward(y, gy)
    for kept in held:
        kept.expect_unchanged(
            "a second backward", "run_backward or write_to_leaves (x.grad += gx?)"
        )


def _run_backward(y: Any, gy: Any) -> None:
    y.grad = gy
    y.backward()


def _expect_careful_gradients(
    name: str, xs: list[Any], all_kept: list[_Kept], inputs: list[_Kept]
) -> list[_Kept]:
    """Check the gradients of the inputs after one backward; returns the gradients."""
    backward = f"the backward of {name}"
    for kept in all_kept:
        kept.expect_unchanged(backward, backward)
    found = []
    for i, x in enumerate(xs):
        of = f"the gradient of input {i} of {name}"
        expect_true(f"{of} is set", x.grad is not None, backward)
        gx = _array_of(x.grad)
        look = f"{backward}: gx has the dtype of x"
        expect_equal(f"the dtype of {of} for float32", str(gx.dtype), "float32", look)
        for kept in inputs:
            _expect_apart(of, gx, kept, backward)
        found.append(_kept(of, gx))
    return found


def _forget_gradients(y: Any) -> None:
    """Forget the gradients between y and the leaves: a learner's add may be two operations.

    Engines from step 11 on keep no such gradients.
    """
    functions = [getattr(y, "creator_node", None)]
    while functions:
        function = functions.pop()
        for x in getattr(function, "inputs", None) or ():
            if getattr(x, "creator_node", None) is not None:
                x.grad = None
                functions.append(x.creator_node)


def _expect_the_same_again(name: str, xs: list[Any], y: Any, gy: Any, first: list[_Kept]) -> None:
    """Run backward again on the same graph: what forward kept must not have been written."""
    _forget_gradients(y)
    for x in xs:
        x.grad = None
    _run_backward(y, gy)
    look = f"the backward of {name} writes to an array that forward kept: make a new one"
    for x, kept in zip(xs, first, strict=True):
        what = f"{kept.name}, when backward runs again"
        expect_close(what, _array_of(x.grad), kept.before, look)


def _expect_apart(what: str, array: Any, kept: _Kept, look: str, *, allowed: bool = False) -> None:
    """Fail if an array shares memory with a kept array."""
    if not allowed:
        shares = np.shares_memory(array, kept.array)
        rule = f"{look}: return a new array, or a copy"
        expect_true(f"{what} has memory of its own, apart from {kept.name}", not shares, rule)


def _kept(name: str, array: Any) -> _Kept:
    return _Kept(name, array, np.array(array))


def _array_of(gradient: Any) -> Any:
    """The array of a gradient; from step 22 on a gradient is a Variable."""
    return gradient.array if hasattr(gradient, "array") else gradient
