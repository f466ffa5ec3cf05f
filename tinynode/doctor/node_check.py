"""The check of a single function: is its backward the derivative of its forward?

Requirement: no false alarm, at any size. A fresh function with the same constants runs in float64
on the arrays that the function saw. The slope of backward is compared with central differences
along a random direction d, with random weights w of the outputs:

    sum(gx * d)   and   sum(w * (f(x + h d) - f(x - h d))) / (2 h)

Six runs of forward and one of backward are enough for arrays of any size. At a kink there is no
derivative. So an output element whose values at 5 points lie off a parabola gets the weight 0. If
no element is left, the check moves to a point nearby. A mismatch counts only if a second direction
confirms the mismatch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.configuration import force_backprop_mode, using_config
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, is_floating, to_host
from tinynode.differences import OFF_PARABOLA, HostArray, as_float64
from tinynode.doctor.replay import living_outputs, rebuild, why_not_run_again
from tinynode.errors import dtype_name
from tinynode.net.program import NetFunction

_STEPS = {"float64": 1e-4, "float32": 1e-2, "float16": 1e-1}
"""The step beside the size of an element, by the narrowest dtype of the outputs."""
_TOLERANCES = {"float64": 1e-4, "float32": 2e-2, "float16": 2e-1}
_FLOOR = 0.1
"""The least step of an element: the step of an element with this share of the usual size."""
_NEAR = 1e-2
"""The distance of the point nearby, beside the size of an element."""
_BEND = 1e-3
"""An element is smooth if the 5 values lie this close to a parabola, beside their range."""
_ZERO = 1e-14
"""A slope is 0 up to rounding below this share of the norms of weights and direction."""
_INFINITE = 1e15
"""A larger element stands for infinity, as in masks, and is not moved: 1 vanishes beside it."""
_FEW = 16
"""The number of moved elements in the last attempt: few elements meet few kinks."""


@dataclass
class Slope:
    """The slopes for an input, by backward and by central differences."""

    input: int
    actual: float
    expected: float


@dataclass
class NodeCheck:
    """The result for a function.

    Attributes:
        function: the function of the graph.
        unchecked: the reason why there is no result; "" after a check.
        error: the exception of backward; None if backward ran.
        slopes: the inputs with a wrong gradient; empty for a right backward.
    """

    function: FunctionNode
    unchecked: str = ""
    error: Exception | None = None
    slopes: tuple[Slope, ...] = ()

    @property
    def is_wrong(self) -> bool:
        """True for a wrong gradient, and for a backward that raises."""
        return bool(self.slopes or self.error is not None)


def check_node(function: FunctionNode, arrays: Sequence[Array]) -> NodeCheck:
    """Check the backward of a function on arrays."""
    reason = _why_unchecked(function, arrays)
    if reason:
        return NodeCheck(function, reason)
    try:
        for attempt in range(3):
            probe = _Probe(function, arrays, attempt)
            if not probe.has_elements():
                return NodeCheck(function, "no elements")
            wrong = probe.wrong_slopes() if probe.is_smooth() else []
            if probe.is_smooth() and not wrong:
                return NodeCheck(function)
            if not probe.runs_alike():
                return NodeCheck(function, "forward gives other values each time")
            if wrong:
                again = _Probe(function, arrays, attempt, seed=1).wrong_slopes()
                return NodeCheck(function, slopes=tuple(wrong) if again else ())
    except _BackwardError as failure:
        return NodeCheck(function, error=failure.error)
    except Exception as error:
        return NodeCheck(function, f"forward cannot run again ({type(error).__name__})")
    return NodeCheck(function, "no derivative at these values")


def _why_unchecked(function: FunctionNode, arrays: Sequence[Array]) -> str:
    """The reason why a function cannot be checked; "" if it can."""
    if reason := why_not_run_again(function):
        return reason
    own = type(function)
    if own.backward is FunctionNode.backward and (
        own.backward_accumulate is FunctionNode.backward_accumulate
    ):
        return "no backward by intent"
    floating = [x for x in arrays if is_floating(x)]
    if isinstance(function, NetFunction) and any(
        dtype_name(x.dtype) != "float64" for x in floating
    ):
        return "compiled below float64"
    if not all(bool(numpy.isfinite(as_float64(x)).all()) for x in floating):
        return "inputs are NaN or inf"
    return ""


class _BackwardError(Exception):
    """Backward raised ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class _Probe:
    """A point and a direction, the outputs at 5 points along it, and the weights of the outputs.

    Args:
        function: the function to check.
        arrays: the arrays of the inputs.
        attempt: 0 for the given point, 1 for a point nearby, 2 for a point nearby and a direction
            with few elements.
        seed: another number draws another direction.
    """

    def __init__(
        self, function: FunctionNode, arrays: Sequence[Array], attempt: int, seed: int = 0
    ) -> None:
        self.function = function
        self.generator = numpy.random.default_rng([seed, attempt])
        self.nodes = function.inputs or ()
        self.targets = [i for i, node in enumerate(self.nodes) if node.requires_grad]
        self.outputs = sorted(living_outputs(function))
        self.points = [as_float64(x) if is_floating(x) else x for x in arrays]
        sizes = {i: _sizes(self.points[i]) for i in self.targets}
        if attempt:
            for i, size in sizes.items():
                self.points[i] = numpy.asarray(self.points[i] + _NEAR * self._direction(i, size))
        self.directions = {i: self._direction(i, size) for i, size in sizes.items()}
        if attempt == 2:
            for direction in self.directions.values():
                self._keep_few(direction)
        self.middle = self._forward(0.0, self.targets)
        self.step, self.tolerance = _precision(self.middle)
        self.samples = self._samples(self.targets)
        self.weights = self._weights()

    def runs_alike(self) -> bool:
        """True if forward gives the same values for the same inputs, but for rounding."""
        return all(
            numpy.allclose(a, b, 1e-6 * self.step, 1e-6 * self.step, equal_nan=True)
            for a, b in zip(self.middle, self._forward(0.0, self.targets), strict=True)
        )

    def has_elements(self) -> bool:
        """True if a floating output has elements."""
        return any(y.size > 0 and y.dtype.kind == "f" for y in self.middle)

    def is_smooth(self) -> bool:
        """True if an output element has a derivative along the direction."""
        return any(bool(weight.any()) for weight in self.weights)

    def wrong_slopes(self) -> list[Slope]:
        """The inputs with a wrong gradient; empty if the slopes for all inputs together agree."""
        gradients = self._gradients()
        if self._slope(self.samples, gradients, self.targets) is None:
            return []
        wrong = []
        for i in self.targets:
            samples = self._samples([i])
            found = self._slope(samples, gradients, [i])
            if found is not None:
                wrong.append(Slope(i, *found))
        return wrong  # empty at a jump where several inputs meet

    # --- forward -----------------------------------------------------------------------------

    def _forward(self, distance: float, moved: Sequence[int]) -> list[HostArray]:
        """The outputs in float64, with some inputs moved along the direction."""
        inputs = self._inputs(distance, moved, False)
        with using_config(enable_backprop=False, type_check=False):
            ys = rebuild(self.function).apply(tuple(inputs))
        return [to_host(ys[i].raw).copy() for i in self.outputs]

    def _inputs(self, distance: float, moved: Sequence[int], graph: bool) -> list[Variable]:
        """The inputs as Variables of float64."""
        inputs = []
        for i, (node, point) in enumerate(zip(self.nodes, self.points, strict=True)):
            array = point
            if isinstance(point, numpy.ndarray) and point.dtype == numpy.float64:
                host = point + distance * self.directions[i] if i in moved else point
                array = node.device.from_host(numpy.array(host))
            inputs.append(wrap_array(array, node.device, graph and node.requires_grad))
        return inputs

    def _samples(self, moved: Sequence[int]) -> list[HostArray]:
        """For each output, the values at 5 points, in a first axis."""
        rows = [self._forward(self.step * k / 2, moved) for k in (-2, -1)]
        rows.append(self.middle)
        rows += [self._forward(self.step * k / 2, moved) for k in (1, 2)]
        return [numpy.stack([row[i] for row in rows]) for i in range(len(self.outputs))]

    # --- directions and weights ----------------------------------------------------------------

    def _direction(self, i: int, sizes: HostArray) -> HostArray:
        """A random direction; symmetric for symmetric matrices, as ``cholesky`` expects them."""
        direction = self._signed(sizes)
        if _is_symmetric(self.points[i]):
            return (direction + numpy.swapaxes(direction, -1, -2)) / 2
        return direction

    def _signed(self, sizes: HostArray) -> HostArray:
        """Random numbers from half a size to a size, of random signs."""
        drawn = numpy.asarray(self.generator.random(sizes.shape) - 0.5)
        return sizes * numpy.copysign(abs(drawn) + 0.5, drawn)

    def _keep_few(self, direction: HostArray) -> None:
        """Set all but a few elements of a direction to 0, in place."""
        keep = self.generator.permutation(direction.size)[:_FEW]
        mask = numpy.zeros(direction.size)
        mask[keep] = 1.0
        direction *= mask.reshape(direction.shape)

    def _weights(self) -> list[HostArray]:
        """Random weights of the output elements; 0 where an element has no derivative."""
        weights = []
        for values in self.samples:
            if values.dtype.kind != "f":
                weights.append(numpy.zeros(values.shape[1:]))
                continue
            weight = self._signed(numpy.ones(values.shape[1:]))
            weights.append(numpy.where(_smooth(values), weight, 0.0))
        return weights

    # --- the two slopes ------------------------------------------------------------------------

    def _gradients(self) -> dict[int, HostArray | None]:
        """The gradients of the targets by backward; None counts as zero."""
        xs = self._inputs(0.0, (), True)
        with force_backprop_mode():
            ys = rebuild(self.function).apply(tuple(xs))
        used, weights = [], []
        for i, weight in zip(self.outputs, self.weights, strict=True):
            if ys[i].requires_grad and weight.any():
                array = ys[i].device.from_host(
                    numpy.asarray(weight, dtype=dtype_name(ys[i].dtype))
                )
                used.append(ys[i])
                weights.append(wrap_array(array, ys[i].device, False))
        try:
            found = grad(used, [xs[i] for i in self.targets], weights)
        except Exception as error:
            raise _BackwardError(error) from error
        gradients = {}
        for i, gx in zip(self.targets, found, strict=True):
            gradients[i] = None if gx is None else as_float64(gx.raw)
        return gradients

    def _slope(
        self, samples: list[HostArray], gradients: dict[int, Any], moved: Sequence[int]
    ) -> tuple[float, float] | None:
        """The slopes by backward and by differences, if they differ; None if they agree."""
        wide = narrow = size = rounding = weights = 0.0
        for values, weight in zip(samples, self.weights, strict=True):
            if not weight.any():
                continue
            chosen = weight != 0.0
            w, (low, near_low, middle, near_high, high) = weight[chosen], values[:, chosen]
            terms = w * (_wide(high) - _wide(low)) / (2 * self.step)
            wide += float(numpy.sum(terms))
            narrow += float(numpy.sum(w * (_wide(near_high) - _wide(near_low)))) / self.step
            size += float(numpy.sum(terms * terms))
            weights += float(numpy.sum(w * w))
            rounding += float(numpy.sum((w * _wide(middle) * numpy.finfo(values.dtype).eps) ** 2))
        expected = (4.0 * narrow - wide) / 3.0  # the errors of both in step ** 2 cancel
        actual = steep = length = 0.0
        for i in moved:
            length += float(numpy.sum(self.directions[i] ** 2))
            if gradients[i] is not None:
                parts = gradients[i] * self.directions[i]
                actual += float(numpy.sum(parts))
                steep += float(numpy.sum(parts * parts))
        allowed = self.tolerance * max(abs(expected), math.sqrt(size))
        allowed += 10 * abs(wide - narrow) + 32 * math.sqrt(rounding) / self.step
        allowed += _ZERO * math.sqrt(weights * length)
        allowed += 1e-9 * math.sqrt(steep) if math.isfinite(steep) else 0.0
        return None if abs(actual - expected) <= allowed else (actual, expected)


def _wide(values: HostArray) -> HostArray:
    return values.astype(numpy.float64)


def _sizes(point: HostArray) -> HostArray:
    """The size of each element, at least a share of the root mean square; 1 for zeros.

    The size is 0 for elements that stand for infinity.
    """
    ordinary = abs(point) < _INFINITE
    chosen = point[ordinary]
    usual = float(numpy.sqrt(numpy.mean(chosen * chosen))) if chosen.size else 0.0
    sizes = numpy.maximum(abs(point), _FLOOR * usual) if usual else numpy.ones_like(point)
    return numpy.where(ordinary, sizes, 0.0)


def _is_symmetric(point: HostArray) -> bool:
    """True for a square matrix, or a stack, equal to the transpose."""
    if point.ndim < 2 or point.shape[-1] != point.shape[-2]:
        return False
    return bool(numpy.array_equal(point, numpy.swapaxes(point, -1, -2)))


def _precision(outputs: list[HostArray]) -> tuple[float, float]:
    """The step and the tolerance for the narrowest floating dtype of the outputs."""
    names = [str(y.dtype) for y in outputs if y.dtype.kind == "f"]
    known = [name for name in names if name in _STEPS]
    narrowest = max(known, key=_step, default="float64")
    return _STEPS[narrowest], _TOLERANCES[narrowest]


def _step(name: str) -> float:
    return _STEPS[name]


def _smooth(values: HostArray) -> HostArray:
    """For each element: True if the values at the 5 points are finite, and near a parabola."""
    flat = _wide(values).reshape(len(values), -1)
    finite = numpy.isfinite(flat).all(axis=0)
    flat = numpy.where(finite, flat, 0.0)
    spread = flat.max(axis=0) - flat.min(axis=0)
    rounding = 32 * numpy.finfo(values.dtype).eps * abs(flat).max(axis=0)
    off = abs(OFF_PARABOLA @ flat).max(axis=0, initial=0.0)
    smooth: HostArray = finite & (off <= _BEND * spread + rounding)
    return smooth.reshape(values.shape[1:])
