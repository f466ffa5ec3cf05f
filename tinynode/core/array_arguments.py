"""Arrays where functions expect Variables: in a pass on arrays, and while a net is recorded.

Requirement: no ``backward`` is written twice. In a backward pass on arrays, a function of tinynode
takes arrays and gives arrays; see ``gradient_table``. While a net is recorded, the user's function
still sees an array for each array among the arguments. In both cases a ``StandIn`` has the facts
and the methods of a Variable.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.array_methods import ArrayMethods
from tinynode.core.dispatch import run_forward
from tinynode.core.hooks import thread_state
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, Device


class StandIn(ArrayMethods):
    """An array with the methods of a Variable. Backward computes no gradient for a StandIn."""

    __slots__ = ()
    requires_grad = False
    is_leaf = False


class Operand(StandIn):
    """An array among the arguments of a function, in a pass on arrays.

    Attributes:
        raw: the array.
    """

    __slots__ = ("_device", "raw")
    name = None

    def __init__(self, array: Array, device: Device) -> None:
        self.raw = array
        self._device = device

    @property
    def device(self) -> Device:
        """The device of the pass."""
        return self._device

    def as_variable(self) -> Variable:
        return wrap_array(self.raw, self.device, False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self.raw.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.raw.shape)


class RawArgument(StandIn):
    """An array among the arguments of a function while the function is recorded as a net.

    Like the array, the object is no Variable: functions wrap the array. Beside a Variable, the
    array takes the Variable's dtype.

    Attributes:
        variable: the Variable for functions to use.
    """

    __slots__ = ("variable",)

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def as_variable(self) -> Variable:
        return self.variable

    @property
    def raw(self) -> Array:
        """The array."""
        return self.variable.raw

    @property
    def device(self) -> Device:
        """The device that holds the array."""
        return self.variable.device

    @property
    def name(self) -> str | None:
        """The name of the argument."""
        return self.variable.name

    def become(self, result: Variable) -> None:
        """The end of a write to the array."""
        self.variable.become(result)


def raw_of(x: Any) -> Array:
    """The array of a Variable or a ``StandIn``; an array unchanged."""
    return x.raw if isinstance(x, ArrayMethods) else x


def constant_beside(x: Any, array: Array) -> Variable:
    """A constant of a ``backward``: a Variable beside a Variable, the array beside an array."""
    constant: Variable = wrap_array(array, x.device, False) if isinstance(x, Variable) else array
    return constant


def array_operand(value: Any) -> Variable | None:
    """A value as an ``Operand`` in a pass on arrays, else None; None for numbers, too."""
    device = thread_state.array_device
    if device is None:
        return None
    operand: Any = value
    if not isinstance(value, ArrayMethods):
        array = device.lift(value)
        operand = None if array is None else Operand(array, device)
    checked: Variable | None = operand
    return checked


def apply_to_arrays(function: Any, inputs: tuple[Any, ...]) -> Arrays:
    """``FunctionNode.apply`` in a pass on arrays: arrays in, arrays out, and no graph."""
    device = thread_state.array_device
    arrays = []
    for x in inputs:
        array = x.raw if type(x) is Operand else x
        if type(array) not in device.array_types:
            array = device.lift(raw_of(x))
            if array is None:  # a number takes the dtype of the array beside
                return apply_to_arrays(function, _with_numbers_wrapped(function, inputs, device))
        arrays.append(array)
    return run_forward(function, tuple(arrays), device, function.output_device or device)


def _with_numbers_wrapped(
    function: Any, inputs: tuple[Any, ...], device: Device
) -> tuple[Variable, ...]:
    """The inputs as Variables, numbers too."""
    wrapped = []
    for x in inputs:
        array = device.lift(raw_of(x))
        wrapped.append(x if array is None else wrap_array(array, device, False))
    variables: tuple[Variable, ...] = function.as_variables(tuple(wrapped))
    return variables
