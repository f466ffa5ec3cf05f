"""Draft: the actions of a net while rules append to them.

Requirement: the rules know what they append to, and not who asks for the rules. So a draft has
the calls, views and values, and ``lowering`` has the order of the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy

from tinynode.net.operator import ArraySpec
from tinynode_fast.actions import Action, FunctionCall, Names, View
from tinynode_fast.images import FLOATS
from tinynode_fast.native.formulas import (
    ElementFormula,
    Reduction,
    exact_axes,
    formula,
    kept_shape,
)


class Draft:
    """The actions of a net, and the values between them.

    Attributes:
        forms: the shape and dtype of each value; values between the actions are added.
        is_native: True for a plan in C.
        columns: the matrices that may lie in memory column by column.
        constants: the constant arrays, by name.
        orders: the axes from the largest step in memory to the smallest, where C order is unusual.
        known: the values of operations, which several operators may need.
        over: for each result of an update in the memory of an input, the input.
        title: the name of the operator, for the functions of its formulas.
    """

    def __init__(self, forms: dict[str, ArraySpec], is_native: bool, columns: set[str]) -> None:
        self.forms = forms
        self.is_native = is_native
        self.columns = columns
        self.constants: dict[str, Any] = {}
        self.orders: dict[str, tuple[int, ...]] = {}
        self.known: dict[tuple[Any, Names], str] = {}
        self.over: dict[str, str] = {}
        self.title = ""
        self.actions: list[Action] = []

    def call(self, function: Any, reads: Names, writes: Names) -> None:
        """Append a call."""
        self.actions.append(FunctionCall(function, reads, writes))

    def view(self, function: Callable[[Any], Any], read: str, write: str) -> str:
        """Append a view, and return its name."""
        self.actions.append(View(function, (read,), (write,)))
        return write

    def reshaped(self, read: str, shape: Sequence[int], write: str = "") -> str:
        """The name of a value in another shape."""
        write = write or self.fresh(tuple(shape), read)
        return self.view(methodcaller("reshape", tuple(shape)), read, write)

    def computed(self, text: str, write: str = "", **operands: str) -> str:
        """The name of the value of a formula; without ``write``, a value may be known already.

        A constant of the operator comes into the text by ``formula`` alone.
        """
        made = ElementFormula(self.title, tuple(operands), formula(text))
        reads = tuple(operands.values())
        shape = numpy.broadcast_shapes(*map(self.shape, reads))
        return self._known(made, made[1:], reads, shape, write)

    def reduced(self, name: str, axes: tuple[int, ...], read: str, write: str = "") -> str:
        """The name of a reduction over axes, which stay with length 1.

        Raises:
            TypeError: an axis is no integer.
            IndexError: an axis is outside the shape.
        """
        made = Reduction(name, exact_axes(self.shape(read), axes))
        shape = kept_shape(self.shape(read), made.axes)
        return self._known(made, made, (read,), shape, write)

    def _known(self, made: Any, key: Any, reads: Names, shape: tuple[int, ...], write: str) -> str:
        if not write and (key, reads) in self.known:
            return self.known[key, reads]
        write = write or self.fresh(shape, reads[0])
        self.known.setdefault((key, reads), write)
        self.call(made, reads, (write,))
        return write

    # --- values ----------------------------------------------------------------------------------

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value."""
        return self.forms[name][0]

    def fresh(self, shape: tuple[int, ...], like: str, dtype: str = "") -> str:
        """The name of a new value, with the dtype of another value, or a given one."""
        name = f"@{len(self.forms)}"
        self.forms[name] = shape, numpy.dtype(dtype) if dtype else self.forms[like][1]
        return name

    def one_dtype(self, *names: str) -> bool:
        """True if all values but bool are float32, or all are float64."""
        dtypes = {self.forms[name][1] for name in names if name in self.forms}
        dtypes.discard(numpy.dtype(bool))
        return len(dtypes) == 1 and dtypes <= FLOATS
