"""Variable: what a user holds.

Requirement: a Variable feels like the array in it, and remembers how it was computed. It has the
array, its device and its gradient; the graph hangs on its ``node``, which is made when a graph
first needs it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import numpy

import tinynode
from tinynode.array_text import array_text, statistics_text
from tinynode.backend import (
    Array,
    Device,
    check_cast,
    device_of,
    find_device,
    get_device,
    is_floating,
    to_host,
)
from tinynode.configuration import config, refuse_while_tracing
from tinynode.errors import (
    DeviceMixError,
    GradientShapeError,
    GradientTypeError,
    GraphError,
    RequiresGradError,
    describe,
    dtype_name,
)
from tinynode.variable_node import VariableNode


class Variable:
    """An array that remembers how it was computed.

    Args:
        array: an array of a known backend, or None for an empty variable. Lists and numbers go
            through ``tinynode.asarray``.
        name: shown in pictures of the graph and in messages.
        grad: an initial gradient, of the array's shape, dtype and device.
        requires_grad: whether backward computes a gradient for it. By default floating dtypes do;
            integers and bools never can.

    Raises:
        TypeError: ``array`` is not an array, or an integer array is asked to require a gradient.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_device",
        "_grad_var",
        "_name",
        "_node",
        "_requires_grad",
    )
    __array_ufunc__ = None  # numpy_array * variable asks Variable.__rmul__
    __hash__ = object.__hash__  # by identity, although == compares elementwise

    def __init__(
        self,
        array: Array | None = None,
        *,
        name: str | None = None,
        grad: Array | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        self._array: Array = array
        self._device: Device = get_device() if array is None else _require_array(array)
        self._requires_grad: bool = decide_requires_grad(array, requires_grad)
        self._name = name
        self._node: VariableNode | None = None
        self._grad_var: Variable | None = None
        if grad is not None:
            self.grad = grad

    # --- the array -------------------------------------------------------------------------

    @property
    def array(self) -> Array:
        """The array. Assigning a new one leaves recorded functions untouched.

        One of another shape, dtype or device starts a new leaf: gradients for the old array are
        not this variable's any more.
        """
        refuse_while_tracing("x.array")
        return self._array

    @array.setter
    def array(self, array: Array | None) -> None:
        if config.tracing is not None:
            config.tracing.name_of(self)  # so that the net knows what it was
        device = self._device
        asked = config.device is not None  # a device that was asked for goes before its own
        if array is not None and (asked or not device.holds(array)):
            device = _require_array(array)
        if self._requires_grad and array is not None:
            decide_requires_grad(array, True)
        if not self._is_like(array, device):
            self._leave_node()  # functions that used it keep the old shape
        if self._node is not None:
            self._node.data = None  # who retained the old array has it; nobody else needs it
        self._array = array
        self._device = device

    def _is_like(self, array: Array | None, device: Device) -> bool:
        """Whether an array has the device, the shape and the dtype of the present one."""
        old = self._array
        if array is None or old is None:
            return array is old
        return device is self._device and array.shape == old.shape and array.dtype == old.dtype

    @property
    def data(self) -> Array:
        """The same as ``array``."""
        return self.array

    @data.setter
    def data(self, array: Array | None) -> None:
        self.array = array

    @property
    def device(self) -> Device:
        """The device on which the array lies."""
        return self._device

    @property
    def xp(self) -> Any:
        """The Array API namespace of the array."""
        return self._device.xp

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self._filled().shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self._filled().ndim)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The array's dtype."""
        return self._filled().dtype

    def _filled(self) -> Array:
        if self._array is None:
            raise GraphError(
                f"variable {self._name or ''} is empty: it has no array yet. "
                "Assign one to its .array."
            )
        return self._array

    # --- the graph -------------------------------------------------------------------------

    @property
    def node(self) -> VariableNode:
        """What the graph holds of this variable."""
        if self._node is None:
            self._node = VariableNode(self)
        return self._node

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes a gradient for it. It is decided when the Variable is made."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        raise AttributeError(
            "requires_grad is decided when a Variable is made: use Variable(x.array, "
            f"requires_grad={requires_grad}), or x.detach() for one without a gradient."
        )

    @property
    def name(self) -> str | None:
        """A name for pictures and messages."""
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name
        if self._node is not None:
            self._node.name = name

    @property
    def label(self) -> str:
        """Shape and dtype as a short text."""
        return self.node.label

    @property
    def rank(self) -> int:
        """0 for a leaf, else the creator's rank + 1."""
        return 0 if self._node is None else self._node.rank

    @property
    def creator_node(self) -> Any:
        """The FunctionNode that computed it; None for a leaf."""
        return None if self._node is None else self._node.creator_node

    @creator_node.setter
    def creator_node(self, function: Any) -> None:
        self.node.creator_node = function

    @property
    def creator(self) -> Any:
        """As ``creator_node``, but for an old-style function the Function object itself."""
        return None if self._node is None else self._node.creator

    @creator.setter
    def creator(self, creator: Any) -> None:
        self.node.creator = creator

    def set_creator(self, creator: Any) -> None:
        """The same as ``variable.creator = creator``."""
        self.node.set_creator(creator)

    def set_creator_node(self, creator_node: Any) -> None:
        """The same as ``variable.creator_node = creator_node``."""
        self.node.set_creator_node(creator_node)

    def retain_data(self) -> None:
        """Let the node keep a reference to the array."""
        self.node.retain_data()

    def unchain(self) -> None:
        """Forget the creator: backward stops at this variable."""
        if self._node is not None:
            self._node.unchain()

    def unchain_backward(self) -> None:
        """Unchain every function before this variable: the graph behind it is let go."""
        tinynode.backprop.unchain_backward(self)

    def detach(self) -> Variable:
        """A Variable on the same array, outside the graph, that requires no gradient."""
        detached = wrap_array(self._array, self._device, False)
        detached._name = self._name
        return detached

    # --- the gradient ----------------------------------------------------------------------

    @property
    def grad(self) -> Array | None:
        """The gradient's array, or None. Assigning an array checks shape, dtype and device."""
        if self._grad_var is None:
            return None
        refuse_while_tracing("x.grad")
        return self._grad_var._array

    @grad.setter
    def grad(self, grad: Array | None) -> None:
        self.grad_var = None if grad is None else _as_gradient(grad, self._device)

    @property
    def grad_var(self) -> Variable | None:
        """The gradient as a Variable: part of a graph itself under double backprop."""
        return self._grad_var

    @grad_var.setter
    def grad_var(self, grad_var: Variable | None) -> None:
        if grad_var is not None:
            self._check_grad(grad_var)
        self._grad_var = grad_var

    def _check_grad(self, grad: Variable) -> None:
        if not isinstance(grad, Variable):
            raise GradientTypeError(f"grad_var: expected a Variable, got {describe(grad)}.")
        if self._array is None:
            return
        if grad._device is not self._device:
            raise GradientTypeError(
                f"Device of data and grad mismatch: data is on {self._device}, grad is on "
                f"{grad._device}. Move it with to_device({str(self._device)!r})."
            )
        if grad.dtype != self.dtype:
            raise GradientTypeError(
                f"Dtype of data and grad mismatch: {dtype_name(self.dtype)} != "
                f"{dtype_name(grad.dtype)}. Cast the gradient first."
            )
        if grad.shape != self.shape:
            raise GradientShapeError(
                f"Shape of data and grad mismatch: {self.shape} != {grad.shape}."
            )

    def cleargrad(self) -> None:
        """Set the gradient to None. Call it before each backward, or gradients add up."""
        if config.tracing is not None:
            config.tracing.note_cleared(self)
        self._grad_var = None

    def addgrad(self, other: Variable) -> None:
        """Add another Variable's gradient to this one's."""
        own, extra = self._grad_var, other._grad_var
        if extra is None:
            return
        if own is None:
            self.grad_var = extra
            return
        has_graph = own.creator_node is not None or extra.creator_node is not None
        with tinynode.using_config("enable_backprop", has_graph):
            self.grad_var = own + extra

    def copydata(self, other: Variable) -> None:
        """Copy another Variable's values into this one's array, which stays the same object."""
        refuse_while_tracing("x.copydata()")
        host = to_host(other._filled())
        if self._array is None:
            self.array = self._device.from_host(host.copy())
        else:
            self._array[...] = self.xp.asarray(
                self._device.from_host(host), dtype=self._array.dtype
            )

    def backward(
        self,
        retain_grad: bool = False,
        enable_double_backprop: bool = False,
        loss_scale: float | None = None,
    ) -> None:
        """Compute the gradient of this variable with respect to every leaf before it.

        The gradients are *added* to the leaves' ``grad``; call ``cleargrad()`` on them first. The
        graph stays, so backward can be called again. It starts from this variable's own ``grad``,
        which is used up; where that is None, a size-one variable starts from 1.

        Args:
            retain_grad: keep the gradients of intermediate variables, and of this one, too.
            enable_double_backprop: record a graph of the backward pass, so that the gradients'
                ``grad_var`` can be differentiated in turn.
            loss_scale: multiplies the 1 that a size-one variable starts from.

        Raises:
            BackwardSeedError: there is nothing to start from.
            GradientError: a function's backward returned a wrong gradient.
        """
        tinynode.backprop.backward_one(self, retain_grad, enable_double_backprop, loss_scale)

    # --- moving and copying ----------------------------------------------------------------

    def to_device(self, device: str | Device) -> Variable:
        """A Variable with the same values on another device; its gradient comes back here."""
        return tinynode.functions.to_device(self, device)

    def astype(self, dtype: Any) -> Variable:
        """A Variable with the values cast to ``dtype``."""
        return tinynode.functions.astype(self, dtype)

    def __copy__(self) -> Variable:
        copied = type(self)(self._array, name=self._name, requires_grad=self._requires_grad)
        copied._device = self._device
        copied._grad_var = self._grad_var
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        host = None if self._array is None else to_host(self._array)
        grad = None if self._grad_var is None else to_host(self._grad_var._array)
        device = str(self._device)
        rebuild = tinynode.conversion.rebuild
        return rebuild, (type(self), host, device, self._name, self._requires_grad, grad)

    # --- Python's conversions --------------------------------------------------------------

    def item(self) -> Any:
        """The Python number in a size-one variable."""
        refuse_while_tracing("x.item(), or bool(x), int(x) or float(x),")
        if self.size != 1:
            raise ValueError(
                f"item(): only a variable of size one is a number, this one has shape "
                f"{self.shape}. Index it, or use .array."
            )
        return to_host(self._array).item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        refuse_while_tracing("an index")
        return int(self._filled().__index__())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d variable: it has no axes.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return iter([self[i] for i in range(len(self))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        refuse_while_tracing("numpy.asarray(x)")
        if self._requires_grad:
            raise TypeError(
                "a Variable that requires a gradient does not turn into a NumPy array silently: "
                "the graph would end there. Use x.array, x.detach(), or tinynode.functions."
            )
        return numpy.array(to_host(self._filled()), dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return self._text("variable", ", ")

    def __str__(self) -> str:
        return self._text("variable", " ")

    def __format__(self, spec: str) -> str:
        """The text of ``str``; with a specification that of its number: ``f"{loss:.3f}"``."""
        return format(self.item(), spec) if spec else str(self)

    def _text(self, word: str, separator: str) -> str:
        head = f"{word} {self._name}" if self._name else word
        return array_text(self._array, head, separator)

    def summary(self) -> str:
        """Name, shape, dtype, device and creator in one line."""
        creator = "leaf" if self.creator_node is None else f"from {self.creator_node.label}"
        grad = "requires grad" if self._requires_grad else "no grad"
        return f"{self._name or 'variable'}: {self.label} on {self._device}, {grad}, {creator}"

    def debug_print(self) -> str:
        """The summary, and mean, standard deviation and a few values of array and gradient."""
        texts = [statistics_text("array", self._array), statistics_text("grad", self.grad)]
        return "\n".join([self.summary(), *texts])

    def explain_grad(self, y: Variable | None = None) -> str:
        """Why ``grad`` is there or None, in words: what is known, and what to do next.

        Args:
            y: what ``backward`` is called on, to see whether it depends on this variable.
        """
        return tinynode.show.explain.explain_grad(self, y)

    def _repr_html_(self) -> str:
        return tinynode.show.variable_html.variable_html(self)

    # --- shapes ----------------------------------------------------------------------------

    @property
    def T(self) -> Variable:
        """The variable with its axes reversed."""
        return tinynode.functions.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Variable:
        """The variable with its last two axes swapped: each matrix of a stack transposed."""
        return tinynode.functions.matrix_transpose(self)

    def reshape(self, *shape: Any) -> Variable:
        """The same elements in another shape: ``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
        return tinynode.functions.reshape(self, _one_tuple(shape))

    def transpose(self, *axes: Any) -> Variable:
        """The axes in another order; reversed where none is given."""
        if not axes or axes == (None,):
            return self.T
        return tinynode.functions.permute_dims(self, _one_tuple(axes))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """The sum over ``axis``, or over all elements."""
        return tinynode.functions.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, weights: Any = None, keepdims: bool = False) -> Variable:
        """The mean over ``axis``, or over all elements; ``weights`` broadcast to the shape."""
        return tinynode.functions.mean(self, axis=axis, weights=weights, keepdims=keepdims)

    def __getitem__(self, index: Any) -> Variable:
        return tinynode.functions.get_item(self, index)

    # --- operators -------------------------------------------------------------------------

    def __add__(self, other: Any) -> Variable:
        return tinynode.functions.add(self, other)

    def __radd__(self, other: Any) -> Variable:
        return tinynode.functions.add(other, self)

    def __sub__(self, other: Any) -> Variable:
        return tinynode.functions.subtract(self, other)

    def __rsub__(self, other: Any) -> Variable:
        return tinynode.functions.subtract(other, self)

    def __mul__(self, other: Any) -> Variable:
        return tinynode.functions.multiply(self, other)

    def __rmul__(self, other: Any) -> Variable:
        return tinynode.functions.multiply(other, self)

    def __truediv__(self, other: Any) -> Variable:
        return tinynode.functions.divide(self, other)

    def __rtruediv__(self, other: Any) -> Variable:
        return tinynode.functions.divide(other, self)

    def __floordiv__(self, other: Any) -> Variable:
        return tinynode.functions.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Variable:
        return tinynode.functions.floor_divide(other, self)

    def __pow__(self, other: Any) -> Variable:
        return tinynode.functions.pow(self, other)

    def __rpow__(self, other: Any) -> Variable:
        return tinynode.functions.pow(other, self)

    def __matmul__(self, other: Any) -> Variable:
        return tinynode.functions.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Variable:
        return tinynode.functions.matmul(other, self)

    def __neg__(self) -> Variable:
        return tinynode.functions.negative(self)

    def __pos__(self) -> Variable:
        return self

    def __abs__(self) -> Variable:
        return tinynode.functions.abs(self)

    def __eq__(self, other: object) -> Any:
        return (
            tinynode.functions.equal(self, other)
            if tinynode.conversion.is_operand(other)
            else NotImplemented
        )

    def __ne__(self, other: object) -> Any:
        return (
            tinynode.functions.not_equal(self, other)
            if tinynode.conversion.is_operand(other)
            else NotImplemented
        )

    def __lt__(self, other: Any) -> Variable:
        return tinynode.functions.less(self, other)

    def __le__(self, other: Any) -> Variable:
        return tinynode.functions.less_equal(self, other)

    def __gt__(self, other: Any) -> Variable:
        return tinynode.functions.greater(self, other)

    def __ge__(self, other: Any) -> Variable:
        return tinynode.functions.greater_equal(self, other)

    # --- writing: functional underneath ------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_writable("x[i] = v")
        if hasattr(value, "dtype") and not isinstance(value, type):
            check_cast("x[i] = v", getattr(value, "_array", value), self._filled())
        self._become(tinynode.functions.set_item(self, index, value))

    def __iadd__(self, other: Any) -> Variable:
        return self._written("x += v", tinynode.functions.add(self, other))

    def __isub__(self, other: Any) -> Variable:
        return self._written("x -= v", tinynode.functions.subtract(self, other))

    def __imul__(self, other: Any) -> Variable:
        return self._written("x *= v", tinynode.functions.multiply(self, other))

    def __itruediv__(self, other: Any) -> Variable:
        return self._written("x /= v", tinynode.functions.divide(self, other))

    def __ifloordiv__(self, other: Any) -> Variable:
        return self._written("x //= v", tinynode.functions.floor_divide(self, other))

    def __ipow__(self, other: Any) -> Variable:
        return self._written("x **= v", tinynode.functions.pow(self, other))

    def __imatmul__(self, other: Any) -> Variable:
        return self._written("x @= v", tinynode.functions.matmul(self, other))

    def _check_writable(self, operation: str) -> None:
        is_leaf = self._requires_grad and self.creator_node is None
        if is_leaf and config.enable_backprop:  # without it every result looks like a leaf
            raise GraphError(
                f"{operation}: this variable is a leaf that requires a gradient, and writing to "
                "it would make that meaningless. Compute a new Variable from it (x = x + v), "
                "or assign to x.array between two passes."
            )

    def _written(self, operation: str, result: Variable) -> Variable:
        self._check_writable(operation)
        if result.shape != self.shape:
            raise ValueError(
                f"{operation}: the result has shape {result.shape}, x has shape {self.shape}: "
                "an in-place operator keeps the shape. Write x = x + v instead."
            )
        if result.dtype != self.dtype:
            check_cast(operation, result._array, self._array)
            result = tinynode.functions.astype(result, self.dtype)
        self._become(result)
        return self

    def _become(self, result: Variable) -> None:
        """Stand on the node of ``result``: functions that used the old node keep what they saw."""
        if self._requires_grad and self.creator_node is None:
            self._array = result._array  # a leaf, without back-propagation: it stays that leaf
            return
        self._leave_node()
        self._array = result._array
        self._requires_grad = result._requires_grad
        self._grad_var = None  # it was the gradient of the old value
        self._node = result._node
        if self._node is not None:
            self._node._variable = weakref.ref(self)
            self._node.name = self._name

    def _leave_node(self) -> None:
        """Let go of the node: functions that used it keep it, and see what they saw."""
        if self._node is not None and self._node.get_variable_or_none() is self:
            self._node._variable = None
        self._node = None


_new_variable = Variable.__new__


def wrap_array(array: Array, device: Device, requires_grad: bool) -> Variable:
    """A Variable on an array that is known to be right: the way of function outputs."""
    variable = _new_variable(Variable)
    variable._array = array
    variable._device = device
    variable._requires_grad = requires_grad
    variable._name = variable._node = variable._grad_var = None
    return variable


def variable_on_node(node: VariableNode, array: Array | None) -> Variable:
    """A Variable on an existing node, with that array."""
    variable = _new_variable(Variable)
    variable._array = array
    variable._device = node.device
    variable._requires_grad = node.requires_grad
    variable._name = node.name
    variable._node = node
    variable._grad_var = None
    return variable


def _require_array(array: Any) -> Device:
    if isinstance(array, Variable):
        raise DeviceMixError(
            f"Variable: array must be an array, got {describe(array)}. A second Variable on the "
            "same array is x.detach(), or functions.identity(x) in the graph."
        )
    return device_of(array, "Variable", "array")


def decide_requires_grad(array: Array, requires_grad: bool | None) -> bool:
    can = array is None or is_floating(array)
    if requires_grad is None:
        return can
    if requires_grad and not can:
        raise RequiresGradError(
            f"Variable: requires_grad=True, but the array is {dtype_name(array.dtype)}: only "
            "floating dtypes can require a gradient. Cast it first, or leave requires_grad out."
        )
    return requires_grad


def _as_gradient(grad: Array, device_of_data: Device) -> Variable:
    if isinstance(grad, Variable):
        raise GradientTypeError("grad: expected an array, got a Variable. Assign it to grad_var.")
    device = device_of_data if device_of_data.holds(grad) else find_device(grad)
    if device is None:
        raise GradientTypeError(f"grad: expected an array, got {describe(grad)}.")
    return wrap_array(grad, device, is_floating(grad))


def _one_tuple(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    if len(arguments) == 1 and isinstance(arguments[0], tuple | list):
        return tuple(arguments[0])
    return arguments
