"""The same values in another place or form: identity, copy, astype, to_device."""

from __future__ import annotations

from typing import Any

from tinynode.core.array_arguments import raw_of
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    Arrays,
    Device,
    get_device,
    is_float16,
    kind_of,
    kind_of_dtype,
    namespace_of,
    seen_complex_dtypes,
    to_host,
)
from tinynode.errors import OperandError, dtype_name
from tinynode.functions import guards
from tinynode.functions.attributes import Dtype
from tinynode.functions.checked import checked_device, checked_dtype
from tinynode.functions.operands import as_operand, input_nodes, unchanged

__all__ = ["AsType", "Copy", "Identity", "ToDevice", "astype", "copy", "identity", "to_device"]
__dir__ = __all__.copy  # for completion


class Identity(FunctionNode):
    """y = x, the same array.

    x: (s) -> y: (s).   dL/dx = dL/dy
    """

    is_elementwise = True
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        return inputs

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return grad_outputs


def identity(x: Any) -> Variable:
    """y = x: a new Variable in the graph, on the same array."""
    return Identity().apply((as_operand("identity", "x", x),))[0]


class Copy(FunctionNode):
    """y = x, in new memory.

    x: (s) -> y: (s).   dL/dx = dL/dy
    """

    is_elementwise = True
    complex_rule = "conjugate"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).asarray(x, copy=True),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return grad_outputs


def copy(x: Any) -> Variable:
    """y = x, in new memory."""
    return Copy().apply((as_operand("copy", "x", x),))[0]


class AsType(FunctionNode):
    """y = x with the elements cast to another dtype.

    x: (s) -> y: (s).   dL/dx = dL/dy cast back; none where y is not floating. The gradients of
    real inputs are casts of complex gradients: their real parts.
    """

    is_elementwise = True
    guard = guards.NARROW
    complex_rule = "conjugate"
    is_polynomial = True

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = checked_dtype(self, dtype)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        if seen_complex_dtypes and kind_of(x) == COMPLEX > kind_of_dtype(xp, self.dtype):
            x = xp.real(x)
        return (xp.astype(x, self.dtype),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return AsType(input_nodes(self)[0].dtype).apply((gy,))


def astype(x: Any, dtype: Any) -> Variable:
    """x with the elements cast to ``dtype``: a dtype of the namespace, or a name.

    A cast to an integer dtype or to bool has no gradient.

    Raises:
        ValueError: the namespace has no dtype of the name.
        OperandError: x is complex, and the dtype real.
    """
    x = as_operand("astype", "x", x)
    found = getattr(x.xp, dtype, None) if isinstance(dtype, str) else dtype
    if found is None:
        raise ValueError(f"astype: there is no dtype {dtype!r} on {x.device}; try 'float32'.")
    is_complex = seen_complex_dtypes and kind_of(x.filled_array()) == COMPLEX
    if is_complex and BOOL < kind_of_dtype(x.xp, found) < COMPLEX:
        raise OperandError(
            f"astype: x is {dtype_name(x.dtype)}, and {dtype_name(found)} is real. Say which part "
            "to take: real(x) or imag(x)."
        )
    return AsType(found).apply((x,))[0]


def widened(x: Variable) -> Variable:
    """A float16 x in float32: squares of float16 soon overflow, and sums stop growing at 2,048.

    Another x is unchanged.
    """
    array = raw_of(x)
    return AsType(namespace_of(array).float32).apply((x,))[0] if is_float16(array) else x


def narrowed(y: Variable, x: Variable) -> Variable:
    """y in the dtype of x: the way back from ``widened``."""
    return y if y.dtype == x.dtype else AsType(x.dtype).apply((y,))[0]


def promoted(*xs: Variable) -> tuple[Variable, ...]:
    """Variables in the widest dtype among them, as the Array API standard promotes.

    The gradient of each has its own dtype. Floating and complex dtypes promote together, and so do
    integers. Other Variables are unchanged, and ``apply`` refuses them: the standard does not say
    what a float and an integer make. ``docs/dtypes.md`` has the rule for users.
    """
    first = xs[0]
    if any(x.device is not first.device for x in xs):  # refused by ``apply``
        return xs
    if all(x.dtype == first.dtype for x in xs[1:]):
        return xs
    kinds = {kind_of(x.filled_array()) for x in xs}
    if not (kinds <= {FLOATING, COMPLEX} or kinds == {INTEGER}):
        return xs
    dtype = first.xp.result_type(*[x.dtype for x in xs])
    return tuple([x if x.dtype == dtype else AsType(dtype).apply((x,))[0] for x in xs])


class ToDevice(FunctionNode):
    """y = x on another device.

    x: (s) on ``source`` -> y: (s) on ``target``.   dL/dx = dL/dy, moved back to ``source``
    """

    is_elementwise = True
    complex_rule = "conjugate"

    def __init__(self, source: Device, target: Device) -> None:
        self.source = checked_device(self, "source", source)
        self.target = checked_device(self, "target", target)
        self.output_device = self.target

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (self.target.from_host(to_host(x)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return ToDevice(self.target, self.source).apply((gy,))


def to_device(x: Any, device: str | Device) -> Variable:
    """x on another device; the gradient comes back to where x is.

    Raises:
        DeviceError: there is no such device.
    """
    source = as_operand("to_device", "x", x)
    target = get_device(device)
    if target is source.device:
        return unchanged(source)
    return ToDevice(source.device, target).apply((source,))[0]
