"""Positions for attention, which has no order: sinusoids that are added, and rotations.

Trained positions need no layer of their own: ``nn.Embedding(length, size)`` of the numbers 0 to
length - 1.
"""

from __future__ import annotations

from typing import Any

import numpy

from tinynode import functions, random
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device, get_device
from tinynode.functions.operands import as_floating
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.layers import Dropout
from tinynode.nn.module import Module


def sinusoidal_positions(
    length: int,
    size: int,
    base: float = 10000.0,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
) -> Array:
    """p[t, 2 i] = sin(t / base^(2 i / size)), p[t, 2 i + 1] = the cosine: (length, size).

    Source: Vaswani et al., Attention Is All You Need, 2017, section 3.5.

    Args:
        length: the number of positions t.
        size: the length of a position's vector.
        base: the longest wave has 2 pi base positions.
        dtype: a floating dtype; ``config.dtype`` by default.
        device: where the array stands; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a size is less than 1.
    """
    name = "sinusoidal_positions"
    angles = _angles(checked_size(f"{name}: length", length, 0), (size + 1) // 2, size, base)
    both = numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=-1)
    rows = both.reshape(len(angles), -1)[:, : checked_size(f"{name}: size", size)]
    return get_device(device).from_host(rows.astype(random.host_dtype(dtype)))


def _angles(length: int, count: int, size: int, base: float) -> Any:
    """t / base^(2 i / size) on the host: (length, count), float64."""
    return numpy.arange(length)[:, None] / base ** (2.0 * numpy.arange(count) / size)


class PositionalEncoding(Module):
    """y = dropout(x + p), with p = sinusoidal_positions(length, size); no parameters.

    x: (..., length, size) -> y: as x. The steps are the last axis but one: batch first.

    Source: Vaswani et al., Attention Is All You Need, 2017, section 3.5.

    Args:
        size: the length of x's last axis, at least 1.
        dropout: the ratio of dropout, in training.
        base: as for ``sinusoidal_positions``.

    Raises:
        TypeError: a setting is no number.
        ValueError: a setting is out of range.
    """

    one_line = True

    def __init__(self, size: int, dropout: float = 0.0, base: float = 10000.0) -> None:
        self.size = checked_size("PositionalEncoding: size", size)
        ratio = checked_number("PositionalEncoding: dropout", dropout, 0.0, 1.0)
        self.base = checked_number("PositionalEncoding: base", base, 1.0, float("inf"))
        self.dropout = Dropout(ratio)

    def forward(self, x: Any, start: int = 0) -> Variable:
        """dropout(x + p); ``start`` is the position of the first step.

        Raises:
            ValueError: x has fewer than two axes, or another last axis.
        """
        x = _checked_steps("PositionalEncoding", x, self.size)
        start = checked_size("PositionalEncoding: start", start, 0)
        stop = start + x.shape[-2]
        p = sinusoidal_positions(stop, self.size, self.base, dtype=x.dtype, device=x.device)
        y: Variable = self.dropout(x + p[start:, :])
        return y

    def extra_repr(self) -> str:
        """The size and the ratio."""
        return f"{self.size}, dropout={self.dropout.ratio}"


class RotaryEncoding(Module):
    """Turns each pair of x's elements by an angle that grows with the position; no parameters.

    (y_i, y_j) = (x_i cos a - x_j sin a, x_j cos a + x_i sin a), with j = i + size / 2.
    The angle at position t is a = t / base^(2 i / size). Products of a query and
    a key then depend on the distance of the positions.

    x: (..., length, size) -> y: as x: a query or a key of each head, before the products.

    Source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021. The
    paper's pairs are neighbours; the pairs here are half the size apart, as in GPT-NeoX.

    Args:
        size: the length of x's last axis, an even number.
        base: the slowest rotation has about 2 pi base positions.

    Raises:
        TypeError: a setting is no number.
        ValueError: a setting is out of range, or the size is odd.
    """

    def __init__(self, size: int, base: float = 10000.0) -> None:
        self.size = checked_size("RotaryEncoding: size", size)
        if self.size % 2:
            raise ValueError(f"RotaryEncoding: size must be even, got {size}.")
        self.base = checked_number("RotaryEncoding: base", base, 1.0, float("inf"))

    def forward(self, x: Any, start: int = 0) -> Variable:
        """x turned; ``start`` is the position of the first step.

        Raises:
            ValueError: x has fewer than two axes, or another last axis.
        """
        x = _checked_steps("RotaryEncoding", x, self.size)
        start = checked_size("RotaryEncoding: start", start, 0)
        angles = _angles(start + x.shape[-2], self.size // 2, self.size, self.base)[start:]
        dtype = random.host_dtype(x.dtype)
        cos, sin = (x.device.from_host(f(angles).astype(dtype)) for f in (numpy.cos, numpy.sin))
        left, right = functions.split(x, 2, axis=-1)
        turned = [left * cos - right * sin, right * cos + left * sin]
        return functions.concat(turned, axis=-1)

    def extra_repr(self) -> str:
        """The size and the base."""
        return f"{self.size}, base={self.base}"


def _checked_steps(layer: str, x: Any, size: int) -> Variable:
    """x as a floating Variable of shape (..., length, size)."""
    given = as_floating(layer, "x", x)
    if given.ndim < 2 or given.shape[-1] != size:
        raise ValueError(
            f"{layer}: x must be (..., length, size) with size={size}, got shape {given.shape}."
        )
    return given
