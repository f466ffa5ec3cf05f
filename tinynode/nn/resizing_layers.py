"""Pooling, other sizes of signals, images and volumes, and rows of numbers for a classifier.

Each layer calls the function of its name in ``tinynode.functions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinynode import functions
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.nn.image_layers import Window, WindowLayer
from tinynode.nn.module import Module

Sizes = int | Sequence[int]


class Pooling(WindowLayer):
    """Base of the layers that take a maximum or a mean of each window.

    Args:
        kernel_size: the window: an integer, or one for each axis.
        stride: the step between windows; the window's length by default.
        padding: how much is added on each side.

    Raises:
        ValueError: a setting is out of range.

    Attributes:
        function: of ``tinynode.functions``, with the name of the layer.
    """

    function: Callable[..., Variable]

    def __init__(
        self, kernel_size: Window, stride: Window | None = None, padding: Window = 0
    ) -> None:
        self.kernel_size = self._window("kernel_size", kernel_size, 1)
        self.stride = self._window("stride", self.kernel_size if stride is None else stride, 1)
        self.padding = self._window("padding", padding, 0)

    def forward(self, x: Any) -> Variable:
        """The function of x, the window, the stride and the padding."""
        return self.function(x, self.kernel_size, self.stride, self.padding, **self._options())

    def _options(self) -> dict[str, Any]:
        """Further arguments of the function, by name."""
        return {}

    def _more(self) -> str:
        """Further settings for ``repr``."""
        return ""

    def extra_repr(self) -> str:
        """The windows."""
        settings = f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{settings}{self._more()}"


class MaxPool1d(Pooling):
    """y = max_pool1d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool1d``."""

    axes = 1
    function = staticmethod(functions.max_pool1d)


class MaxPool2d(Pooling):
    """y = max_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool2d``.

    x: (n, channels, height, width) -> y: (n, channels, oh, ow).

        >>> nn.MaxPool2d(2)(np.ones((1, 3, 8, 8))).shape
        (1, 3, 4, 4)
    """

    axes = 2
    function = staticmethod(functions.max_pool2d)

    def __init__(
        self,
        kernel_size: Window,
        stride: Window | None = None,
        padding: Window = 0,
        dilation: Window = 1,
        *,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.dilation = self._window("dilation", dilation, 1)
        self.ceil_mode = as_flag("MaxPool2d", "ceil_mode", ceil_mode)

    def _options(self) -> dict[str, Any]:
        return {"dilation": self.dilation, "ceil_mode": self.ceil_mode}

    def _more(self) -> str:
        dilation = "" if self.dilation == (1, 1) else f", dilation={self.dilation}"
        return dilation + ", ceil_mode=True" * self.ceil_mode


class MaxPool3d(Pooling):
    """y = max_pool3d(x, kernel_size, stride, padding): see ``tinynode.functions.max_pool3d``."""

    axes = 3
    function = staticmethod(functions.max_pool3d)


class AvgPool1d(Pooling):
    """y = avg_pool1d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool1d``."""

    axes = 1
    function = staticmethod(functions.avg_pool1d)


class AvgPool2d(Pooling):
    """y = avg_pool2d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool2d``."""

    axes = 2
    function = staticmethod(functions.avg_pool2d)

    def __init__(
        self,
        kernel_size: Window,
        stride: Window | None = None,
        padding: Window = 0,
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode = as_flag("AvgPool2d", "ceil_mode", ceil_mode)
        self.count_include_pad = as_flag("AvgPool2d", "count_include_pad", count_include_pad)

    def _options(self) -> dict[str, Any]:
        return {"ceil_mode": self.ceil_mode, "count_include_pad": self.count_include_pad}

    def _more(self) -> str:
        excluded = ", count_include_pad=False" * (not self.count_include_pad)
        return ", ceil_mode=True" * self.ceil_mode + excluded


class AvgPool3d(Pooling):
    """y = avg_pool3d(x, kernel_size, stride, padding): see ``tinynode.functions.avg_pool3d``."""

    axes = 3
    function = staticmethod(functions.avg_pool3d)


class AdaptivePooling(Module):
    """Base of the layers that pool to a size.

    Args:
        size: the length of the result along each axis: an integer, or one for each axis.

    Attributes:
        function: of ``tinynode.functions``, with the name of the layer.
    """

    function: Callable[..., Variable]

    def __init__(self, size: Sizes) -> None:
        self.size: Any = size

    def forward(self, x: Any) -> Variable:
        """The function of x and the size."""
        return self.function(x, self.size)

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"{self.size}"


class AdaptiveAvgPool1d(AdaptivePooling):
    """y = adaptive_avg_pool1d(x, size): see ``tinynode.functions.adaptive_avg_pool1d``."""

    function = staticmethod(functions.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(AdaptivePooling):
    """y = adaptive_avg_pool2d(x, size): see ``tinynode.functions.adaptive_avg_pool2d``."""

    function = staticmethod(functions.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(AdaptivePooling):
    """y = adaptive_avg_pool3d(x, size): see ``tinynode.functions.adaptive_avg_pool3d``."""

    function = staticmethod(functions.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(AdaptivePooling):
    """y = adaptive_max_pool1d(x, size): see ``tinynode.functions.adaptive_max_pool1d``."""

    function = staticmethod(functions.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptivePooling):
    """y = adaptive_max_pool2d(x, size): see ``tinynode.functions.adaptive_max_pool2d``."""

    function = staticmethod(functions.adaptive_max_pool2d)


class AdaptiveMaxPool3d(AdaptivePooling):
    """y = adaptive_max_pool3d(x, size): see ``tinynode.functions.adaptive_max_pool3d``."""

    function = staticmethod(functions.adaptive_max_pool3d)


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
        self.align_corners = as_flag("Upsample", "align_corners", align_corners)

    def forward(self, x: Any) -> Variable:
        """x in the other size."""
        return functions.interpolate(x, self.size, self.scale, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        """The size or the scale, and the mode."""
        return f"size={self.size}, scale={self.scale}, mode={self.mode!r}"


class Flatten(Module):
    """y = x with all axes but the first joined: (n, ...) -> (n, product of the others).

    Images (n, channels, height, width) give (n, channels * height * width).

        >>> nn.Flatten()(np.ones((5, 2, 3))).shape
        (5, 6)
    """

    def forward(self, x: Any) -> Variable:
        """x as (n, size)."""
        x = functions.identity(x) if not isinstance(x, Variable) else x
        return functions.reshape(x, (x.shape[0], -1 if x.size else 0))
