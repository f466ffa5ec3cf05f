"""Convolution: unfold, one matrix product, and the way back.

As everywhere in neural networks, the kernel is not flipped (the literature calls this
cross-correlation). Images are (n, channels, height, width).
"""

from __future__ import annotations

import math
from typing import Any

from tinynode.errors import InvalidType, dtype_name
from tinynode.functions.error_function import as_floating
from tinynode.functions.linear import matmul
from tinynode.functions.operands import as_operands
from tinynode.functions.shaping import permute_dims, reshape
from tinynode.functions.windows import (
    Fold,
    Unfold,
    Windows,
    make_windows,
    pair,
    require_four_axes,
)
from tinynode.variable import Variable

IntPair = int | tuple[int, int]


def conv2d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: IntPair = 1,
    padding: IntPair = 0,
    dilation: IntPair = 1,
    groups: int = 1,
) -> Variable:
    """y[n, o, r, q] = b[o] + the sum over c, i, j of w[o, c, i, j] * x[n, c, r', q'].

    With stride s, padding p, dilation d:   r' = r s + i d - p   q' = q s + j d - p

    Args:
        x: images, (n, channels, height, width).
        w: kernels, (out, channels / groups, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: s, the step between windows; one integer or two (rows, columns).
        padding: p, how many zeros are put around the image.
        dilation: d, the step between the elements of a window.
        groups: channels and outputs are divided into groups that do not see each other.

    Returns:
        (n, out, oh, ow), oh = (height + 2 p - d (kh - 1) - 1) // s + 1, ow likewise.

    Raises:
        OperandError: x or w does not have four axes, or is not floating.
        InvalidType: their dtypes differ.
        ValueError: the channels do not fit, or no window does.
    """
    x, w = as_operands("conv2d", x, w, names=("x", "w"))
    require_four_axes("conv2d", "w", w)
    windows = make_windows("conv2d", w.shape[2:], stride, padding, dilation, x.shape)
    return _convolve("conv2d", x, w, b, windows, groups)


def _convolve(
    function: str, x: Variable, w: Variable, b: Any, windows: Windows, groups: int
) -> Variable:
    """The images (n, out, oh, ow) of conv2d."""
    _check_dtypes(function, x, w)
    _check_groups(function, x, w, groups)
    if w.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"{function}: x has {x.shape[1]} channels (shape {x.shape}); w (shape {w.shape}) with "
            f"groups={groups} needs {w.shape[1] * groups}."
        )
    n, channels = x.shape[:2]
    out = w.shape[0]
    columns = Unfold(windows).apply((x,))[0]
    counts = columns.shape[4:]
    inner = channels * math.prod(windows.size) // groups
    left = reshape(w, (groups, out // groups, inner))
    right = reshape(columns, (groups, inner, n * math.prod(counts)))
    y = matmul(left[0], right[0]) if groups == 1 else matmul(left, right)
    images = permute_dims(reshape(y, (out, n, *counts)), (1, 0, 2, 3))
    return _add_bias(function, images, b)


def _add_bias(function: str, images: Variable, b: Any) -> Variable:
    """Images plus a number for each channel; b may be None."""
    if b is None:
        return images
    bias = as_operands(function, b, images, names=("b", "x"))[0]
    if bias.shape != images.shape[1:2]:
        raise ValueError(
            f"{function}: b must have shape ({images.shape[1]},), one for each output channel; "
            f"got {bias.shape}."
        )
    return images + reshape(bias, (bias.shape[0], 1, 1))


def _check_groups(function: str, x: Variable, w: Variable, groups: int) -> None:
    if groups < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise ValueError(
            f"{function}: groups={groups} does not divide the channels of x (shape {x.shape}) and "
            f"of w (shape {w.shape})."
        )


def _check_dtypes(function: str, x: Variable, w: Variable) -> None:
    as_floating(function, "x", x)
    if x.dtype != w.dtype:
        raise InvalidType(
            "x.dtype == w.dtype",
            f"{dtype_name(x.dtype)} != {dtype_name(w.dtype)}",
            f"{function}: x is {dtype_name(x.dtype)}, w is {dtype_name(w.dtype)}: cast one with "
            "astype.",
        )


def conv1d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Variable:
    """y[n, o, q] = b[o] + the sum over c, j of w[o, c, j] x[n, c, q s + j d - p].

    Args:
        x: signals, (n, channels, length).
        w: kernels, (out, channels / groups, k).
        b: a bias for each output channel, (out), or None.
        stride: s, the step between windows.
        padding: p, how many zeros are put at both ends.
        dilation: d, the step between the elements of a window.
        groups: channels and outputs are divided into groups that do not see each other.

    Returns:
        (n, out, (length + 2 p - d (k - 1) - 1) // s + 1).

    Raises:
        OperandError: x or w is not floating.
        InvalidType: their dtypes differ.
        ValueError: x or w does not have three axes, the channels do not fit, or no window does.
    """
    x, w = as_operands("conv1d", x, w, names=("x", "w"))
    if x.ndim != 3 or w.ndim != 3:
        raise ValueError(
            f"conv1d: x must be (n, channels, length) and w (out, channels, k); got shapes "
            f"{x.shape} and {w.shape}."
        )
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    kernel = reshape(w, (*w.shape[:2], 1, w.shape[2]))
    windows = make_windows(
        "conv1d", kernel.shape[2:], (1, stride), (0, padding), (1, dilation), image.shape
    )
    y = _convolve("conv1d", image, kernel, b, windows, groups)
    return reshape(y, (*y.shape[:2], y.shape[3]))


def conv_transpose2d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: IntPair = 1,
    padding: IntPair = 0,
    output_padding: IntPair = 0,
    dilation: IntPair = 1,
    groups: int = 1,
) -> Variable:
    """The transpose of conv2d: what conv2d's gradient does to images.

    Args:
        x: images, (n, channels, height, width).
        w: kernels, (channels, out / groups, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: the step between windows on the output.
        padding: how much of the output's border is cut off.
        output_padding: how many rows and columns are added at the end of the output.
        dilation: the step between the elements of a window.
        groups: channels and outputs are divided into groups that do not see each other.

    Returns:
        (n, out, oh, ow), oh = (height - 1) s - 2 p + d (kh - 1) + output_padding + 1, ow likewise.

    Raises:
        OperandError: x or w does not have four axes, or is not floating.
        InvalidType: their dtypes differ.
        ValueError: the channels do not fit, or the output would be empty.
    """
    x, w = as_operands("conv_transpose2d", x, w, names=("x", "w"))
    require_four_axes("conv_transpose2d", "x", x)
    require_four_axes("conv_transpose2d", "w", w)
    windows = Windows(
        pair("conv_transpose2d", "kernel_size", w.shape[2:], 1),
        pair("conv_transpose2d", "stride", stride, 1),
        pair("conv_transpose2d", "padding", padding, 0),
        pair("conv_transpose2d", "dilation", dilation, 1),
    )
    extra = pair("conv_transpose2d", "output_padding", output_padding, 0)
    _check_dtypes("conv_transpose2d", x, w)
    _check_groups("conv_transpose2d", x, w, groups)
    if w.shape[0] != x.shape[1]:
        raise ValueError(
            f"conv_transpose2d: x has {x.shape[1]} channels (shape {x.shape}), w has {w.shape[0]} "
            f"(shape {w.shape}): its first axis is that of x's channels."
        )
    n, channels, height, width = x.shape
    out = w.shape[1] * groups
    image = _transposed_image(windows, extra, (height, width))
    inner = channels // groups
    left = permute_dims(
        reshape(w, (groups, inner, out // groups * math.prod(windows.size))), (0, 2, 1)
    )
    right = reshape(permute_dims(x, (1, 0, 2, 3)), (groups, inner, n * height * width))
    y = matmul(left[0], right[0]) if groups == 1 else matmul(left, right)
    columns = reshape(y, (out, *windows.size, n, height, width))
    return _add_bias("conv_transpose2d", Fold(windows, image).apply((columns,))[0], b)


def _transposed_image(
    windows: Windows, extra: tuple[int, int], image: tuple[int, int]
) -> tuple[int, int]:
    lengths = []
    for n, k, s, p, d, e in zip(image, *windows, extra, strict=True):
        lengths.append((n - 1) * s - 2 * p + d * (k - 1) + e + 1)
        if e >= s and e >= d:
            raise ValueError(
                f"conv_transpose2d: output_padding {extra} must be below the stride "
                f"{windows.stride} or the dilation {windows.dilation}."
            )
    if min(lengths) < 1:
        raise ValueError(
            f"conv_transpose2d: the output would have size {tuple(lengths)}: give less padding."
        )
    return lengths[0], lengths[1]


def bilinear(x1: Any, x2: Any, w: Any, b: Any = None) -> Variable:
    """y[n, o] = b[o] + the sum over i, j of x1[n, i] w[o, i, j] x2[n, j].

    Args:
        x1: (n, in1).
        x2: (n, in2).
        w: (out, in1, in2).
        b: (out), or None.

    Raises:
        ValueError: the shapes do not fit together.
    """
    x1, w = as_operands("bilinear", x1, w, names=("x1", "w"))
    x2 = as_operands("bilinear", x2, w, names=("x2", "w"))[0]
    if (
        x1.ndim != 2
        or x2.ndim != 2
        or w.ndim != 3
        or w.shape[1:] != (x1.shape[1], x2.shape[1])
        or x1.shape[0] != x2.shape[0]
    ):
        raise ValueError(
            "bilinear: x1 must be (n, in1), x2 (n, in2) and w (out, in1, in2); got shapes "
            f"{x1.shape}, {x2.shape} and {w.shape}."
        )
    n, (out, in1, in2) = x1.shape[0], w.shape
    left = reshape(
        matmul(x1, reshape(permute_dims(w, (1, 0, 2)), (in1, out * in2))), (n, out, in2)
    )
    y = reshape(matmul(left, reshape(x2, (n, in2, 1))), (n, out))
    if b is None:
        return y
    bias = as_operands("bilinear", b, y, names=("b", "x1"))[0]
    if bias.shape != (out,):
        raise ValueError(f"bilinear: b must have shape ({out},), got {bias.shape}.")
    return y + bias
