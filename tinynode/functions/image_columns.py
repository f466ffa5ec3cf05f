"""Columns: the windows of images side by side, so that a convolution is a product of matrices.

Requirement: the product of kernels and columns is the output as it lies in memory, and columns are
copied as seldom as possible. Both depend on the sizes, so a ``Layout`` is chosen for each call:

    apart     (n, channels, 1, height, width): a product for each image
    joined    (1, channels, n, height, width): one product for all images; images are copied into
              this order and back. A product for each would be too small.

    whole     each window is copied; a single product
    by rows   windows of a single row are copied, kw copies of the image in place of kh kw. Each
              row of the kernel has a product with these columns, shifted by rows:
              y[r] = the sum over i of w[i] columns[r + i d], with stride 1
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tinynode.devices import Array, backend_of, namespace_of, put, put_sum
from tinynode.functions.image_windows import Windows

FEW_WINDOWS = 48
"""Images with fewer windows are joined."""

COLUMNS_IN_CACHE = 1 << 19
"""The elements of columns at a time; more fall out of the cache before the product."""
COLUMNS_ON_GPU = 1 << 27
"""The same on a GPU, where the columns only have to fit into memory."""


def pad_image(x: Array, windows: Windows, value: float) -> Array:
    """Images (..., height, width) with a border of ``value``; x unchanged where padding is 0."""
    if windows.padding == (0, 0):
        return x
    xp = namespace_of(x)
    height, width = x.shape[-2:]
    rows, columns = windows.padding
    shape = (*x.shape[:-2], *windows.padded((height, width)))
    padded = xp.full(shape, value, dtype=x.dtype, device=x.device)
    place = (..., slice(rows, rows + height), slice(columns, columns + width))
    return put(padded, place, x)


def crop_image(x: Array, windows: Windows, image: tuple[int, int]) -> Array:
    """The inverse of ``pad_image``."""
    rows, columns = windows.padding
    return x[..., rows : rows + image[0], columns : columns + image[1]]


def as_stacks(x: Array, is_joined: bool) -> Array:
    """(n, channels, height, width) -> (stacks, channels, images of a stack, height, width)"""
    xp = namespace_of(x)
    if is_joined:
        return xp.expand_dims(xp.permute_dims(x, (1, 0, 2, 3)), axis=0)
    return xp.expand_dims(x, axis=2)


def from_stacks(y: Array, is_joined: bool) -> Array:
    """The inverse of ``as_stacks``."""
    if is_joined:
        return namespace_of(y).permute_dims(y[0, ...], (1, 0, 2, 3))
    return y[:, :, 0, ...]


def unfold_stacks(x: Array, windows: Windows, counts: tuple[int, int]) -> Array:
    """(stacks, channels, images, height, width) -> (stacks, channels, kh, kw, images, oh, ow)"""
    xp = namespace_of(x)
    padded = pad_image(x, windows, 0.0)
    places = windows.places(padded.shape[3:], counts)
    shape = (*x.shape[:2], *windows.size, x.shape[2], *counts)
    columns = xp.empty(shape, dtype=x.dtype, device=x.device)
    for i, j, place in places:
        columns = put(columns, (slice(None), slice(None), i, j, ...), padded[place])
    return columns


def fold_stacks(y: Array, windows: Windows, image: tuple[int, int]) -> Array:
    """(stacks, channels, kh, kw, images, oh, ow) -> (stacks, channels, images, height, width)"""
    xp = namespace_of(y)
    windows.require_size(y.shape[2:4])
    padded = windows.padded(image)
    total = xp.zeros((*y.shape[:2], y.shape[4], *padded), dtype=y.dtype, device=y.device)
    add = put if windows.are_apart else put_sum
    for i, j, place in windows.places(padded, y.shape[5:]):
        total = add(total, place, y[:, :, i, j, ...])
    return crop_image(total, windows, image)


class Term(NamedTuple):
    """A product of a sum: some rows of the kernel, and the windows that belong to them."""

    kernel_rows: slice
    windows: slice


class Layout(NamedTuple):
    """How the columns of a convolution lie in memory.

    Attributes:
        channels: of the images.
        image: (height, width).
        windows: what is copied: the windows, or windows of a single row.
        counts: how many there are, (rows, columns).
        is_joined: True if all images of a batch are one stack.
        terms: the products that are added up.
    """

    channels: int
    image: tuple[int, int]
    windows: Windows
    counts: tuple[int, int]
    is_joined: bool
    terms: tuple[Term, ...]

    def batches(self, x: Array, start: int, stop: int) -> Iterator[slice]:
        """Batches of the images of x from start to stop, or of the images whose output is x.

        The columns of a batch stay in the cache. No images are one batch.
        """
        size = self.channels * math.prod(self.windows.size) * math.prod(self.counts)
        limit = COLUMNS_IN_CACHE if "cpu" in backend_of(x).capabilities else COLUMNS_ON_GPU
        step = max(1, limit // max(size, 1))
        for first in range(start, max(stop, start + 1), step):
            yield slice(first, min(first + step, stop))

    def unfold(self, x: Array, groups: int) -> list[Array]:
        """The columns of images for each term: (stacks, groups, channels / groups kh kw, p).

        p: the windows of a stack.
        """
        stacks = as_stacks(x, self.is_joined)
        if not self._is_identity():
            stacks = unfold_stacks(stacks, self.windows, self.counts)
        length = self.channels // groups * math.prod(self.windows.size)
        number = math.prod(self.counts) * (x.shape[0] if self.is_joined else 1)
        shape = (stacks.shape[0], groups, length, number)
        columns = namespace_of(x).reshape(stacks, shape)
        return [columns[..., term.windows] for term in self.terms]

    def fold(self, products: list[Array]) -> Array:
        """The columns of each term, added up to images: the transpose of ``unfold``."""
        total = products[0]
        xp = namespace_of(total)
        if len(self.terms) > 1:
            shape = (*total.shape[:3], math.prod(self.counts))
            total = xp.zeros(shape, dtype=total.dtype, device=total.device)
            for term, product in zip(self.terms, products, strict=True):
                total = put_sum(total, (..., term.windows), product)
        number = total.shape[3] // math.prod(self.counts)
        columns = (total.shape[0], self.channels, *self.windows.size, number, *self.counts)
        stacks = fold_stacks(xp.reshape(total, columns), self.windows, self.image)
        return from_stacks(stacks, self.is_joined)

    def _is_identity(self) -> bool:
        """True if the windows are the elements of the image."""
        is_single = self.windows.size == (1, 1) and self.windows.padding == (0, 0)
        return is_single and self.counts == self.image


def choose_layout(
    shape: tuple[int, ...], out: int, windows: Windows, counts: tuple[int, int]
) -> Layout:
    """The layout for images of a shape (n, channels, height, width), and a number of outputs.

    Raises:
        ValueError: a window leaves the padded image.
    """
    n, channels, image = shape[0], shape[1], (shape[2], shape[3])
    padded = windows.padded(image)
    windows.require_inside(padded, counts)
    is_joined = math.prod(counts) < FEW_WINDOWS
    (kh, kw), (step, across), border, (spread, apart) = windows
    # for each row of the kernel: these numbers are not copied, and those are written in addition
    number, length = n * math.prod(counts), channels * kw
    is_cheaper = kh > 1 and number * length >= out * (number + 2 * length)
    if step != 1 or is_joined or not is_cheaper:
        terms = [Term(slice(None), slice(None))]
        return Layout(channels, image, windows, counts, is_joined, tuple(terms))
    rows, columns = counts
    starts = [i * spread for i in range(kh)]
    terms = [
        Term(slice(i, i + 1), slice(start * columns, (start + rows) * columns))
        for i, start in enumerate(starts)
    ]
    single = Windows((1, kw), (1, across), border, (1, apart))
    return Layout(channels, image, single, (padded[0], columns), False, tuple(terms))


def kernels_as_matrices(w: Array, groups: int) -> Array:
    """(out, channels / groups, kh, kw) -> (groups, out / groups, channels / groups kh kw)"""
    shape = (groups, w.shape[0] // groups, math.prod(w.shape[1:]))
    return namespace_of(w).reshape(w, shape)


def images_as_matrices(y: Array, groups: int, is_joined: bool) -> Array:
    """(n, out, oh, ow) -> (stacks, groups, out / groups, p), p: the windows of a stack."""
    stacks = as_stacks(y, is_joined)
    number = math.prod(stacks.shape[2:])
    return namespace_of(y).reshape(stacks, (stacks.shape[0], groups, y.shape[1] // groups, number))


def matrices_as_images(y: Array, counts: tuple[int, int], is_joined: bool) -> Array:
    """The inverse of ``images_as_matrices``."""
    stacks, groups, out, number = y.shape
    shape = (stacks, groups * out, number // math.prod(counts), *counts)
    return from_stacks(namespace_of(y).reshape(y, shape), is_joined)


def turned_kernels(w: Array, groups: int) -> Array:
    """Kernels turned by half a turn, inputs and outputs exchanged.

    (out, channels / groups, kh, kw) -> (channels, out / groups, kh, kw)
    """
    xp = namespace_of(w)
    out, channels = w.shape[0] // groups, w.shape[1]
    parts = xp.reshape(w, (groups, out, channels, *w.shape[2:]))
    turned = xp.flip(xp.permute_dims(parts, (0, 2, 1, 3, 4)), axis=(3, 4))
    return xp.reshape(turned, (groups * channels, out, *w.shape[2:]))


def turned_windows(
    windows: Windows, counts: tuple[int, int], out: int, image: tuple[int, int], channels: int
) -> Windows | None:
    """The windows on gy, whose convolution with the turned kernels is gx.

    None if there are none: windows with a step, or a border wider than a window. None too where
    the windows of gx, ``counts``, are far fewer than those of gy, one for each element of gx.

    Args:
        windows: those of the convolution.
        counts: the rows and columns of gy.
        out: the channels of gy.
        image: the rows and columns of gx.
        channels: the channels of gx.
    """
    reaches = [d * (k - 1) for d, k in zip(windows.dilation, windows.size, strict=True)]
    rows, columns = (reach - p for reach, p in zip(reaches, windows.padding, strict=True))
    if windows.stride != (1, 1) or min(rows, columns) < 0:
        return None
    # to add up the windows of gx takes about twice the time of copying those of gy
    is_cheaper = out * math.prod(image) <= 2 * channels * math.prod(counts)
    turned = windows._replace(padding=(rows, columns))
    return turned if is_cheaper and turned.counts(counts) == image else None
