"""Gradient clipping: by the joint norm, or element by element.

Requirement: eager code and nets clip by the same lines. So clipping is a FunctionNode from
gradients to new gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tinynode.configuration import no_backprop_mode
from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of
from tinynode.errors import GraphError
from tinynode.functions.checked import checked_float
from tinynode.nn.checks import checked_number
from tinynode.nn.groups import named_parameters
from tinynode.nn.module import Module
from tinynode.nn.parameter import assign_gradient


class ClipByNorm(FunctionNode):
    """The norm of all gradients together, and the gradients scaled to at most ``max_norm``.

    g0: (s0), g1: (s1) ... -> norm: (), float64, g0': (s0), g1': (s1) ... No gradient.

    Raises:
        ValueError: the norm is not finite.
    """

    input_counts = (1, ...)
    output_counts = (1, ...)

    def __init__(self, max_norm: float) -> None:
        self.max_norm = checked_float(self, "max_norm", max_norm)

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])
        norm = joint_norm(inputs)
        factor = self.max_norm / norm if norm > self.max_norm else 1.0
        result = xp.asarray(norm, dtype=xp.float64, device=inputs[0].device)
        return (result, *[_scaled(xp, g, factor) for g in inputs])


class ClipByValue(FunctionNode):
    """Every element of every gradient, limited to -limit .. limit. NaN stays NaN.

    g0: (s0), g1: (s1) ... -> g0': (s0), g1': (s1) ... No gradient.
    """

    input_counts = (1, ...)
    output_counts = (1, ...)

    def __init__(self, limit: float) -> None:
        self.limit = checked_float(self, "limit", limit)

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])
        return tuple([xp.clip(g, -self.limit, self.limit) for g in inputs])


def _scaled(xp: Any, g: Array, factor: float) -> Array:
    """A new array: factor * g, multiplied in float64, since the factor may be 0 in float16."""
    if factor == 1.0:
        return xp.asarray(g, copy=True)
    return xp.astype(xp.asarray(xp.astype(g, xp.float64) * factor), g.dtype)


def joint_norm(gradients: Iterable[Array]) -> float:
    """sqrt(sum of g^2 over all elements of all gradients).

    Raises:
        ValueError: the norm is not finite.
    """
    norm = math.hypot(*[_norm(namespace_of(g), g) for g in gradients])
    if not math.isfinite(norm):
        raise ValueError(
            f"clip_gradients: the norm of the gradients is {norm}: look for NaN with NaNHook or "
            "debug mode, or lower the learning rate."
        )
    return norm


def _norm(xp: Any, array: Array) -> float:
    """sqrt(sum of squares), in float64; array / max |array| avoids over- and underflow."""
    if 0 in array.shape:
        return 0.0
    wide = xp.abs(xp.astype(array, xp.float64))
    largest = float(xp.max(wide))
    if not 0.0 < largest < math.inf:
        return largest
    ratios = wide / largest
    return largest * math.sqrt(float(xp.sum(ratios * ratios)))


def clip_gradients(parameters: Module | Iterable[Variable], max_norm: float) -> float | Variable:
    """Scale all gradients by the same factor, for a joint norm of at most ``max_norm``.

    The norm is sqrt(sum of g^2 over all elements of all gradients). If the norm is larger,
    every gradient is multiplied by max_norm / norm. Missing gradients do not count.

    Source: Pascanu, Mikolov and Bengio, On the Difficulty of Training Recurrent Neural Networks,
    2013.

    Args:
        parameters: a Module, or a list of Variables.
        max_norm: the largest norm allowed, above 0.

    Returns:
        The norm before scaling; in a compiled function a Variable of shape ().

    Raises:
        ValueError: ``max_norm`` is not positive, or the norm is not finite; no gradient changes.
    """
    limit = _positive("clip_gradients: max_norm", max_norm)
    with_grad = _with_gradient("clip_gradients", parameters)
    if not is_recording_net():
        norm = joint_norm([g.array for _, g in with_grad])
        for p, g in with_grad if norm > limit else []:
            scaled = _scaled(p.xp, g.array, limit / norm)
            assign_gradient(p, p.device.lift(scaled), p.device)
        return norm
    if not with_grad:
        raise GraphError("clip_gradients: no parameter has a gradient. Call backward() before.")
    norm_of_all, *clipped = _applied(ClipByNorm(limit), with_grad)
    for (p, _), g in zip(with_grad, clipped, strict=True):
        p.grad_var = g
    return norm_of_all


def clip_gradients_by_value(parameters: Module | Iterable[Variable], limit: float) -> None:
    """Limit every element of every gradient to -limit .. limit. NaN stays NaN.

    Args:
        parameters: a Module, or a list of Variables.
        limit: the largest absolute value allowed, above 0.

    Raises:
        ValueError: ``limit`` is not positive.
    """
    function = ClipByValue(_positive("clip_gradients_by_value: limit", limit))
    with_grad = _with_gradient("clip_gradients_by_value", parameters)
    if is_recording_net() and with_grad:
        for (p, _), clipped in zip(with_grad, _applied(function, with_grad), strict=True):
            p.grad_var = clipped
        return
    for p, g in with_grad:
        (array,) = function.forward((g.array,))
        assign_gradient(p, p.device.lift(array), p.device)


def _positive(setting: str, value: float) -> float:
    number = checked_number(setting, value, 0.0, math.inf)
    if number == 0:
        raise ValueError(f"{setting} must be above 0.")
    return number


def _with_gradient(
    function: str, parameters: Module | Iterable[Variable]
) -> list[tuple[Variable, Variable]]:
    """The parameters with a gradient, each with the gradient."""
    named = named_parameters(function, parameters)
    return [(p, p.grad_var) for _, p in named if p.grad_var is not None]


def _applied(
    function: FunctionNode, with_grad: list[tuple[Variable, Variable]]
) -> tuple[Variable, ...]:
    """The clipped gradients, as Variables of a net."""
    with no_backprop_mode():
        return function.apply(tuple([g for _, g in with_grad]))
