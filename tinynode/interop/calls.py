"""What both libraries need: the call of a user's function, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.errors import OperandError, describe
from tinynode.functions.data_types import narrowed

Variables = tuple[Variable, ...]


class ForeignCall:
    """A FunctionNode class or a function of Variables, with constants; gives a tuple.

    Attributes:
        name: the name for messages.
        single: True if the last call gave a Variable, and no tuple.
    """

    def __init__(self, where: str, f: Callable[..., Any], constants: Mapping[str, Any]) -> None:
        if isinstance(f, FunctionNode):
            raise OperandError(
                f"{where}: f is an instance of {type(f).__name__}, and an instance is applied "
                f"only once. Give the class, and its constants by keyword: "
                f"{where}({type(f).__name__}, ...)"
            )
        if not callable(f):
            raise OperandError(
                f"{where}: f is {describe(f)}; expected a FunctionNode class, or a function of "
                f"Variables."
            )
        self.f, self.constants, self.where, self.single = f, dict(constants), where, True
        self.name = str(getattr(f, "__name__", type(f).__name__))

    def __call__(self, *xs: Variable) -> Variables:
        """The outputs of f, always in a tuple."""
        if isinstance(self.f, type) and issubclass(self.f, FunctionNode):
            given: Any = self.f(**self.constants).apply(xs)
            self.single = len(given) == 1
        else:
            given = self.f(*xs, **self.constants)
            self.single = not isinstance(given, tuple | list)
        ys = (given,) if self.single and not isinstance(given, tuple) else tuple(given)
        for i, y in enumerate(ys):
            if not isinstance(y, Variable):
                raise OperandError(
                    f"{self.where}: output {i} of {self.name} is {describe(y)}; expected a "
                    f"Variable. Return what functions of tinynode give, or tn.asarray(...)."
                )
        return ys


def gradients(
    ys: Sequence[Variable], xs: Sequence[Variable], gys: Sequence[Variable], record: bool
) -> Variables:
    """dL/dx for each x, from dL/dy for each y; zeros for an x that no y depends on."""
    pairs = [(y, gy) for y, gy in zip(ys, gys, strict=True) if y.requires_grad]
    found: Sequence[Variable | None] = [None] * len(xs)
    if pairs:
        kept, given = [y for y, _ in pairs], [narrowed(gy, y) for y, gy in pairs]
        found = grad(kept, xs, given, enable_double_backprop=record)
    return tuple(zeros_like(x) if gx is None else gx for x, gx in zip(xs, found, strict=True))


def zeros_like(x: Variable) -> Variable:
    """Zeros with the shape, the dtype and the device of x."""
    host = numpy.zeros(x.shape)
    return asarray(host, dtype=x.dtype, device=x.device, requires_grad=False)
