"""Pooling over windows in one, two and three dimensions, and upsampling.

Images are (n, channels, height, width). A signal is an image of a single row. The window of a
volume is pooled over rows and columns first, then over the depth. The results are the largest of
the largest, and the mean of the means.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, Never, overload

import numpy

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Array,
    Arrays,
    any_true,
    is_integer,
    namespace_of,
    put,
    put_sum,
)
from tinynode.errors import OperandError, SizeError, describe, dtype_name, unknown_keywords
from tinynode.functions.arithmetic import masked
from tinynode.functions.attributes import Counts, Lengths, Shape
from tinynode.functions.convolution import require_four_axes
from tinynode.functions.image_columns import crop_image, pad_image
from tinynode.functions.image_windows import (
    IntPair,
    Windows,
    checked_pair,
    checked_windows,
    integer,
    make_windows,
    pair,
)
from tinynode.functions.manipulation import pad
from tinynode.functions.operands import (
    as_floating,
    as_operand,
    first_variable,
    input_shape,
    require_elements,
)
from tinynode.functions.scattering import scatter_add
from tinynode.functions.shapes import reshape
from tinynode.functions.statistical import max as max_
from tinynode.functions.statistical import mean
from tinynode.functions.volumes import IntTriple, require_volumes, triple

__all__ = [
    "AvgPool2d",
    "AvgPool2dGrad",
    "MaxPool2d",
    "MaxPool2dGrad",
    "TakeWinners",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "global_avg_pool2d",
    "global_max_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool2d",
    "upsample_nearest2d",
]
__dir__ = __all__.copy  # for completion


class MaxPool2d(FunctionNode):
    """y = the largest element of each window; and the place of the element in the window.

    x: (n, c, height, width) -> y: (n, c, oh, ow), winners: (n, c, oh, ow), integer.
    dL/dx = dL/dy added where the winners stood; the first place wins at ties, and NaN always wins
    """

    output_counts = (2,)

    def __init__(self, windows: Windows) -> None:
        self.windows = checked_windows(self, windows)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        self.retain_outputs((1,))
        padded = pad_image(x, self.windows, -float("inf"))
        counts = self.windows.counts((x.shape[2], x.shape[3]))
        dtype = xp.int8 if self.windows.size[0] * self.windows.size[1] < 128 else xp.int32
        places = self.windows.places(padded.shape[2:], counts)
        first, *others = [padded[place] for _, _, place in places]
        best, winners = xp.asarray(first, copy=True), xp.zeros_like(first, dtype=dtype)
        for number, view in enumerate(others, 1):
            candidate = xp.asarray(view, copy=True)  # read twice, and its elements lie apart
            better = xp.astype(candidate > best, dtype)
            winners = xp.maximum(winners, better * number)  # numbers rise, so the last stays
            best = xp.maximum(best, candidate)
        return best, nan_winners(padded, self.windows, best, winners)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        gy = grad_outputs[0]
        (winners,) = self.get_retained_outputs()
        shape = input_shape(self)
        return MaxPool2dGrad(self.windows, (shape[2], shape[3])).apply((gy, winners))


def nan_winners(padded: Array, windows: Windows, best: Array, winners: Array) -> Array:
    """The winners, and the last NaN of a window that has NaN: no comparison finds NaN."""
    xp = namespace_of(best)
    if not any_true(xp.isnan(best)):
        return winners
    for number, (_, _, place) in enumerate(windows.places(padded.shape[2:], best.shape[2:])):
        here = xp.full(winners.shape, number, dtype=winners.dtype, device=winners.device)
        winners = xp.where(xp.isnan(padded[place]), here, winners)
    return winners


def require_winners(expected: Shape, got: Shape) -> None:
    """Raises ValueError unless each element has a winner: the shapes are equal."""
    if expected != got:
        raise ValueError(
            f"max_pool2d: the winners have shape {got}, expected {expected}, a winner for each "
            "window. Take the winners of the same pooling."
        )


class MaxPool2dGrad(FunctionNode):
    """gx = gy added where the winners stood: the gradient of ``MaxPool2d``.

    gy: (n, c, oh, ow), winners: (n, c, oh, ow) -> gx: (n, c, height, width).
    dL/dgy = dL/dgx where the winners stood
    """

    input_counts = (2,)
    wide = True

    def __init__(self, windows: Windows, image: Lengths) -> None:
        self.windows = checked_windows(self, windows)
        self.image = checked_pair(self, "image", image, 0)

    def forward(self, inputs: Arrays) -> Arrays:
        gy, winners = inputs
        require_winners(gy.shape, winners.shape)
        self.retain_inputs((1,))
        shape = (*gy.shape[:2], *self.windows.padded(self.image))
        zeros = namespace_of(gy).zeros(shape, dtype=gy.dtype, device=gy.device)
        return (self.added(zeros, gy, winners),)

    def added(self, total: Array, gy: Array, winners: Array) -> Array:
        """gx, from zeros of the shape of the padded image, which may be written to."""
        add = put if self.windows.are_apart else put_sum
        places = self.windows.places(self.windows.padded(self.image), gy.shape[2:])
        for number, (_, _, place) in enumerate(places):
            total = add(total, place, masked(gy, winners == number))
        return crop_image(total, self.windows, self.image)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (ggx,) = grad_outputs
        (winners,) = self.get_retained_inputs()
        return TakeWinners(self.windows).apply((ggx, winners))[0], None


class TakeWinners(FunctionNode):
    """y = x at the winners' places: ``MaxPool2dGrad`` transposed.

    x: (n, c, height, width), winners: (n, c, oh, ow) -> y: (n, c, oh, ow).
    dL/dx = MaxPool2dGrad(dL/dy, winners)
    """

    input_counts = (2,)

    def __init__(self, windows: Windows) -> None:
        self.windows = checked_windows(self, windows)

    def forward(self, inputs: Arrays) -> Arrays:
        x, winners = inputs
        xp = namespace_of(x)
        self.retain_inputs((1,))
        padded = pad_image(x, self.windows, 0.0)
        require_winners(x.shape[:2], winners.shape[:2])
        total = xp.zeros(winners.shape, dtype=x.dtype, device=x.device)
        places = self.windows.places(padded.shape[2:], winners.shape[2:])
        for number, (_, _, place) in enumerate(places):
            total += masked(padded[place], winners == number)
        return (total,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (winners,) = self.get_retained_inputs()
        shape = input_shape(self)
        node = MaxPool2dGrad(self.windows, (shape[2], shape[3]))
        return node.apply((gy, winners))[0], None


class PlacesOfWinners(FunctionNode):
    """y = the place in the image of each winner of ``MaxPool2d``: row * width + column.

    winners: (n, c, oh, ow), integer -> y: (n, c, oh, ow), integer. No gradient.
    """

    def __init__(self, windows: Windows, image: Lengths) -> None:
        self.windows = checked_windows(self, windows)
        self.image = checked_pair(self, "image", image, 0)

    def forward(self, inputs: Arrays) -> Arrays:
        (winners,) = inputs
        xp = namespace_of(winners)
        integer = xp.arange(1, device=winners.device).dtype  # the namespace's default
        places = xp.astype(winners, integer)
        width = self.windows.size[1]
        flat = xp.zeros(winners.shape, dtype=integer, device=winners.device)
        for axis, steps in enumerate((places // width, places % width)):
            starts = xp.arange(winners.shape[2 + axis], device=winners.device)
            starts = starts * self.windows.stride[axis] - self.windows.padding[axis]
            shape = (-1, 1) if axis == 0 else (1, -1)
            line = xp.reshape(starts, shape) + steps * self.windows.dilation[axis]
            # a window of -inf alone has the first place, which may lie in the border
            line = xp.clip(line, 0, self.image[axis] - 1)
            flat = flat * self.image[axis] + line
        return (flat,)


class PooledWithIndices(NamedTuple):
    """The largest elements, and the places in the image: see ``max_pool2d``."""

    values: Variable
    indices: Variable


@overload
def max_pool2d(
    x: Any,
    kernel_size: IntPair,
    stride: IntPair | None = None,
    padding: IntPair = 0,
    dilation: IntPair = 1,
    *,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Variable: ...


@overload
def max_pool2d(
    x: Any,
    kernel_size: IntPair,
    stride: IntPair | None = None,
    padding: IntPair = 0,
    dilation: IntPair = 1,
    *,
    ceil_mode: bool = False,
    return_indices: Literal[True],
) -> PooledWithIndices: ...


def max_pool2d(
    x: Any,
    kernel_size: IntPair,
    stride: IntPair | None = None,
    padding: IntPair = 0,
    dilation: IntPair = 1,
    *,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Variable | PooledWithIndices:
    """The largest element of each window; the first place of the window gets the gradient at ties.

    Args:
        x: images, (n, channels, height, width).
        kernel_size: the window, an integer, or two (rows, columns).
        stride: the step between windows; None takes the kernel's size.
        padding: how many -inf are put around the image; at most half the kernel's size.
        dilation: the step between the elements of a window.
        ceil_mode: True adds a window that leaves the image at the end, where elements remain.
        return_indices: True gives the indices too, row * width + column, for ``max_unpool2d``.

    Returns:
        (n, channels, oh, ow), oh = (height + 2 p - d (kh - 1) - 1) / s + 1, rounded down, or up
        with ``ceil_mode``; or ``(values, indices)``.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have four axes, or is not floating.
    """
    x = as_floating("max_pool2d", "x", x)
    windows = pooling_windows("max_pool2d", x, kernel_size, stride, padding, dilation)
    padded = x
    if as_flag("max_pool2d", "ceil_mode", ceil_mode):
        padded = _padded_at_the_end(x, windows, -math.inf)
    return_indices = as_flag("max_pool2d", "return_indices", return_indices)
    y, winners = MaxPool2d(windows).apply((padded,))
    if not return_indices:
        return y
    indices = PlacesOfWinners(windows, (padded.shape[2], x.shape[3])).apply((winners,))[0]
    return PooledWithIndices(y, indices)


def pooling_windows(
    function: str, x: Variable, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1
) -> Windows:
    """Windows whose padding is at most half the kernel.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have four axes.
    """
    step = kernel_size if stride is None else stride
    windows = make_windows(function, kernel_size, step, padding, dilation, x.shape)
    if any(2 * p > k for p, k in zip(windows.padding, windows.size, strict=True)):
        raise ValueError(
            f"{function}: padding {windows.padding} must be at most half of the "
            f"kernel_size {windows.size}: a window must not lie in the border alone."
        )
    return windows


def _padded_at_the_end(x: Variable, windows: Windows, value: float) -> Variable:
    """Images with rows and columns at the end, so that windows cover the last elements too.

    A window that would begin behind the image and the padding before is left out, as in PyTorch.
    """
    widths = []
    for n, k, s, p, d in zip(x.shape[2:], *windows, strict=True):
        reach = d * (k - 1) + 1
        last = -(-(n + 2 * p - reach) // s) * s  # where the last window begins
        if last >= n + p:
            last -= s
        widths.append((0, max(0, last + reach - n - 2 * p)))
    if widths == [(0, 0), (0, 0)]:
        return x
    return pad(x, ((0, 0), (0, 0), *widths), value)


def max_unpool2d(
    x: Any,
    indices: Any,
    kernel_size: IntPair,
    stride: IntPair | None = None,
    padding: IntPair = 0,
    output_size: tuple[int, int] | None = None,
) -> Variable:
    """Zeros, and each element of x at the index: ``max_pool2d`` undone as far as possible.

    dL/dx = dL/dy at the indices. An index that comes twice has the sum of both elements.

    Args:
        x: (n, channels, oh, ow).
        indices: those of ``max_pool2d(..., return_indices=True)``, of the shape of x.
        kernel_size: the window of the pooling, an integer, or two (rows, columns).
        stride: the step between windows; None takes the kernel's size.
        padding: the padding of the pooling.
        output_size: the result's (height, width); by default
            ((oh - 1) s - 2 p + kh, (ow - 1) s - 2 p + kw).

    Source: Zeiler and Fergus, Visualizing and Understanding Convolutional Networks, 2014.

    Raises:
        ValueError: the shapes do not fit together, or an argument is out of range.
        OperandError: x does not have four axes, or is not floating; the indices are not integers.
        IndexError: an index is out of range.
    """
    x = as_floating("max_unpool2d", "x", x, first_variable(indices))
    require_four_axes("max_unpool2d", "x", x)
    size = pair("max_unpool2d", "kernel_size", kernel_size, 1)
    step = size if stride is None else pair("max_unpool2d", "stride", stride, 1)
    border = pair("max_unpool2d", "padding", padding, 0)
    if output_size is None:
        height, width = (
            (n - 1) * s - 2 * p + k
            for n, s, p, k in zip(x.shape[2:], step, border, size, strict=True)
        )
    else:
        height, width = pair("max_unpool2d", "output_size", output_size, 1)
    places = as_operand("max_unpool2d", "indices", indices, x)
    if not is_integer(places.raw):
        raise OperandError(f"max_unpool2d: indices must be integers, got {describe(indices)}.")
    if places.shape != x.shape:
        raise ValueError(
            f"max_unpool2d: indices must have the shape of x, {x.shape}, got {places.shape}."
        )
    return _put_into_image(x, places, height, width)


def _put_into_image(x: Variable, places: Variable, height: int, width: int) -> Variable:
    """The elements of x at places of an image of zeros: (n, channels, height, width)."""
    n, channels = x.shape[:2]
    flat = (n, channels, x.shape[2] * x.shape[3])
    try:
        zeros = x.xp.zeros((n, channels, height * width), dtype=x.dtype, device=x.raw.device)
        y = scatter_add(
            wrap_array(zeros, x.device, False), reshape(places, flat), reshape(x, flat)
        )
    except (MemoryError, ValueError) as error:
        raise SizeError(
            f"max_unpool2d: an image of ({height}, {width}) cannot be made: {error}. Check "
            "output_size, kernel_size, stride and padding."
        ) from error
    except IndexError as error:
        raise IndexError(
            f"max_unpool2d: an index does not lie in the image of ({height}, {width}). Give the "
            "output_size of the image that was pooled, and the kernel_size, stride and padding."
        ) from error
    return reshape(y, (n, channels, height, width))


class AvgPool2d(FunctionNode):
    """y = the mean of each window, zeros of the border included.

    x: (n, c, height, width) -> y: (n, c, oh, ow).
    dL/dx = dL/dy / (kh kw), added up over the windows around an element
    """

    is_polynomial = True
    wide = True

    def __init__(self, windows: Windows) -> None:
        self.windows = checked_windows(self, windows)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        padded = pad_image(x, self.windows, 0.0)
        counts = self.windows.counts((x.shape[2], x.shape[3]))
        places = self.windows.places(padded.shape[2:], counts)
        shape = (*x.shape[:2], *counts)
        total = namespace_of(x).zeros(shape, dtype=x.dtype, device=x.device)
        for _, _, place in places:
            total += padded[place]
        return (total * (1.0 / (self.windows.size[0] * self.windows.size[1])),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        shape = input_shape(self)
        return AvgPool2dGrad(self.windows, (shape[2], shape[3])).apply(grad_outputs)


class AvgPool2dGrad(FunctionNode):
    """gx = gy / (kh kw), added up over windows: the gradient of ``AvgPool2d``, the transpose.

    gy: (n, c, oh, ow) -> gx: (n, c, height, width).   dL/dgy = AvgPool2d(dL/dgx)
    """

    is_polynomial = True
    wide = True

    def __init__(self, windows: Windows, image: Lengths) -> None:
        self.windows = checked_windows(self, windows)
        self.image = checked_pair(self, "image", image, 0)

    def forward(self, inputs: Arrays) -> Arrays:
        (gy,) = inputs
        xp = namespace_of(gy)
        share = gy * (1.0 / (self.windows.size[0] * self.windows.size[1]))
        shape = (*gy.shape[:2], *self.windows.padded(self.image))
        total = xp.zeros(shape, dtype=gy.dtype, device=gy.device)
        for _, _, place in self.windows.places(total.shape[2:], gy.shape[2:]):
            total = put_sum(total, place, share)
        return (crop_image(total, self.windows, self.image),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return AvgPool2d(self.windows).apply(grad_outputs)


def avg_pool2d(
    x: Any,
    kernel_size: IntPair,
    stride: IntPair | None = None,
    padding: IntPair = 0,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    **unknown: Never,
) -> Variable:
    """The mean of each window; the zeros of the border count by default.

    Args:
        x: images, (n, channels, height, width).
        kernel_size: the window, an integer, or two (rows, columns).
        stride: the step between windows; None takes the kernel's size.
        padding: how many zeros are put around the image; at most half the kernel's size.
        ceil_mode: True adds a window that leaves the image at the end, where elements remain.
            What lies behind the padding does not count.
        count_include_pad: False divides by the number of the window's elements of the image.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have four axes, or is not floating.
    """
    if unknown:
        raise unknown_keywords("avg_pool2d", unknown)
    x = as_floating("avg_pool2d", "x", x)
    windows = pooling_windows("avg_pool2d", x, kernel_size, stride, padding)
    padded = x
    if as_flag("avg_pool2d", "ceil_mode", ceil_mode):
        padded = _padded_at_the_end(x, windows, 0.0)
    count_include_pad = as_flag("avg_pool2d", "count_include_pad", count_include_pad)
    y = AvgPool2d(windows).apply((padded,))[0]
    if count_include_pad and padded is x:
        return y
    lines = []
    for axis in range(2):
        counted = (0, x.shape[2 + axis])
        if count_include_pad:
            counted = (-windows.padding[axis], counted[1] + windows.padding[axis])
        lines.append(_elements_of_windows(windows, axis, y.shape[2 + axis], counted))
    numbers = numpy.multiply.outer(*lines)
    factors = windows.size[0] * windows.size[1] / numbers
    return y * wrap_array(y.device.from_host(factors.astype(dtype_name(y.dtype))), y.device, False)


def _elements_of_windows(
    windows: Windows, axis: int, count: int, counted: tuple[int, int]
) -> numpy.ndarray[Any, Any]:
    """How many places of each window lie in a range, along an axis: (count), at least 1."""
    starts = numpy.arange(count) * windows.stride[axis] - windows.padding[axis]
    ends = numpy.minimum(starts + windows.size[axis], counted[1])
    numbers = ends - numpy.maximum(starts, counted[0])
    return numpy.asarray(numpy.maximum(numbers, 1))


def global_max_pool2d(x: Any) -> Variable:
    """The largest element of each channel of each image: (n, channels); ties share evenly.

    Raises:
        OperandError: x does not have four axes, or is not floating.
        ValueError: the images have no elements.
    """
    x = as_floating("global_max_pool2d", "x", x)
    require_four_axes("global_max_pool2d", "x", x)
    require_elements("global_max_pool2d", x, (2, 3))
    return max_(x, axis=(2, 3))


def global_avg_pool2d(x: Any) -> Variable:
    """The mean of each channel of each image: (n, channels).

    Raises:
        OperandError: x does not have four axes, or is not floating.
        ValueError: the images have no elements.
    """
    x = as_floating("global_avg_pool2d", "x", x)
    require_four_axes("global_avg_pool2d", "x", x)
    require_elements("global_avg_pool2d", x, (2, 3))
    return mean(x, axis=(2, 3))


class UpsampleNearest2d(FunctionNode):
    """y = each pixel of x repeated to a block of rows and columns.

    x: (n, c, height, width) -> y: (n, c, height * rows, width * columns).
    dL/dx = SumBlocks2d(dL/dy)
    """

    is_polynomial = True

    def __init__(self, scale: Counts) -> None:
        self.scale = checked_pair(self, "scale", scale, 1)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        n, c, height, width = x.shape
        rows, columns = self.scale
        if 0 in x.shape:  # else the loops below would count for nothing
            blocks = x[:, :, :, None, :, None]
            blocks = xp.broadcast_to(blocks, (n, c, height, rows, width, columns))
            return (xp.reshape(blocks, (n, c, height * rows, width * columns)),)
        wide = xp.empty((n, c, height, width * columns), dtype=x.dtype, device=x.device)
        for j in range(columns):
            wide = put(wide, (..., slice(j, None, columns)), x)
        y = xp.empty((n, c, height, rows, width * columns), dtype=x.dtype, device=x.device)
        for i in range(rows):
            y = put(y, (..., i, slice(None)), wide)
        return (xp.reshape(y, (n, c, height * rows, width * columns)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return SumBlocks2d(self.scale).apply(grad_outputs)


class SumBlocks2d(FunctionNode):
    """y = the sum of each block of rows and columns: ``UpsampleNearest2d`` transposed.

    x: (n, c, height * rows, width * columns) -> y: (n, c, height, width).
    dL/dx = UpsampleNearest2d(dL/dy)
    """

    is_polynomial = True
    wide = True

    def __init__(self, scale: Counts) -> None:
        self.scale = checked_pair(self, "scale", scale, 1)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        rows, columns = self.scale
        height, width = x.shape[2:]
        if height % rows or width % columns:
            raise ValueError(
                f"SumBlocks2d: scale must divide the height and width {(height, width)} of x, got "
                f"{self.scale}. Give the scale of the upsampling."
            )
        tall = x[..., ::rows, :]
        for i in range(1, min(rows, height)):
            tall = tall + x[..., i::rows, :]
        y = tall[..., ::columns]
        for j in range(1, min(columns, width)):
            y = y + tall[..., j::columns]
        return (y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return UpsampleNearest2d(self.scale).apply(grad_outputs)


def upsample_nearest2d(x: Any, scale: IntPair) -> Variable:
    """Each pixel repeated to a block: (n, channels, height * scale, width * scale).

    dL/dx = the sum of dL/dy over the block.

    Args:
        x: images, (n, channels, height, width).
        scale: how often, an integer, or two (rows, columns).

    Raises:
        OperandError: x does not have four axes, or is not floating.
        ValueError: a scale is below 1.
    """
    x = as_floating("upsample_nearest2d", "x", x)
    require_four_axes("upsample_nearest2d", "x", x)
    return UpsampleNearest2d(pair("upsample_nearest2d", "scale", scale, 1)).apply((x,))[0]


Pooling = type[MaxPool2d] | type[AvgPool2d]


def _pool_images(
    function: str, kind: Pooling, x: Variable, size: Any, stride: Any, padding: Any
) -> Variable:
    windows = pooling_windows(function, x, size, stride, padding)
    return kind(windows).apply((x,))[0]


def _pool1d(
    function: str, kind: Pooling, x: Any, size: Any, stride: Any, padding: Any
) -> Variable:
    x = as_floating(function, "x", x)
    if x.ndim != 3:
        raise OperandError(
            f"{function}: x must have the axes (n, channels, length), got shape {x.shape}."
        )
    size = integer(function, "kernel_size", size, 1)
    step = size if stride is None else integer(function, "stride", stride, 1)
    border = integer(function, "padding", padding, 0)
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    y = _pool_images(function, kind, image, (1, size), (1, step), (0, border))
    return reshape(y, (*y.shape[:2], y.shape[3]))


def _pool3d(
    function: str, kind: Pooling, x: Any, size: Any, stride: Any, padding: Any
) -> Variable:
    x = as_floating(function, "x", x)
    require_volumes(function, x)
    size = triple(function, "kernel_size", size, 1)
    step = size if stride is None else triple(function, "stride", stride, 1)
    border = triple(function, "padding", padding, 0)
    n, c, depth = x.shape[:3]
    images = reshape(x, (n, c * depth, *x.shape[3:]))
    flat = _pool_images(function, kind, images, size[1:], step[1:], border[1:])
    image = flat.shape[2:]
    lines = reshape(flat, (n, c, depth, image[0] * image[1]))
    y = _pool_images(function, kind, lines, (size[0], 1), (step[0], 1), (border[0], 0))
    return reshape(y, (n, c, y.shape[2], *image))


def max_pool1d(x: Any, kernel_size: int, stride: int | None = None, padding: int = 0) -> Variable:
    """The largest element of each window of a signal, as ``max_pool2d``.

    Args:
        x: signals, (n, channels, length).
        kernel_size: the length of a window.
        stride: the step between windows; None takes the kernel's size.
        padding: how many -inf are put at both ends; at most half the kernel's size.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have three axes, or is not floating.
    """
    return _pool1d("max_pool1d", MaxPool2d, x, kernel_size, stride, padding)


def avg_pool1d(x: Any, kernel_size: int, stride: int | None = None, padding: int = 0) -> Variable:
    """The mean of each window of a signal; the zeros at the ends count.

    Args:
        x: signals, (n, channels, length).
        kernel_size: the length of a window.
        stride: the step between windows; None takes the kernel's size.
        padding: how many zeros are put at both ends; at most half the kernel's size.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have three axes, or is not floating.
    """
    return _pool1d("avg_pool1d", AvgPool2d, x, kernel_size, stride, padding)


def max_pool3d(
    x: Any, kernel_size: IntTriple, stride: IntTriple | None = None, padding: IntTriple = 0
) -> Variable:
    """The largest element of each window of a volume; the first gets the gradient at ties.

    Args:
        x: volumes, (n, channels, depth, height, width).
        kernel_size: the window, an integer, or three (depth, rows, columns).
        stride: the step between windows; None takes the kernel's size.
        padding: how many -inf are put around the volume; at most half the kernel's size.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have five axes, or is not floating.
    """
    return _pool3d("max_pool3d", MaxPool2d, x, kernel_size, stride, padding)


def avg_pool3d(
    x: Any, kernel_size: IntTriple, stride: IntTriple | None = None, padding: IntTriple = 0
) -> Variable:
    """The mean of each window of a volume; the zeros of the border count.

    Args:
        x: volumes, (n, channels, depth, height, width).
        kernel_size: the window, an integer, or three (depth, rows, columns).
        stride: the step between windows; None takes the kernel's size.
        padding: how many zeros are put around the volume; at most half the kernel's size.

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: x does not have five axes, or is not floating.
    """
    return _pool3d("avg_pool3d", AvgPool2d, x, kernel_size, stride, padding)
