"""Arithmetic, elementwise and with broadcasting: what the operators of a Variable call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, is_integer, namespace_of
from tinynode.errors import OperandError, dtype_name
from tinynode.functions.broadcasting import BroadcastingNode, unbroadcast
from tinynode.functions.comparison import equal
from tinynode.functions.elementwise import log, sign
from tinynode.functions.operands import as_operand, as_operand_list
from tinynode.functions.selection import where
from tinynode.functions.zero_safe import zero_safe_multiply
from tinynode.type_check import expect

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


class Add(BroadcastingNode):
    """z = x + y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = sum_to(g, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        gx = gz if 0 in target_input_indexes else None
        gy = gz if 1 in target_input_indexes else None
        return self.unbroadcast(gx, gy)


def add(x: Any, y: Any) -> Variable:
    """x + y, elementwise."""
    return Add().apply((x, y))[0]


class AddAll(FunctionNode):
    """z = x_0 + x_1 + ... for any number of inputs of one shape and dtype.

    x_i: (s) -> z: (s).   dL/dx_i = dL/dz
    """

    type_hint = "bring the inputs to one shape with broadcast_to, or use +."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 1)
        for other in in_types[1:]:
            expect(other.shape == in_types[0].shape, other.dtype == in_types[0].dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        if len(inputs) == 1:
            return inputs
        xp = namespace_of(inputs[0])
        total = xp.add(inputs[0], inputs[1])
        for x in inputs[2:]:
            total = xp.add(total, x)
        return (total,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return grad_outputs * len(target_input_indexes)


def add_all(*xs: Any) -> Variable:
    """The sum of any number of Variables of one shape and dtype, as one function.

    Raises:
        InvalidType: shapes or dtypes differ.
    """
    return AddAll().apply(as_operand_list("add_all", "xs", xs))[0]


class Subtract(BroadcastingNode):
    """z = x - y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = -sum_to(g, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (x - y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        gx = gz if 0 in target_input_indexes else None
        gy = gz if 1 in target_input_indexes else None
        gx, gy = self.unbroadcast(gx, gy)
        return gx, None if gy is None else -gy


def subtract(x: Any, y: Any) -> Variable:
    """x - y, elementwise."""
    return Subtract().apply((x, y))[0]


class Multiply(BroadcastingNode):
    """z = x * y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g * y, s)   dL/dy = sum_to(g * x, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x * y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz * y if 0 in target_input_indexes else None
        gy = gz * x if 1 in target_input_indexes else None
        return self.unbroadcast(gx, gy)


def multiply(x: Any, y: Any) -> Variable:
    """x * y, elementwise."""
    return Multiply().apply((x, y))[0]


class Divide(BroadcastingNode):
    """z = x / y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g / y, s)   dL/dy = -sum_to(g * z / y, t)
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return (x / y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        (y,) = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        assert gz is not None
        gx = zero_safe_multiply(gz, 1.0 / y)
        gy = None
        if 1 in target_input_indexes:
            gy = unbroadcast(-zero_safe_multiply(gx, z), self, 1)
        return unbroadcast(gx, self, 0) if 0 in target_input_indexes else None, gy


def divide(x: Any, y: Any) -> Variable:
    """x / y, elementwise."""
    return Divide().apply((x, y))[0]


class FloorDivide(BroadcastingNode):
    """z = floor(x / y).   Piecewise constant, so it has no gradient.

    x: (s), y: (t) -> z: (broadcast of s and t).
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).floor_divide(x, y),)


def floor_divide(x: Any, y: Any) -> Variable:
    """The largest integer not above x / y, elementwise; it has no gradient."""
    return FloorDivide().apply((x, y))[0]


class Negative(FunctionNode):
    """y = -x.   x: (s) -> y: (s).   dL/dx = -dL/dy"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (-x,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        assert gy is not None
        return (-gy,)


def negative(x: Any) -> Variable:
    """-x, elementwise."""
    return Negative().apply((as_operand("negative", "x", x),))[0]


class Positive(FunctionNode):
    """y = +x: the same values in a new array.   x: (s) -> y: (s).   dL/dx = dL/dy"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).positive(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return grad_outputs


def positive(x: Any) -> Variable:
    """+x, elementwise."""
    return Positive().apply((as_operand("positive", "x", x),))[0]


class Abs(FunctionNode):
    """y = |x|.   x: (s) -> y: (s).   dL/dx = dL/dy * sign(x), so 0 at the kink"""

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).abs(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        assert gy is not None
        return (gy * sign(x),)


def abs(x: Any) -> Variable:
    """|x|, elementwise."""
    return Abs().apply((as_operand("abs", "x", x),))[0]


class Pow(BroadcastingNode):
    """z = x^y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g * y * x^(y-1), s)   dL/dy = sum_to(g * z * ln x, t), where
    ln x counts as 0 at x = 0
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        return (namespace_of(x).pow(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        assert gz is not None
        gx = gy = None
        at_zero = equal(x, 0)
        if 0 in target_input_indexes:
            # x^0 is 1 at x = 0 too: its derivative there is 0, not 0 * 0^-1
            exponent = where(at_zero, where(equal(y, 0), 1, y - 1), y - 1)
            gx = unbroadcast(zero_safe_multiply(gz, y * pow(x, exponent)), self, 0)
        if 1 in target_input_indexes:
            log_x = log(where(at_zero, 1, x))
            gy = unbroadcast(zero_safe_multiply(gz, z * log_x), self, 1)
        return gx, gy


class PowConstant(FunctionNode):
    """y = x^c for a number c.

    x: (s) -> y: (s).   dL/dx = dL/dy * c * x^(c-1)
    """

    def __init__(self, exponent: float) -> None:
        self.exponent = exponent

    @property
    def label(self) -> str:
        return f"PowConstant({self.exponent:g})"

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (x**self.exponent,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        c = self.exponent
        assert gy is not None
        if c == 0:
            return (gy * 0.0,)  # x^-1 would be infinite at 0
        if c == 1:
            return (gy,)
        derivative = x * c if c == 2 else pow(x, c - 1) * c
        return (gy * derivative if c > 1 else zero_safe_multiply(gy, derivative),)


def pow(x: Any, y: Any) -> Variable:
    """x^y, elementwise. A Python number as exponent is cheaper than an array of that number.

    Raises:
        OperandError: x is an integer Variable and y a negative number.
    """
    if isinstance(x, Variable) and isinstance(y, int | float | numpy.integer | numpy.floating):
        exponent = y.item() if isinstance(y, numpy.generic) else y
        if exponent < 0 and is_integer(x.raw):
            raise OperandError(
                f"pow: x is {dtype_name(x.dtype)}, and has no power {exponent} among the "
                "integers. Cast it first with astype."
            )
        return PowConstant(exponent).apply((x,))[0]
    return Pow().apply((x, y))[0]
