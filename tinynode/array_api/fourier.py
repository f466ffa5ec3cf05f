"""The extension ``fft``: discrete Fourier transforms.

The functions give values. A transform has no gradient rule yet: an argument that requires a
gradient is an error.
"""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.array_api.base import NamespaceBase
from tinynode.core.variable import Variable
from tinynode.functions.operands import normalize_axes


class Fourier(NamespaceBase):
    """The functions of ``fft``; norm is "backward", "ortho" or "forward"."""

    __name__ = "tinynode.array_api.fft"

    def _line(self, function: str, x: Any, n: int | None, axis: int, norm: str) -> Variable:
        """A transform along an axis, by the array library."""
        array = self._array_without_rule(f"fft.{function}", x)
        return self._new(getattr(self._xp.fft, function)(array, n=n, axis=axis, norm=norm))

    def _box(self, function: str, x: Any, s: Any, axes: Any, norm: str) -> Variable:
        """A transform along several axes, by the array library."""
        array = self._array_without_rule(f"fft.{function}", x)
        return self._new(getattr(self._xp.fft, function)(array, s=s, axes=axes, norm=norm))

    def fft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The discrete Fourier transform."""
        return self._line("fft", x, n, axis, norm)

    def ifft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``fft``."""
        return self._line("ifft", x, n, axis, norm)

    def rfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """``fft`` of real x: the first n // 2 + 1 terms."""
        return self._line("rfft", x, n, axis, norm)

    def irfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``rfft``: real."""
        return self._line("irfft", x, n, axis, norm)

    def hfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """``fft`` of a signal that is symmetric: real."""
        return self._line("hfft", x, n, axis, norm)

    def ihfft(
        self, x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``hfft``."""
        return self._line("ihfft", x, n, axis, norm)

    def fftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """``fft`` along several axes."""
        return self._box("fftn", x, s, axes, norm)

    def ifftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``fftn``."""
        return self._box("ifftn", x, s, axes, norm)

    def rfftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """``fftn`` of real x."""
        return self._box("rfftn", x, s, axes, norm)

    def irfftn(
        self, x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Variable:
        """The inverse of ``rfftn``: real."""
        return self._box("irfftn", x, s, axes, norm)

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
        x = self._lift("fft.fftshift", x)
        chosen = normalize_axes("fft.fftshift", axes, x.ndim)
        shift = tuple(x.shape[axis] // 2 for axis in chosen)
        return functions.roll(x, shift, axis=chosen)

    def ifftshift(self, x: Any, /, *, axes: Any = None) -> Variable:
        """The inverse of ``fftshift``."""
        x = self._lift("fft.ifftshift", x)
        chosen = normalize_axes("fft.ifftshift", axes, x.ndim)
        shift = tuple(-(x.shape[axis] // 2) for axis in chosen)
        return functions.roll(x, shift, axis=chosen)
