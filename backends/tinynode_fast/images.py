"""Kernels for images: convolution and pooling, with the channels last in memory.

Requirement: windows are copied to columns in long runs, products of matrices need no transposed
copy of what they read or write, and the columns stay in the cache. With channels last, a row of a
window is one run in memory, and the product of columns and kernels is the output as it lies. The
arrays keep the axes (n, channels, height, width): only their strides differ, and elementwise
functions keep those.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided

from tinynode.devices import Fallback
from tinynode.functions import convolution, pooling
from tinynode.functions.convolution import Windows
from tinynode_fast.blocks import Arrays, Entry, memory_order, workspace
from tinynode_fast.elementwise import FLOATS

COLUMNS = 1 << 18
"""So many elements of columns are made at a time."""
FEW = 8
"""With fewer channels, columns are laid out so that runs go along the rows of the image."""


def channels_last(x: Any) -> Any:
    """(n, c, height, width) as an array (n, height, width, c) in C order: a view if it can be."""
    return numpy.asarray(x.transpose(0, 2, 3, 1), order="C")


def padded(x: Any, windows: Windows, value: float) -> Any:
    """An array (n, height, width, c) with its border; itself where there is none."""
    rows, columns = windows.padding
    if not rows and not columns:
        return x
    n, height, width, c = x.shape
    wide = numpy.full((n, *windows.padded((height, width)), c), value, x.dtype)
    wide[:, rows : rows + height, columns : columns + width] = x
    return wide


def parts(n: int, size: int) -> Iterator[slice]:
    """Cuts n images into parts whose columns, ``size`` for each image, fit in the workspace."""
    step = max(1, COLUMNS // max(size, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def every_window(x: Any, windows: Windows, counts: tuple[int, int]) -> Any:
    """A view of padded images (n, height, width, c): (n, oh, ow, kh, kw, c)."""
    n, rows, columns, c = x.strides
    (kh, kw), (sh, sw), (dh, dw) = windows.size, windows.stride, windows.dilation
    shape = (x.shape[0], *counts, kh, kw, x.shape[3])
    strides = (n, rows * sh, columns * sw, rows * dh, columns * dw, c)
    return as_strided(x, shape, strides, writeable=False)


def unfold(view: Any) -> Any:
    """The windows as a matrix (n oh ow, kh kw c) in the workspace, possibly a transposed one."""
    places, size = math.prod(view.shape[:3]), math.prod(view.shape[3:])
    if view.shape[5] >= FEW:
        columns = workspace(view.shape, view.dtype)
        numpy.copyto(columns, view)
        return columns.reshape(places, size)
    turned = view.transpose(3, 4, 5, 0, 1, 2)
    columns = workspace(turned.shape, view.dtype)
    numpy.copyto(columns, turned)
    return columns.reshape(size, places).T


def why_not(node: Any, *arrays: Any) -> Fallback | None:
    """Why the kernels do not serve, or None."""
    if node.groups != 1:
        return Fallback("groups")
    if any(x.dtype not in FLOATS or x.dtype != arrays[0].dtype for x in arrays):
        return Fallback(f"{arrays[0].dtype} and {arrays[1].dtype} have no kernel")
    return None if all(x.size for x in arrays) else Fallback("no elements")


def kernels_outweigh(windows: Windows, x: Any, places: int, out: int) -> bool:
    """Whether it takes longer to bring operands in order than the product gains.

    That is so where a kernel for each of ``out`` channels meets few windows; and where windows are
    single elements of x, and lie apart: then there is nothing to copy but x itself.
    """
    single = windows.size == (1, 1) and not x.transpose(0, 2, 3, 1).flags.c_contiguous
    return places < out or single


def conv2d(node: Any, arrays: Arrays) -> Any:
    x, w = arrays
    reason = why_not(node, x, w)
    if reason is not None:
        return reason
    if kernels_outweigh(node.windows, x, len(x) * math.prod(node.counts), len(w)):
        return None
    node.retain_inputs((0, 1))
    images = padded(channels_last(x), node.windows, 0.0)
    kernels = w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0])
    y = numpy.empty((x.shape[0], *node.counts, w.shape[0]), x.dtype)
    for part in parts(len(x), kernels.shape[0] * math.prod(node.counts)):
        columns = unfold(every_window(images[part], node.windows, node.counts))
        numpy.matmul(columns, kernels, y[part].reshape(-1, w.shape[0]))
    return (y.transpose(0, 3, 1, 2),)


def conv2d_gradient_w(node: Any, arrays: Arrays) -> Any:
    x, gy = arrays
    reason = why_not(node, x, gy)
    if reason is not None:
        return reason
    counts, out = (gy.shape[2], gy.shape[3]), gy.shape[1]
    if kernels_outweigh(node.windows, x, len(x) * math.prod(counts), 2 * out):
        return None
    node.retain_inputs((0, 1))
    images, gradients = padded(channels_last(x), node.windows, 0.0), channels_last(gy)
    size = math.prod(node.windows.size) * x.shape[1]
    total = numpy.zeros((size, out), x.dtype)
    for part in parts(len(x), size * math.prod(counts)):
        columns = unfold(every_window(images[part], node.windows, counts))
        total += columns.T @ gradients[part].reshape(-1, out)
    gw = total.reshape(*node.windows.size, x.shape[1], out).transpose(3, 2, 0, 1)
    return (numpy.ascontiguousarray(gw),)


def conv2d_gradient_x(node: Any, arrays: Arrays) -> Any:
    gy, w = arrays
    reason = why_not(node, gy, w)
    if reason is not None:
        return reason
    windows = len(gy) * math.prod(gy.shape[2:])
    if w.shape[1] < FEW or 4 * windows < len(w):  # short runs, or more copying than use
        return None
    node.retain_inputs((0, 1))
    gradients = channels_last(gy)
    (n, oh, ow, out), channels = gradients.shape, w.shape[1]
    kernels = numpy.ascontiguousarray(w.transpose(2, 3, 0, 1)).reshape(-1, out, channels)
    gx = numpy.zeros((n, *node.windows.padded(node.image), channels), gy.dtype)
    places = [place[1:] for _, _, place in node.windows.places((oh, ow))]
    for part in parts(n, len(kernels) * channels * oh * ow):
        matrix = gradients[part].reshape(-1, out)
        columns = workspace((len(matrix), channels), gy.dtype)
        target = gx[part]
        for kernel, (rows, cols) in zip(kernels, places, strict=True):
            numpy.matmul(matrix, kernel, columns)
            target[:, rows, cols] += columns.reshape(len(target), oh, ow, channels)
    rows, cols = node.windows.padding
    gx = gx[:, rows : rows + node.image[0], cols : cols + node.image[1]]
    return (gx.transpose(0, 3, 1, 2),)


# --- pooling -------------------------------------------------------------------------------------


def like(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An empty array whose axes lie in memory in the order of those of x."""
    axes = memory_order(x)
    straight = numpy.empty([shape[i] for i in axes], dtype)
    return straight.transpose(numpy.argsort(axes))


def padded_images(x: Any, windows: Windows, value: float) -> Any:
    """Images (n, c, height, width) with their border, in the memory order of x."""
    if windows.padding == (0, 0):
        return x
    (rows, columns), (height, width) = windows.padding, x.shape[2:]
    wide = like(x, (*x.shape[:2], *windows.padded((height, width))), x.dtype)
    wide[...] = value
    wide[:, :, rows : rows + height, columns : columns + width] = x
    return wide


def max_pool(node: Any, arrays: Arrays) -> Any:
    (x,) = arrays
    if x.dtype not in FLOATS or not x.size:
        return Fallback(f"{x.dtype} has no kernel" if x.size else "no elements")
    node.retain_outputs((1,))
    wide = padded_images(x, node.windows, -numpy.inf)
    counts = node.windows.counts(x.shape[2:])
    dtype = numpy.int8 if math.prod(node.windows.size) < 128 else numpy.int32
    best = like(x, (*x.shape[:2], *counts), x.dtype)
    winners, spare = numpy.zeros_like(best, dtype), numpy.empty_like(best, dtype)
    better = numpy.empty_like(best, bool)
    places = [place for _, _, place in node.windows.places(counts)]
    best[...] = wide[places[0]]
    for number, place in enumerate(places[1:], 1):
        candidate = wide[place]
        numpy.greater(candidate, best, better)
        numpy.maximum(best, candidate, out=best)
        numpy.multiply(better.view(numpy.int8), dtype(number), spare)
        numpy.maximum(winners, spare, out=winners)  # numbers rise, so the last one stays
    return best, winners


def max_pool_gradient(node: Any, arrays: Arrays) -> Any:
    gy, winners = arrays
    if gy.dtype not in FLOATS or not gy.size:
        return Fallback(f"{gy.dtype} has no kernel" if gy.size else "no elements")
    node.retain_inputs((1,))
    windows = node.windows
    gx = like(gy, (*gy.shape[:2], *windows.padded(node.image)), gy.dtype)
    gx[...] = 0
    here, chosen = numpy.empty_like(gy, bool), numpy.empty_like(gy)
    apart = windows.stride[0] >= windows.size[0] and windows.stride[1] >= windows.size[1]
    for number, (_, _, place) in enumerate(windows.places((gy.shape[2], gy.shape[3]))):
        numpy.equal(winners, winners.dtype.type(number), here)
        numpy.copyto(chosen, here)
        if apart and windows.dilation == (1, 1):  # nothing else was added there
            numpy.multiply(chosen, gy, gx[place])
        else:
            numpy.multiply(chosen, gy, chosen)
            gx[place] += chosen
    rows, columns = windows.padding
    return (gx[:, :, rows : rows + node.image[0], columns : columns + node.image[1]],)


KERNELS: dict[type, Entry] = {
    convolution.Conv2d: Entry("conv2d", 0, conv2d),
    convolution.Conv2dGradX: Entry("conv2d_gradient_x", 0, conv2d_gradient_x),
    convolution.Conv2dGradW: Entry("conv2d_gradient_w", 0, conv2d_gradient_w),
    pooling.MaxPool2d: Entry("max_pool", 4096, max_pool),
    pooling.MaxPool2dGrad: Entry("max_pool_gradient", 4096, max_pool_gradient),
}
