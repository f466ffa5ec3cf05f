"""The kinds of attributes: what a constructor of a function declares beyond ``int`` and ``str``.

Requirement: the text of a net may come from a stranger. So the constructor's annotations are the
whole claim about an attribute: the type, the range, the closed set of texts. ``checked.py``
compares the arguments of constructors with them, and ``net/schema.py`` those of operators. To a
type checker, an ``Axis`` is an ``int``.

The bounds are dataclasses: those of two classes are never equal. ``typing`` keeps annotations that
are equal, and would give one for the other, also where a program imports tinynode anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple


@dataclass(frozen=True)
class Within:
    """A number from ``least`` to ``most``, both included."""

    least: float
    most: float

    def takes(self, value: Any) -> bool:
        """True for a number inside; NaN is not."""
        return bool(self.least <= value <= self.most)

    def __str__(self) -> str:
        if self.most == MOST_INT64:
            return f"not below {self.least}"
        return f"from {self.least} to {self.most}"


@dataclass(frozen=True)
class Distinct:
    """A tuple without an item twice."""

    def takes(self, value: Any) -> bool:
        """True if all items differ."""
        return len(set(value)) == len(value)

    def __str__(self) -> str:
        return "without an item twice"


@dataclass(frozen=True)
class AtMostElements:
    """A length or a shape of at most so many elements, in the text of a net alone.

    There, a view of a single number may claim any shape.
    """

    most: int

    def takes(self, value: Any) -> bool:
        """True for a length or a shape that a program can walk through."""
        size = 1
        for length in value if isinstance(value, tuple) else (value,):
            size *= max(length, 1)
        return size <= self.most

    def __str__(self) -> str:
        return f"with at most {self.most} elements"


@dataclass(frozen=True)
class AtMostAxes:
    """A shape of at most so many axes."""

    most: int

    def takes(self, value: Any) -> bool:
        """True for the shape of an array."""
        return len(value) <= self.most

    def __str__(self) -> str:
        return f"of at most {self.most} axes"


@dataclass(frozen=True)
class Letters:
    """A text of letters alone, none of them twice."""

    def takes(self, value: Any) -> bool:
        """True for the labels of the axes of an operand, in ``einsum``."""
        is_plain = value.isascii() and (value.isalpha() or not value)
        return is_plain and len(set(value)) == len(value)

    def __str__(self) -> str:
        return "of different letters"


@dataclass(frozen=True)
class NamedKind:
    """A value that no type says, such as an array; ``attribute_types`` tests each name."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.text


MOST_AXES = 64
"""The largest number of axes of an array of NumPy."""
MOST_ELEMENTS = 1 << 32
"""The largest number of elements of a shape in the text of a net."""
MOST_INT64 = 2**63 - 1
INT64 = Within(-(2**63), MOST_INT64)
HIGHEST_ORDER = 1000
"""The order of a derivative, at most: the time grows with the order."""

Axis = Annotated[int, Within(0, MOST_AXES - 1)]
AxisFromEnd = Annotated[int, Within(-MOST_AXES, -1)]
Axes = Annotated[tuple[Axis, ...], Distinct()]
Whole = Annotated[int, Within(0, MOST_INT64)]
Length = Annotated[Whole, AtMostElements(MOST_ELEMENTS)]
Lengths = tuple[Length, Length]
"""The height and width of an image, or how many windows lie there."""
Positive = Annotated[int, Within(1, MOST_INT64)]
Count = Annotated[Positive, AtMostElements(MOST_ELEMENTS)]
Counts = tuple[Count, Count]
Shift = Annotated[int, INT64]
Shape = Annotated[tuple[Length, ...], AtMostAxes(MOST_AXES), AtMostElements(MOST_ELEMENTS)]
Labels = Annotated[str, Letters()]
Fraction = Annotated[float, Within(0.0, 1.0)]
Order = Annotated[int, Within(0, HIGHEST_ORDER)]
Reduction = Literal["mean", "sum", "none"]
Norm = Literal["backward", "ortho", "forward"]
Dtype = Annotated[Any, NamedKind("dtype", "a dtype of numbers")]
AnyArray = Annotated[Any, NamedKind("array", "an array")]
AnyGenerator = Annotated[Any, NamedKind("generator", "a numpy.random.Generator")]
AnyIndex = Annotated[
    tuple[Any, ...], NamedKind("index", "a tuple of integers, Slice, None, Ellipsis and Place")
]


class Slice(NamedTuple):
    """A slice as a hashable constant."""

    start: int | None
    stop: int | None
    step: int | None

    def __repr__(self) -> str:
        return ":".join("" if n is None else str(n) for n in self)


class Place(NamedTuple):
    """Stands in an index for an array, an input of the function; the array covers some axes."""

    axes: int

    def __repr__(self) -> str:
        return "array"
