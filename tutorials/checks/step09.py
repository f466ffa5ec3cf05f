"""Exercise 9: are the values the same, the graph short, and the gradient that of one window?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode.learn.checks import expect_close, expect_equal, expect_true, solution

HINTS = (
    "h.unchain() cuts h off from what computed it. When does it have to happen?",
    "Count the steps with enumerate. A window ends where step % window == 0. Cut before the step, "
    "so that at least one step stays behind the last h.",
    "In the loop, first: `if step % window == 0: h.unchain()`. Then h = tanh(w * h + number).",
)

NUMBERS = (1.0, -0.5, 0.3, 0.8, -1.2, 0.4, 0.1)
W = 0.7


def _run(work: Any, length: int, window: int) -> tuple[Any, Any]:
    """The weight, and the last h."""
    from engine09 import Variable

    w = Variable(np.array(W))
    return w, work.read_in_windows(w, NUMBERS[:length], window)


def _count(y: Any) -> int:
    """The number of operations behind y."""
    seen, waiting = {None}, [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += [node.creator_node for node in function.inputs]
    return len(seen) - 1


def _expected(length: int, window: int) -> tuple[float, float]:
    """The last h, and dh/dw within the last window, by the rule for tanh."""
    h = slope = 0.0
    for step in range(length):
        if step % window == 0:
            slope = 0.0
        before, h = h, np.tanh(W * h + NUMBERS[step])
        slope = (1 - h * h) * (before + W * slope)
    return float(h), float(slope)


def check_values(work: Any) -> None:
    """cutting does not change the numbers"""
    for window in (2, 3, 100):
        _, h = _run(work, 7, window)
        look = "read_in_windows: h goes on with its value, only its past is cut off"
        expect_close(f"the last h, for window {window}", h.array, _expected(7, window)[0], look)


def check_counts(work: Any) -> None:
    """at most one window of operations is behind h"""
    look = "read_in_windows: cut before the steps number window, 2 * window, ... counted from 0"
    for length, window in ((7, 3), (7, 2), (5, 4), (7, 100)):
        _, h = _run(work, length, window)
        steps = (length - 1) % window + 1
        what = f"the operations behind h (3 for each step), {length} numbers, window {window}"
        expect_equal(what, _count(h), 3 * steps, look)


def check_full_window(work: Any) -> None:
    """after a whole number of windows, the last one is still there"""
    look = "read_in_windows: cut before a step, not after it: the last h needs a window behind it"
    for length, window in ((6, 3), (4, 2), (3, 1)):
        _, h = _run(work, length, window)
        expect_true("the last h has a creator", h.creator_node is not None, look)
        what = f"the operations behind h (3 for each step), {length} numbers, window {window}"
        expect_equal(what, _count(h), 3 * window, look)


def check_gradients(work: Any) -> None:
    """the gradient is that of the last window"""
    look = "read_in_windows: w stays in the graph, only h is cut"
    for length, window in ((7, 3), (6, 3), (7, 2), (7, 100)):
        w, h = _run(work, length, window)
        h.backward()
        what = f"the gradient of w, {length} numbers, window {window}"
        expect_close(what, w.grad, _expected(length, window)[1], look)


_SOLUTION = solution(__file__)
_CUT = """        if step % window == 0:
            h.unchain()
"""
_STEP = "        h = tanh(w * h + number)\n"

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "it cuts after the step, so that nothing is left after a whole number of windows",
        _SOLUTION.replace(_CUT + _STEP, _STEP + _CUT.replace("step", "(step + 1)")),
    ),
    (
        "it cuts at every step",
        _SOLUTION.replace(_CUT, "        h.unchain()\n"),
    ),
    (
        "it forgets the value of h, too",
        _SOLUTION.replace("h.unchain()", "h = Variable(np.array(0.0), requires_grad=False)"),
    ),
    (
        "it cuts w in place of h",
        _SOLUTION.replace("h.unchain()", "w.unchain()"),
    ),
)
