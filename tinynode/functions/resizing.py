"""Other sizes: interpolation, sampling at a grid, blocks of pixels as channels, adaptive pooling.

A linear map along an axis is a product with a small matrix, so its gradient is a product with the
transpose. ``interpolate`` and the adaptive means are such products, an axis at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Never

import numpy

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Arrays, is_known_true, namespace_of
from tinynode.errors import OperandError, short_text, unknown_keywords
from tinynode.functions.arithmetic import multiply
from tinynode.functions.checked import checked_flag
from tinynode.functions.comparison import clip, equal, isnan
from tinynode.functions.convolution import require_four_axes
from tinynode.functions.data_types import astype, narrowed, promoted, widened
from tinynode.functions.image_windows import integer
from tinynode.functions.indexing import TakeAlongAxis, take
from tinynode.functions.operands import as_floating, as_number, as_operands
from tinynode.functions.products import matmul
from tinynode.functions.searching import where
from tinynode.functions.shapes import broadcast_to, moveaxis, permute_dims, reshape
from tinynode.functions.statistical import max as max_

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "grid_sample",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
]
__dir__ = __all__.copy  # for completion

Sizes = int | Sequence[int]


def _along_axis(x: Variable, matrix: Any, axis: int) -> Variable:
    """x times a host's matrix (out, in) along an axis."""
    array = x.xp.astype(x.device.from_host(numpy.asarray(matrix)), x.dtype)
    m = wrap_array(array, x.device, False)
    if axis == x.ndim - 2:
        return matmul(m, x)
    return moveaxis(matmul(moveaxis(x, axis, -1), m.mT), -1, axis)


def _sizes(function: str, argument: str, value: Any, axes: int) -> tuple[int, ...]:
    """An integer for all axes, or an integer for each.

    Raises:
        ValueError: the value is neither, or below 1.
    """
    given = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if len(given) != axes:
        raise ValueError(
            f"{function}: {argument} must be an integer or {axes}, got {short_text(value)}."
        )
    return tuple(integer(function, argument, n, 1) for n in given)


MOST_BINS = 2**20
"""The number of windows of adaptive pooling, at most: each is computed by itself."""

MOST_PLACES = 2**23
"""The number of places of an interpolated axis, at most."""

# --- adaptive pooling ----------------------------------------------------------------------------


def _bins(length: int, size: int) -> list[tuple[int, int]]:
    """Where each of the windows starts and ends: i n / m, rounded down, to (i + 1) n / m, up."""
    return [(i * length // size, -((-(i + 1) * length) // size)) for i in range(size)]


def _adaptive(function: str, x: Any, size: Any, axes: int, largest: bool) -> Variable:
    x = as_floating(function, "x", x)
    if x.ndim != axes + 2 or 0 in x.shape[2:]:
        names = ("length", "height, width", "depth, height, width")[axes - 1]
        raise OperandError(
            f"{function}: x must have the axes (n, channels, {names}), none of the last empty; "
            f"got shape {x.shape}."
        )
    y = widened(x)
    sizes = _sizes(function, "size", size, axes)
    if max(sizes) > MOST_BINS:
        raise ValueError(
            f"{function}: size must be at most {MOST_BINS}, got {short_text(size)}. Choose fewer "
            "windows."
        )
    for axis, n in enumerate(sizes, 2):
        y = _largest_of_bins(y, axis, n) if largest else _means_of_bins(y, axis, n)
    return narrowed(y, x)


def _means_of_bins(x: Variable, axis: int, size: int) -> Variable:
    matrix = numpy.zeros((size, x.shape[axis]))
    for i, (start, end) in enumerate(_bins(x.shape[axis], size)):
        matrix[i, start:end] = 1.0 / (end - start)
    return _along_axis(x, matrix, axis)


def _largest_of_bins(x: Variable, axis: int, size: int) -> Variable:
    """An index may come twice in a window: the shares of the gradient add up at the element."""
    bins = _bins(x.shape[axis], size)
    longest = max(end - start for start, end in bins)
    places = [min(start + k, end - 1) for start, end in bins for k in range(longest)]
    shape = (*x.shape[:axis], size, longest, *x.shape[axis + 1 :])
    return max_(reshape(take(x, places, axis=axis), shape), axis=axis + 1)


def adaptive_avg_pool1d(x: Any, size: int) -> Variable:
    """Means of ``size`` windows that cover a signal evenly: (n, channels, size).

    Window i goes from i n / size, rounded down, to (i + 1) n / size, rounded up.

    Raises:
        OperandError: x is not (n, channels, length), or not floating.
        ValueError: the size is no positive integer.
    """
    return _adaptive("adaptive_avg_pool1d", x, size, 1, False)


def adaptive_avg_pool2d(x: Any, size: Sizes) -> Variable:
    """Means of windows that cover an image evenly: (n, channels, *size).

    Args:
        x: images, (n, channels, height, width).
        size: an integer, or two (rows, columns). With n rows, window i goes from i n / rows,
            rounded down, to (i + 1) n / rows, rounded up.

    Raises:
        OperandError: x does not have four axes, or is not floating.
        ValueError: a size is no positive integer.
    """
    return _adaptive("adaptive_avg_pool2d", x, size, 2, False)


def adaptive_avg_pool3d(x: Any, size: Sizes) -> Variable:
    """As ``adaptive_avg_pool2d``, of volumes (n, channels, depth, height, width).

    Raises:
        OperandError: x does not have five axes, or is not floating.
        ValueError: a size is no positive integer.
    """
    return _adaptive("adaptive_avg_pool3d", x, size, 3, False)


def adaptive_max_pool1d(x: Any, size: int) -> Variable:
    """As ``adaptive_avg_pool1d``, the largest elements; ties share the gradient evenly.

    Raises:
        OperandError: x is not (n, channels, length), or not floating.
        ValueError: the size is no positive integer.
    """
    return _adaptive("adaptive_max_pool1d", x, size, 1, True)


def adaptive_max_pool2d(x: Any, size: Sizes) -> Variable:
    """As ``adaptive_avg_pool2d``, the largest elements; ties share the gradient.

    Raises:
        OperandError: x does not have four axes, or is not floating.
        ValueError: a size is no positive integer.
    """
    return _adaptive("adaptive_max_pool2d", x, size, 2, True)


def adaptive_max_pool3d(x: Any, size: Sizes) -> Variable:
    """As ``adaptive_avg_pool3d``, the largest elements; ties share the gradient.

    Raises:
        OperandError: x does not have five axes, or is not floating.
        ValueError: a size is no positive integer.
    """
    return _adaptive("adaptive_max_pool3d", x, size, 3, True)


# --- interpolation -------------------------------------------------------------------------------


def interpolate(
    x: Any,
    size: Sizes | None = None,
    scale: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    **unknown: Never,
) -> Variable:
    """Signals, images or volumes in another size.

    With o of n places, place i lies at (i + 1/2) n / o - 1/2, or at i (n - 1) / (o - 1) with
    ``align_corners``; "linear" weighs the two neighbours. "nearest" takes place i n / o, rounded
    down. With a scale, 1 / scale stands for n / o.

    Args:
        x: (n, channels, ...), with one to three axes of places, floating.
        size: the new lengths: an integer, or one for each axis.
        scale: instead of a size, how many times longer each axis gets.
        mode: "nearest" or "linear", which is bilinear for images and trilinear for volumes.
        align_corners: True keeps the first and the last places; for "linear" only.

    Raises:
        OperandError: x is not floating, or has another number of axes.
        ValueError: size and scale are both given or both missing, a length is below 1, or the
            mode is unknown.
    """
    if unknown:
        raise unknown_keywords("interpolate", unknown)
    x = as_floating("interpolate", "x", x)
    align_corners = as_flag("interpolate", "align_corners", align_corners)
    if not 3 <= x.ndim <= 5 or 0 in x.shape[2:]:
        raise OperandError(
            "interpolate: x must be (n, channels, ...) with one to three axes of places, none "
            f"empty; got shape {x.shape}."
        )
    if mode not in ("nearest", "linear") or (align_corners and mode == "nearest"):
        raise ValueError(
            f'interpolate: mode must be "nearest" or "linear" (bilinear for images), and '
            f'align_corners goes with "linear"; got mode={mode!r}.'
        )
    y = widened(x)
    for axis, stretch in enumerate(_stretches(x, size, scale), 2):
        n = x.shape[axis]
        if mode == "nearest":
            y = take(y, _nearest_places(n, stretch), axis=axis)
        else:
            y = _along_axis(y, _linear_weights(n, stretch, align_corners), axis)
    return narrowed(y, x)


class Stretch(NamedTuple):
    """The new length of an axis; place i lies at i * old / new of the old axis.

    ``old`` and ``new`` are two lengths, or 1 and a scale. Their quotient is rounded: 49 * (1 / 49)
    is below 1.
    """

    length: int
    old: int
    new: float


def _nearest_places(n: int, stretch: Stretch) -> list[int]:
    """i * old / new, rounded down, for each new place."""
    return [min(int(i * stretch.old // stretch.new), n - 1) for i in range(stretch.length)]


def _stretches(x: Variable, size: Any, scale: Any) -> list[Stretch]:
    """How each axis of places gets another length."""
    axes = x.ndim - 2
    if (size is None) == (scale is None):
        raise ValueError("interpolate: give either size or scale.")
    if size is not None:
        lengths = _sizes("interpolate", "size", size, axes)
        _check_lengths("size", size, lengths)
        return [Stretch(o, n, o) for n, o in zip(x.shape[2:], lengths, strict=True)]
    scales = tuple(scale) if isinstance(scale, tuple | list) else (scale,) * axes
    scales = tuple([as_number("interpolate", "scale", s) for s in scales])
    numbers = [s for s in scales if 0 < s <= MOST_PLACES]
    if len(numbers) != axes or len(scales) != axes:
        raise ValueError(
            f"interpolate: scale must be a positive number, or {axes}, and at most "
            f"{MOST_PLACES}, got {short_text(scale)}."
        )
    found = [Stretch(int(n * s), 1, s) for n, s in zip(x.shape[2:], numbers, strict=True)]
    if min(stretch.length for stretch in found) < 1:
        raise ValueError(
            f"interpolate: x of shape {x.shape} times {short_text(scale)} has no places left."
        )
    _check_lengths("scale", scale, [stretch.length for stretch in found])
    return found


def _check_lengths(argument: str, given: Any, lengths: Sequence[int]) -> None:
    """Raises ValueError if an axis would have too many places."""
    if max(lengths) > MOST_PLACES:
        raise ValueError(
            f"interpolate: {argument} must give at most {MOST_PLACES} places on an axis, got "
            f"{short_text(given)}."
        )


def _linear_weights(n: int, stretch: Stretch, align_corners: bool) -> Any:
    """The weights of the old places for each new one, (length, n)."""
    length = stretch.length
    i = numpy.arange(length)
    if align_corners:
        places = i * ((n - 1) / (length - 1)) if length > 1 else i * 0.0
    else:
        places = numpy.clip((i + 0.5) * stretch.old / stretch.new - 0.5, 0.0, None)
    low = numpy.minimum(numpy.floor(places).astype(int), n - 1)
    high = numpy.minimum(low + 1, n - 1)
    part = numpy.clip(places - low, 0.0, 1.0)
    weights = numpy.zeros((length, n))
    weights[i, low] += 1.0 - part
    weights[i, high] += part
    return weights


def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> Variable:
    """Images at given places: y[n, c, i, j] = x[n, c] at the place grid[n, i, j].

    Between four pixels, the weights are the areas opposite. The places get gradients too, but not
    with "nearest".

    Args:
        x: images, (n, channels, height, width), floating.
        grid: places (x, y), (n, oh, ow, 2): -1 and 1 are the outer edges of the image, or with
            ``align_corners`` the centres of the outer pixels.
        mode: "bilinear" or "nearest".
        padding: "zeros" outside the image, or "border": the nearest pixel. NaN in a place gives
            NaN in y.
        align_corners: see ``grid``.

    Source: Jaderberg et al., Spatial Transformer Networks, 2015.

    Raises:
        OperandError: x does not have four axes, or x or the grid is not floating.
        ValueError: the shapes do not fit together, or the mode or padding is unknown.
    """
    x, grid = as_operands("grid_sample", x, grid, names=("x", "grid"))
    as_floating("grid_sample", "x", x)
    as_floating("grid_sample", "grid", grid)
    x, grid = promoted(x, grid)
    require_four_axes("grid_sample", "x", x)
    align_corners = as_flag("grid_sample", "align_corners", align_corners)
    if grid.ndim != 4 or grid.shape[0] != x.shape[0] or grid.shape[3] != 2 or 0 in x.shape[2:]:
        raise ValueError(
            f"grid_sample: grid must be (n, oh, ow, 2) beside images (n, channels, height, width) "
            f"with pixels; got shapes {grid.shape} and {x.shape}."
        )
    if mode not in ("bilinear", "nearest") or padding not in ("zeros", "border"):
        raise ValueError(
            'grid_sample: mode must be "bilinear" or "nearest", padding "zeros" or "border"; got '
            f"{mode!r} and {padding!r}."
        )
    lines = []
    for axis, n in ((1, x.shape[2]), (0, x.shape[3])):
        place = reshape(grid[..., axis], (x.shape[0], -1))
        scaled = (
            (place + 1.0) * (0.5 * (n - 1)) if align_corners else (place + 1.0) * (0.5 * n) - 0.5
        )
        lines.append(clip(scaled, 0.0, float(n - 1)) if padding == "border" else scaled)
    y = _nearest(x, *lines) if mode == "nearest" else _bilinear(x, *lines)
    return reshape(y, (*x.shape[:2], *grid.shape[1:3]))


def _nearest(x: Variable, rows: Variable, columns: Variable) -> Variable:
    """The nearest pixels, (n, channels, places); NaN where a row or a column is."""
    nearest = [WholeLines(True).apply((one.detach(),))[0] for one in (rows, columns)]
    nowhere = isnan(rows + columns)
    return where(_beside_channels(nowhere), math.nan, _pixels(x, *nearest))


def _bilinear(x: Variable, rows: Variable, columns: Variable) -> Variable:
    """The weighted means of four pixels, (n, channels, places)."""
    top, left = [WholeLines(False).apply((one.detach(),))[0] for one in (rows, columns)]
    down, right = rows - top, columns - left
    y = _pixels(x, top, left) * _beside_channels((1.0 - down) * (1.0 - right))
    y = y + _pixels(x, top, left + 1.0) * _beside_channels((1.0 - down) * right)
    y = y + _pixels(x, top + 1.0, left) * _beside_channels(down * (1.0 - right))
    return y + _pixels(x, top + 1.0, left + 1.0) * _beside_channels(down * right)


def _beside_channels(weights: Variable) -> Variable:
    return reshape(weights, (weights.shape[0], 1, weights.shape[1]))


class WholeLines(FunctionNode):
    """y = floor(x), or the nearest whole number; -2, outside of the image, where x is NaN.

    x: (s), rows or columns -> y: (s). No gradient.
    """

    is_elementwise = True

    def __init__(self, nearest: bool) -> None:
        self.nearest = checked_flag(self, "nearest", nearest)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        y = xp.round(x) if self.nearest else xp.floor(x)
        if is_known_true(x == x):
            return (y,)
        return (xp.where(xp.isnan(x), xp.full_like(x, -2.0), y),)


def _pixels(x: Variable, rows: Variable, columns: Variable) -> Variable:
    """x at whole rows and columns, (n, places), as (n, channels, places); 0 outside."""
    n, channels, height, width = x.shape
    row, column = clip(rows, 0.0, height - 1.0), clip(columns, 0.0, width - 1.0)
    inside = astype(equal(row, rows), x.dtype) * astype(equal(column, columns), x.dtype)
    places = (row.astype("int64") * width + column.astype("int64"))[:, None, :]
    wide = broadcast_to(places, (n, channels, rows.shape[1]))
    flat = reshape(x, (n, channels, height * width))
    taken = TakeAlongAxis(2).apply((flat, wide))[0]
    return multiply(taken, _beside_channels(inside))


# --- blocks of pixels as channels ----------------------------------------------------------------


def pixel_shuffle(x: Any, factor: int) -> Variable:
    """Channels as blocks of pixels: (n, c f^2, height, width) -> (n, c, height f, width f).

    y[n, c, h f + i, w f + j] = x[n, c f^2 + i f + j, h, w].

    Source: Shi et al., Real-Time Single Image and Video Super-Resolution, 2016.

    Raises:
        OperandError: x does not have four axes.
        ValueError: the factor is no positive integer, or its square does not divide the channels.
    """
    x = as_floating("pixel_shuffle", "x", x)
    require_four_axes("pixel_shuffle", "x", x)
    f = integer("pixel_shuffle", "factor", factor, 1)
    n, channels, height, width = x.shape
    if channels % (f * f):
        raise ValueError(
            f"pixel_shuffle: factor={f} needs a multiple of {f * f} channels, x has shape "
            f"{x.shape}."
        )
    blocks = permute_dims(
        reshape(x, (n, channels // (f * f), f, f, height, width)), (0, 1, 4, 2, 5, 3)
    )
    return reshape(blocks, (n, channels // (f * f), height * f, width * f))


def pixel_unshuffle(x: Any, factor: int) -> Variable:
    """Blocks of pixels as channels, the inverse of ``pixel_shuffle``.

    (n, c, height f, width f) -> (n, c f^2, height, width).

    Raises:
        OperandError: x does not have four axes.
        ValueError: the factor is no positive integer, or does not divide height and width.
    """
    x = as_floating("pixel_unshuffle", "x", x)
    require_four_axes("pixel_unshuffle", "x", x)
    f = integer("pixel_unshuffle", "factor", factor, 1)
    n, channels, height, width = x.shape
    if height % f or width % f:
        raise ValueError(
            f"pixel_unshuffle: factor={f} does not divide height and width of x, {x.shape[2:]}."
        )
    blocks = permute_dims(
        reshape(x, (n, channels, height // f, f, width // f, f)), (0, 1, 3, 5, 2, 4)
    )
    return reshape(blocks, (n, channels * f * f, height // f, width // f))
