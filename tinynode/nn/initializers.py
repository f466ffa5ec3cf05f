"""Initializers: the random first values of weights, named by the source papers.

Requirement: signals neither fade nor grow from layer to layer. Each function takes a shape and
draws from ``tinynode.random``; ``tinynode.seed`` makes the draws repeatable. A weight has the
shape (out, in, ...). ``fan_in``, the number of inputs of an output, is the product of all axes but
the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, TypeAlias

import numpy

from tinynode import random
from tinynode.devices import Array, Device, get_device
from tinynode.errors import SizeError, short_text
from tinynode.functions.operands import as_number, as_shape
from tinynode.habits import missing_attribute

__all__ = [
    "gain",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "sparse",
    "truncated_normal",
    "zeros",
]
__dir__ = __all__.copy  # for completion

Shape: TypeAlias = tuple[int, ...]
DeviceLike: TypeAlias = str | Device | None
"""A device or its name; None for the current device."""


def lecun_normal(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Draws from N(0, 1 / fan_in): the outputs have the inputs' variance.

    Source: LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998, section 4.6.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    deviation = math.sqrt(1.0 / fan_in("lecun_normal", shape))
    return random.normal(shape, 0.0, deviation, dtype=dtype, device=device)


def he_normal(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Draws from N(0, 2 / fan_in): for layers before a relu, since relu halves the second moment.

    Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015, section 2.2.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    deviation = math.sqrt(2.0 / fan_in("he_normal", shape))
    return random.normal(shape, 0.0, deviation, dtype=dtype, device=device)


def lecun_uniform(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Draws evenly from -a to a with a = sqrt(3 / fan_in), so with variance 1 / fan_in.

    Source: LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998, section 4.6.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    limit = math.sqrt(3.0 / fan_in("lecun_uniform", shape))
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def he_uniform(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Draws evenly from -a to a with a = sqrt(6 / fan_in), so with variance 2 / fan_in.

    Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015, section 2.2.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    limit = math.sqrt(6.0 / fan_in("he_uniform", shape))
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def glorot_normal(
    shape: Shape, gain: float = 1.0, *, dtype: Any = None, device: DeviceLike = None
) -> Array:
    """Draws from N(0, gain^2 2 / (fan_in + fan_out)): a compromise between both directions.

    Source: Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural
    Networks, 2010.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    fans = fan_in("glorot_normal", shape) + fan_out("glorot_normal", shape)
    deviation = as_number("glorot_normal", "gain", gain) * math.sqrt(2.0 / fans)
    return random.normal(shape, 0.0, deviation, dtype=dtype, device=device)


def glorot_uniform(
    shape: Shape, gain: float = 1.0, *, dtype: Any = None, device: DeviceLike = None
) -> Array:
    """Draws evenly from -a to a with a = gain sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural
    Networks, 2010, formula 16.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    fans = fan_in("glorot_uniform", shape) + fan_out("glorot_uniform", shape)
    limit = as_number("glorot_uniform", "gain", gain) * math.sqrt(6.0 / fans)
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def orthogonal(
    shape: Shape, gain: float = 1.0, *, dtype: Any = None, device: DeviceLike = None
) -> Array:
    """gain Q, drawn evenly from all matrices Q with orthonormal rows or columns.

    The axes but the first are flattened. With fewer rows than columns, the rows are orthonormal,
    else the columns. The signs of R's diagonal in the QR decomposition of normal draws make the
    draw even.

    Source: Saxe, McClelland and Ganguli, Exact Solutions to the Nonlinear Dynamics of Learning in
    Deep Linear Neural Networks, 2014; Mezzadri, How to Generate Random Matrices from the Classical
    Compact Groups, 2007.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    columns = fan_in("orthogonal", shape)
    longer, shorter = max(shape[0], columns), min(shape[0], columns)
    draws = random.normal((longer, shorter), dtype="float64", device="numpy")
    q, r = numpy.linalg.qr(draws)
    q = q * numpy.where(numpy.diagonal(r) < 0, -1.0, 1.0)
    factor = as_number("orthogonal", "gain", gain)
    host = factor * (q if shape[0] == longer else q.T).reshape(shape)
    return get_device(device).from_host(host.astype(random.host_dtype(dtype)))


def truncated_normal(
    shape: Shape,
    mean: float = 0.0,
    deviation: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Array:
    """Draws from N(mean, deviation^2), drawn again until they lie from ``low`` to ``high``.

    The bounds are values, not numbers of deviations: as in PyTorch's ``trunc_normal_``.

    Raises:
        ValueError: the bounds cross, or lie more than 4 deviations from the mean on one side.
    """
    if not low < high or low > mean + 4.0 * deviation or high < mean - 4.0 * deviation:
        raise ValueError(
            f"truncated_normal: low={low:g} must be less than high={high:g}, and both bounds near "
            f"mean={mean:g} with deviation={deviation:g}."
        )
    host = random.normal(shape, mean, deviation, dtype="float64", device="numpy")
    outside = (host < low) | (host > high)
    while outside.any():
        count = int(outside.sum())
        host[outside] = random.normal((count,), mean, deviation, dtype="float64", device="numpy")
        outside = (host < low) | (host > high)
    return get_device(device).from_host(host.astype(random.host_dtype(dtype)))


def sparse(
    shape: Shape,
    sparsity: float = 0.9,
    deviation: float = 0.01,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Array:
    """Draws from N(0, deviation^2), with zeros for a share of each column, (out, in).

    Source: Martens, Deep Learning via Hessian-free Optimization, 2010.

    Raises:
        ValueError: the shape does not have two axes, or the sparsity is not between 0 and 1.
    """
    if len(shape) != 2 or not 0.0 <= sparsity <= 1.0:
        raise ValueError(
            f"sparse: shape must be (out, in) and sparsity between 0 and 1, got {tuple(shape)} "
            f"and {sparsity}."
        )
    host = random.normal(shape, 0.0, deviation, dtype="float64", device="numpy")
    order = random.uniform(shape, dtype="float64", device="numpy").argsort(axis=0)
    numpy.put_along_axis(host, order[: math.ceil(sparsity * shape[0])], 0.0, axis=0)
    return get_device(device).from_host(host.astype(random.host_dtype(dtype)))


def gain(activation: str, slope: float = 0.01) -> float:
    """The factor for weights before an activation, for ``glorot_uniform`` and ``orthogonal``.

    PyTorch's ``calculate_gain``: relu sqrt(2), leaky_relu sqrt(2 / (1 + slope^2)), tanh 5/3,
    selu 3/4, and 1 for linear and sigmoid.

    Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015, section 2.2.

    Raises:
        ValueError: the activation has no known gain.
    """
    gains = {
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1.0 + slope**2)),
        "selu": 0.75,
    }
    if activation not in gains:
        raise ValueError(f"gain: activation must be in {sorted(gains)}, got {activation!r}.")
    return gains[activation]


def ones(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Ones: the usual start of a scale."""
    return _filled("ones", numpy.ones, shape, dtype, device)


def zeros(shape: Shape, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Zeros: the usual start of a bias."""
    return _filled("zeros", numpy.zeros, shape, dtype, device)


def _filled(
    function: str, make: Callable[..., Any], shape: Any, dtype: Any, device: DeviceLike
) -> Array:
    """An array of NumPy's ``zeros`` or ``ones``, on the device."""
    sizes = as_shape(function, "shape", shape)
    try:
        host = make(sizes, dtype=random.host_dtype(dtype))
    except (MemoryError, ValueError) as error:
        raise SizeError(f"{function}: shape {short_text(shape)} is no array: {error}.") from error
    return get_device(device).from_host(host)


def fan_in(function: str, shape: Shape) -> int:
    """The number of inputs of an output, at least 1, for a weight of shape (out, in, ...)."""
    sizes = as_shape(function, "shape", shape)
    if len(sizes) < 2 or min(sizes) < 0:
        raise ValueError(
            f"{function}: a weight has the shape (out, in, ...), got {short_text(shape)}. "
            "Use initializers.zeros for a bias."
        )
    return max(1, math.prod(sizes[1:]))


def fan_out(function: str, shape: Shape) -> int:
    """The number of outputs of an input, at least 1, for a weight of shape (out, in, ...)."""
    fan_in(function, shape)  # refuses shapes of fewer than two axes
    return max(1, shape[0] * math.prod(shape[2:]))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise missing_attribute("initializers", name, __all__)
