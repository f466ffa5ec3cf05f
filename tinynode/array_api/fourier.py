"""The extension ``fft``: discrete Fourier transforms.

The transforms of ``tinynode.functions.fft``.
"""

from __future__ import annotations

from typing import Any

from tinynode.array_api.base import Forwarder, NamespaceBase
from tinynode.core.variable import Variable
from tinynode.functions import fft as transforms


class AxisTransform(Forwarder):
    """A transform along an axis."""

    def __call__(
        self,
        namespace: NamespaceBase,
        x: Any,
        /,
        *,
        n: int | None = None,
        axis: int = -1,
        norm: str = "backward",
    ) -> Variable:
        x = namespace._lift(f"fft.{self.__name__}", x)
        y: Variable = self.function(x, n=n, axis=axis, norm=norm)
        return y


class AxesTransform(Forwarder):
    """A transform along several axes."""

    def __call__(
        self,
        namespace: NamespaceBase,
        x: Any,
        /,
        *,
        s: Any = None,
        axes: Any = None,
        norm: str = "backward",
    ) -> Variable:
        x = namespace._lift(f"fft.{self.__name__}", x)
        y: Variable = self.function(x, s=s, axes=axes, norm=norm)
        return y


class Fourier(NamespaceBase):
    """The functions of ``fft``; norm is "backward", "ortho" or "forward"."""

    __name__ = "tinynode.array_api.fft"

    fft = AxisTransform(transforms.fft)
    ifft = AxisTransform(transforms.ifft)
    rfft = AxisTransform(transforms.rfft)
    irfft = AxisTransform(transforms.irfft)
    hfft = AxisTransform(transforms.hfft)
    ihfft = AxisTransform(transforms.ihfft)
    fftn = AxesTransform(transforms.fftn)
    ifftn = AxesTransform(transforms.ifftn)
    rfftn = AxesTransform(transforms.rfftn)
    irfftn = AxesTransform(transforms.irfftn)

    def fftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
    ) -> Variable:
        """The frequencies of the terms of ``fft``: cycles per unit of ``d``."""
        there = self._at(device)
        where = there.library_device
        return there.new(there.xp.fft.fftfreq(n, d=d, dtype=dtype, device=where))

    def rfftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
    ) -> Variable:
        """The frequencies of the terms of ``rfft``: cycles per unit of ``d``."""
        there = self._at(device)
        where = there.library_device
        return there.new(there.xp.fft.rfftfreq(n, d=d, dtype=dtype, device=where))

    def fftshift(self, x: Any, /, *, axes: Any = None) -> Variable:
        """The term of frequency 0 in the middle."""
        return transforms.fftshift(self._lift("fft.fftshift", x), axes=axes)

    def ifftshift(self, x: Any, /, *, axes: Any = None) -> Variable:
        """The inverse of ``fftshift``."""
        return transforms.ifftshift(self._lift("fft.ifftshift", x), axes=axes)
