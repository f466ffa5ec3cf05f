"""Convolution: images are unfolded to columns, and multiplied as matrices.

Requirement: quick, differentiable to any order, and without columns kept for backward, since
columns are as large as all windows together. So each of the three functions below unfolds again,
a few images at a time. Each function is linear in both inputs, with the other two as gradients:

    Conv2d        of images and kernels
    Conv2dGradX   of gradients and kernels; also the transposed convolution
    Conv2dGradW   of images and gradients

The kernel is not flipped: cross-correlation, as everywhere in neural networks. Images are (n,
channels, height, width).

``Unfold`` copies every window of an image into columns, and ``Fold`` adds columns back to the
image. Both are linear, and each is the gradient of the other.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Never

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.messages import call_too_large
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    namespace_of,
    put,
    sum_array,
    widened_array,
)
from tinynode.devices.products import matrix_product, share_products
from tinynode.errors import OperandError, SizeError, describe, short_text, unknown_keywords
from tinynode.functions.attributes import Count, Counts, Lengths
from tinynode.functions.checked import checked_length
from tinynode.functions.data_types import promoted
from tinynode.functions.image_columns import (
    Layout,
    as_stacks,
    choose_layout,
    fold_stacks,
    from_stacks,
    images_as_matrices,
    kernels_as_matrices,
    matrices_as_images,
    turned_kernels,
    turned_windows,
    unfold_stacks,
)
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
    as_integer,
    as_operands,
    input_shape,
    require_one_dtype,
)
from tinynode.functions.shapes import reshape

__all__ = ["Fold", "Unfold", "conv1d", "conv2d", "conv_transpose2d"]
__dir__ = __all__.copy  # for completion


class Unfold(FunctionNode):
    """y[c, i, j, n, r, q] = x[n, c, r s + i d - p, q s + j d - p], 0 outside the image.

    x: (n, channels, height, width) -> y: (channels, kh, kw, n, oh, ow), with (oh, ow) =
    ``counts``, as many windows as fit by default.
    dL/dx = Fold(dL/dy)
    """

    is_polynomial = True

    def __init__(self, windows: Windows, counts: Counts | None = None) -> None:
        self.windows = checked_windows(self, windows)
        self.counts = None if counts is None else checked_pair(self, "counts", counts, 1)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        counts = self.counts or self.windows.counts((x.shape[2], x.shape[3]))
        return (unfold_stacks(as_stacks(x, True), self.windows, counts)[0, ...],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        shape = input_shape(self)
        return Fold(self.windows, (shape[2], shape[3])).apply(grad_outputs)


class Fold(FunctionNode):
    """x[n, c, ...] = the sum of y over all windows and places at that pixel: Unfold transposed.

    y: (channels, kh, kw, n, oh, ow) -> x: (n, channels, height, width).
    dL/dy = Unfold(dL/dx)
    """

    is_polynomial = True
    wide = True

    def __init__(self, windows: Windows, image: Lengths) -> None:
        self.windows = checked_windows(self, windows)
        self.image = checked_pair(self, "image", image, 0)

    def forward(self, inputs: Arrays) -> Arrays:
        columns = namespace_of(inputs[0]).expand_dims(inputs[0], axis=0)
        return (from_stacks(fold_stacks(columns, self.windows, self.image), True),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        shape = input_shape(self)
        return Unfold(self.windows, (shape[4], shape[5])).apply(grad_outputs)


def require_four_axes(function: str, argument: str, value: Any) -> None:
    """Raises OperandError unless the array has four axes."""
    if len(value.shape) != 4:
        raise OperandError(f"{function}: {argument} must have four axes, got {describe(value)}.")


class Conv2d(FunctionNode):
    """y[n, o, r, q] = the sum over c, i, j of w[o, c, i, j] x[n, c, r s + i d - p, q s + j d - p].

    x: (n, channels, height, width), w: (out, channels / groups, kh, kw) -> y: (n, out, *counts).
    With g = dL/dy:   dL/dx = Conv2dGradX(g, w)   dL/dw = Conv2dGradW(x, g)
    """

    input_counts = (2,)
    is_polynomial = True

    def __init__(self, windows: Windows, groups: Count, counts: Counts) -> None:
        self.windows = checked_windows(self, windows)
        self.groups = checked_length(self, "groups", groups, 1)
        self.counts = checked_pair(self, "counts", counts, 1)

    def forward(self, inputs: Arrays) -> Arrays:
        x, w = inputs
        self.retain_inputs((0, 1))
        self.windows.require_size(w.shape[2:])
        return (_correlated(x, w, self.windows, self.groups, self.counts),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        gx = gw = None
        if 0 in target_input_indexes:
            image = (x.shape[2], x.shape[3])
            gx = Conv2dGradX(self.windows, self.groups, image).apply((gy, w))[0]
        if 1 in target_input_indexes:
            gw = Conv2dGradW(self.windows, self.groups).apply((x, gy))[0]
        return gx, gw


def _correlated(
    x: Array, w: Array, windows: Windows, groups: int, counts: tuple[int, int]
) -> Array:
    """The forward of ``Conv2d``, on arrays."""
    xp = namespace_of(x)
    layout = choose_layout(x.shape, w.shape[0], windows, counts)
    kernels = _kernels_of_terms(w, layout, groups)
    shape = (x.shape[0], w.shape[0], *counts)
    y = xp.empty(shape, dtype=x.dtype, device=x.device)

    def fill(start: int, stop: int) -> None:
        nonlocal y
        for part in layout.batches(x, start, stop):
            columns = layout.unfold(x[part, ...], groups)
            total = widened_array(matrix_product(kernels[0], columns[0]))  # for sums of float16
            for kernel, shifted in zip(kernels[1:], columns[1:], strict=True):
                total += matrix_product(kernel, shifted)
            images = matrices_as_images(total, counts, layout.is_joined)
            images = xp.astype(images, x.dtype, copy=False)
            is_all = images.shape == shape and not layout.is_joined  # in the order of y
            y = images if is_all else put(y, (part, ...), images)

    share_products(x, 2 * math.prod(shape) * math.prod(w.shape[1:]), fill)
    return y


def _kernels_of_terms(w: Array, layout: Layout, groups: int) -> list[Array]:
    """For each term: (groups, out / groups, channels / groups * rows of the kernel * kw)"""
    return [kernels_as_matrices(w[:, :, term.kernel_rows, :], groups) for term in layout.terms]


class Conv2dGradX(FunctionNode):
    """gx[n, c, ...] = the sum of w[o, c, i, j] gy[n, o, r, q] over all terms at that pixel.

    gy: (n, out, oh, ow), w: (out, channels / groups, kh, kw) -> gx: (n, channels, *image).
    With h = dL/dgx:   dL/dgy = Conv2d(h, w)   dL/dw = Conv2dGradW(h, gy)
    """

    input_counts = (2,)
    is_polynomial = True

    def __init__(self, windows: Windows, groups: Count, image: Lengths) -> None:
        self.windows = checked_windows(self, windows)
        self.groups = checked_length(self, "groups", groups, 1)
        self.image = checked_pair(self, "image", image, 0)

    def forward(self, inputs: Arrays) -> Arrays:
        gy, w = inputs
        self.retain_inputs((0, 1))
        self.windows.require_size(w.shape[2:])
        counts = (gy.shape[2], gy.shape[3])
        channels = w.shape[1] * self.groups
        turned = turned_windows(self.windows, counts, gy.shape[1], self.image, channels)
        if turned is None:
            return (self._folded(gy, w, counts),)
        kernels = turned_kernels(w, self.groups)
        return (_correlated(gy, kernels, turned, self.groups, self.image),)

    def _folded(self, gy: Array, w: Array, counts: tuple[int, int]) -> Array:
        """gx: the products of all windows, added up on the image."""
        xp = namespace_of(gy)
        shape = (gy.shape[0], w.shape[1] * self.groups, *self.image)
        layout = choose_layout(shape, gy.shape[1], self.windows, counts)
        kernels = _kernels_of_terms(w, layout, self.groups)
        gx = xp.empty(shape, dtype=gy.dtype, device=gy.device)

        def fill(start: int, stop: int) -> None:
            nonlocal gx
            for part in layout.batches(gy, start, stop):
                gradients = images_as_matrices(gy[part, ...], self.groups, layout.is_joined)
                products = [
                    widened_array(matrix_product(xp.matrix_transpose(kernel), gradients))
                    for kernel in kernels  # products of float16, sums not
                ]
                folded = layout.fold(products)
                gx = put(gx, (part, ...), xp.astype(folded, gx.dtype, copy=False))

        share_products(gy, 2 * math.prod(gy.shape) * math.prod(w.shape[1:]), fill)
        return gx

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
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

    input_counts = (2,)
    is_polynomial = True

    def __init__(self, windows: Windows, groups: Count) -> None:
        self.windows = checked_windows(self, windows)
        self.groups = checked_length(self, "groups", groups, 1)

    def forward(self, inputs: Arrays) -> Arrays:
        x, gy = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        counts = (gy.shape[2], gy.shape[3])
        layout = choose_layout(x.shape, gy.shape[1], self.windows, counts)

        def totals(start: int, stop: int) -> list[Array]:
            sums: list[Array] = []
            for part in layout.batches(x, start, stop):
                gradients = images_as_matrices(gy[part, ...], self.groups, layout.is_joined)
                columns = layout.unfold(x[part, ...], self.groups)
                products = [self._product(gradients, matrix) for matrix in columns]
                pairs = zip(sums, products, strict=True)
                sums = [total + product for total, product in pairs] if sums else products
            return sums

        length = x.shape[1] // self.groups * math.prod(self.windows.size)
        shares = share_products(x, 2 * math.prod(gy.shape) * length, totals)
        rows = self.windows.size[0] // len(layout.terms)
        shape = (gy.shape[1], x.shape[1] // self.groups, rows, self.windows.size[1])
        parts = [
            xp.reshape(xp.matrix_transpose(functools.reduce(operator.add, terms)), shape)
            for terms in zip(*shares, strict=True)
        ]
        return (xp.astype(xp.concat(parts, axis=2), x.dtype, copy=False),)

    def _product(self, gradients: Array, columns: Array) -> Array:
        """The sum over all stacks of columns gy^T: (groups, channels / groups kh kw, out / groups)

        In float32 for float16: single products may be rounded, sums not.
        """
        transposed = namespace_of(columns).matrix_transpose(gradients)
        products = widened_array(matrix_product(columns, transposed))
        return products[0, ...] if products.shape[0] == 1 else sum_array(products, axis=0)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
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
    padding: IntPair | str = 0,
    dilation: IntPair = 1,
    groups: int = 1,
    **unknown: Never,
) -> Variable:
    """y[n, o, r, q] = b[o] + the sum over c, i, j of w[o, c, i, j] * x[n, c, r', q'].

    With stride s, padding p, dilation d:   r' = r s + i d - p   q' = q s + j d - p

    x: (n, c, h, w), w: (out, c / groups, kh, kw) -> y: (n, out, oh, ow).

        >>> x, w = tn.asarray(np.ones((1, 1, 4, 4))), tn.asarray(np.ones((1, 1, 3, 3)))
        >>> F.conv2d(x, w).tolist()
        [[[[9.0, 9.0], [9.0, 9.0]]]]

    Args:
        x: images, (n, channels, height, width).
        w: kernels, (out, channels / groups, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: s, the step between windows; an integer, or two (rows, columns).
        padding: p, how many zeros are put around the image; "same" keeps height and width, with
            stride 1: an odd zero comes last. "valid" is 0.
        dilation: d, the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.

    Returns:
        (n, out, oh, ow), oh = (height + 2 p - d (kh - 1) - 1) // s + 1;
        ow by the same formula.

    Raises:
        OperandError: x or w does not have four axes, or is not floating.
        ValueError: the channels do not fit, or no window does.
    """
    if unknown:
        raise unknown_keywords("conv2d", unknown)
    x, w = promoted(*as_operands("conv2d", x, w, names=("x", "w"), beside=b))
    require_four_axes("conv2d", "w", w)
    if isinstance(padding, str):
        require_four_axes("conv2d", "x", x)
        check_padding_name("conv2d", padding, stride)
        spread = pair("conv2d", "dilation", dilation, 1)
        x, (rows, columns) = padded_by_name(x, w, padding, spread)
        padding = (rows, columns)
    windows = make_windows("conv2d", w.shape[2:], stride, padding, dilation, x.shape)
    check_operands("conv2d", x, w, groups)
    return convolved("conv2d", x, w, b, windows, groups)


def padded_by_name(
    x: Variable, w: Variable, padding: str, dilation: tuple[int, ...]
) -> tuple[Variable, list[int]]:
    """x, with the odd zeros of padding "same" at the end, and the padding of each axis."""
    if padding == "valid":
        return x, [0] * len(dilation)
    totals = [d * (k - 1) for d, k in zip(dilation, w.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        x = pad(x, ((0, 0), (0, 0), *((0, total % 2) for total in totals)))
    return x, [total // 2 for total in totals]


def check_padding_name(function: str, padding: str, stride: Any) -> None:
    """Raises ValueError unless the padding is "valid", or "same" with stride 1."""
    steps = stride if isinstance(stride, tuple | list) else (stride,)
    if padding == "valid" or (padding == "same" and set(steps) == {1}):
        return
    raise ValueError(
        f'{function}: padding must be integers, "valid", or, with stride 1, "same"; got '
        f"padding={short_text(padding)} and stride={short_text(stride)}."
    )


def convolved(
    function: str, x: Variable, w: Variable, b: Any, windows: Windows, groups: Count
) -> Variable:
    """The images (n, out, oh, ow) of ``conv2d``, checked; errors name ``function``."""
    counts = windows.counts((x.shape[2], x.shape[3]))
    try:
        images = Conv2d(windows, groups, counts).apply((x, w))[0]
    except SizeError as error:
        raise call_too_large(function, error, **windows._asdict()) from error
    return add_bias(function, images, b)


def check_operands(function: str, x: Variable, w: Variable, groups: int) -> None:
    """Raises unless the kernels w fit on images or signals x."""
    check_dtypes(function, x, w)
    check_groups(function, x, w, groups)
    if w.shape[1] * groups != x.shape[1]:
        raise ValueError(
            f"{function}: x has {x.shape[1]} channels (shape {x.shape}); w (shape {w.shape}) with "
            f"groups={groups} needs {w.shape[1] * groups}."
        )


def add_bias(function: str, images: Variable, b: Any) -> Variable:
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


def check_groups(function: str, x: Variable, w: Variable, groups: int) -> None:
    if as_integer(function, "groups", groups) < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise ValueError(
            f"{function}: groups={groups} does not divide the channels of x (shape {x.shape}) and "
            f"of w (shape {w.shape})."
        )


def check_dtypes(function: str, x: Variable, w: Variable) -> None:
    as_floating(function, "x", x)
    require_one_dtype(function, ("x", "w"), x, w)


def conv1d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Variable:
    """y[n, o, q] = b[o] + the sum over c, j of w[o, c, j] x[n, c, q s + j d - p].

    Args:
        x: signals, (n, channels, length).
        w: kernels, (out, channels / groups, k).
        b: a bias for each output channel, (out), or None.
        stride: s, the step between windows.
        padding: p, how many zeros are put at both ends; "same" or "valid" as for ``conv2d``.
        dilation: d, the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.

    Returns:
        (n, out, (length + 2 p - d (k - 1) - 1) // s + 1).

    Raises:
        OperandError: x or w is not floating.
        ValueError: x or w does not have three axes, the channels do not fit, or no window does.
    """
    x, w = promoted(*as_operands("conv1d", x, w, names=("x", "w"), beside=b))
    if x.ndim != 3 or w.ndim != 3:
        raise ValueError(
            f"conv1d: x must be (n, channels, length) and w (out, channels, k); got shapes "
            f"{x.shape} and {w.shape}."
        )
    check_operands("conv1d", x, w, groups)
    if isinstance(padding, str):
        check_padding_name("conv1d", padding, stride)
        spread = integer("conv1d", "dilation", dilation, 1)
        x, (padding,) = padded_by_name(x, w, padding, (spread,))
    windows = _windows_on_signals(x, w, stride, padding, dilation)
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    kernel = reshape(w, (*w.shape[:2], 1, w.shape[2]))
    y = convolved("conv1d", image, kernel, b, windows, groups)
    return reshape(y, (*y.shape[:2], y.shape[3]))


def _windows_on_signals(
    x: Variable, w: Variable, stride: int, padding: int, dilation: int
) -> Windows:
    """Windows on images of a single row.

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
    output_size: tuple[int, int] | None = None,
) -> Variable:
    """The transpose of conv2d: the gradient of conv2d by the images.

    Args:
        x: images, (n, channels, height, width).
        w: kernels, (channels, out / groups, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: the step between windows on the output.
        padding: how much of the output's border is cut off.
        output_padding: how many rows and columns are added at the end of the output.
        dilation: the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.
        output_size: (oh, ow), in place of ``output_padding``.

    Returns:
        (n, out, oh, ow), oh = (height - 1) s - 2 p + d (kh - 1) + output_padding + 1;
        ow by the same formula.

    Raises:
        OperandError: x or w does not have four axes, or is not floating.
        ValueError: the channels do not fit, the output would be empty, or no output_padding
            below the stride leads to ``output_size``.
    """
    x, w = promoted(*as_operands("conv_transpose2d", x, w, names=("x", "w"), beside=b))
    require_four_axes("conv_transpose2d", "x", x)
    require_four_axes("conv_transpose2d", "w", w)
    windows = Windows(
        pair("conv_transpose2d", "kernel_size", w.shape[2:], 1),
        pair("conv_transpose2d", "stride", stride, 1),
        pair("conv_transpose2d", "padding", padding, 0),
        pair("conv_transpose2d", "dilation", dilation, 1),
    )
    extra = pair("conv_transpose2d", "output_padding", output_padding, 0)
    check_dtypes("conv_transpose2d", x, w)
    check_groups("conv_transpose2d", x, w, groups)
    if w.shape[0] != x.shape[1]:
        raise ValueError(
            f"conv_transpose2d: x has {x.shape[1]} channels (shape {x.shape}), w has {w.shape[0]} "
            f"(shape {w.shape}): its first axis is that of x's channels."
        )
    if output_size is not None:
        extra = _extra_for(output_size, windows, extra, (x.shape[2], x.shape[3]))
    return transposed("conv_transpose2d", x, w, b, windows, extra, groups)


def transposed(
    function: str,
    x: Variable,
    w: Variable,
    b: Any,
    windows: Windows,
    extra: tuple[int, int],
    groups: Count,
) -> Variable:
    """The images of ``conv_transpose2d``, checked; errors name ``function``."""
    image = _transposed_image(function, windows, extra, (x.shape[2], x.shape[3]))
    try:
        images = Conv2dGradX(windows, groups, image).apply((x, w))[0]
    except SizeError as error:
        raise call_too_large(function, error, **windows._asdict()) from error
    return add_bias(function, images, b)


def _extra_for(
    size: Any, windows: Windows, extra: tuple[int, int], image: tuple[int, int]
) -> tuple[int, int]:
    """The ``output_padding`` that gives images of a size."""
    if extra != (0, 0):
        raise ValueError("conv_transpose2d: give output_padding or output_size, not both.")
    wanted = pair("conv_transpose2d", "output_size", size, 1)
    least = _transposed_lengths(windows, (0, 0), image)
    rows, columns = (n - low for n, low in zip(wanted, least, strict=True))
    if not (0 <= rows < windows.stride[0] and 0 <= columns < windows.stride[1]):
        most = tuple(low + s - 1 for low, s in zip(least, windows.stride, strict=True))
        raise ValueError(
            f"conv_transpose2d: output_size must lie between {least} and {most} with stride "
            f"{windows.stride}, got {wanted}."
        )
    return rows, columns


def _transposed_lengths(
    windows: Windows, extra: tuple[int, int], image: tuple[int, int]
) -> tuple[int, int]:
    lengths = []
    for n, k, s, p, d, e in zip(image, *windows, extra, strict=True):
        lengths.append((n - 1) * s - 2 * p + d * (k - 1) + e + 1)
    return lengths[0], lengths[1]


def _transposed_image(
    function: str, windows: Windows, extra: tuple[int, int], image: tuple[int, int]
) -> tuple[int, int]:
    lengths = _transposed_lengths(windows, extra, image)
    for e, s, d in zip(extra, windows.stride, windows.dilation, strict=True):
        if e >= s and e >= d:
            raise ValueError(
                f"{function}: output_padding {extra} must be below the stride "
                f"{windows.stride} or the dilation {windows.dilation}."
            )
    if min(lengths) < 1:
        raise ValueError(f"{function}: the output would have size {lengths}: give less padding.")
    return lengths
