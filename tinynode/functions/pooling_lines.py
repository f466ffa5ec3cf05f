"""Pooling in one and three dimensions, by way of ``MaxPool2d`` and ``AvgPool2d``.

A signal is an image of a single row. The window of a volume is pooled over rows and columns
first, then over the depth. The results are the largest of the largest, and the mean of the means.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.variable import Variable
from tinynode.errors import OperandError
from tinynode.functions.convolution import integer
from tinynode.functions.operands import as_floating
from tinynode.functions.pooling import AvgPool2d, MaxPool2d, pooling_windows
from tinynode.functions.shapes import reshape
from tinynode.functions.volumes import IntTriple, require_volumes, triple

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
