"""Convolution: unfold, one matrix product, and the way back.

As everywhere in neural networks, the kernel is not flipped (the literature calls this
cross-correlation). Images are (n, channels, height, width).
"""

from __future__ import annotations

import math
from typing import Any

from tinynode.errors import InvalidType, dtype_name
from tinynode.functions.linear import matmul
from tinynode.functions.operands import as_operand, as_operands
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
        OperandError: x or w does not have four axes.
        ValueError: the channels do not fit, or no window does.
    """
    x, w = as_operands("conv2d", x, w)
    require_four_axes("conv2d", "w", w)
    windows = make_windows("conv2d", w.shape[2:], stride, padding, dilation, x.shape)
    _check_channels("conv2d", x, w, b, groups, x.shape[1], w.shape[0])
    n, channels = x.shape[:2]
    out = w.shape[0]
    columns = Unfold(windows).apply((x,))[0]
    counts = columns.shape[4:]
    inner = channels * math.prod(windows.size) // groups
    left = reshape(w, (groups, out // groups, inner))
    right = reshape(columns, (groups, inner, n * math.prod(counts)))
    y = matmul(left[0], right[0]) if groups == 1 else matmul(left, right)
    images = permute_dims(reshape(y, (out, n, *counts)), (1, 0, 2, 3))
    return images if b is None else images + _bias(b, images)


def _bias(b: Any, images: Variable) -> Variable:
    bias = as_operands("conv2d", b, images)[0]
    return reshape(bias, (bias.shape[0], 1, 1))


def _check_channels(
    function: str, x: Variable, w: Variable, b: Any, groups: int, expected: int, out: int
) -> None:
    """``expected``: the channels of x; ``out``: the length that the bias must have."""
    if groups < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise ValueError(
            f"{function}: groups={groups} does not divide the channels of x (shape {x.shape}) and "
            f"of w (shape {w.shape})."
        )
    fits = (
        w.shape[0] == x.shape[1]
        if "transpose" in function
        else (w.shape[1] * groups == x.shape[1])
    )
    if not fits:
        raise ValueError(
            f"{function}: x has {expected} channels (shape {x.shape}), which does not fit w of "
            f"shape {w.shape} with groups={groups}."
        )
    if x.dtype != w.dtype:
        raise InvalidType(
            "x.dtype == w.dtype",
            f"{dtype_name(x.dtype)} != {dtype_name(w.dtype)}",
            f"{function}: x is {dtype_name(x.dtype)}, w is {dtype_name(w.dtype)}: cast one with "
            "astype.",
        )
    if b is not None and tuple(b.shape) != (out,):
        raise ValueError(f"{function}: b must have shape ({out},), got {tuple(b.shape)}.")


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
        ValueError: x or w does not have three axes, the channels do not fit, or no window does.
    """
    x, w = as_operands("conv1d", x, w)
    if x.ndim != 3 or w.ndim != 3:
        raise ValueError(
            f"conv1d: x must be (n, channels, length) and w (out, channels, k); got shapes "
            f"{x.shape} and {w.shape}."
        )
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    kernel = reshape(w, (*w.shape[:2], 1, w.shape[2]))
    y = conv2d(image, kernel, b, (1, stride), (0, padding), (1, dilation), groups)
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
        OperandError: x or w does not have four axes.
        ValueError: the channels do not fit, or the output would be empty.
    """
    x, w = as_operands("conv_transpose2d", x, w)
    require_four_axes("conv_transpose2d", "x", x)
    require_four_axes("conv_transpose2d", "w", w)
    windows = Windows(
        (w.shape[2], w.shape[3]),
        pair("conv_transpose2d", "stride", stride, 1),
        pair("conv_transpose2d", "padding", padding, 0),
        pair("conv_transpose2d", "dilation", dilation, 1),
    )
    extra = pair("conv_transpose2d", "output_padding", output_padding, 0)
    out = w.shape[1] * groups
    _check_channels("conv_transpose2d", x, w, b, groups, x.shape[1], out)
    n, channels, height, width = x.shape
    image = _transposed_image(windows, extra, (height, width))
    inner = channels // groups
    left = permute_dims(
        reshape(w, (groups, inner, out // groups * math.prod(windows.size))), (0, 2, 1)
    )
    right = reshape(permute_dims(x, (1, 0, 2, 3)), (groups, inner, n * height * width))
    columns = reshape(matmul(left, right), (out, *windows.size, n, height, width))
    images = Fold(windows, image).apply((columns,))[0]
    return images if b is None else images + _bias(b, images)


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
    x1, w = as_operands("bilinear", x1, w)
    x2 = as_operand("bilinear", "x2", x2)
    if (
        x1.ndim != 2
        or x2.ndim != 2
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
    return y if b is None else y + b
