"""Random changes of images, for more varied training data.

Requirement: a transform is a plain function of a host array and a NumPy generator. A DataLoader
gives the generator, so a resumed run draws the same numbers:

    def augmented(sample, generator):
        image, label = sample
        return transforms.random_flip(image, generator), label

    loader = nn.DataLoader(dataset, 32, shuffle=True, transform=augmented)

An image has the shape (..., height, width), such as (channels, height, width).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from tinynode import random

__all__ = [
    "normalize",
    "random_crop",
    "random_flip",
    "random_rotation",
    "random_shift",
    "to_float",
]
__dir__ = __all__.copy  # for completion


def to_float(image: Any, dtype: Any = None) -> Any:
    """Integers from 0 to 255 as floats from 0 to 1; floats keep their values.

    Args:
        image: an array of any shape.
        dtype: the dtype of the result; ``config.dtype`` by default.
    """
    kind = random.host_dtype(dtype)
    floats = numpy.asarray(image).astype(kind)
    return floats / kind.type(255) if numpy.asarray(image).dtype.kind in "iu" else floats


def normalize(
    image: Any, mean: float | Sequence[float], deviation: float | Sequence[float]
) -> Any:
    """(image - mean) / deviation, with a number for all channels, or a number for each channel.

    Args:
        image: (..., channels, height, width), or (height, width) for plain numbers. Integers are
            taken as float32.
        mean: the mean, or the means (channels).
        deviation: the standard deviation, or the deviations (channels); not 0.
    """
    image = numpy.asarray(image)
    if image.dtype.kind != "f":
        image = image.astype(numpy.float32)
    center, scale = (_for_channels(v, image.dtype) for v in (mean, deviation))
    if not scale.all():
        raise ValueError("normalize: deviation must not be 0.")
    return (image - center) / scale


def _for_channels(value: Any, dtype: Any) -> Any:
    array = numpy.asarray(value, dtype)
    return array[:, None, None] if array.ndim else array


def random_flip(image: Any, generator: Any, probability: float = 0.5) -> Any:
    """The image, or with the given probability its mirror image: left and right exchanged."""
    image = numpy.asarray(image)
    return image[..., ::-1].copy() if generator.random() < probability else image


def random_shift(image: Any, generator: Any, most: int = 2) -> Any:
    """The image moved by -most to most pixels along both axes; 0 fills the rest."""
    return random_crop(image, generator, padding=most)


def random_crop(
    image: Any, generator: Any, size: tuple[int, int] | None = None, padding: int = 0
) -> Any:
    """A window of the image at a random place.

    Args:
        image: (..., height, width).
        generator: a NumPy generator.
        size: (height, width) of the window; by default that of the image.
        padding: the number of zeros added on each side first.

    Raises:
        ValueError: the window is larger than the padded image.
    """
    image = numpy.asarray(image)
    height, width = image.shape[-2:] if size is None else size
    around = [(0, 0)] * (image.ndim - 2) + [(padding, padding)] * 2
    padded = numpy.pad(image, around)
    rows, columns = padded.shape[-2] - height, padded.shape[-1] - width
    if rows < 0 or columns < 0:
        raise ValueError(
            f"random_crop: a window of {height} x {width} does not fit into an image of "
            f"{padded.shape[-2]} x {padded.shape[-1]} with padding. Give a larger padding."
        )
    top, left = generator.integers(rows + 1), generator.integers(columns + 1)
    return padded[..., top : top + height, left : left + width].copy()


def random_rotation(image: Any, generator: Any, degrees: float = 10.0) -> Any:
    """The image turned around its center by a random angle, by bilinear interpolation.

    Args:
        image: (..., height, width), floating.
        generator: a NumPy generator.
        degrees: the largest angle in both directions; 0 fills the corners.

    Raises:
        TypeError: the image is not floating.
    """
    image = numpy.asarray(image)
    if image.dtype.kind != "f":
        raise TypeError(
            f"random_rotation: image must be floating, got {image.dtype}. Call to_float first."
        )
    angle = math.radians(generator.uniform(-degrees, degrees))
    height, width = image.shape[-2:]
    y, x = numpy.meshgrid(numpy.arange(height), numpy.arange(width), indexing="ij")
    y, x = y - (height - 1) / 2, x - (width - 1) / 2
    sine, cosine = math.sin(angle), math.cos(angle)
    row = cosine * y - sine * x + (height - 1) / 2  # of the pixel to read
    column = sine * y + cosine * x + (width - 1) / 2
    return _interpolated(image, row, column)


def _interpolated(image: Any, row: Any, column: Any) -> Any:
    """The image's values between pixels; 0 outside.   row, column: (height, width)."""
    padded = numpy.pad(image, [(0, 0)] * (image.ndim - 2) + [(1, 1)] * 2)
    height, width = image.shape[-2:]
    row = numpy.clip(row + 1, 0, height + 1 - 1e-9)
    column = numpy.clip(column + 1, 0, width + 1 - 1e-9)
    top, left = numpy.floor(row).astype(int), numpy.floor(column).astype(int)
    down, right = (row - top).astype(image.dtype), (column - left).astype(image.dtype)
    upper = padded[..., top, left] * (1 - right) + padded[..., top, left + 1] * right
    lower = padded[..., top + 1, left] * (1 - right) + padded[..., top + 1, left + 1] * right
    return upper * (1 - down) + lower * down
