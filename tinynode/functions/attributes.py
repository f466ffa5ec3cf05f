"""The kinds of attributes: what a constructor of a function declares beyond ``int`` and ``str``.

Requirement: the text of a net may come from a stranger. So the constructor's annotations are the
whole claim about an attribute: the type, the range, the closed set of texts. ``net/schema.py``
compares the values of a text with the annotations. To a type checker, an ``Axis`` is an ``int``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple


class Within(NamedTuple):
    """A number from ``least`` to ``most``, both included."""

    least: float
    most: float

    def takes(self, value: Any) -> bool:
        """True for a number inside; NaN is not."""
        return bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        return f"from {self.least} to {self.most}"


class Distinct(NamedTuple):
    """A tuple without an item twice."""

    def takes(self, value: Any) -> bool:
        """True if all items differ."""
        return len(set(value)) == len(value)

    def __str__(self) -> str:
        return "without an item twice"


class AtMostElements(NamedTuple):
    """A shape of at most so many elements: a view of a single number may claim any shape."""

    most: int

    def takes(self, value: Any) -> bool:
        """True for a shape that a program can walk through."""
        size = 1
        for length in value:
            size *= max(length, 1)
        return size <= self.most

    def __str__(self) -> str:
        return f"with a product of at most {self.most}"


class Letters(NamedTuple):
    """A text of letters alone, none of them twice."""

    def takes(self, value: Any) -> bool:
        """True for the labels of the axes of an operand, in ``einsum``."""
        is_plain = value.isascii() and (value.isalpha() or not value)
        return is_plain and len(set(value)) == len(value)

    def __str__(self) -> str:
        return "of different letters"


class NamedKind(NamedTuple):
    """A value that no type says: "dtype", "array", "generator" or "index"; see ``net/schema``."""

    name: str

    def __str__(self) -> str:
        return self.name


MOST_AXES = 64
"""The largest number of axes of an array of NumPy."""
MOST_ELEMENTS = 1 << 32
"""The largest number of elements of a shape among attributes."""
INT64 = Within(-(2**63), 2**63 - 1)

Axis = Annotated[int, Within(0, MOST_AXES - 1)]
AxisFromEnd = Annotated[int, Within(-MOST_AXES, -1)]
Axes = Annotated[tuple[Axis, ...], Distinct()]
Length = Annotated[int, Within(0, MOST_ELEMENTS)]
Lengths = tuple[Length, Length]
"""The height and width of an image, or how many windows lie there."""
Count = Annotated[int, Within(1, MOST_ELEMENTS)]
Counts = tuple[Count, Count]
Shape = Annotated[tuple[Length, ...], AtMostElements(MOST_ELEMENTS)]
Labels = Annotated[str, Letters()]
Fraction = Annotated[float, Within(0.0, 1.0)]
Order = Annotated[int, Within(0, 100)]
"""The order of a derivative: the factorials of larger orders are beyond float64."""
Reduction = Literal["mean", "sum", "none"]
Norm = Literal["backward", "ortho", "forward"]
Dtype = Annotated[Any, NamedKind("dtype")]
AnyArray = Annotated[Any, NamedKind("array")]
AnyGenerator = Annotated[Any, NamedKind("generator")]
AnyIndex = Annotated[tuple[Any, ...], NamedKind("index")]
