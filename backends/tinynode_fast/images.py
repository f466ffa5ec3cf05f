"""Kernels for images: convolution, and the gradient of pooling, with the channels last in memory.

Requirement: windows are copied to columns in long runs, matrix products copy no operand, and the
columns stay in the cache. With the channels last, a row of a window is one run in memory. The
product of columns and kernels is then the output, without a transposition. The arrays keep the
axes (n, channels, height, width). Only the strides differ; elementwise functions keep them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided

from tinynode.devices import Arrays, Fallback
from tinynode.devices.products import matrix_product, share_products
from tinynode.functions.convolution import Conv2d, Conv2dGradW, Conv2dGradX
from tinynode.functions.image_windows import Windows
from tinynode.functions.pooling import MaxPool2dGrad, require_winners
from tinynode_fast.limits import LIMITS
from tinynode_fast.memory import is_small

FLOATS = frozenset({numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)})

CHANNELS_LAST = (0, 2, 3, 1)
"""The axes of images from the largest step in memory to the smallest."""


def channels_last(x: Any) -> Any:
    """(n, c, height, width) as an array (n, height, width, c) in C order: a view if possible."""
    return numpy.asarray(x.transpose(CHANNELS_LAST), order="C")


def unusual_orders(names: list[str], arrays: Arrays) -> dict[str, tuple[int, ...]]:
    """The images with the channels last in memory. Plans copy small images to C order."""
    found: dict[str, tuple[int, ...]] = {}
    for name, x in zip(names, arrays, strict=True):
        is_unusual = x.ndim == 4 and not x.flags.c_contiguous
        is_one_run = is_unusual and x.transpose(CHANNELS_LAST).flags.c_contiguous
        if is_one_run and not is_small((x.shape, x.dtype)):
            found[name] = CHANNELS_LAST
    return found


def padded(x: Any, windows: Windows) -> Any:
    """Images (n, c, height, width) as (n, height, width, c), with a border of zeros."""
    images, (rows, columns) = channels_last(x), windows.padding
    border = (0, 0), (rows, rows), (columns, columns), (0, 0)
    return numpy.pad(images, border) if rows or columns else images


def parts(start: int, stop: int, size: int) -> Iterator[slice]:
    """Parts of images, whose columns, ``size`` elements for each image, stay in the cache."""
    step = max(1, LIMITS.columns // max(size, 1))
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def unfold(x: Any, windows: Windows, counts: tuple[int, int]) -> Any:
    """The windows of x (n, height, width, c) as a matrix (n oh ow, kh kw c).

    With few channels the transposed matrix is made: its runs go along the rows of the image.

    Raises:
        ValueError: a window leaves the image; the view below would read foreign memory.
    """
    windows.require_inside((x.shape[1], x.shape[2]), counts)
    n, rows, columns, c = x.strides
    (kh, kw), (sh, sw), (dh, dw) = windows.size, windows.stride, windows.dilation
    shape = (x.shape[0], *counts, kh, kw, x.shape[3])
    strides = (n, rows * sh, columns * sw, rows * dh, columns * dw, c)
    view = as_strided(x, shape, strides, writeable=False)
    number, size = math.prod(shape[:3]), math.prod(shape[3:])
    if shape[5] >= LIMITS.few_channels:
        return view.reshape(number, size)
    return view.transpose(3, 4, 5, 0, 1, 2).reshape(size, number).T


def conv2d(node: Any, x: Any, w: Any) -> Any:
    node.windows.require_size(w.shape[2:])
    if len(x) * math.prod(node.counts) < len(w):  # to bring w in order would take longest
        return None
    node.retain_inputs((0, 1))
    images = padded(x, node.windows)
    kernels = w.transpose(2, 3, 1, 0).reshape(-1, len(w))
    y = numpy.empty((len(x), *node.counts, len(w)), x.dtype)

    def work(start: int, stop: int) -> None:
        for part in parts(start, stop, len(kernels) * math.prod(node.counts)):
            columns = unfold(images[part], node.windows, node.counts)
            matrix_product(columns, kernels, y[part].reshape(-1, len(w)))

    share_products(x, 2 * y.size * len(kernels), work)
    return (y.transpose(0, 3, 1, 2),)


def conv2d_gradient_w(node: Any, x: Any, gy: Any) -> Any:
    counts, out = (gy.shape[2], gy.shape[3]), gy.shape[1]
    if len(x) * math.prod(counts) < 2 * out:
        return None
    node.retain_inputs((0, 1))
    images, gradients = padded(x, node.windows), channels_last(gy)
    size = math.prod(node.windows.size) * x.shape[1]

    def work(start: int, stop: int) -> Any:
        total = numpy.zeros((size, out), x.dtype)
        for part in parts(start, stop, size * math.prod(counts)):
            columns = unfold(images[part], node.windows, counts)
            total += matrix_product(columns.T, gradients[part].reshape(-1, out))
        return total

    total, *others = share_products(x, 2 * gy.size * size, work)
    for other in others:
        total += other
    gw = total.reshape(*node.windows.size, x.shape[1], out).transpose(3, 2, 0, 1)
    return (numpy.ascontiguousarray(gw),)


def conv2d_gradient_x(node: Any, gy: Any, w: Any) -> Any:
    node.windows.require_size(w.shape[2:])
    channels = w.shape[1]
    # with few channels runs are short; with few windows copying takes longer than the product
    if channels < LIMITS.few_channels or 4 * len(gy) * math.prod(gy.shape[2:]) < len(w):
        return None
    node.retain_inputs((0, 1))
    gradients = channels_last(gy)
    n, oh, ow, out = gradients.shape
    kernels = numpy.ascontiguousarray(w.transpose(2, 3, 0, 1)).reshape(-1, out, channels)
    padded = node.windows.padded(node.image)
    gx = numpy.empty((n, *node.image, channels), gy.dtype)
    indexes = [index[1:] for _, _, index in node.windows.places(padded, (oh, ow))]
    top, left = node.windows.padding
    inside = slice(top, top + node.image[0]), slice(left, left + node.image[1])

    def work(start: int, stop: int) -> None:
        for part in parts(start, stop, len(kernels) * channels * oh * ow):
            matrix = gradients[part].reshape(-1, out)
            columns = numpy.empty((len(matrix), channels), gy.dtype)
            total = numpy.zeros((part.stop - part.start, *padded, channels), gy.dtype)
            for kernel, (rows, cols) in zip(kernels, indexes, strict=True):
                matrix_product(matrix, kernel, columns)
                total[:, rows, cols] += columns.reshape(len(total), oh, ow, channels)
            gx[part] = total[:, *inside]

    share_products(gy, 2 * gy.size * len(kernels) * channels, work)
    return (gx.transpose(0, 3, 1, 2),)


def max_pool_gradient(node: Any, gy: Any, winners: Any) -> Any:
    """The portable formula, on arrays in the order of the winners."""
    require_winners(gy.shape, winners.shape)
    node.retain_inputs((1,))
    shape = (*gy.shape[:2], *node.windows.padded(node.image))
    ordered = numpy.empty_like(winners, gy.dtype)
    numpy.copyto(ordered, gy)
    return (node.added(numpy.zeros_like(winners, gy.dtype, shape=shape), ordered, winners),)


KERNELS: dict[type, Callable[..., Any]] = {
    Conv2d: conv2d,
    Conv2dGradX: conv2d_gradient_x,
    Conv2dGradW: conv2d_gradient_w,
    MaxPool2dGrad: max_pool_gradient,
}
"""The kernels, by the exact class of the FunctionNode.

``kernel(node, *inputs)`` retains as the class's forward, and returns the outputs. Or it returns
``Fallback``, or None where the portable forward is as quick.
"""


def run_kernel(node: Any, arrays: Arrays) -> Any:
    """The outputs, or ``Fallback`` or None as from the kernel."""
    if arrays[0].dtype not in FLOATS:
        return Fallback(f"{arrays[0].dtype} has no kernel")
    if any(not x.size for x in arrays):
        return Fallback("no elements")
    if getattr(node, "groups", 1) != 1:
        return Fallback("groups")
    if type(node) is not MaxPool2dGrad and arrays[0].dtype != arrays[1].dtype:
        return Fallback("the inputs differ in dtype")
    return KERNELS[type(node)](node, *arrays)
