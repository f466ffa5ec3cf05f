"""The extension ``fft``: discrete Fourier transforms.

The transforms of ``tinynode.functions.fft``.
"""

from __future__ import annotations

from typing import Any

from tinynode.array_api.base import NamespaceBase
from tinynode.core.variable import Variable
from tinynode.functions import fft as transforms


class Fourier(NamespaceBase):
    """The functions of ``fft``; norm is "backward", "ortho" or "forward"."""

    __name__ = "tinynode.array_api.fft"

    def fft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The discrete Fourier transform."""
        return transforms.fft(self._lift("fft.fft", x), n=n, axis=axis, norm=norm)

    def ifft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``fft``."""
        return transforms.ifft(self._lift("fft.ifft", x), n=n, axis=axis, norm=norm)

    def rfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """``fft`` of real x: the first n // 2 + 1 terms."""
        return transforms.rfft(self._lift("fft.rfft", x), n=n, axis=axis, norm=norm)

    def irfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``rfft``: real."""
        return transforms.irfft(self._lift("fft.irfft", x), n=n, axis=axis, norm=norm)

    def hfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """``fft`` of a symmetric signal: real."""
        return transforms.hfft(self._lift("fft.hfft", x), n=n, axis=axis, norm=norm)

    def ihfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``hfft``."""
        return transforms.ihfft(self._lift("fft.ihfft", x), n=n, axis=axis, norm=norm)

    def fftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """``fft`` along several axes."""
        return transforms.fftn(self._lift("fft.fftn", x), s=s, axes=axes, norm=norm)

    def ifftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``fftn``."""
        return transforms.ifftn(self._lift("fft.ifftn", x), s=s, axes=axes, norm=norm)

    def rfftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """``fftn`` of real x."""
        return transforms.rfftn(self._lift("fft.rfftn", x), s=s, axes=axes, norm=norm)

    def irfftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``rfftn``: real."""
        return transforms.irfftn(self._lift("fft.irfftn", x), s=s, axes=axes, norm=norm)

    def fftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
    ) -> Variable:
        """The frequencies of the terms of ``fft``: cycles per unit of ``d``."""
        there = self._at(device)
        where = there._library_device
        return there._new(there._xp.fft.fftfreq(n, d=d, dtype=dtype, device=where))  # type: ignore[no-any-return]

    def rfftfreq(
        self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
    ) -> Variable:
        """The frequencies of the terms of ``rfft``: cycles per unit of ``d``."""
        there = self._at(device)
        where = there._library_device
        return there._new(there._xp.fft.rfftfreq(n, d=d, dtype=dtype, device=where))  # type: ignore[no-any-return]

    def fftshift(self, x: Any, /, *, axes: Any = None) -> Variable:
        """The term of frequency 0 in the middle."""
        return transforms.fftshift(self._lift("fft.fftshift", x), axes=axes)

    def ifftshift(self, x: Any, /, *, axes: Any = None) -> Variable:
        """The inverse of ``fftshift``."""
        return transforms.ifftshift(self._lift("fft.ifftshift", x), axes=axes)
