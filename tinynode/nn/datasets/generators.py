"""Data sets that are computed: points in the plane, waves, and a linear law.

Requirement: an experiment needs data in a single line, of any size, and the same data each time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from tinynode.configuration import config
from tinynode.nn.checks import checked_number, checked_size


class Examples(NamedTuple):
    """Inputs and targets as NumPy arrays, for training and, held out, for measuring.

    Attributes:
        train_inputs: (n, ...), floating.
        train_targets: (n, ...): classes as int64, or numbers.
        held_out_inputs: (m, ...).
        held_out_targets: (m, ...).
    """

    train_inputs: Any
    train_targets: Any
    held_out_inputs: Any
    held_out_targets: Any


def make_spirals(
    count: int = 500,
    *,
    classes: int = 2,
    noise: float = 0.05,
    turns: float = 1.0,
    held_out: float = 0.2,
    seed: int = 0,
) -> Examples:
    """Points on spirals around 0, a spiral for each class: (count, 2) and classes (count).

    With r from 0.1 to 1:   x = r (cos a, sin a) + noise * N(0, 1),   a = 2 pi (turns r + class /
    classes). The inputs of this and the other generators have ``config.dtype``.

    Args:
        count: the number of examples, at least 1.
        classes: the number of spirals.
        noise: the standard deviation of the noise.
        turns: how often a spiral goes around 0.
        held_out: the held-out share, at least 0 and less than 1.
        seed: the seed of the random numbers, not negative.
    """
    generator = _generator("make_spirals", seed)
    labels = _labels("make_spirals", count, classes)
    radius = generator.uniform(0.1, 1.0, len(labels))
    angle = 2 * math.pi * (turns * radius + labels / classes)
    points = radius[:, None] * _on_circle(angle)
    return _examples("make_spirals", points, labels, noise, held_out, generator)


def make_moons(
    count: int = 500, *, noise: float = 0.1, held_out: float = 0.2, seed: int = 0
) -> Examples:
    """Points on two half circles that interlock: (count, 2) and classes 0 and 1 (count).

    With a from 0 to pi, class 0 is (cos a, sin a), and class 1 is (1 - cos a, 0.5 - sin a). The
    arguments are as for ``make_spirals``.
    """
    generator = _generator("make_moons", seed)
    labels = _labels("make_moons", count, 2)
    points = _on_circle(generator.uniform(0.0, math.pi, len(labels)))
    points[labels == 1] = [1.0, 0.5] - points[labels == 1]
    return _examples("make_moons", points, labels, noise, held_out, generator)


def make_circles(
    count: int = 500,
    *,
    classes: int = 2,
    noise: float = 0.05,
    held_out: float = 0.2,
    seed: int = 0,
) -> Examples:
    """Points on circles around 0: (count, 2) and classes (count).

    The circle of class c has the radius (c + 1) / classes. The arguments are as for
    ``make_spirals``.
    """
    generator = _generator("make_circles", seed)
    labels = _labels("make_circles", count, classes)
    angle = generator.uniform(0.0, 2 * math.pi, len(labels))
    points = ((labels + 1) / classes)[:, None] * _on_circle(angle)
    return _examples("make_circles", points, labels, noise, held_out, generator)


def make_sines(
    count: int = 500,
    length: int = 32,
    *,
    noise: float = 0.0,
    held_out: float = 0.2,
    seed: int = 0,
) -> Examples:
    """Waves for sequence models: inputs (count, length), and targets one step later.

    A wave is s(t) = sin(w t + b), for t = 0 to length. The frequency w is uniform from 0.1 to 0.6,
    and the phase b from 0 to 2 pi. Inputs are s(0) to s(length - 1), plus noise; targets are s(1)
    to s(length). The other arguments are as for ``make_spirals``.
    """
    generator = _generator("make_sines", seed)
    size = checked_size("make_sines: count", count)
    steps = checked_size("make_sines: length", length)
    frequency = generator.uniform(0.1, 0.6, (size, 1))
    phase = generator.uniform(0.0, 2 * math.pi, (size, 1))
    waves = numpy.sin(frequency * numpy.arange(steps + 1) + phase)
    inputs, targets = waves[:, :-1], waves[:, 1:].astype(config.dtype)
    return _examples("make_sines", inputs, targets, noise, held_out, generator)


def make_regression(
    count: int = 500,
    features: int = 5,
    *,
    noise: float = 0.1,
    held_out: float = 0.2,
    seed: int = 0,
) -> Examples:
    """A linear law with noise: x (count, features), and y = x w + b + noise * N(0, 1), (count).

    The elements of x, the weights w (features) and b are draws from N(0, 1). The other arguments
    are as for ``make_spirals``.
    """
    generator = _generator("make_regression", seed)
    size = checked_size("make_regression: count", count)
    width = checked_size("make_regression: features", features)
    inputs = generator.standard_normal((size, width))
    weights, bias = generator.standard_normal(width), generator.standard_normal()
    deviation = checked_number("make_regression: noise", noise, 0.0, math.inf)
    targets = inputs @ weights + bias + deviation * generator.standard_normal(size)
    targets = targets.astype(config.dtype)
    return _examples("make_regression", inputs, targets, 0.0, held_out, generator)


def _generator(function: str, seed: int) -> Any:
    return numpy.random.default_rng(checked_size(f"{function}: seed", seed, 0))


def _labels(function: str, count: int, classes: int) -> Any:
    """The classes 0 to classes - 1 in turn: (count), int64."""
    kinds = checked_size(f"{function}: classes", classes)
    return numpy.arange(checked_size(f"{function}: count", count), dtype=numpy.int64) % kinds


def _on_circle(angle: Any) -> Any:
    """(n) -> (n, 2)."""
    return numpy.stack([numpy.cos(angle), numpy.sin(angle)], axis=1)


def _examples(
    function: str, inputs: Any, targets: Any, noise: float, held_out: float, generator: Any
) -> Examples:
    """Noisy inputs and targets in random order, the held-out part last."""
    deviation = checked_number(f"{function}: noise", noise, 0.0, math.inf)
    share = checked_number(f"{function}: held_out", held_out, 0.0, 1.0)
    noisy = inputs + deviation * generator.standard_normal(inputs.shape)
    inputs = noisy.astype(config.dtype)
    order = generator.permutation(len(inputs))
    first = len(order) - round(share * len(order))
    train, rest = order[:first], order[first:]
    return Examples(inputs[train], targets[train], inputs[rest], targets[rest])
