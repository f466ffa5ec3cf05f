"""numerical_grad: derivatives from values alone, by central differences.

Requirement: the judge of every gradient shares no code with the judged gradients. So no graph is
used: an element of an array is moved by eps up and down, a function is called, and the slope is

    (f(x + eps) - f(x - eps)) / (2 eps)

in float64. ``tinynode.gradient_check`` tells how to choose eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy

from tinynode.configuration import using_config
from tinynode.core.conversion import as_host
from tinynode.core.variable import Variable
from tinynode.devices import Array, device_of, is_floating, namespace_of, to_host
from tinynode.errors import GraphError, NondifferentiableError, describe

HostArray: TypeAlias = Any
"""A NumPy array."""


def numerical_grad(
    f: Callable[[], Any],
    inputs: Sequence[Array],
    grad_outputs: Sequence[Array | None],
    eps: float = 1e-3,
    detect_nondifferentiable: bool = False,
    diff_atol: float = 0.0,
    diff_rtol: float = 1e-3,
    center_outputs: Sequence[Array | None] | None = None,
) -> tuple[Array, ...]:
    """The gradients of sum(grad_outputs * f()) with respect to the arrays read by f.

    Element after element is moved by eps up and down, *in place*, and put back. The differences
    are taken in float64. f runs without type checks, and no graph is recorded.

    Args:
        f: takes nothing, reads ``inputs``, returns an array or a tuple of arrays (or Variables).
        inputs: writable floating arrays.
        grad_outputs: the weights of the outputs' elements, in the outputs' shapes; None leaves
            an output out.
        eps: how far each element is moved.
        detect_nondifferentiable: take 5 points in place of 2, and fit a parabola.
        diff_atol: the allowed distance of a point from the parabola, absolute.
        diff_rtol: the allowed distance, relative to the range of the 5 points; both distances
            add up. A smooth function can exceed the sum where the first and the
            second derivative are zero, as x^3
            at 0.
        center_outputs: f() at the given inputs, if known: the middle of the 5 points.

    Returns:
        An array for each input, of the input's shape, dtype and device.

    Raises:
        GraphError: an input is not floating.
        ValueError: an input is read-only, eps is too small for the input's dtype, or
            ``grad_outputs`` do not fit the outputs.
        NondifferentiableError: f jumps or has a kink near the inputs.
    """
    arrays = [x.array if isinstance(x, Variable) else x for x in inputs]
    if not (eps > 0.0 and math.isfinite(eps)):
        raise ValueError(f"numerical_grad: eps must be a positive number, got {eps!r}.")
    for position, x in enumerate(arrays):
        _check_input(f"inputs[{position}]", x)
    gys = [None if gy is None else as_float64(gy) for gy in grad_outputs]
    with using_config(type_check=False, enable_backprop=False):
        center = None
        if detect_nondifferentiable:
            center = _evaluate(f, gys) if center_outputs is None else list(center_outputs)
        sampler = _Sampler(f, gys, eps, center, diff_atol, diff_rtol)
        return tuple(sampler.gradient(f"inputs[{i}]", x) for i, x in enumerate(arrays))


def _check_input(name: str, x: Array) -> None:
    device_of(x, "numerical_grad", name)
    if not is_floating(x):
        raise GraphError(
            f"numerical_grad: {name} is {describe(x)}: only floating arrays can be moved by eps."
        )
    if x.size == 0:
        return
    first = (0,) * x.ndim
    try:
        x[first] = x[first]
    except Exception as error:
        raise ValueError(
            f"numerical_grad: {name} ({describe(x)}) cannot be written to, and numerical_grad "
            "moves its inputs in place. Give it a copy that is writable, or use check_backward, "
            "which moves copies."
        ) from error


class _Sampler:
    """Evaluates f with an element of an input moved, and computes the slope of the values."""

    def __init__(
        self,
        f: Callable[[], Any],
        gys: list[HostArray | None],
        eps: float,
        center: list[Array | None] | None,
        diff_atol: float,
        diff_rtol: float,
    ) -> None:
        self.f = f
        self.gys = gys
        self.eps = eps
        self.center = center
        self.diff_atol = diff_atol
        self.diff_rtol = diff_rtol

    def gradient(self, name: str, x: Array) -> Array:
        saved = namespace_of(x).asarray(x, copy=True)
        values = to_host(saved)
        gx = numpy.zeros(values.shape, values.dtype)
        for index in numpy.ndindex(values.shape):
            try:
                gx[index] = self._slope(f"{name}{list(index) or ''}", x, index, values[index])
            finally:
                x[index] = saved[index]
        return device_of(x, "numerical_grad", name).from_host(gx)

    def _slope(self, name: str, x: Array, index: tuple[int, ...], value: HostArray) -> float:
        # the step as the dtype represents it, not eps itself
        high, low = value.dtype.type(value + self.eps), value.dtype.type(value - self.eps)
        step = float(high) - float(low)
        if step == 0.0:
            raise ValueError(
                f"numerical_grad: eps={self.eps} vanishes beside {name} = {value} in "
                f"{value.dtype}. Take a larger eps, or float64 inputs."
            )
        below, above = self._at(x, index, low), self._at(x, index, high)
        if self.center is not None:
            half = self.eps / 2
            inner = self._at(x, index, value - half), self._at(x, index, value + half)
            self._check_smooth(name, [below, inner[0], self.center, inner[1], above])
        slope = 0.0
        with numpy.errstate(all="ignore"):  # an infinite output gives NaN: refused by checks
            for gy, y0, y1 in zip(self.gys, below, above, strict=True):
                if gy is not None:
                    slope += float(numpy.sum(gy * (as_float64(y1) - as_float64(y0)))) / step
        return slope

    def _at(self, x: Array, index: tuple[int, ...], value: HostArray) -> list[Array | None]:
        x[index] = float(value)
        return _evaluate(self.f, self.gys)

    def _check_smooth(self, name: str, samples: list[list[Array | None]]) -> None:
        """Raise NondifferentiableError if an output is far from a parabola in the element."""
        for position, gy in enumerate(self.gys):
            if gy is None:
                continue
            points = [to_host(sample[position]) for sample in samples]
            values = numpy.stack([as_float64(y).ravel() for y in points])
            finite = numpy.isfinite(values)
            bad = finite.any(axis=0) & ~finite.all(axis=0)
            values = values[:, finite.all(axis=0)]
            spread = values.max(axis=0, initial=-math.inf) - values.min(axis=0, initial=math.inf)
            # a constant output differs from itself by rounding only
            rounding = 32 * numpy.finfo(points[0].dtype).eps * abs(values).max(axis=0, initial=0.0)
            allowed = self.diff_atol + self.diff_rtol * spread + rounding
            off = abs(OFF_PARABOLA @ values).max(axis=0, initial=0.0)
            if bad.any() or (off > allowed).any():
                raise NondifferentiableError(
                    f"numerical_grad: output {position} is not differentiable in {name}, or not "
                    f"within {self.eps} of it. Take other inputs, or a smaller eps if it is "
                    "smooth but strongly curved there."
                )


def _off_parabola() -> HostArray:
    """The matrix from values at 5 equidistant points to the distances from a parabola."""
    powers = numpy.vander(numpy.linspace(-1.0, 1.0, 5), 3)
    return numpy.eye(5) - powers @ numpy.linalg.pinv(powers)


OFF_PARABOLA = _off_parabola()


def _evaluate(f: Callable[[], Any], gys: list[HostArray | None]) -> list[Array | None]:
    """The outputs of f on the host, in new memory."""
    outputs = f()
    if not isinstance(outputs, tuple | list):
        outputs = (outputs,)
    if len(outputs) != len(gys):
        raise ValueError(
            f"numerical_grad: f gives {len(outputs)} outputs, grad_outputs has {len(gys)} entries."
        )
    copies: list[Array | None] = []
    for position, (y, gy) in enumerate(zip(outputs, gys, strict=True)):
        if gy is None:
            copies.append(None)
            continue
        host = numpy.array(as_host(y))
        if host.shape != gy.shape:
            raise ValueError(
                f"numerical_grad: grad_outputs[{position}] has shape {gy.shape}, the output has "
                f"{host.shape}."
            )
        copies.append(host)
    return copies


def as_float64(value: Any) -> HostArray:
    """The values on the host, in float64."""
    return numpy.asarray(as_host(value), dtype=numpy.float64)
