"""Initializers: the random first values of weights, named by the source papers.

Requirement: signals neither fade nor grow from layer to layer. Each function takes a shape and
draws from ``tinynode.random``; ``tinynode.seed`` makes the draws repeatable. A weight has the
shape (out, in, ...). ``fan_in``, the number of inputs of an output, is the product of all axes but
the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Never

import numpy

from tinynode import random
from tinynode.devices import Array, Device, get_device
from tinynode.habits import missing_attribute


def lecun_normal(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws from N(0, 1 / fan_in): the outputs have the inputs' variance.

    Source: LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998, section 4.6.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    deviation = math.sqrt(1.0 / fan_in("lecun_normal", shape))
    return random.normal(shape, 0.0, deviation, dtype=dtype, device=device)


def he_normal(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws from N(0, 2 / fan_in): for layers before a relu, since relu halves the second moment.

    Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015, section 2.2.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    deviation = math.sqrt(2.0 / fan_in("he_normal", shape))
    return random.normal(shape, 0.0, deviation, dtype=dtype, device=device)


def lecun_uniform(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws evenly from -a to a with a = sqrt(3 / fan_in), so with variance 1 / fan_in.

    Source: LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998, section 4.6.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    limit = math.sqrt(3.0 / fan_in("lecun_uniform", shape))
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def he_uniform(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws evenly from -a to a with a = sqrt(6 / fan_in), so with variance 2 / fan_in.

    Source: He, Zhang, Ren and Sun, Delving Deep into Rectifiers, 2015, section 2.2.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    limit = math.sqrt(6.0 / fan_in("he_uniform", shape))
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def glorot_normal(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws from N(0, 2 / (fan_in + fan_out)): a compromise between both directions.

    Source: Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural
    Networks, 2010.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    fans = fan_in("glorot_normal", shape) + fan_out("glorot_normal", shape)
    return random.normal(shape, 0.0, math.sqrt(2.0 / fans), dtype=dtype, device=device)


def glorot_uniform(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Draws evenly from -a to a with a = sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio, Understanding the Difficulty of Training Deep Feedforward Neural
    Networks, 2010, formula 16.

    Raises:
        ValueError: the shape has fewer than two axes.
    """
    fans = fan_in("glorot_uniform", shape) + fan_out("glorot_uniform", shape)
    limit = math.sqrt(6.0 / fans)
    return random.uniform(shape, -limit, limit, dtype=dtype, device=device)


def ones(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Ones: the usual start of a scale."""
    target = get_device(device)
    return target.from_host(numpy.ones(shape, dtype=random.host_dtype(dtype)))


def zeros(
    shape: tuple[int, ...], *, dtype: Any = None, device: str | Device | None = None
) -> Array:
    """Zeros: the usual start of a bias."""
    target = get_device(device)
    return target.from_host(numpy.zeros(shape, dtype=random.host_dtype(dtype)))


def fan_in(function: str, shape: tuple[int, ...]) -> int:
    """The number of inputs of an output, at least 1, for a weight of shape (out, in, ...)."""
    if len(shape) < 2:
        raise ValueError(
            f"{function}: a weight has the shape (out, in, ...), got {tuple(shape)}. "
            "Use initializers.zeros for a bias."
        )
    return max(1, math.prod(shape[1:]))


def fan_out(function: str, shape: tuple[int, ...]) -> int:
    """The number of outputs of an input, at least 1, for a weight of shape (out, in, ...)."""
    fan_in(function, shape)  # refuses shapes of fewer than two axes
    return max(1, shape[0] * math.prod(shape[2:]))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise missing_attribute("initializers", name, globals())
