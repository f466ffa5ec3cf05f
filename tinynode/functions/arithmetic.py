"""Arithmetic and rounding, elementwise and with broadcasting.

Requirement: inputs broadcast as in NumPy. Each gradient has the shape and dtype of the input.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, all_true, is_integer, namespace_of
from tinynode.errors import snake_case
from tinynode.functions import guards
from tinynode.functions.data_types import promoted
from tinynode.functions.masking import keep_zeros
from tinynode.functions.operands import as_operand, as_operand_list, as_operands, real_operands
from tinynode.functions.searching import where
from tinynode.functions.shapes import unbroadcast
from tinynode.type_check import TypeInfoTuple, broadcasts, expect

__all__ = [
    "Abs",
    "Add",
    "AddAll",
    "Ceil",
    "CopySign",
    "Divide",
    "FMod",
    "Floor",
    "FloorDivide",
    "Multiply",
    "Negative",
    "Positive",
    "Remainder",
    "Round",
    "Sign",
    "Subtract",
    "Trunc",
    "ZeroSafeDivide",
    "ZeroSafeMultiply",
    "abs",
    "add",
    "add_all",
    "ceil",
    "copysign",
    "divide",
    "floor",
    "floor_divide",
    "fmod",
    "multiply",
    "negative",
    "positive",
    "remainder",
    "round",
    "sign",
    "subtract",
    "trunc",
    "zero_safe_divide",
    "zero_safe_multiply",
]
__dir__ = __all__.copy  # for completion


class BroadcastingNode(FunctionNode):
    """Base of elementwise functions of two inputs; the shapes must broadcast."""

    is_elementwise = True
    is_broadcasting = True
    input_names = ("x", "y")
    type_hint = "reshape or index (x[:, None]) so that the axes line up from the right."

    def __init_subclass__(cls) -> None:
        """A subclass with a check of its own is always checked, for equal shapes too."""
        super().__init_subclass__()
        if "check_type_forward" in vars(cls):
            cls.is_broadcasting = False

    def as_variables(self, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        """The inputs as Variables: a number or an array takes the other's device and dtype."""
        x, y = inputs
        x, y = as_operands(snake_case(type(self).__name__), x, y, self.input_names)
        if x._device is y._device and x.raw is not None and y.raw is not None:
            return x, y
        return super().as_variables((x, y))

    def unbroadcast(
        self, gx: Variable | None, gy: Variable | None
    ) -> tuple[Variable | None, Variable | None]:
        """Gradients brought back to the inputs: summed over broadcast axes, cast to the dtypes."""
        x, y = self.inputs or ()
        if x.shape == y.shape and x.dtype is y.dtype:
            return gx, gy
        gx = None if gx is None else unbroadcast(gx, self, 0)
        gy = None if gy is None else unbroadcast(gy, self, 1)
        return gx, gy

    def check_types(self, arrays: Arrays) -> None:
        """Equal shapes broadcast; a number, of shape (), broadcasts with every shape."""
        if not self.is_broadcasting or len({x.shape for x in arrays if x.shape}) > 1:
            super().check_types(arrays)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, y = in_types
        expect(broadcasts(x, y))


class Add(BroadcastingNode):
    """z = x + y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = sum_to(g, t)
    """

    guard = guards.SUM
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        gx = gz if 0 in target_input_indexes else None
        gy = gz if 1 in target_input_indexes else None
        return self.unbroadcast(gx, gy)


def add(x: Any, y: Any) -> Variable:
    """x + y, elementwise."""
    return Add().apply((x, y))[0]


class AddAll(FunctionNode):
    """z = x_0 + x_1 + ... for any number of inputs of the same shape and dtype.

    x_i: (s) -> z: (s).   dL/dx_i = dL/dz
    """

    input_counts = (1, ...)
    is_elementwise = True
    complex_rule = "conjugate"
    is_polynomial = True
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

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return grad_outputs * len(target_input_indexes)


def add_all(*xs: Any) -> Variable:
    """The sum of any number of Variables of the same shape, as one function.

    Raises:
        InvalidType: shapes differ, or floats stand beside integers.
    """
    operands = as_operand_list("add_all", "xs", xs)
    return AddAll().apply(promoted(*operands) if operands else ())[0]


class Subtract(BroadcastingNode):
    """z = x - y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = -sum_to(g, t)
    """

    guard = guards.SUM
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (x - y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
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

    guard = guards.PRODUCT
    complex_rule = "conjugate"
    is_polynomial = True
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x * y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz * y if 0 in target_input_indexes else None
        gy = gz * x if 1 in target_input_indexes else None
        return self.unbroadcast(gx, gy)


def multiply(x: Any, y: Any) -> Variable:
    """x * y, elementwise."""
    return Multiply().apply((x, y))[0]


def masked(g: Array, mask: Array) -> Array:
    """g where the mask holds, else 0, also where g is infinite or NaN. For arrays.

    A product with 0 and 1 is several times quicker than a choice, where g is finite.
    """
    xp = namespace_of(g)
    if all_true(xp.isfinite(g)):
        return g * xp.astype(mask, g.dtype)
    return xp.where(mask, g, xp.zeros_like(g))


class ZeroSafeMultiply(BroadcastingNode):
    """z = g * d, but 0 where g = 0 and d is infinite or NaN: rule 1 of ``masking.py``.

    g: (s), d: (t) -> z: (broadcast of s and t).
    With h = dL/dz:   dL/dg = sum_to(h * d, s)   dL/dd = sum_to(h * g, t), and 0 where replaced
    """

    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        g, d = inputs
        xp = namespace_of(g)
        self.retain_inputs((0, 1))
        finite = xp.isfinite(d)
        if not all_true(finite):
            d = xp.where(finite | (g != 0), d, xp.zeros_like(d))
        return (xp.multiply(g, d),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        g, d = self.get_retained_inputs()
        gg = gd = None
        if 0 in target_input_indexes:
            gg = unbroadcast(keep_zeros(zero_safe_multiply(h, d), g, d), self, 0)
        if 1 in target_input_indexes:
            gd = unbroadcast(keep_zeros(h * g, g, d), self, 1)
        return gg, gd


def zero_safe_multiply(g: Variable, d: Variable) -> Variable:
    """g * d, but 0 where g = 0 and d is infinite or NaN."""
    return ZeroSafeMultiply().apply((g, d))[0]


class ZeroSafeDivide(BroadcastingNode):
    """z = g / d, but 0 where g = 0 and d is 0 or NaN: rule 1 of ``masking.py``.

    g: (s), d: (t) -> z: (broadcast of s and t).
    With h = dL/dz:   dL/dg = sum_to(h / d, s)   dL/dd = -sum_to(h * (z / d), t), and 0 where
    replaced
    """

    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        g, d = inputs
        xp = namespace_of(g)
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        usual = xp.abs(d) > 0
        if not all_true(usual):
            d = xp.where(usual | (g != 0), d, xp.ones_like(d))
        return (xp.divide(g, d),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        g, d = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        slope = 1.0 / d  # infinite or NaN where a zero may be replaced
        gg = gd = None
        if 0 in target_input_indexes:
            gg = unbroadcast(keep_zeros(zero_safe_divide(h, d), g, slope), self, 0)
        if 1 in target_input_indexes:
            gd = -zero_safe_multiply(h, zero_safe_divide(z, d))
            gd = unbroadcast(keep_zeros(gd, g, slope), self, 1)
        return gg, gd


def zero_safe_divide(g: Variable, d: Variable) -> Variable:
    """g / d, but 0 where g = 0 and d is 0 or NaN."""
    return ZeroSafeDivide().apply((g, d))[0]


class Divide(BroadcastingNode):
    """z = x / y, elementwise, with broadcasting.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g / y, s)   dL/dy = -sum_to(g * (z / y), t)
    """

    guard = guards.DIVISION
    complex_rule = "conjugate"

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return (x / y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        (y,) = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        gx = gy = None
        if 0 in target_input_indexes:  # g * (1 / y) overflows where g / y does not
            gx = unbroadcast(zero_safe_divide(gz, y), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(-zero_safe_multiply(gz, z / y), self, 1)
        return gx, gy


def divide(x: Any, y: Any) -> Variable:
    """x / y, elementwise."""
    return Divide().apply((x, y))[0]


class FloorDivide(BroadcastingNode):
    """z = floor(x / y).   Piecewise constant: no gradient.

    x: (s), y: (t) -> z: (broadcast of s and t).
    """

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        return (namespace_of(x).floor_divide(x, y),)


def floor_divide(x: Any, y: Any) -> Variable:
    """The largest integer not above x / y, elementwise; no gradient."""
    return FloorDivide().apply((x, y))[0]


class Remainder(BroadcastingNode):
    """z = x - floor(x / y) * y, with the sign of y.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = -sum_to(g * floor(x / y), t)
    """

    infinite_slope = True
    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (namespace_of(x).remainder(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = unbroadcast(gz, self, 0) if 0 in target_input_indexes else None
        gy = None
        if 1 in target_input_indexes:
            # -1 for a negative x and an infinite y, where x % y is infinite
            gy = unbroadcast(-gz * floor_divide(x, y), self, 1)
        return gx, gy


def remainder(x1: Any, x2: Any) -> Variable:
    """The remainder of x1 / x2 with the sign of x2, elementwise, as Python's ``%``."""
    return Remainder().apply(real_operands("remainder", x1, x2))[0]


class FMod(BroadcastingNode):
    """z = x - trunc(x / y) * y, with the sign of x.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g, s)   dL/dy = -sum_to(g * trunc(x / y), t)
    """

    infinite_slope = True
    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        self.retain_outputs((0,))
        if is_integer(x) and is_integer(y):  # the least integer has no absolute value
            rest = xp.remainder(x, y)
            has_other_sign = (rest != 0) & ((rest < 0) != (x < 0))
            return (rest - xp.where(has_other_sign, y, xp.zeros_like(y)),)
        size = xp.remainder(xp.abs(x), xp.abs(y))
        return (xp.where(x < 0, -size, size),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        gx = unbroadcast(gz, self, 0) if 0 in target_input_indexes else None
        gy = None
        if 1 in target_input_indexes:
            # x / y may round to the next integer; (x - z) / y is an integer before it rounds
            gy = unbroadcast(-gz * round((x - z) / y), self, 1)
        return gx, gy


def fmod(x1: Any, x2: Any) -> Variable:
    """The remainder of x1 / x2 with the sign of x1, elementwise, as C's ``fmod``."""
    return FMod().apply(real_operands("fmod", x1, x2))[0]


class Negative(FunctionNode):
    """y = -x.   x: (s) -> y: (s).   dL/dx = -dL/dy"""

    is_elementwise = True
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (-x,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (-gy,)


def negative(x: Any) -> Variable:
    """-x, elementwise."""
    return Negative().apply((as_operand("negative", "x", x),))[0]


class Positive(FunctionNode):
    """y = +x: the same values in a new array.   x: (s) -> y: (s).   dL/dx = dL/dy"""

    is_elementwise = True
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).positive(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return grad_outputs


def positive(x: Any) -> Variable:
    """+x, elementwise."""
    return Positive().apply((as_operand("positive", "x", x),))[0]


class Abs(FunctionNode):
    """y = |x|.   x: (s) -> y: (s), real.   dL/dx = dL/dy * sign(x), so 0 at the kink

    For complex x, sign(x) is x / |x|, and 0 at 0.
    """

    is_elementwise = True
    complex_rule = "own"
    finite_slope = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).abs(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        if self.is_complex:
            length = abs(x)
            return (gy * (x / where(length == 0, 1.0, length)),)
        return (gy * sign(x),)


def abs(x: Any) -> Variable:
    """|x|, elementwise.

    y = |x|.   x: (s) -> y: (s).   dL/dx = dL/dy * sign(x)

        >>> F.abs(tn.asarray([-1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    return Abs().apply((as_operand("abs", "x", x),))[0]


class Sign(FunctionNode):
    """y = sign(x): -1, 0 or 1 as x is below, at or above 0.   x: (s) -> y: (s). No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).sign(x),)


def sign(x: Any) -> Variable:
    """-1, 0 or 1, elementwise."""
    return Sign().apply((as_operand("sign", "x", x),))[0]


class CopySign(BroadcastingNode):
    """z = |x| with the sign of y.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(g * sign(x) * sign(z), s), 0 at x = 0; none for y
    """

    input_names = ("x1", "x2")

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0,))
        self.retain_outputs((0,))
        return (namespace_of(x).copysign(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        (x,) = self.get_retained_inputs()
        (z,) = self.get_retained_outputs()
        if 0 not in target_input_indexes:
            return None, None
        return unbroadcast(gz * (sign(x) * sign(z)), self, 0), None


def copysign(x1: Any, x2: Any) -> Variable:
    """|x1| with the sign of x2, elementwise."""
    return CopySign().apply(real_operands("copysign", x1, x2))[0]


class Floor(FunctionNode):
    """y = the largest integer not above x.   x: (s) -> y: (s). No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).floor(x),)


def floor(x: Any) -> Variable:
    """The largest integer not above x, elementwise."""
    return Floor().apply((as_operand("floor", "x", x),))[0]


class Ceil(FunctionNode):
    """y = the smallest integer not below x.   x: (s) -> y: (s). No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).ceil(x),)


def ceil(x: Any) -> Variable:
    """The smallest integer not below x, elementwise."""
    return Ceil().apply((as_operand("ceil", "x", x),))[0]


class Round(FunctionNode):
    """y = the integer nearest to x, the even integer at ties.   x: (s) -> y: (s). No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).round(x),)


def round(x: Any) -> Variable:
    """The nearest integer, elementwise; the even integer at ties."""
    return Round().apply((as_operand("round", "x", x),))[0]


class Trunc(FunctionNode):
    """y = x without the fraction.   x: (s) -> y: (s). No gradient."""

    is_elementwise = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).trunc(x),)


def trunc(x: Any) -> Variable:
    """x without the fraction, elementwise: rounded towards 0."""
    return Trunc().apply((as_operand("trunc", "x", x),))[0]
