"""Convolution of volumes, and transposed convolution of signals and volumes.

Requirement: no second machinery. The places along the depth become channels, so a convolution of
volumes is a ``conv2d`` of all depths at once. The transposed one adds the depths up by index.
Volumes are (n, channels, depth, height, width).
"""

from __future__ import annotations

import operator
from typing import Any

from tinynode.core.messages import call_too_large
from tinynode.core.variable import Variable
from tinynode.errors import OperandError, SizeError, short_text
from tinynode.functions.convolution import (
    add_bias,
    check_dtypes,
    check_groups,
    check_operands,
    check_padding_name,
    convolved,
    padded_by_name,
    transposed,
)
from tinynode.functions.data_types import promoted
from tinynode.functions.image_windows import Windows, integer, windows_of
from tinynode.functions.indexing import AddAt, index_list, take
from tinynode.functions.manipulation import pad
from tinynode.functions.operands import as_operands, checked_range
from tinynode.functions.shapes import permute_dims, reshape

__all__ = ["conv3d", "conv_transpose1d", "conv_transpose3d"]
__dir__ = __all__.copy  # for completion

IntTriple = int | tuple[int, int, int]


def triple(function: str, argument: str, value: Any, least: int) -> tuple[int, int, int]:
    """An integer for all three axes, or three integers.

    Raises:
        ValueError: the value is neither, or below ``least``.
    """
    given = tuple(value) if isinstance(value, tuple | list) else (value, value, value)
    try:
        numbers = [operator.index(n) for n in given]
    except TypeError:
        numbers = []
    if len(numbers) != 3 or min(numbers) < least:
        raise ValueError(
            f"{function}: {argument} must be an integer or three, not below {least}, got "
            f"{short_text(value)}."
        )
    first, second, third = (checked_range(function, argument, n) for n in numbers)
    return first, second, third


def require_volumes(function: str, x: Variable) -> None:
    """Raises OperandError unless x has five axes."""
    if x.ndim != 5:
        raise OperandError(
            f"{function}: x must have the axes (n, channels, depth, height, width), got shape "
            f"{x.shape}. Add axes with x[None] or reshape."
        )


def _require_kernel(function: str, w: Variable) -> None:
    if w.ndim != 5:
        raise OperandError(f"{function}: w must have 5 axes, its shape is {w.shape}.")


def conv3d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: IntTriple = 1,
    padding: IntTriple | str = 0,
    dilation: IntTriple = 1,
    groups: int = 1,
) -> Variable:
    """As ``conv2d``, with a third axis: y = b + the sum over c, h, i, j of w * x in the window.

    Args:
        x: volumes, (n, channels, depth, height, width).
        w: kernels, (out, channels / groups, kd, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: the step between windows; an integer, or three (depth, rows, columns).
        padding: how many zeros are put around the volume; "same" or "valid" as for ``conv2d``.
        dilation: the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.

    Returns:
        (n, out, od, oh, ow), od = (depth + 2 p - d (kd - 1) - 1) // s + 1;
        oh and ow by the same formula.

    Raises:
        OperandError: x or w does not have five axes, or is not floating.
        ValueError: the channels do not fit, or no window does.
    """
    x, w = promoted(*as_operands("conv3d", x, w, names=("x", "w"), beside=b))
    require_volumes("conv3d", x)
    _require_kernel("conv3d", w)
    check_operands("conv3d", x, w, groups)
    step = triple("conv3d", "stride", stride, 1)
    spread = triple("conv3d", "dilation", dilation, 1)
    x, zeros = _zeros_around(x, w, stride, padding, spread)
    border = triple("conv3d", "padding", zeros, 0)
    lengths = zip(x.shape[2:], w.shape[2:], step, border, spread, strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in lengths]
    if min(counts) < 1:
        raise ValueError(
            f"conv3d: windows of size {w.shape[2:]} with dilation {spread} do not fit on volumes "
            f"of {x.shape[2:]} with padding {border}."
        )
    (n, c, _, height, width), (out, part, size) = x.shape, w.shape[:3]
    try:
        if border[0]:
            x = pad(x, ((0, 0), (0, 0), (border[0], border[0]), (0, 0), (0, 0)))
    except SizeError as error:
        raise call_too_large("conv3d", error, padding=padding) from error
    depths = [t * step[0] + k * spread[0] for t in range(counts[0]) for k in range(size)]
    windows = reshape(take(x, depths, axis=2), (n, c, counts[0], size, height, width))
    images = reshape(
        permute_dims(windows, (0, 2, 1, 3, 4, 5)), (n * counts[0], c * size, height, width)
    )
    kernels = reshape(w, (out, part * size, *w.shape[3:]))
    flat = windows_of("conv3d", w.shape[3:], step[1:], border[1:], spread[1:])
    y = convolved("conv3d", images, kernels, b, flat, groups)
    return permute_dims(reshape(y, (n, counts[0], *y.shape[1:])), (0, 2, 1, 3, 4))


def _zeros_around(
    x: Variable, w: Variable, stride: Any, padding: Any, dilation: tuple[int, ...]
) -> tuple[Variable, Any]:
    """x and the padding; a padding by name becomes numbers."""
    if not isinstance(padding, str):
        return x, padding
    check_padding_name("conv3d", padding, stride)
    return padded_by_name(x, w, padding, dilation)


def conv_transpose1d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Variable:
    """The transpose of ``conv1d``: the gradient of ``conv1d`` by the signals.

    Args:
        x: signals, (n, channels, length).
        w: kernels, (channels, out / groups, k).
        b: a bias for each output channel, (out), or None.
        stride: the step between windows on the output.
        padding: how much of both ends of the output is cut off.
        output_padding: how many elements are added at the end of the output.
        dilation: the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.

    Returns:
        (n, out, (length - 1) s - 2 p + d (k - 1) + output_padding + 1).

    Raises:
        OperandError: x or w does not have three axes, or is not floating.
        ValueError: the channels do not fit, or the output would be empty.
    """
    name = "conv_transpose1d"
    x, w = promoted(*as_operands(name, x, w, names=("x", "w"), beside=b))
    if x.ndim != 3 or w.ndim != 3:
        raise OperandError(
            f"{name}: x must be (n, channels, length) and w (channels, out, k); got shapes "
            f"{x.shape} and {w.shape}."
        )
    _check_transposed(name, x, w, groups)
    windows = Windows(
        (1, integer(name, "kernel_size", w.shape[2], 1)),
        (1, integer(name, "stride", stride, 1)),
        (0, integer(name, "padding", padding, 0)),
        (1, integer(name, "dilation", dilation, 1)),
    )
    extra = (0, integer(name, "output_padding", output_padding, 0))
    image = reshape(x, (*x.shape[:2], 1, x.shape[2]))
    kernel = reshape(w, (*w.shape[:2], 1, w.shape[2]))
    y = transposed(name, image, kernel, b, windows, extra, groups)
    return reshape(y, (*y.shape[:2], y.shape[3]))


def _check_transposed(function: str, x: Variable, w: Variable, groups: int) -> None:
    """Raises unless the kernels w of a transposed convolution fit x."""
    check_dtypes(function, x, w)
    check_groups(function, x, w, groups)
    if w.shape[0] != x.shape[1]:
        raise ValueError(
            f"{function}: x has {x.shape[1]} channels (shape {x.shape}), w has {w.shape[0]} "
            f"(shape {w.shape}): its first axis is that of x's channels."
        )


def conv_transpose3d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: IntTriple = 1,
    padding: IntTriple = 0,
    output_padding: IntTriple = 0,
    dilation: IntTriple = 1,
    groups: int = 1,
) -> Variable:
    """The transpose of ``conv3d``: the gradient of ``conv3d`` by the volumes.

    Args:
        x: volumes, (n, channels, depth, height, width).
        w: kernels, (channels, out / groups, kd, kh, kw).
        b: a bias for each output channel, (out), or None.
        stride: the step between windows on the output.
        padding: how much of the output's border is cut off.
        output_padding: how much is added at the end of the output's axes.
        dilation: the step between the elements of a window.
        groups: the number of groups of channels and outputs, without links between groups.

    Returns:
        (n, out, od, oh, ow), od = (depth - 1) s - 2 p + d (kd - 1) + output_padding + 1.

    Raises:
        OperandError: x or w does not have five axes, or is not floating.
        ValueError: the channels do not fit, or the output would be empty.
    """
    name = "conv_transpose3d"
    x, w = promoted(*as_operands(name, x, w, names=("x", "w"), beside=b))
    require_volumes(name, x)
    _require_kernel(name, w)
    _check_transposed(name, x, w, groups)
    step = triple(name, "stride", stride, 1)
    border = triple(name, "padding", padding, 0)
    extra = triple(name, "output_padding", output_padding, 0)
    spread = triple(name, "dilation", dilation, 1)
    (n, c, depth, height, width), size, parts = x.shape, w.shape[2], w.shape[1]
    reach = (depth - 1) * step[0] + spread[0] * (size - 1) + 1
    length = reach - 2 * border[0] + extra[0]
    if length < 1 or (extra[0] >= step[0] and extra[0] >= spread[0]):
        raise ValueError(
            f"{name}: the output's depth would be {length}, with padding {border} and "
            f"output_padding {extra}; it must be 1 at least, and output_padding below the stride "
            f"{step} or the dilation {spread}."
        )
    images = reshape(permute_dims(x, (0, 2, 1, 3, 4)), (n * depth, c, height, width))
    kernels = reshape(w, (c, parts * size, *w.shape[3:]))
    windows = windows_of(name, w.shape[3:], step[1:], border[1:], spread[1:])
    y = transposed(name, images, kernels, None, windows, extra[1:], groups)
    out, image = parts * groups, y.shape[2:]
    slabs = permute_dims(reshape(y, (n, depth, out, size, *image)), (1, 3, 0, 2, 4, 5))
    slabs = reshape(slabs, (depth * size, n, out, *image))
    depths = [t * step[0] + k * spread[0] for t in range(depth) for k in range(size)]
    added = _added_slabs(slabs, depths, max(reach, border[0] + length), step, border, spread)
    volume = added[border[0] : border[0] + length]
    flat = add_bias(name, reshape(volume, (length * n, out, *image)), b)
    return permute_dims(reshape(flat, (length, n, out, *image)), (1, 2, 0, 3, 4))


def _added_slabs(
    slabs: Variable, depths: list[int], length: int, stride: Any, padding: Any, dilation: Any
) -> Variable:
    """The slabs of all windows added at their places along the depth of the output."""
    places = index_list("conv_transpose3d", "depths", depths, slabs)
    try:
        return AddAt(length).apply((slabs, places))[0]
    except SizeError as error:
        given = {"stride": stride, "padding": padding, "dilation": dilation}
        raise call_too_large("conv_transpose3d", error, **given) from error
