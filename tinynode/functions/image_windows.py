"""Windows on images, for convolution and pooling: sizes, steps, and the places of elements.

Requirement: no function reads outside of an image. The numbers of a window may come from the text
of a saved net, so ``Windows.places`` compares the windows with the image first.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from tinynode.errors import OperandError, short_text
from tinynode.functions.attributes import MOST_INT64, Positive, Whole
from tinynode.functions.checked import checked
from tinynode.functions.operands import checked_range

IntPair = int | tuple[int, int]


class Windows(NamedTuple):
    """How windows lie on an image: each entry is for rows and columns."""

    size: tuple[Positive, Positive]
    stride: tuple[Positive, Positive]
    padding: tuple[Whole, Whole]
    dilation: tuple[Positive, Positive]

    @property
    def are_apart(self) -> bool:
        """True if no element lies in two windows; False for all windows with dilation."""
        # pragma: no mutate (ReplaceComparisonOperator_GtE_Gt): sums serve all windows
        steps = zip(self.stride, self.size, strict=True)
        return self.dilation == (1, 1) and all(stride >= size for stride, size in steps)

    def counts(self, image: tuple[int, int]) -> tuple[int, int]:
        """How many windows fit on an image of (height, width)."""
        counts = []
        for n, k, s, p, d in zip(image, *self, strict=True):
            counts.append((n + 2 * p - d * (k - 1) - 1) // s + 1)
        return counts[0], counts[1]

    def padded(self, image: tuple[int, int]) -> tuple[int, int]:
        """The size of the image with padding."""
        # pragma: no mutate (NextNumber 2): no window reaches the rows added at the end
        # pragma: no mutate (NextNumber 2): no window reaches the columns added at the end
        return image[0] + 2 * self.padding[0], image[1] + 2 * self.padding[1]

    def require_inside(self, padded: tuple[int, int], counts: tuple[int, int]) -> None:
        """Raises ValueError if a window leaves the padded image, or a number is out of range."""
        for axis in range(2):
            size, stride, dilation = self.size[axis], self.stride[axis], self.dilation[axis]
            is_positive = min(counts[axis], size, stride, dilation) >= 1
            last = (counts[axis] - 1) * stride + (size - 1) * dilation
            if not is_positive or last >= padded[axis]:
                raise ValueError(
                    f"{self} cannot lie {counts} times on an image of {padded}, the padding "
                    "included. Windows.counts(image) gives how often they fit."
                )

    def require_size(self, given: tuple[int, ...]) -> None:
        """Raises ValueError unless kernels or columns have the size of a window."""
        if tuple(given) != tuple(self.size):
            raise ValueError(
                f"{self} does not go with kernels or columns of {tuple(given)}. Give windows of "
                "the size of the kernels."
            )

    def places(
        self, padded: tuple[int, int], counts: tuple[int, int]
    ) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        """For each place (i, j) in a window: the index into the padded image, for all windows.

        Raises:
            ValueError: a window leaves the padded image.
        """
        self.require_inside(padded, counts)
        return self._places(counts)

    def _places(self, counts: tuple[int, int]) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                rows = self._line(0, i, counts[0])
                columns = self._line(1, j, counts[1])
                yield i, j, (..., rows, columns)

    def _line(self, axis: int, place: int, count: int) -> slice:
        start = place * self.dilation[axis]
        stride = self.stride[axis]
        return slice(start, start + stride * (count - 1) + 1, stride)


def pair(function: str, argument: str, value: Any, least: int) -> tuple[int, int]:
    """An integer for both axes, or two integers.

    Raises:
        ValueError: the value is neither, or below ``least``.
    """
    given = tuple(value) if isinstance(value, tuple | list) else (value, value)
    try:
        numbers = [operator.index(n) for n in given]
    except TypeError:
        numbers = []
    if len(numbers) != 2 or min(numbers) < least:
        raise ValueError(
            f"{function}: {argument} must be an integer or two, not below {least}, got "
            f"{short_text(value)}."
        )
    first, second = (checked_range(function, argument, n) for n in numbers)
    return first, second


def integer(function: str, argument: str, value: Any, least: int) -> int:
    """An integer.

    Raises:
        ValueError: the value is no integer, or below ``least``.
    """
    if not hasattr(value, "__index__") or operator.index(value) < least:
        raise ValueError(
            f"{function}: {argument} must be an integer, not below {least}, got "
            f"{short_text(value)}."
        )
    return checked_range(function, argument, operator.index(value))


def windows_of(function: str, size: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    """Windows with numbers in range.

    Raises:
        ValueError: an argument is no integer or two integers, or is out of range.
    """
    return Windows(
        pair(function, "kernel_size", size, 1),
        pair(function, "stride", stride, 1),
        pair(function, "padding", padding, 0),
        pair(function, "dilation", dilation, 1),
    )


def make_windows(
    function: str, size: Any, stride: Any, padding: Any, dilation: Any, shape: tuple[int, ...]
) -> Windows:
    """Windows on images of a shape (n, channels, height, width).

    Raises:
        ValueError: an argument is out of range, or no window fits.
        OperandError: the images do not have four axes.
    """
    if len(shape) != 4:
        raise OperandError(
            f"{function}: x must have the axes (n, channels, height, width), got shape {shape}. "
            "Add axes with x[None] or reshape."
        )
    windows = windows_of(function, size, stride, padding, dilation)
    counts = windows.counts((shape[2], shape[3]))
    if counts[0] < 1 or counts[1] < 1:
        raise ValueError(
            f"{function}: windows of kernel_size {windows.size} with dilation {windows.dilation} "
            f"do not fit on images of {shape[2:]} with padding {windows.padding}."
        )
    _recent.windows = windows
    return windows


class _Recent:
    """The windows made last by ``make_windows``: a constructor need not check them again."""

    windows: Windows | None = None


_recent = _Recent()


def checked_windows(node: Any, windows: Any) -> Windows:
    """The windows of a constructor, with integers in range."""
    if windows is _recent.windows and windows is not None:
        return windows
    if type(windows) is Windows and all(map(_is_pair, windows, (1, 1, 0, 1))):
        return windows
    found: Windows = checked(node, "windows", windows)
    return found


def checked_pair(node: Any, name: str, given: Any, least: int) -> tuple[int, int]:
    """Two integers of a constructor, such as the height and width of an image."""
    found: tuple[int, int] = given if _is_pair(given, least) else checked(node, name, given)
    return found


def _is_pair(given: Any, least: int) -> bool:
    """True for two integers, not below ``least`` and of at most 64 bits."""
    if type(given) is not tuple or len(given) != 2:
        return False
    first, second = given
    if type(first) is not int or type(second) is not int:
        return False
    return least <= first <= MOST_INT64 and least <= second <= MOST_INT64
