"""Convolution: images are unfolded to columns, and multiplied as matrices.

Requirement: it is quick, keeps no columns for the way back (they are as large as all windows
together), and is differentiable to any order. So each of the three functions below unfolds again
what it needs, a few images at a time. Each is linear in both inputs, and its gradients are the
other two: ``Conv2d`` of images and kernels, ``Conv2dGradX`` of gradients and kernels, which is
transposed convolution as well, and ``Conv2dGradW`` of images and gradients.

As everywhere in neural networks, the kernel is not flipped (the literature calls this
cross-correlation). Images are (n, channels, height, width).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, namespace_of, put
from tinynode.functions.linear import matmul
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_operands,
    first_variable,
    require_one_dtype,
)
from tinynode.functions.shaping import permute_dims, reshape
from tinynode.functions.windows import (
    Windows,
    batches,
    fold_columns,
    integer,
    make_windows,
    pair,
    require_four_axes,
    unfold_images,
)

IntPair = int | tuple[int, int]


class Conv2d(FunctionNode):
    """y[n, o, r, q] = the sum over c, i, j of w[o, c, i, j] x[n, c, r s + i d - p, q s + j d - p].

    x: (n, channels, height, width), w: (out, channels / groups, kh, kw) -> y: (n, out, *counts).
    With g = dL/dy:   dL/dx = Conv2dGradX(g, w)   dL/dw = Conv2dGradW(x, g)
    """

    def __init__(self, windows: Windows, groups: int, counts: tuple[int, int]) -> None:
        self.windows = windows
        self.groups = groups
        self.counts = counts

    def forward(self, inputs: Arrays) -> Arrays:
        x, w = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        kernels = _kernels_as_matrices(w, self.groups)
        shape = (x.shape[0], w.shape[0], *self.counts)
        y = xp.empty(shape, dtype=x.dtype, device=x.device)
        for part in _batches(x, x.shape, self.windows, self.counts):
            columns = unfold_images(x[part, ...], self.windows, self.counts)
            product = xp.matmul(kernels, _columns_as_matrices(columns, self.groups))
            images = xp.reshape(product, (w.shape[0], part.stop - part.start, *self.counts))
            y = put(y, (part, ...), xp.permute_dims(images, (1, 0, 2, 3)))
        return (y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        gx = gw = None
        if 0 in target_input_indexes:
            image = (x.shape[2], x.shape[3])
            gx = Conv2dGradX(self.windows, self.groups, image).apply((gy, w))[0]
        if 1 in target_input_indexes:
            gw = Conv2dGradW(self.windows, self.groups).apply((x, gy))[0]
        return gx, gw


def _batches(
    x: Array, shape: tuple[int, ...], windows: Windows, counts: tuple[int, int]
) -> Iterator[slice]:
    """Batches of images of a shape, on the device of x."""
    return batches(x, shape[0], shape[1] * math.prod(windows.size) * math.prod(counts))


def _kernels_as_matrices(w: Array, groups: int) -> Array:
    """(out, channels / groups, kh, kw) -> (groups, out / groups, channels / groups * kh * kw)"""
    shape = (groups, w.shape[0] // groups, math.prod(w.shape[1:]))
    return namespace_of(w).reshape(w, shape)


def _columns_as_matrices(columns: Array, groups: int) -> Array:
    """(channels, kh, kw, n, oh, ow) -> (groups, channels / groups * kh * kw, n * oh * ow)"""
    shape = (groups, math.prod(columns.shape[:3]) // groups, math.prod(columns.shape[3:]))
    return namespace_of(columns).reshape(columns, shape)


def _images_as_matrices(y: Array, groups: int) -> Array:
    """(n, out, oh, ow) -> (groups, out / groups, n * oh * ow)"""
    xp = namespace_of(y)
    shape = (groups, y.shape[1] // groups, y.shape[0] * math.prod(y.shape[2:]))
    return xp.reshape(xp.permute_dims(y, (1, 0, 2, 3)), shape)


class Conv2dGradX(FunctionNode):
    """gx[n, c, ...] = the sum of w[o, c, i, j] gy[n, o, r, q] over all that lie there.

    gy: (n, out, oh, ow), w: (out, channels / groups, kh, kw) -> gx: (n, channels, *image).
    With h = dL/dgx:   dL/dgy = Conv2d(h, w)   dL/dw = Conv2dGradW(h, gy)
    """

    def __init__(self, windows: Windows, groups: int, image: tuple[int, int]) -> None:
        self.windows = windows
        self.groups = groups
        self.image = image

    def forward(self, inputs: Arrays) -> Arrays:
        gy, w = inputs
        xp = namespace_of(gy)
        self.retain_inputs((0, 1))
        counts = (gy.shape[2], gy.shape[3])
        kernels = xp.matrix_transpose(_kernels_as_matrices(w, self.groups))
        shape = (gy.shape[0], w.shape[1] * self.groups, *self.image)
        gx = xp.empty(shape, dtype=gy.dtype, device=gy.device)
        for part in _batches(gy, shape, self.windows, counts):
            gradients = gy[part, ...]
            product = xp.matmul(kernels, _images_as_matrices(gradients, self.groups))
            columns = (shape[1], *self.windows.size, gradients.shape[0], *counts)
            folded = fold_columns(xp.reshape(product, columns), self.windows, self.image)
            gx = put(gx, (part, ...), folded)
        return (gx,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (h,) = grad_outputs
        gy, w = self.get_retained_inputs()
        ggy = gw = None
        if 0 in target_input_indexes:
            counts = (gy.shape[2], gy.shape[3])
            ggy = Conv2d(self.windows, self.groups, counts).apply((h, w))[0]
        if 1 in target_input_indexes:
            gw = Conv2dGradW(self.windows, self.groups).apply((h, gy))[0]
        return ggy, gw


class Conv2dGradW(FunctionNode):
    """gw[o, c, i, j] = the sum over n, r, q of gy[n, o, r, q] x[n, c, r', q'], as in ``conv2d``.

    x: (n, channels, height, width), gy: (n, out, oh, ow) -> gw: (out, channels / groups, kh, kw).
    With h = dL/dgw:   dL/dx = Conv2dGradX(gy, h)   dL/dgy = Conv2d(x, h)
    """

    def __init__(self, windows: Windows, groups: int) -> None:
        self.windows = windows
        self.groups = groups

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        counts = (gy.shape[2], gy.shape[3])
        channels, out = x.shape[1] // self.groups, gy.shape[1]
        shape = (self.groups, channels * math.prod(self.windows.size), out // self.groups)
        total = xp.zeros(shape, dtype=x.dtype, device=x.device)
        for part in _batches(x, x.shape, self.windows, counts):
            columns = unfold_images(x[part, ...], self.windows, counts)
            gradients = xp.matrix_transpose(_images_as_matrices(gy[part, ...], self.groups))
            total += xp.matmul(_columns_as_matrices(columns, self.groups), gradients)
        gw = xp.matrix_transpose(total)
        return (xp.reshape(gw, (out, channels, *self.windows.size)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        gx = ggy = None
        if 0 in target_input_indexes:
            image = (x.shape[2], x.shape[3])
            gx = Conv2dGradX(self.windows, self.groups, image).apply((gy, h))[0]
        if 1 in target_input_indexes:
            counts = (gy.shape[2], gy.shape[3])
            ggy = Conv2d(self.windows, self.groups, counts).apply((x, h))[0]
        return gx, ggy


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
    x, w = as_operands("conv2d", x, w, names=("x", "w"), beside=b)
    require_four_axes("conv2d", "w", w)
    windows = make_windows("conv2d", w.shape[2:], stride, padding, dilation, x.shape)
    _check_operands("conv2d", x, w, groups)
    return _convolve("conv2d", x, w, b, windows, groups)


def _convolve(
    function: str, x: Variable, w: Variable, b: Any, windows: Windows, groups: int
) -> Variable:
    """The images (n, out, oh, ow) of conv2d."""
    counts = windows.counts((x.shape[2], x.shape[3]))
    return _add_bias(function, Conv2d(windows, groups, counts).apply((x, w))[0], b)


def _check_operands(function: str, x: Variable, w: Variable, groups: int) -> None:
    """Raises unless the kernels w fit on images or signals x."""
    _check_dtypes(function, x, w)
    _check_groups(function, x, w, groups)
    if w.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"{function}: x has {x.shape[1]} channels (shape {x.shape}); w (shape {w.shape}) with "
            f"groups={groups} needs {w.shape[1] * groups}."
        )


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
    if as_integer(function, "groups", groups) < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise ValueError(
            f"{function}: groups={groups} does not divide the channels of x (shape {x.shape}) and "
            f"of w (shape {w.shape})."
        )


def _check_dtypes(function: str, x: Variable, w: Variable) -> None:
    as_floating(function, "x", x)
    require_one_dtype(function, ("x", "w"), x, w)


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
    x, w = as_operands("conv1d", x, w, names=("x", "w"), beside=b)
    if x.ndim != 3 or w.ndim != 3:
        raise ValueError(
            f"conv1d: x must be (n, channels, length) and w (out, channels, k); got shapes "
            f"{x.shape} and {w.shape}."
        )
    _check_operands("conv1d", x, w, groups)
    windows = _windows_on_signals(x, w, stride, padding, dilation)
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    kernel = reshape(w, (*w.shape[:2], 1, w.shape[2]))
    y = _convolve("conv1d", image, kernel, b, windows, groups)
    return reshape(y, (*y.shape[:2], y.shape[3]))


def _windows_on_signals(
    x: Variable, w: Variable, stride: int, padding: int, dilation: int
) -> Windows:
    """Windows on images of one row.

    Raises:
        ValueError: an argument is out of range, or no window fits.
    """
    step = integer("conv1d", "stride", stride, 1)
    border = integer("conv1d", "padding", padding, 0)
    spread = integer("conv1d", "dilation", dilation, 1)
    size = integer("conv1d", "kernel_size", w.shape[2], 1)
    windows = Windows((1, size), (1, step), (0, border), (1, spread))
    if windows.counts((1, x.shape[2]))[1] < 1:
        raise ValueError(
            f"conv1d: a window of size {size} with dilation {spread} does not fit on signals of "
            f"length {x.shape[2]} with padding {border}."
        )
    return windows


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
    x, w = as_operands("conv_transpose2d", x, w, names=("x", "w"), beside=b)
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
    image = _transposed_image(windows, extra, (x.shape[2], x.shape[3]))
    return _add_bias("conv_transpose2d", Conv2dGradX(windows, groups, image).apply((x, w))[0], b)


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
    x1, w = as_operands("bilinear", x1, w, names=("x1", "w"), beside=first_variable(x2, b))
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
