"""Exercise 3: are the steps well chosen, and does the judge find planted mistakes?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode.learn.checks import CheckFailed, expect_equal, expect_true, solution

HINTS = (
    "Look at the V: the best eps is at its lowest point, and each dtype has its own.",
    "In agrees: write a function without arguments that returns (function(x).array,), and give it "
    "to numerical_grad with (x.array,), (gy,) and EPS64. It returns a tuple.",
    "EPS64 = 1e-5, EPS32 = 1e-2, and agrees ends with "
    "`return np.allclose(gx, measured, rtol=1e-6, atol=1e-8)`.",
)

POINTS = (0.3, -0.7, 1.1)


def _slope_error(engine: Any, name: str, derivative: Callable[..., Any], dtype: Any, eps: float):
    """The largest error of the measured slope of an operation, over some points."""
    worst = 0.0
    for point in POINTS:
        x = engine.Variable(np.array(point, dtype))
        operation = getattr(engine, name)

        def read_x(operation: Any = operation, x: Any = x) -> Any:
            return (operation(x).array,)

        (slope,) = engine.numerical_grad(read_x, (x.array,), (np.array(1, dtype),), eps)
        worst = max(worst, abs(float(slope) - float(derivative(float(x.array)))))
    return worst


def _twice(x: float) -> float:
    return 2.0 * x


def _check_eps(eps: float, dtype: Any, bound: float, look: str) -> None:
    import engine03

    for name, derivative in (("square", _twice), ("exp", np.exp), ("sin", np.cos)):
        error = _slope_error(engine03, name, derivative, dtype, eps)
        if not error < bound:
            what = f"the error of the slope of {name}, {np.dtype(dtype).name}, eps = {eps:g}"
            raise CheckFailed(what, f"less than {bound:.0e}", f"{error:.1e}", look)


def check_eps64(work: Any) -> None:
    """EPS64 measures with an error below 1e-9"""
    _check_eps(work.EPS64, np.float64, 1e-9, "EPS64: find the lowest point of the float64 V")


def check_eps32(work: Any) -> None:
    """EPS32 measures with an error below 5e-3"""
    _check_eps(work.EPS32, np.float32, 5e-3, "EPS32: find the lowest point of the float32 V")


def _operation(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """A function like square, made of a forward of x and a backward of (x, gy)."""
    from engine03 import FunctionNode

    class Operation(FunctionNode):
        def forward(self, inputs):
            return (forward(inputs[0]),)

        def backward(self, target_input_indexes, grad_outputs):
            return (backward(self.inputs[0].array, grad_outputs[0]),)

    def operation(x):
        return Operation().apply((x,))[0]

    return operation


def _ask(work: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    from engine03 import Variable

    x = Variable(np.array([0.3, -1.2, 2.0]))
    before = x.array.copy()
    answer = work.agrees(_operation(forward, backward), x, np.array([2.0, -1.0, 0.5]))
    look = "agrees: leave x.array as it was"
    expect_true("x is the same after agrees", np.array_equal(x.array, before), look)
    look = "agrees: one True or False for all elements together, as np.allclose returns it"
    expect_true("agrees returns True or False", np.ndim(answer) == 0 and answer in (0, 1), look)
    return answer


def check_right_ones(work: Any) -> None:
    """agrees says True to a right backward"""
    look = "agrees: a measurement is never exact. Compare with a tolerance, as np.allclose does"
    answer = _ask(work, np.sin, lambda x, gy: gy * np.cos(x))
    expect_equal("agrees(sin, x, gy)", answer, True, look)
    answer = _ask(work, np.exp, lambda x, gy: gy * np.exp(x))
    expect_equal("agrees(exp, x, gy)", answer, True, look)


def check_wrong_ones(work: Any) -> None:
    """agrees says False to a wrong backward"""
    planted = (
        ("the wrong sign", np.cos, lambda x, gy: gy * np.sin(x)),
        ("gy left out", np.sin, lambda x, gy: np.cos(x)),
        ("an error of one part in a thousand", np.exp, lambda x, gy: 1.001 * gy * np.exp(x)),
        ("a mistake for negative x only", np.square, lambda x, gy: gy * 2.0 * np.abs(x)),
        ("a gradient of another element", np.sin, lambda x, gy: (gy * np.cos(x))[::-1]),
    )
    look = "agrees: give gy to both, compare all elements, and keep the tolerance small"
    for mistake, forward, backward in planted:
        answer = _ask(work, forward, backward)
        expect_equal(f"agrees(...) of a backward with {mistake}", answer, False, look)


_SOLUTION = solution(__file__)

MISTAKES: tuple[tuple[str, str], ...] = (
    (
        "the smaller the better",
        _SOLUTION.replace("EPS64 = 1e-5", "EPS64 = 1e-15").replace("EPS32 = 1e-2", "EPS32 = 1e-7"),
    ),
    (
        "only tried with gy = 1",
        _SOLUTION.replace("    def read_x", "    gy = np.ones_like(gy)\n\n    def read_x"),
    ),
    (
        "compared with ==",
        _SOLUTION.replace(
            "np.allclose(gx, measured, rtol=1e-6, atol=1e-8)", "bool(np.all(gx == measured))"
        ),
    ),
    (
        "a tolerance that hides small mistakes",
        _SOLUTION.replace("rtol=1e-6, atol=1e-8", "rtol=0.1, atol=0.1"),
    ),
)
