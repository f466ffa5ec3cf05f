"""Windows: what convolution and pooling see of an image, and the sum back into the image.

``Unfold`` copies every window of an image into columns, ``Fold`` adds columns back to where they
came from. Both are linear, and each is the other's gradient; so everything that is made of them
is differentiable to any order.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.devices import Array, Arrays, backend_of, namespace_of, put, put_sum
from tinynode.errors import OperandError, describe


class Windows(NamedTuple):
    """How windows lie on an image: each entry is for rows and columns."""

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    def counts(self, image: tuple[int, int]) -> tuple[int, int]:
        """How many windows fit on an image of (height, width)."""
        counts = []
        for n, k, s, p, d in zip(image, *self, strict=True):
            counts.append((n + 2 * p - d * (k - 1) - 1) // s + 1)
        return counts[0], counts[1]

    def padded(self, image: tuple[int, int]) -> tuple[int, int]:
        """The size of the image with its padding."""
        return image[0] + 2 * self.padding[0], image[1] + 2 * self.padding[1]

    def places(self, counts: tuple[int, int]) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """For each place (i, j) in a window: where it lies on the padded image in all windows."""
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                rows = self._line(0, i, counts[0])
                columns = self._line(1, j, counts[1])
                yield i, j, (..., rows, columns)

    def _line(self, axis: int, place: int, count: int) -> slice:
        start = place * self.dilation[axis]
        stride = self.stride[axis]
        return slice(start, start + stride * (count - 1) + 1, stride)


def pair(function: str, argument: str, value: Any, least: int) -> tuple[int, int]:
    """An integer for both axes, or two integers.

    Raises:
        ValueError: it is neither, or below ``least``.
    """
    given = tuple(value) if isinstance(value, tuple | list) else (value, value)
    try:
        numbers = [operator.index(n) for n in given]
    except TypeError:
        numbers = []
    if len(numbers) != 2 or min(numbers) < least:
        raise ValueError(
            f"{function}: {argument} must be an integer or two, not below {least}, got {value!r}."
        )
    return numbers[0], numbers[1]


def integer(function: str, argument: str, value: Any, least: int) -> int:
    """One integer.

    Raises:
        ValueError: it is none, or below ``least``.
    """
    if not hasattr(value, "__index__") or operator.index(value) < least:
        raise ValueError(
            f"{function}: {argument} must be an integer, not below {least}, got {value!r}."
        )
    return operator.index(value)


def make_windows(
    function: str, size: Any, stride: Any, padding: Any, dilation: Any, shape: tuple[int, ...]
) -> Windows:
    """Windows on images of a shape (n, channels, height, width).

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: the images do not have four axes.
    """
    if len(shape) != 4:
        raise OperandError(
            f"{function}: x must have the axes (n, channels, height, width), got shape {shape}. "
            "Add axes with x[None] or reshape."
        )
    windows = Windows(
        pair(function, "kernel_size", size, 1),
        pair(function, "stride", stride, 1),
        pair(function, "padding", padding, 0),
        pair(function, "dilation", dilation, 1),
    )
    counts = windows.counts((shape[2], shape[3]))
    if counts[0] < 1 or counts[1] < 1:
        raise ValueError(
            f"{function}: windows of size {windows.size} with dilation {windows.dilation} do not "
            f"fit on images of {shape[2:]} with padding {windows.padding}."
        )
    return windows


def pad_image(x: Array, windows: Windows, value: float) -> Array:
    """Images (..., height, width) with a border of ``value``; x itself where there is none."""
    if windows.padding == (0, 0):
        return x
    xp = namespace_of(x)
    height, width = x.shape[-2:]
    rows, columns = windows.padding
    shape = (*x.shape[:-2], *windows.padded((height, width)))
    padded = xp.full(shape, value, dtype=x.dtype, device=x.device)
    place = (..., slice(rows, rows + height), slice(columns, columns + width))
    return put(padded, place, x)


def crop_image(x: Array, windows: Windows, image: tuple[int, int]) -> Array:
    """The inverse of ``pad_image``."""
    rows, columns = windows.padding
    return x[..., rows : rows + image[0], columns : columns + image[1]]


COLUMNS_IN_CACHE = 1 << 19
COLUMNS_ON_GPU = 1 << 27


def batches(x: Array, n: int, size: int) -> Iterator[slice]:
    """Cuts n images into batches, so that ``size`` columns for each stay in the cache.

    On a GPU they only have to fit into its memory.
    """
    limit = COLUMNS_IN_CACHE if "cpu" in backend_of(x).capabilities else COLUMNS_ON_GPU
    step = max(1, limit // max(size, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def unfold_images(x: Array, windows: Windows, counts: tuple[int, int]) -> Array:
    """What ``Unfold`` computes."""
    xp = namespace_of(x)
    padded = xp.permute_dims(pad_image(x, windows, 0.0), (1, 0, 2, 3))
    shape = (x.shape[1], *windows.size, x.shape[0], *counts)
    columns = xp.empty(shape, dtype=x.dtype, device=x.device)
    for i, j, place in windows.places(counts):
        columns = put(columns, (slice(None), i, j, ...), padded[place])
    return columns


def fold_columns(y: Array, windows: Windows, image: tuple[int, int]) -> Array:
    """What ``Fold`` computes."""
    xp = namespace_of(y)
    shape = (y.shape[0], y.shape[3], *windows.padded(image))
    total = xp.zeros(shape, dtype=y.dtype, device=y.device)
    for i, j, place in windows.places((y.shape[4], y.shape[5])):
        total = put_sum(total, place, y[:, i, j, ...])
    return xp.permute_dims(crop_image(total, windows, image), (1, 0, 2, 3))


class Unfold(FunctionNode):
    """y[c, i, j, n, r, q] = x[n, c, r s + i d - p, q s + j d - p], 0 outside the image.

    x: (n, channels, height, width) -> y: (channels, kh, kw, n, oh, ow), with (oh, ow) =
    ``counts``, as many windows as fit by default.
    dL/dx = Fold(dL/dy)
    """

    def __init__(self, windows: Windows, counts: tuple[int, int] | None = None) -> None:
        self.windows = windows
        self.counts = counts

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        counts = self.counts or self.windows.counts((x.shape[2], x.shape[3]))
        return (unfold_images(x, self.windows, counts),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        shape = self.inputs[0].shape  # type: ignore[index]
        assert shape is not None
        return Fold(self.windows, (shape[2], shape[3])).apply(grad_outputs)


class Fold(FunctionNode):
    """x[n, c, ...] = the sum of y over all windows and places that lie there: Unfold transposed.

    y: (channels, kh, kw, n, oh, ow) -> x: (n, channels, height, width).
    dL/dy = Unfold(dL/dx)
    """

    def __init__(self, windows: Windows, image: tuple[int, int]) -> None:
        self.windows = windows
        self.image = image

    def forward(self, inputs: Arrays) -> Arrays:
        return (fold_columns(inputs[0], self.windows, self.image),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        shape = self.inputs[0].shape  # type: ignore[index]
        assert shape is not None
        return Unfold(self.windows, (shape[4], shape[5])).apply(grad_outputs)


def require_four_axes(function: str, argument: str, value: Any) -> None:
    """Raises OperandError unless the array has four axes."""
    if len(value.shape) != 4:
        raise OperandError(f"{function}: {argument} must have four axes, got {describe(value)}.")
