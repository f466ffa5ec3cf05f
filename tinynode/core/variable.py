"""Variable: the object in the hands of the user.

Requirement: a Variable feels like an array, and knows the function that computed the array. The
graph hangs on ``node``, made when a graph first needs the Variable. The base class has operators.
"""

from __future__ import annotations

import weakref
from typing import Any, Never

import tinynode
from tinynode.configuration import config
from tinynode.core import messages
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.hooks import tell_detached, tell_value_read, thread_hooks
from tinynode.core.variable_node import VariableNode
from tinynode.devices import (
    Array,
    Device,
    array_of_scalar,
    below,
    find_device,
    from_host_data,
    get_device,
    hidden_axes,
    is_differentiable,
)
from tinynode.errors import unknown_keywords

_new = object.__new__


class Variable(ArrayMethods):
    """An array with a gradient and a creator: the function that computed the array.

        >>> x = tn.Variable(np.array([1.0, 2.0]))
        >>> y = (x * x).sum()
        >>> y.backward()
        >>> x.grad.tolist()
        [2.0, 4.0]

    Args:
        array: an array of a known backend, a number, or None for an empty variable. Lists go
            through ``tinynode.asarray``.
        name: shown in pictures of the graph and in messages.
        grad: an initial gradient, of the array's shape, dtype and device.
        requires_grad: True if backward computes a gradient for the Variable. By default True for
            floating dtypes, real and complex; integers and bools never can require a gradient.

    Raises:
        TypeError: ``array`` is not an array, or an integer array is asked to require a gradient.
    """

    __slots__ = ("__weakref__", "_device", "_grad_var", "_name", "_node", "_requires_grad", "raw")

    def __init__(
        self,
        array: Array | float | None = None,
        *,
        name: str | None = None,
        grad: Array | None = None,
        requires_grad: bool | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise unknown_keywords("Variable", unknown)
        conversion = tinynode.core.conversion
        if array is None:
            self.raw: Array = None
            self._device: Device = get_device()
        else:
            array = from_host_data(conversion.array_of_number(array), "Variable")
            self._device = conversion.require_array(array)
            self.raw = conversion.checked_array(array)
        self._requires_grad = conversion.decide_requires_grad(self.raw, requires_grad)
        self._name = name
        self._node: VariableNode | None = None
        self._grad_var: Variable | None = None
        if grad is not None:
            self.grad = grad

    # --- the array -------------------------------------------------------------------------

    @property
    def array(self) -> Array:
        """The array. Assigning a new one leaves recorded functions untouched.

        An array of another shape, dtype or device starts a new leaf: the gradients of the old
        array do not fit the new array.
        """
        tell_value_read("x.array")
        return self.raw

    @array.setter
    def array(self, array: Array | None) -> None:
        for hook in thread_hooks():
            hook.array_assigned(self)
        device = self._device
        if array is not None:
            is_asked = config.device is not None  # the device that was asked for goes before
            array = array_of_scalar(array, device)
            if not device.holds(array):
                array = from_host_data(array, "x.array", None if is_asked else device)
            if is_asked or not device.holds(array):
                device = tinynode.core.conversion.require_array(array)
            if self._requires_grad and not is_differentiable(array):
                raise messages.cannot_assign(array)
            array = tinynode.core.conversion.checked_array(array)
            if hidden_axes.stack and below(device) is not None and device is not self._device:
                tinynode.transforms.note_move(self)
        self.replace_array(array, device)

    data = array
    """The same as ``array``."""

    def replace_array(self, array: Array | None, device: Device) -> None:
        """Take a new array, without a check."""
        if not self.is_like(array, device):
            self.leave_node()  # recorded functions keep the node, with the old shape
        self._device = device
        self.refill(array)

    def refill(self, array: Array | None) -> None:
        """Take a new array like the present one, without a check."""
        if self._node is not None:
            self._node.data = None  # the functions that retained the old array still hold it
        self.raw = array

    def is_like(self, array: Array | None, device: Device) -> bool:
        """True if an array has the device, the shape and the dtype of the present one."""
        old = self.raw
        if array is None or old is None:
            return array is old
        return device is self._device and array.shape == old.shape and array.dtype == old.dtype

    @property
    def device(self) -> Device:
        """The device that holds the array."""
        return self._device

    def as_variable(self) -> Variable:
        """This Variable."""
        return self

    # --- the graph -------------------------------------------------------------------------

    @property
    def node(self) -> VariableNode:
        """The VariableNode: the part of the Variable that a graph holds."""
        if self._node is None:
            self._node = VariableNode(self)
        return self._node

    @property
    def node_or_none(self) -> VariableNode | None:
        """The node, or None as long as no graph needed it."""
        return self._node

    @property
    def requires_grad(self) -> bool:
        """True if backward computes a gradient for the Variable.

        An assignment to a leaf holds for the functions called from now on, and drops the gradient.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        tinynode.core.conversion.set_requires_grad(self, requires_grad)

    @property
    def is_leaf(self) -> bool:
        """True for a Variable without a creator that requires a gradient, such as a parameter."""
        return self._requires_grad and self.creator_node is None

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
        """The creator's rank + 1, and 0 without a creator. After ``unchain`` the rank stays."""
        return 0 if self._node is None else self._node.rank

    @property
    def creator_node(self) -> Any:
        """The FunctionNode that computed the Variable; None for a leaf."""
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
        """The same as ``variable.creator = creator``, for a Function and for a FunctionNode."""
        self.node.creator = creator

    set_creator_node = set_creator

    def retain_data(self) -> None:
        """Let the node keep a reference to the array."""
        self.node.retain_data()

    def unchain(self) -> None:
        """Forget the creator: backward stops at this variable.

        The variable becomes a leaf: a backward pass ends here.

            >>> x = tn.asarray([2.0])
            >>> h = x * x
            >>> h.unchain()
            >>> (h * h).backward()
            >>> x.grad is None
            True
        """
        if self._node is not None:
            self._node.unchain()

    def unchain_backward(self) -> None:
        """Unchain every function before this variable: the whole graph is let go."""
        tinynode.core.paths.unchain_backward(self)

    def detach(self) -> Variable:
        """A Variable on the same array, outside the graph, that requires no gradient.

        x: (s) -> y: (s). A gradient of y does not reach x.

            >>> x = tn.asarray([2.0])
            >>> (x * x.detach()).backward()
            >>> x.grad.tolist()
            [2.0]
        """
        detached = wrap_array(self.raw, self._device, False)
        detached._name = self._name
        tell_detached(self, detached)
        return detached

    def become(self, result: Variable) -> None:
        """Move to the node of ``result``: the end of every write (``x[i] = v``, ``x += v``).

        Recorded functions keep the old node and its array. A leaf without back-propagation takes
        the array only, and stays that leaf.
        """
        if self.is_leaf:  # only without back-propagation: otherwise a write to a leaf is an error
            self.replace_array(result.raw, self._device)
            return
        self.leave_node()
        self.raw = result.raw
        self._device = result._device
        self._node = result._node
        self._requires_grad = result._requires_grad
        self._grad_var = None  # the gradient belongs to the old value
        if self._node is not None:
            self._node.set_variable(self)
            self._node.name = self._name

    def leave_node(self) -> None:
        """Let go of the node. Recorded functions keep the node and its array."""
        if self._node is not None and self._node.get_variable_or_none() is self:
            self._node.set_variable(None)
        self._node = None

    # --- the gradient ----------------------------------------------------------------------

    @property
    def grad(self) -> Array | None:
        """The gradient's array, or None. Assigning an array checks shape, dtype and device."""
        if self._grad_var is None:
            return None
        tell_value_read("x.grad")
        return self._grad_var.raw

    @grad.setter
    def grad(self, grad: Array | None) -> None:
        if grad is None:
            self._grad_var = None
            return
        if isinstance(grad, Variable):
            raise messages.variable_as_grad()
        grad = from_host_data(grad, "x.grad", self._device)
        device = self._device if self._device.holds(grad) else find_device(grad)
        if device is None:
            raise messages.grad_no_array(grad)
        gradient = wrap_array(tinynode.core.conversion.checked_array(grad), device, True)
        if self.raw is not None:
            tinynode.core.seeds.check_gradient(gradient, self, "x.grad")
        self._grad_var = gradient

    @property
    def grad_var(self) -> Variable | None:
        """The gradient as a Variable: part of a graph itself under double backprop."""
        return self._grad_var

    @grad_var.setter
    def grad_var(self, grad_var: Variable | None) -> None:
        if grad_var is not None and (self.raw is not None or not isinstance(grad_var, Variable)):
            tinynode.core.seeds.check_gradient(grad_var, self, "x.grad_var")
        self._grad_var = grad_var

    def take_gradient(self, gradient: Variable) -> None:
        """Take a gradient that fits, without a check."""
        self._grad_var = gradient

    def cleargrad(self) -> None:
        """Set the gradient to None. Call it before each backward, or gradients add up.

        The next backward pass then starts from no gradient.

            >>> x = tn.asarray([2.0])
            >>> (x * x).backward()
            >>> x.cleargrad()
            >>> x.grad is None
            True
        """
        for hook in thread_hooks():
            hook.gradient_cleared(self)
        self._grad_var = None

    def addgrad(self, other: Variable) -> None:
        """Add another Variable's gradient to this one's."""
        tinynode.core.backprop.add_gradient(self, other)

    def backward(
        self,
        retain_grad: bool = False,
        enable_double_backprop: bool = False,
        loss_scale: float | None = None,
        **unknown: Never,
    ) -> None:
        """Compute the gradient of this variable with respect to every leaf of the graph.

        The gradients are *added* to the ``grad`` of each leaf; call ``cleargrad()`` first. The
        graph stays, so backward can be called again. The pass starts from the ``grad`` of this
        variable, and uses the value up. A size-one variable without a ``grad`` starts from 1.

            >>> x = tn.asarray([3.0])
            >>> (x * x).backward()
            >>> x.grad.tolist()
            [6.0]

        Args:
            retain_grad: keep the gradients of intermediate variables, and of this variable, too.
            enable_double_backprop: record a graph of the backward pass, so that each ``grad_var``
                can be differentiated in turn.
            loss_scale: replaces the 1 from which a size-one variable starts.

        Raises:
            BackwardSeedError: there is no gradient to start from.
            GradientError: a function's backward returned a wrong gradient.
        """
        if unknown:
            raise unknown_keywords("backward", unknown)
        tinynode.core.backprop.backward_one(self, retain_grad, enable_double_backprop, loss_scale)


def wrap_array(
    array: Array | None, device: Device, requires_grad: bool, creator: Any = None
) -> Variable:
    """A Variable on an array of the device; only a floating array can require a gradient.

    An output of a recorded function gets a node with the function as creator.
    """
    dtype = None if array is None else array.dtype
    if requires_grad and dtype not in device.floating_dtypes:
        requires_grad = device.is_differentiable(array)
    variable = _new(Variable)
    variable.raw = array
    variable._device = device
    variable._requires_grad = requires_grad
    variable._name = None
    variable._node = None
    variable._grad_var = None
    if creator is not None:  # as VariableNode(variable), without a look at the Variable
        node = _new(VariableNode)
        node.shape = None if array is None else array.shape
        node.dtype = dtype
        node.device = device
        node.requires_grad = requires_grad
        node.name = None
        node.data = None
        node.rank = creator.rank + 1
        node._creator_node = creator
        node.variable_reference = weakref.ref(variable)
        variable._node = node
    return variable


def variable_on_node(node: VariableNode, array: Array | None) -> Variable:
    """A Variable on an existing node, with an array."""
    variable = wrap_array(array, node.device, False)
    variable._requires_grad = node.requires_grad
    variable._name = node.name
    variable._node = node
    return variable
