"""Convolutions of signals, images and volumes, and the transposed convolutions.

Each layer calls the function of its name in ``tinynode.functions``; parameters are named as
PyTorch names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinynode import functions, random
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device, get_device, to_host
from tinynode.functions.convolution import check_padding_name
from tinynode.nn.checks import checked_size, checked_window
from tinynode.nn.initializers import lecun_normal, zeros
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter, fresh_copy, new_parameter

Window = int | tuple[int, ...]
"""An integer, or one for each axis of an image or of a volume."""


class WindowLayer(Module):
    """Base of the layers that move a window over signals, images or volumes.

    Attributes:
        axes: the number of axes of a window.
    """

    axes: int

    def _window(self, setting: str, value: Any, least: int) -> Any:
        return checked_window(type(self).__name__, setting, value, least, self.axes)


class Convolution(WindowLayer):
    """Base of the convolutions: a weight, perhaps a bias, and the options of the windows.

    A subclass has the formula, the shapes and the function.

    Attributes:
        function: of ``tinynode.functions``, with the name of the layer.
        weight: (out, in / groups, *window).
        bias: (out), or None.
        options: the keywords of the function: stride, padding and others.
    """

    function: Callable[..., Variable]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Window,
        stride: Window = 1,
        padding: Window | str = 0,
        dilation: Window = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        inward, outward, groups = self._channels(in_channels, out_channels, groups)
        bias = as_flag(type(self).__name__, "bias", bias)
        kernel = self._kernel(kernel_size)
        step = self._window("stride", stride, 1)
        self.options = {
            "stride": step,
            "padding": self._padding(padding, step),
            "dilation": self._window("dilation", dilation, 1),
            "groups": groups,
        }
        weight = initializer((outward, inward // groups, *kernel), dtype=dtype, device=device)
        self._set_parameters(weight, (outward,) if bias else None, dtype, device)

    def _channels(self, in_channels: Any, out_channels: Any, groups: Any) -> tuple[int, int, int]:
        """Channels of x, channels of y and groups, as Python integers, checked together."""
        layer = type(self).__name__
        inward = checked_size(f"{layer}: in_channels", in_channels)
        outward = checked_size(f"{layer}: out_channels", out_channels)
        count = checked_size(f"{layer}: groups", groups)
        if inward % count or outward % count:
            raise ValueError(
                f"{layer}: groups={count} must divide in_channels={inward} and "
                f"out_channels={outward}."
            )
        return inward, outward, count

    def _padding(self, padding: Any, stride: Any) -> Any:
        """The numbers of zeros, or a name that the function takes."""
        if not isinstance(padding, str):
            return self._window("padding", padding, 0)
        check_padding_name(type(self).__name__, padding, stride)
        return padding

    def _kernel(self, kernel_size: Any) -> tuple[int, ...]:
        """The lengths of a window along each axis."""
        kernel = self._window("kernel_size", kernel_size, 1)
        return kernel if isinstance(kernel, tuple) else (kernel,)

    def _set_parameters(
        self,
        weight: Array,
        bias_shape: tuple[int] | None,
        dtype: Any,
        device: str | Device | None,
    ) -> None:
        """Keep the weight; a bias starts as zeros."""
        self.weight = Parameter(weight, name="weight", device=device)
        self.bias: Parameter | None = None
        if bias_shape is not None:
            self.bias = new_parameter("bias", zeros, bias_shape, dtype, device)

    def forward(self, x: Any) -> Variable:
        """The function of x, the weight and the bias, with the options."""
        return self.function(as_input(x, self.weight), self.weight, self.bias, **self.options)

    def extra_repr(self) -> str:
        """The weight's shape and the options."""
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"weight {self.weight.shape}, {options}"


class Conv1d(Convolution):
    """y = conv1d(x, weight, bias): see ``tinynode.functions.conv1d``.

    x: (n, in, length) -> y: (n, out, length of y). The parameters are ``weight``:
    (out, in / groups, kernel), and ``bias``: (out), or None.

    The arguments and errors are those of ``Conv2d``; a window is an integer.
    """

    axes = 1
    function = staticmethod(functions.conv1d)


class Conv2d(Convolution):
    """y = conv2d(x, weight, bias): see ``tinynode.functions.conv2d``.

    x: (n, in, height, width) -> y: (n, out, oh, ow). The parameters are ``weight``:
    (out, in / groups, kh, kw), and ``bias``: (out), or None.

        >>> nn.Conv2d(3, 8, 3, padding=1)(np.ones((2, 3, 6, 6))).shape
        (2, 8, 6, 6)

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window: an integer, or two (rows, columns).
        stride: the step between windows.
        padding: the number of zeros added on each side of the image, or "same" or "valid": see
            ``conv2d``.
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

    axes = 2
    function = staticmethod(functions.conv2d)


class Conv3d(Convolution):
    """y = conv3d(x, weight, bias): see ``tinynode.functions.conv3d``.

    x: (n, in, depth, height, width) -> y: (n, out, od, oh, ow). The parameters are ``weight``:
    (out, in / groups, kd, kh, kw), and ``bias``: (out), or None.

    The arguments and errors are those of ``Conv2d``; a window is an integer, or three
    (depth, rows, columns).
    """

    axes = 3
    function = staticmethod(functions.conv3d)


class TransposedConvolution(Convolution):
    """Base of the transposed convolutions; the weight is (in, out / groups, *window).

    ``ConvTranspose2d`` says how the weight is drawn.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Window,
        stride: Window = 1,
        padding: Window = 0,
        output_padding: Window = 0,
        dilation: Window = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] | None = None,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        inward, outward, groups = self._channels(in_channels, out_channels, groups)
        bias = as_flag(type(self).__name__, "bias", bias)
        kernel = self._kernel(kernel_size)
        self.options: dict[str, Any] = {
            "stride": self._window("stride", stride, 1),
            "padding": self._window("padding", padding, 0),
            "output_padding": self._window("output_padding", output_padding, 0),
            "dilation": self._window("dilation", dilation, 1),
            "groups": groups,
        }
        put: dict[str, Any] = {"dtype": dtype, "device": device}
        if initializer is None:
            elements = elements_met(kernel, self.options["stride"], self.options["dilation"])
            deviation = 1.0 / math.sqrt(inward // groups * elements)
            weight = random.normal((inward, outward // groups, *kernel), 0.0, deviation, **put)
        else:
            drawn = initializer((outward, inward // groups, *kernel), **put)
            weight = transposed(drawn, groups, get_device(device))
        self._set_parameters(weight, (outward,) if bias else None, dtype, device)


class ConvTranspose1d(TransposedConvolution):
    """y = conv_transpose1d(x, weight, bias): see ``tinynode.functions.conv_transpose1d``.

    x: (n, in, length) -> y: (n, out, length of y). The parameters are ``weight``:
    (in, out / groups, k), and ``bias``: (out), or None.

    The arguments and errors are those of ``ConvTranspose2d``; a window is an integer.
    """

    axes = 1
    function = staticmethod(functions.conv_transpose1d)


class ConvTranspose2d(TransposedConvolution):
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

    axes = 2
    function = staticmethod(functions.conv_transpose2d)

    def forward(self, x: Any, output_size: tuple[int, int] | None = None) -> Variable:
        """conv_transpose2d(x, weight, bias); ``output_size`` is (height, width) of the result."""
        options = {**self.options, "output_size": output_size}
        return self.function(as_input(x, self.weight), self.weight, self.bias, **options)


class ConvTranspose3d(TransposedConvolution):
    """y = conv_transpose3d(x, weight, bias): see ``tinynode.functions.conv_transpose3d``.

    x: (n, in, depth, height, width) -> y: (n, out, od, oh, ow). The parameters are ``weight``:
    (in, out / groups, kd, kh, kw), and ``bias``: (out), or None.

    The arguments and errors are those of ``ConvTranspose2d``; a window is an integer, or
    three (depth, rows, columns).
    """

    axes = 3
    function = staticmethod(functions.conv_transpose3d)


def elements_met(kernel: tuple[int, ...], stride: Any, dilation: Any) -> float:
    """The mean number of elements of a window that contribute to an output, transposed.

    With stride s and dilation d, element j contributes to the output at index i if i - j d is a
    multiple of s. Of k elements, k gcd(s, d) / s contribute on average. The result is at least 1.
    Outputs without any contribution are left out of the average.
    """
    strides = stride if isinstance(stride, tuple) else (stride,)
    dilations = dilation if isinstance(dilation, tuple) else (dilation,)
    lines = zip(kernel, strides, dilations, strict=True)
    return math.prod(max(1.0, k * math.gcd(s, d) / s) for k, s, d in lines)


def transposed(weight: Array, groups: int, device: Device) -> Array:
    """(out, in / groups, kh, kw) -> (in, out / groups, kh, kw)."""
    host = to_host(weight)
    outward, per_group, *kernel = host.shape
    split = host.reshape(groups, outward // groups, per_group, *kernel).swapaxes(1, 2)
    return fresh_copy(split.reshape(groups * per_group, outward // groups, *kernel), device)
