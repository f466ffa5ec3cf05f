"""Rows of volumes and signals, of adaptive pooling, interpolation and sampling at a grid."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from op_cases.rows import Input, distinct, row, x
from tinynode import functions as fn

zipped = partial(zip, strict=True)


def three(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,) * 3


def np_conv3d(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Window by window, and place by place in the window."""
    s, p, d, k = three(stride), three(padding), three(dilation), w.shape[2:]
    x = np.pad(x, ((0, 0), (0, 0), *((q, q) for q in p)))
    counts = [(x.shape[i + 2] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in range(3)]
    y = np.zeros((x.shape[0], w.shape[0], *counts), x.dtype)
    c, o = x.shape[1] // groups, w.shape[0] // groups
    for place in np.ndindex(*k):
        part = [
            slice(q * e, q * e + r * (m - 1) + 1, r) for q, e, r, m in zipped(place, d, s, counts)
        ]
        seen = x[(slice(None), slice(None), *part)]
        for g in range(groups):
            weights = w[(slice(g * o, g * o + o), slice(None), *place)]
            y[:, g * o : g * o + o] += np.einsum(
                "ncijk,oc->noijk", seen[:, g * c : g * c + c], weights
            )
    return y if b is None else y + b[:, None, None, None]


volumes, kernels = x(2, 2, 4, 3, 4), x(3, 2, 2, 2, 3)
row("conv3d", "plain", fn.conv3d, np_conv3d, volumes, kernels)
row("conv3d", "options", fn.conv3d, np_conv3d, x(1, 2, 5, 4, 4), kernels, x(3), stride=(2, 1, 2),
    padding=(1, 0, 2), dilation=(2, 1, 1))  # fmt: skip
row("conv3d", "groups", fn.conv3d, np_conv3d, x(1, 4, 3, 2, 2), x(4, 2, 2, 1, 2), groups=2)
row("conv3d", "no-volumes", fn.conv3d, np_conv3d, x(0, 2, 4, 3, 4), kernels)


def np_transposed(
    x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    s, p, e, d = three(stride), three(padding), three(output_padding), three(dilation)
    k, c, o = w.shape[2:], x.shape[1] // groups, w.shape[1]
    full = [(x.shape[i + 2] - 1) * s[i] + d[i] * (k[i] - 1) + 1 + e[i] for i in range(3)]
    y = np.zeros((x.shape[0], o * groups, *full), x.dtype)
    for place in np.ndindex(*k):
        part = [slice(q * f, q * f + r * (m - 1) + 1, r)
                for q, f, r, m in zipped(place, d, s, x.shape[2:])]  # fmt: skip
        for g in range(groups):
            weights = w[(slice(g * c, g * c + c), slice(None), *place)]
            y[(slice(None), slice(g * o, g * o + o), *part)] += np.einsum(
                "ncijk,co->noijk", x[:, g * c : g * c + c], weights
            )
    y = y[(..., *(slice(q, n - q) for q, n in zipped(p, full)))]
    return y if b is None else y + b[:, None, None, None]


def np_transposed1d(x: Any, w: Any, b: Any = None, groups: int = 1, **how: int) -> Any:
    options = {
        name: (0 if "padding" in name else 1,) * 2 + (value,) for name, value in how.items()
    }
    return np_transposed(x[:, :, None, None], w[:, :, None, None], b, groups=groups, **options)[
        :, :, 0, 0
    ]


small, turned = x(1, 2, 2, 2, 3), x(2, 3, 2, 2, 1)
row("conv_transpose3d", "plain", fn.conv_transpose3d, np_transposed, small, turned)
row("conv_transpose3d", "options", fn.conv_transpose3d, np_transposed, small, turned, x(3),
    stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(1, 0, 1), dilation=(1, 2, 2))  # fmt: skip
row("conv_transpose3d", "groups", fn.conv_transpose3d, np_transposed, small, x(2, 1, 2, 1, 2),
    groups=2)  # fmt: skip
row("conv_transpose1d", "plain", fn.conv_transpose1d, np_transposed1d, x(2, 3, 4), x(3, 2, 3))
row("conv_transpose1d", "options", fn.conv_transpose1d, np_transposed1d, x(2, 2, 4), x(2, 1, 3),
    x(2), stride=2, padding=1, output_padding=1, dilation=2, groups=2)  # fmt: skip


# --- pooling -------------------------------------------------------------------------------------


def np_pool(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, largest: bool = True
) -> Any:
    axes = x.ndim - 2
    k, p = (v if isinstance(v, tuple) else (v,) * axes for v in (kernel_size, padding))
    s = k if stride is None else stride if isinstance(stride, tuple) else (stride,) * axes
    x = np.pad(x, ((0, 0), (0, 0), *((q, q) for q in p)),
               constant_values=-np.inf if largest else 0)  # fmt: skip
    counts = [(x.shape[i + 2] - k[i]) // s[i] + 1 for i in range(axes)]
    y = np.zeros((*x.shape[:2], *counts), x.dtype)
    for place in np.ndindex(*counts):
        part = x[(..., *(slice(q * r, q * r + m) for q, r, m in zipped(place, s, k)))]
        how = np.max if largest else np.mean
        y[(..., *place)] = how(part, axis=tuple(range(2, x.ndim)))
    return y


def np_mean_pool(x: Any, *how: Any, **more: Any) -> Any:
    return np_pool(x, *how, **more, largest=False)


many = {1: Input((2, 2, 7), distinct), 3: Input((1, 2, 4, 3, 4), distinct)}
for f, ref, axes in (
    (fn.max_pool1d, np_pool, 1), (fn.avg_pool1d, np_mean_pool, 1),
    (fn.max_pool3d, np_pool, 3), (fn.avg_pool3d, np_mean_pool, 3),
):  # fmt: skip
    row(f.__name__, "plain", f, ref, many[axes], kernel_size=2)
    row(f.__name__, "options", f, ref, many[axes], kernel_size=3, stride=2, padding=1)
row(
    "max_pool3d",
    "uneven",
    fn.max_pool3d,
    np_pool,
    many[3],
    kernel_size=(2, 1, 3),
    stride=(1, 2, 1),
)


def np_adaptive(x: Any, size: Any, largest: bool = False) -> Any:
    sizes = size if isinstance(size, tuple) else (size,) * (x.ndim - 2)
    y = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for place in np.ndindex(*sizes):
        part = [slice(i * n // m, math.ceil((i + 1) * n / m))
                for i, n, m in zipped(place, x.shape[2:], sizes)]  # fmt: skip
        how = np.max if largest else np.mean
        y[(..., *place)] = how(x[(..., *part)], axis=tuple(range(2, x.ndim)))
    return y


for axes, shape, size in (
    (1, (2, 2, 7), 3),
    (2, (1, 2, 5, 4), (3, 2)),
    (3, (1, 1, 4, 3, 2), (3, 2, 2)),
):
    for name, biggest in (("avg", False), ("max", True)):
        f = getattr(fn, f"adaptive_{name}_pool{axes}d")
        ref = (lambda x, size: np_adaptive(x, size, True)) if biggest else np_adaptive
        row(f.__name__, "uneven", f, ref, Input(shape, distinct), size=size)
        if axes == 1:
            row(f.__name__, "one", f, ref, Input(shape, distinct), size=1)
row("adaptive_avg_pool2d", "larger", fn.adaptive_avg_pool2d, np_adaptive, x(1, 2, 2, 3), size=5)
row("adaptive_max_pool2d", "larger", fn.adaptive_max_pool2d,
    lambda x, size: np_adaptive(x, size, True), Input((1, 1, 2, 3), distinct),
    size=(4, 3))  # fmt: skip


# --- other sizes ---------------------------------------------------------------------------------


def np_interpolate(
    x: Any, size: Any = None, scale: Any = None, mode: str = "nearest", align_corners: bool = False
) -> Any:
    axes = x.ndim - 2
    scales = scale if isinstance(scale, tuple) else (scale,) * axes
    sizes = size if isinstance(size, tuple) else (size,) * axes
    y = x
    for axis in range(axes):
        n = x.shape[axis + 2]
        new = int(n * scales[axis]) if size is None else sizes[axis]
        step = 1 / scales[axis] if size is None else n / new
        parts = []
        for i in range(new):
            place = i * step if mode == "nearest" else max((i + 0.5) * step - 0.5, 0.0)
            if align_corners:
                place = i * (n - 1) / (new - 1) if new > 1 else 0.0
            low = min(int(place), n - 1)
            high = min(low + 1, n - 1)
            part = min(place - low, 1.0) if mode == "linear" else 0.0
            ends = np.take(y, low, axis + 2), np.take(y, high, axis + 2)
            parts.append(ends[0] * (1 - part) + ends[1] * part)
        y = np.stack(parts, axis + 2).astype(x.dtype)
    return y


signal, image = x(2, 2, 5), x(1, 2, 3, 4)
row("interpolate", "nearest-signal", fn.interpolate, np_interpolate, signal, size=8)
row("interpolate", "nearest-image", fn.interpolate, np_interpolate, image, scale=(2, 0.5))
for corners in (False, True):
    more = {"mode": "linear", "align_corners": corners}
    row("interpolate", f"linear-signal-{corners}", fn.interpolate, np_interpolate, signal, size=3,
        **more)  # fmt: skip
    row("interpolate", f"bilinear-{corners}", fn.interpolate, np_interpolate, image, size=(5, 1),
        **more)  # fmt: skip
    row("interpolate", f"trilinear-{corners}", fn.interpolate, np_interpolate, x(1, 1, 2, 3, 2),
        scale=(2, 1.5, 2), **more)  # fmt: skip


def np_grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding: str = "zeros", align_corners: bool = False
) -> Any:
    height, width = x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype)
    for n, i, j in np.ndindex(*grid.shape[:3]):
        place = []
        for at, size in zipped(grid[n, i, j][::-1], (height, width)):
            value = (at + 1) / 2 * (size - 1) if align_corners else (at + 1) / 2 * size - 0.5
            place.append(min(max(value, 0), size - 1) if padding == "border" else value)
        if mode == "nearest":
            corners = [(round(float(place[0])), round(float(place[1])), 1.0)]
        else:
            top, left = (math.floor(v) for v in place)
            down, right = place[0] - top, place[1] - left
            corners = [(top + r, left + c, (down if r else 1 - down) * (right if c else 1 - right))
                       for r in (0, 1) for c in (0, 1)]  # fmt: skip
        for r, c, weight in corners:
            if 0 <= r < height and 0 <= c < width:
                y[n, :, i, j] += x[n, :, r, c] * weight
    return y


def between_pixels(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Places whose rows and columns, of 4 or 5 pixels, keep off whole numbers and halves."""
    whole = rng.integers(-1, 4, shape) + rng.choice([0.2, 0.3, 0.7, 0.8], shape)
    return (whole + 0.5) / 2 - 1


grid = Input((2, 1, 3, 2), between_pixels)
square = x(2, 1, 4, 4)
for padding in ("zeros", "border"):
    row("grid_sample", f"bilinear-{padding}", fn.grid_sample, np_grid_sample, square, grid,
        padding=padding)  # fmt: skip
row("grid_sample", "nearest", fn.grid_sample, np_grid_sample, square, grid, mode="nearest")
row("grid_sample", "corners", fn.grid_sample, np_grid_sample, x(2, 1, 4, 3), grid,
    align_corners=True)  # fmt: skip


def np_shuffle(x: Any, factor: int) -> Any:
    n, c, h, w = x.shape
    y = np.zeros((n, c // factor**2, h * factor, w * factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[:, :, i::factor, j::factor] = x[:, i * factor + j :: factor**2]
    return y


def np_unshuffle(x: Any, factor: int) -> Any:
    n, c, h, w = x.shape
    y = np.zeros((n, c * factor**2, h // factor, w // factor), x.dtype)
    for i, j in np.ndindex(factor, factor):
        y[:, i * factor + j :: factor**2] = x[:, :, i::factor, j::factor]
    return y


row("pixel_shuffle", "images", fn.pixel_shuffle, np_shuffle, x(2, 8, 2, 3), factor=2)
row("pixel_unshuffle", "images", fn.pixel_unshuffle, np_unshuffle, x(1, 2, 4, 6), factor=2)
