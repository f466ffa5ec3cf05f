"""Layers for images, (n, channels, height, width), and signals: convolution and pooling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinynode import functions, random
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device, get_device, to_host
from tinynode.functions.convolution import pair
from tinynode.nn.checks import checked_size
from tinynode.nn.initializers import lecun_normal, zeros
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter, fresh_copy

IntPair = int | tuple[int, int]
Pair = tuple[int, int]


class Convolution(Module):
    """Base of the convolutions: a weight, perhaps a bias, and the options of the windows."""

    def __init__(
        self,
        weight: Array,
        out_channels: int,
        options: dict[str, Any],
        bias: bool,
        dtype: Any,
        device: str | Device | None,
    ) -> None:
        self.options = options
        self.weight = Parameter(weight, name="weight", device=device)
        self.bias: Parameter | None = None
        if bias:
            start = zeros((out_channels,), dtype=dtype, device=device)
            self.bias = Parameter(start, name="bias", device=device)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{type(self).__name__}(weight {self.weight.shape}, {options})"


class Conv1d(Convolution):
    """y = conv1d(x, weight, bias): see ``tinynode.functions.conv1d``.

    x: (n, in, length) -> y: (n, out, length of y). The parameters are ``weight``:
    (out, in / groups, kernel), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the length of a window.
        stride: the step between windows.
        padding: the number of zeros added at both ends.
        dilation: the step between the elements of a window.
        groups: the number of separate groups of channels.
        bias: True for a bias.
        initializer: draws the weight: a function such as ``nn.initializers.he_normal``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a number of channels or groups is no integer.
        ValueError: a setting is out of range, or the groups do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        inward, outward, groups = checked_channels("Conv1d", in_channels, out_channels, groups)
        kernel = checked_size("Conv1d: kernel_size", kernel_size)
        options = {
            "stride": checked_size("Conv1d: stride", stride),
            "padding": checked_size("Conv1d: padding", padding, 0),
            "dilation": checked_size("Conv1d: dilation", dilation),
            "groups": groups,
        }
        shape = (outward, inward // groups, kernel)
        weight = initializer(shape, dtype=dtype, device=device)
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv1d(x, weight, bias)."""
        x = as_input(x, self.weight)
        return functions.conv1d(x, self.weight, self.bias, **self.options)


class Conv2d(Convolution):
    """y = conv2d(x, weight, bias): see ``tinynode.functions.conv2d``.

    x: (n, in, height, width) -> y: (n, out, oh, ow). The parameters are ``weight``:
    (out, in / groups, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window: an integer, or two (rows, columns).
        stride: the step between windows.
        padding: the number of zeros added on each side of the image.
        dilation: the step between the elements of a window.
        groups: the number of separate groups of channels.
        bias: True for a bias.
        initializer: draws the weight: a function such as ``nn.initializers.he_normal``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a number of channels or groups is no integer.
        ValueError: a setting is out of range, or the groups do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntPair,
        stride: IntPair = 1,
        padding: IntPair = 0,
        dilation: IntPair = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        inward, outward, groups = checked_channels("Conv2d", in_channels, out_channels, groups)
        kernel = pair("Conv2d", "kernel_size", kernel_size, 1)
        options = {
            "stride": pair("Conv2d", "stride", stride, 1),
            "padding": pair("Conv2d", "padding", padding, 0),
            "dilation": pair("Conv2d", "dilation", dilation, 1),
            "groups": groups,
        }
        shape = (outward, inward // groups, *kernel)
        weight = initializer(shape, dtype=dtype, device=device)
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv2d(x, weight, bias)."""
        x = as_input(x, self.weight)
        return functions.conv2d(x, self.weight, self.bias, **self.options)


class ConvTranspose2d(Convolution):
    """y = conv_transpose2d(x, weight, bias): see ``tinynode.functions.conv_transpose2d``.

    x: (n, in, height, width) -> y: (n, out, oh, ow). The parameters are ``weight``:
    (in, out / groups, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window: an integer, or two (rows, columns).
        stride: the step between windows on the output.
        padding: the rows and columns cut off on each side of the output.
        output_padding: the rows and columns added at the end of the output.
        dilation: the step between the elements of a window.
        groups: the number of separate groups of channels.
        bias: True for a bias.
        initializer: draws the weight, by default from N(0, 1 / fan_in). fan_in counts the inputs
            of an output: in / groups * (kh / sh) * (kw / sw). With stride s, an output meets only
            each s-th element of the window. A function such as ``nn.initializers.he_normal``
            gets the shape (out, in / groups, kh, kw) as from ``Conv2d``, but no stride.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a number of channels or groups is no integer.
        ValueError: a setting is out of range, or the groups do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntPair,
        stride: IntPair = 1,
        padding: IntPair = 0,
        output_padding: IntPair = 0,
        dilation: IntPair = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] | None = None,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        name, put = "ConvTranspose2d", {"dtype": dtype, "device": device}
        inward, outward, groups = checked_channels(name, in_channels, out_channels, groups)
        kernel = pair(name, "kernel_size", kernel_size, 1)
        options: dict[str, Any] = {
            "stride": pair(name, "stride", stride, 1),
            "padding": pair(name, "padding", padding, 0),
            "output_padding": pair(name, "output_padding", output_padding, 0),
            "dilation": pair(name, "dilation", dilation, 1),
            "groups": groups,
        }
        if initializer is None:
            elements = elements_met(kernel, options["stride"], options["dilation"])
            deviation = 1.0 / math.sqrt(inward // groups * elements)
            weight = random.normal((inward, outward // groups, *kernel), 0.0, deviation, **put)
        else:
            drawn = initializer((outward, inward // groups, *kernel), **put)
            weight = transposed(drawn, groups, get_device(device))
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any, output_size: tuple[int, int] | None = None) -> Variable:
        """conv_transpose2d(x, weight, bias); ``output_size`` is (height, width) of the result."""
        x = as_input(x, self.weight)
        options = self.options
        if output_size is not None:
            options = {**options, "output_size": output_size}
        return functions.conv_transpose2d(x, self.weight, self.bias, **options)


def checked_channels(
    layer: str, in_channels: Any, out_channels: Any, groups: Any
) -> tuple[int, int, int]:
    """Channels of x, channels of y and groups, as Python integers, checked together."""
    inward = checked_size(f"{layer}: in_channels", in_channels)
    outward = checked_size(f"{layer}: out_channels", out_channels)
    count = checked_size(f"{layer}: groups", groups)
    if inward % count or outward % count:
        raise ValueError(
            f"{layer}: groups={count} must divide in_channels={inward} and out_channels={outward}."
        )
    return inward, outward, count


def elements_met(
    kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> float:
    """The mean number of elements of a window that contribute to an output, transposed.

    With stride s and dilation d, element j contributes to the output at index i if i - j d is a
    multiple of s. Of k elements, k gcd(s, d) / s contribute on average. The result is at least 1.
    Outputs without any contribution are left out of the average.
    """
    lines = zip(kernel, stride, dilation, strict=True)
    return math.prod(max(1.0, k * math.gcd(s, d) / s) for k, s, d in lines)


def transposed(weight: Array, groups: int, device: Device) -> Array:
    """(out, in / groups, kh, kw) -> (in, out / groups, kh, kw)."""
    host = to_host(weight)
    outward, per_group, *kernel = host.shape
    split = host.reshape(groups, outward // groups, per_group, *kernel).swapaxes(1, 2)
    return fresh_copy(split.reshape(groups * per_group, outward // groups, *kernel), device)


class MaxPool2d(Module):
    """y = max_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool2d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self,
        kernel_size: IntPair,
        stride: IntPair | None = None,
        padding: IntPair = 0,
        dilation: IntPair = 1,
        *,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = pair("MaxPool2d", "kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = pair("MaxPool2d", "stride", step, 1)
        self.padding = pair("MaxPool2d", "padding", padding, 0)
        self.dilation = pair("MaxPool2d", "dilation", dilation, 1)
        self.ceil_mode = ceil_mode

    def forward(self, x: Any) -> Variable:
        """max_pool2d(x, kernel_size, stride, padding, dilation)."""
        settings = self.kernel_size, self.stride, self.padding, self.dilation
        return functions.max_pool2d(x, *settings, ceil_mode=self.ceil_mode)

    def __repr__(self) -> str:
        more = f", dilation={self.dilation}" * (self.dilation != (1, 1))
        more += ", ceil_mode=True" * self.ceil_mode
        return f"MaxPool2d({self.kernel_size}, stride={self.stride}, padding={self.padding}{more})"


class AvgPool2d(Module):
    """y = avg_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool2d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self,
        kernel_size: IntPair,
        stride: IntPair | None = None,
        padding: IntPair = 0,
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = pair("AvgPool2d", "kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = pair("AvgPool2d", "stride", step, 1)
        self.padding = pair("AvgPool2d", "padding", padding, 0)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Any) -> Variable:
        """avg_pool2d(x, kernel_size, stride, padding)."""
        return functions.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            ceil_mode=self.ceil_mode,
            count_include_pad=self.count_include_pad,
        )

    def __repr__(self) -> str:
        more = ", ceil_mode=True" * self.ceil_mode
        more += ", count_include_pad=False" * (not self.count_include_pad)
        return f"AvgPool2d({self.kernel_size}, stride={self.stride}, padding={self.padding}{more})"


class Flatten(Module):
    """y = x with all axes but the first joined: (n, ...) -> (n, product of the others)."""

    def forward(self, x: Any) -> Variable:
        """x as (n, size)."""
        x = functions.identity(x) if not isinstance(x, Variable) else x
        return functions.reshape(x, (x.shape[0], -1 if x.size else 0))

    def __repr__(self) -> str:
        return "Flatten()"
