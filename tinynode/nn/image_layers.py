"""Layers for images, (n, channels, height, width), and signals: convolution and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinynode import functions
from tinynode.backend import Array, Device
from tinynode.nn.initializers import lecun_normal, zeros
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter
from tinynode.variable import Variable

IntPair = int | tuple[int, int]


class _Convolution(Module):
    """Base of the convolutions: a weight, perhaps a bias, and how the windows lie."""

    def __init__(
        self,
        shape: tuple[int, ...],
        out_channels: int,
        options: dict[str, Any],
        bias: bool,
        initializer: Callable[..., Array],
        dtype: Any,
        device: str | Device | None,
    ) -> None:
        for n in (*shape, out_channels):
            if n < 1:
                raise ValueError(
                    f"{type(self).__name__}: channels, groups and kernel must give a weight of "
                    f"positive size, got {shape}."
                )
        self.options = options
        self.weight = Parameter(initializer(shape, dtype=dtype, device=device), name="weight")
        self.bias: Parameter | None = None
        if bias:
            start = zeros((out_channels,), dtype=dtype, device=device)
            self.bias = Parameter(start, name="bias")

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{type(self).__name__}(weight {self.weight.shape}, {options})"


class Conv1d(_Convolution):
    """y = conv1d(x, weight, bias): see ``tinynode.functions.conv1d``.

    x: (n, in, length) -> y: (n, out, length of y). The parameters are ``weight``:
    (out, in / groups, kernel), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x.
        out_channels: the channels of y.
        kernel_size: the length of a window.
        stride: the step between windows.
        padding: how many zeros are put at both ends.
        dilation: the step between the elements of a window.
        groups: groups of channels that do not see each other.
        bias: whether there is one.
        initializer: of the weight, a function such as those of ``nn.initializers``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.
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
        _check_groups("Conv1d", in_channels, out_channels, groups)
        shape = (out_channels, in_channels // groups, kernel_size)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        super().__init__(shape, out_channels, options, bias, initializer, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv1d(x, weight, bias)."""
        return functions.conv1d(x, self.weight, self.bias, **self.options)


class Conv2d(_Convolution):
    """y = conv2d(x, weight, bias): see ``tinynode.functions.conv2d``.

    x: (n, in, height, width) -> y: (n, out, oh, ow). The parameters are ``weight``:
    (out, in / groups, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x.
        out_channels: the channels of y.
        kernel_size: the window, one integer or two (rows, columns).
        stride: the step between windows.
        padding: how many zeros are put around the image.
        dilation: the step between the elements of a window.
        groups: groups of channels that do not see each other.
        bias: whether there is one.
        initializer: of the weight, a function such as those of ``nn.initializers``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.
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
        _check_groups("Conv2d", in_channels, out_channels, groups)
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        shape = (out_channels, in_channels // groups, *kernel)
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        super().__init__(shape, out_channels, options, bias, initializer, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv2d(x, weight, bias)."""
        return functions.conv2d(x, self.weight, self.bias, **self.options)


class ConvTranspose2d(_Convolution):
    """y = conv_transpose2d(x, weight, bias): see ``tinynode.functions.conv_transpose2d``.

    x: (n, in, height, width) -> y: (n, out, oh, ow). The parameters are ``weight``:
    (in, out / groups, kh, kw), and ``bias``: (out), or None.

    Args:
        in_channels: the channels of x.
        out_channels: the channels of y.
        kernel_size: the window, one integer or two (rows, columns).
        stride: the step between windows on the output.
        padding: how much of the output's border is cut off.
        output_padding: how many rows and columns are added at the end of the output.
        dilation: the step between the elements of a window.
        groups: groups of channels that do not see each other.
        bias: whether there is one.
        initializer: of the weight, a function such as those of ``nn.initializers``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: where the parameters stand; the current device by default.
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
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        _check_groups("ConvTranspose2d", in_channels, out_channels, groups)
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
        shape = (in_channels, out_channels // groups, *kernel)
        options = {"stride": stride, "padding": padding, "output_padding": output_padding}
        options |= {"dilation": dilation, "groups": groups}
        super().__init__(shape, out_channels, options, bias, initializer, dtype, device)

    def forward(self, x: Any) -> Variable:
        """conv_transpose2d(x, weight, bias)."""
        return functions.conv_transpose2d(x, self.weight, self.bias, **self.options)


def _check_groups(layer: str, in_channels: int, out_channels: int, groups: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ValueError(
            f"{layer}: groups={groups} must divide in_channels={in_channels} and "
            f"out_channels={out_channels}."
        )


class MaxPool2d(Module):
    """y = max_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool2d``."""

    def __init__(
        self, kernel_size: IntPair, stride: IntPair | None = None, padding: IntPair = 0
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding

    def forward(self, x: Any) -> Variable:
        """max_pool2d(x, kernel_size, stride, padding)."""
        return functions.max_pool2d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"MaxPool2d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class AvgPool2d(Module):
    """y = avg_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool2d``."""

    def __init__(
        self, kernel_size: IntPair, stride: IntPair | None = None, padding: IntPair = 0
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding

    def forward(self, x: Any) -> Variable:
        """avg_pool2d(x, kernel_size, stride, padding)."""
        return functions.avg_pool2d(x, self.kernel_size, self.stride, self.padding)

    def __repr__(self) -> str:
        return f"AvgPool2d({self.kernel_size}, stride={self.stride}, padding={self.padding})"


class Flatten(Module):
    """y = x with all axes but the first made one: (n, ...) -> (n, product of the others)."""

    def forward(self, x: Any) -> Variable:
        """x as (n, size)."""
        x = functions.identity(x) if not isinstance(x, Variable) else x
        return functions.reshape(x, (x.shape[0], -1 if x.size else 0))

    def __repr__(self) -> str:
        return "Flatten()"
