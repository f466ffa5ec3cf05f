"""Layers for signals and volumes, pooling to a size, other sizes, and the rectifier PReLU.

Each layer calls the function of its name in ``tinynode.functions``; parameters are named as
PyTorch names them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinynode import functions, random
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device, get_device
from tinynode.functions.volumes import IntTriple, triple
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.image_layers import Convolution, checked_channels, elements_met, transposed
from tinynode.nn.initializers import lecun_normal, ones
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter

Sizes = int | Sequence[int]


class Conv3d(Convolution):
    """y = conv3d(x, weight, bias): see ``tinynode.functions.conv3d``.

    x: (n, in, depth, height, width) -> y: (n, out, od, oh, ow). The parameters are ``weight``:
    (out, in / groups, kd, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window: an integer, or three (depth, rows, columns).
        stride: the step between windows.
        padding: the number of zeros added on each side.
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
        kernel_size: IntTriple,
        stride: IntTriple = 1,
        padding: IntTriple = 0,
        dilation: IntTriple = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        inward, outward, groups = checked_channels("Conv3d", in_channels, out_channels, groups)
        kernel = triple("Conv3d", "kernel_size", kernel_size, 1)
        options = {
            "stride": triple("Conv3d", "stride", stride, 1),
            "padding": triple("Conv3d", "padding", padding, 0),
            "dilation": triple("Conv3d", "dilation", dilation, 1),
            "groups": groups,
        }
        weight = initializer((outward, inward // groups, *kernel), dtype=dtype, device=device)
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv3d(x, weight, bias)."""
        return functions.conv3d(x, self.weight, self.bias, **self.options)


def transposed_weight(
    inward: int,
    outward: int,
    kernel: tuple[int, ...],
    options: dict[str, Any],
    initializer: Callable[..., Array] | None,
    put: dict[str, Any],
) -> Array:
    """The weight of a transposed convolution, (in, out / groups, *kernel): see ConvTranspose2d."""
    groups, lines = options["groups"], []
    for name in ("stride", "dilation"):
        value = options[name]
        lines.append(value if isinstance(value, tuple) else (value,))
    if initializer is None:
        deviation = 1.0 / math.sqrt(inward // groups * elements_met(kernel, *lines))
        return random.normal((inward, outward // groups, *kernel), 0.0, deviation, **put)
    drawn = initializer((outward, inward // groups, *kernel), **put)
    return transposed(drawn, groups, get_device(put["device"]))


class ConvTranspose1d(Convolution):
    """y = conv_transpose1d(x, weight, bias): see ``tinynode.functions.conv_transpose1d``.

    x: (n, in, length) -> y: (n, out, length of y). The parameters are ``weight``:
    (in, out / groups, k), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window's length.
        stride: the step between windows on the output.
        padding: how much is cut off on each side of the output.
        output_padding: how much is added at the end of the output.
        dilation: the step between the elements of a window.
        groups: the number of separate groups of channels.
        bias: True for a bias.
        initializer: draws the weight, by default as in ``ConvTranspose2d``.
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
        output_padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] | None = None,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        name, put = "ConvTranspose1d", {"dtype": dtype, "device": device}
        inward, outward, groups = checked_channels(name, in_channels, out_channels, groups)
        kernel = (checked_size(f"{name}: kernel_size", kernel_size),)
        options: dict[str, Any] = {
            "stride": checked_size(f"{name}: stride", stride, 1),
            "padding": checked_size(f"{name}: padding", padding, 0),
            "output_padding": checked_size(f"{name}: output_padding", output_padding, 0),
            "dilation": checked_size(f"{name}: dilation", dilation, 1),
            "groups": groups,
        }
        weight = transposed_weight(inward, outward, kernel, options, initializer, put)
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv_transpose1d(x, weight, bias)."""
        return functions.conv_transpose1d(x, self.weight, self.bias, **self.options)


class ConvTranspose3d(Convolution):
    """y = conv_transpose3d(x, weight, bias): see ``tinynode.functions.conv_transpose3d``.

    x: (n, in, depth, height, width) -> y: (n, out, od, oh, ow). The parameters are ``weight``:
    (in, out / groups, kd, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x, at least 1.
        out_channels: the channels of y, at least 1.
        kernel_size: the window: an integer, or three (depth, rows, columns).
        stride: the step between windows on the output.
        padding: how much is cut off on each side of the output.
        output_padding: how much is added at the end of the output.
        dilation: the step between the elements of a window.
        groups: the number of separate groups of channels.
        bias: True for a bias.
        initializer: draws the weight, by default as in ``ConvTranspose2d``.
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
        kernel_size: IntTriple,
        stride: IntTriple = 1,
        padding: IntTriple = 0,
        output_padding: IntTriple = 0,
        dilation: IntTriple = 1,
        groups: int = 1,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] | None = None,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        name, put = "ConvTranspose3d", {"dtype": dtype, "device": device}
        inward, outward, groups = checked_channels(name, in_channels, out_channels, groups)
        kernel = triple(name, "kernel_size", kernel_size, 1)
        options: dict[str, Any] = {
            "stride": triple(name, "stride", stride, 1),
            "padding": triple(name, "padding", padding, 0),
            "output_padding": triple(name, "output_padding", output_padding, 0),
            "dilation": triple(name, "dilation", dilation, 1),
            "groups": groups,
        }
        weight = transposed_weight(inward, outward, kernel, options, initializer, put)
        super().__init__(weight, outward, options, bias, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv_transpose3d(x, weight, bias)."""
        return functions.conv_transpose3d(x, self.weight, self.bias, **self.options)


class MaxPool1d(Module):
    """y = max_pool1d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool1d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0) -> None:
        self.kernel_size = checked_size("MaxPool1d: kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = checked_size("MaxPool1d: stride", step, 1)
        self.padding = checked_size("MaxPool1d: padding", padding, 0)

    def forward(self, x: Any) -> Variable:
        """max_pool1d(x, kernel_size, stride, padding)."""
        return functions.max_pool1d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"MaxPool1d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class MaxPool3d(Module):
    """y = max_pool3d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool3d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self, kernel_size: IntTriple, stride: IntTriple | None = None, padding: IntTriple = 0
    ) -> None:
        self.kernel_size = triple("MaxPool3d", "kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = triple("MaxPool3d", "stride", step, 1)
        self.padding = triple("MaxPool3d", "padding", padding, 0)

    def forward(self, x: Any) -> Variable:
        """max_pool3d(x, kernel_size, stride, padding)."""
        return functions.max_pool3d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"MaxPool3d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class AvgPool1d(Module):
    """y = avg_pool1d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool1d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0) -> None:
        self.kernel_size = checked_size("AvgPool1d: kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = checked_size("AvgPool1d: stride", step, 1)
        self.padding = checked_size("AvgPool1d: padding", padding, 0)

    def forward(self, x: Any) -> Variable:
        """avg_pool1d(x, kernel_size, stride, padding)."""
        return functions.avg_pool1d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"AvgPool1d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class AvgPool3d(Module):
    """y = avg_pool3d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool3d``.

    Raises:
        ValueError: a setting is out of range.
    """

    def __init__(
        self, kernel_size: IntTriple, stride: IntTriple | None = None, padding: IntTriple = 0
    ) -> None:
        self.kernel_size = triple("AvgPool3d", "kernel_size", kernel_size, 1)
        step = self.kernel_size if stride is None else stride
        self.stride = triple("AvgPool3d", "stride", step, 1)
        self.padding = triple("AvgPool3d", "padding", padding, 0)

    def forward(self, x: Any) -> Variable:
        """avg_pool3d(x, kernel_size, stride, padding)."""
        return functions.avg_pool3d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"AvgPool3d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class AdaptiveAvgPool1d(Module):
    """y = adaptive_avg_pool1d(x, size): see ``tinynode.functions.adaptive_avg_pool1d``."""

    def __init__(self, size: int) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_avg_pool1d(x, size)."""
        return functions.adaptive_avg_pool1d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveAvgPool1d({self.size})"


class AdaptiveAvgPool2d(Module):
    """y = adaptive_avg_pool2d(x, size): see ``tinynode.functions.adaptive_avg_pool2d``."""

    def __init__(self, size: Sizes) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_avg_pool2d(x, size)."""
        return functions.adaptive_avg_pool2d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveAvgPool2d({self.size})"


class AdaptiveAvgPool3d(Module):
    """y = adaptive_avg_pool3d(x, size): see ``tinynode.functions.adaptive_avg_pool3d``."""

    def __init__(self, size: Sizes) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_avg_pool3d(x, size)."""
        return functions.adaptive_avg_pool3d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveAvgPool3d({self.size})"


class AdaptiveMaxPool1d(Module):
    """y = adaptive_max_pool1d(x, size): see ``tinynode.functions.adaptive_max_pool1d``."""

    def __init__(self, size: int) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_max_pool1d(x, size)."""
        return functions.adaptive_max_pool1d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveMaxPool1d({self.size})"


class AdaptiveMaxPool2d(Module):
    """y = adaptive_max_pool2d(x, size): see ``tinynode.functions.adaptive_max_pool2d``."""

    def __init__(self, size: Sizes) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_max_pool2d(x, size)."""
        return functions.adaptive_max_pool2d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveMaxPool2d({self.size})"


class AdaptiveMaxPool3d(Module):
    """y = adaptive_max_pool3d(x, size): see ``tinynode.functions.adaptive_max_pool3d``."""

    def __init__(self, size: Sizes) -> None:
        self.size = size

    def forward(self, x: Any) -> Variable:
        """adaptive_max_pool3d(x, size)."""
        return functions.adaptive_max_pool3d(x, self.size)

    def __repr__(self) -> str:
        return f"AdaptiveMaxPool3d({self.size})"


class Upsample(Module):
    """y = interpolate(x, size, scale, mode, align_corners): see ``functions.interpolate``."""

    def __init__(
        self,
        size: Sizes | None = None,
        scale: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool = False,
    ) -> None:
        self.size = size
        self.scale = scale
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Any) -> Variable:
        """x in the other size."""
        return functions.interpolate(x, self.size, self.scale, self.mode, self.align_corners)

    def __repr__(self) -> str:
        return f"Upsample(size={self.size}, scale={self.scale}, mode={self.mode!r})"


class PReLU(Module):
    """y = prelu(x, weight): see ``tinynode.functions.prelu``. The parameter is ``weight``.

    Args:
        slopes: how many slopes: 1, or the channels of x.
        start: the slopes at the start.
        dtype: the parameter's dtype; ``config.dtype`` by default.
        device: the device of the parameter; the current device by default.

    Raises:
        TypeError: ``slopes`` is no integer, or ``start`` no number.
        ValueError: ``slopes`` is below 1, or ``start`` not finite.
    """

    def __init__(
        self,
        slopes: int = 1,
        start: float = 0.25,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        shape = (checked_size("PReLU: slopes", slopes),)
        number = checked_number("PReLU: start", start, -math.inf, math.inf)
        weight = ones(shape, dtype=dtype, device=device) * number
        self.weight = Parameter(weight, name="weight", device=device)

    def forward(self, x: Any) -> Variable:
        """prelu(x, weight)."""
        return functions.prelu(x, self.weight)

    def __repr__(self) -> str:
        return f"PReLU(weight {self.weight.shape})"
