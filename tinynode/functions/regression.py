"""Losses of predicted numbers: squared error, absolute error, Huber; what all losses share."""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.arithmetic import abs
from tinynode.functions.extrema import clip
from tinynode.functions.operands import as_floating, as_number, as_operands
from tinynode.functions.reduction import mean, sum


def check_reduction(function: str, reduction: str) -> str:
    """Raises ValueError unless the reduction is "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f'{function}: reduction must be "mean", "sum" or "none", got {reduction!r}.'
        )
    return reduction


def both_floating(
    function: str, x: Any, y: Any, names: tuple[str, str] = ("x", "y")
) -> tuple[Variable, Variable]:
    """Both as floating Variables: the differences and products of small integers wrap around."""
    x, y = as_operands(function, x, y, names)
    return as_floating(function, names[0], x), as_floating(function, names[1], y)


def require_equal_shapes(function: str, x: Variable, name: str, y: Variable) -> None:
    if x.shape != y.shape:
        raise ValueError(
            f"{function}: x has shape {x.shape}, {name} has {y.shape}: they must be equal. "
            "Reshape one, or use broadcast_to."
        )


def reduce(losses: Variable, reduction: str) -> Variable:
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def mean_squared_error(x: Any, y: Any, reduction: str = "mean") -> Variable:
    """(x - y)^2, as the mean, as the sum, or for each element.

    x: (s), y: (s) -> 0-d, or (s) with ``reduction="none"``. With d = x - y and n elements, the
    mean has dL/dx = 2 d / n and dL/dy = -2 d / n.

    Raises:
        OperandError: x or y is not floating.
        ValueError: the shapes differ (a broadcast here is a mistake more often than not), or the
            reduction is unknown.
    """
    x, y = both_floating("mean_squared_error", x, y)
    check_reduction("mean_squared_error", reduction)
    require_equal_shapes("mean_squared_error", x, "y", y)
    return reduce((x - y) ** 2, reduction)


def mean_absolute_error(x: Any, y: Any, reduction: str = "mean") -> Variable:
    """|x - y|, as the mean, as the sum, or for each element; the gradient at x = y is 0.

    Raises:
        OperandError: x or y is not floating.
        ValueError: the shapes differ, or the reduction is unknown.
    """
    x, y = both_floating("mean_absolute_error", x, y)
    check_reduction("mean_absolute_error", reduction)
    require_equal_shapes("mean_absolute_error", x, "y", y)
    return reduce(abs(x - y), reduction)


class Huber(FunctionNode):
    """y = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2).

    d: (s) -> y: (s).   dL/dd = dL/dy * (d held between -delta and delta)
    """

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def forward(self, inputs: Arrays) -> Arrays:
        (d,) = inputs
        self.retain_inputs((0,))
        inner = namespace_of(d).clip(d, min=-self.delta, max=self.delta)
        return (inner * (d - inner * 0.5),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (d,) = self.get_retained_inputs()
        assert gy is not None
        return (gy * clip(d, -self.delta, self.delta),)


def huber(x: Any, y: Any, delta: float = 1.0, reduction: str = "mean") -> Variable:
    """d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - y; then reduced.

    dL/dx = dL/dloss * (d held between -delta and delta).

    Source: Huber, Robust Estimation of a Location Parameter, 1964.

    Raises:
        OperandError: x or y is not floating, or delta is not a number.
        ValueError: the shapes differ, delta is not positive, or the reduction is unknown.
    """
    x, y = both_floating("huber", x, y)
    check_reduction("huber", reduction)
    require_equal_shapes("huber", x, "y", y)
    if not as_number("huber", "delta", delta) > 0:
        raise ValueError(f"huber: delta must be positive, got {delta}.")
    return reduce(Huber(float(delta)).apply((x - y,))[0], reduction)
