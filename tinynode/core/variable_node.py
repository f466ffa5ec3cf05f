"""VariableNode: the part of a variable that the graph holds.

Requirement: when the user drops a Variable, Python frees the array, and the graph for backward
lives on. So a node has the shape and the dtype, and the array only if a function retained the
array. A node holds the creator strongly and the Variable weakly:

    x.node <- f <- y.node        each arrow is a strong reference
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import tinynode
from tinynode.core import messages
from tinynode.devices import Array
from tinynode.errors import dtype_name, printable

if TYPE_CHECKING:
    from tinynode.core.variable import Variable


class VariableNode:
    """A variable as the graph sees it: shape, dtype, rank, creator, perhaps a retained array.

    Attributes:
        shape: the array's shape; None for an empty variable.
        dtype: its dtype; None for an empty variable.
        device: its device.
        rank: the creator's rank + 1, and 0 without a creator. After ``unchain`` the rank stays.
        requires_grad: True if backward computes a gradient for the node.
        data: the array if a function retained the array, else None. Backward reads the arrays of
            the functions; ``data`` serves users, and ``get_variable``.
    """

    __slots__ = (
        *(
            "__weakref__",
            "_creator_node",
            "variable_reference",
            "data",
            "device",
            "dtype",
            "name",
            "rank",
        ),
        *("requires_grad", "shape"),
    )

    def __init__(self, variable: Variable) -> None:
        array = variable.raw
        self.shape: Any = None if array is None else array.shape
        self.dtype: Any = None if array is None else array.dtype
        self.device = variable._device
        self.requires_grad = variable._requires_grad
        self.name = variable._name
        self.data: Array = None
        self._creator_node: Any = None
        self.rank = 0
        self.variable_reference: weakref.ref[Variable] | None = weakref.ref(variable)

    def __repr__(self) -> str:
        return f"<VariableNode {printable(self.name or '')}({self.label}) rank {self.rank}>"

    @property
    def label(self) -> str:
        """Shape and dtype as a short text: ``(2, 3), float32``, or ``float32`` for 0-d."""
        if self.shape is None:
            return "empty"
        dtype = dtype_name(self.dtype)
        return f"{tuple(self.shape)}, {dtype}" if self.shape else dtype

    @property
    def creator_node(self) -> Any:
        """The FunctionNode of which this node is an output; None for a leaf.

        Setting the creator sets the rank too; setting None unchains.
        """
        return self._creator_node

    @creator_node.setter
    def creator_node(self, function: Any) -> None:
        self._creator_node = function
        if function is not None:
            self.rank = function.rank + 1

    @property
    def creator(self) -> Any:
        """As ``creator_node``, but for an old-style function the Function object itself."""
        return None if self._creator_node is None else self._creator_node.user_function

    @creator.setter
    def creator(self, creator: Any) -> None:
        self.creator_node = None if creator is None else creator.node

    def set_creator(self, creator: Any) -> None:
        """The same as ``node.creator = creator``, for a Function and for a FunctionNode."""
        self.creator = creator

    set_creator_node = set_creator

    def unchain(self) -> None:
        """Forget the creator: backward stops here. The rank stays."""
        self._creator_node = None

    def get_variable_or_none(self) -> Variable | None:
        """The user's Variable if alive, else None."""
        return None if self.variable_reference is None else self.variable_reference()

    def set_variable(self, variable: Variable | None) -> None:
        """Set the Variable of this node, or None."""
        self.variable_reference = None if variable is None else weakref.ref(variable)

    def get_variable(self) -> Variable:
        """The user's Variable if alive, else a new one on this node, with a retained array."""
        variable = self.get_variable_or_none()
        if variable is None:
            variable = tinynode.core.variable.variable_on_node(self, self.data)
            self.set_variable(variable)
        return variable

    def retain_data(self) -> None:
        """Keep a reference to the Variable's array. A released Variable is a GraphError."""
        variable = self.get_variable_or_none()
        if variable is None:
            raise messages.variable_released()
        self.data = variable.raw

    @property
    def grad(self) -> Array | None:
        """The gradient array of the live Variable, else None."""
        return None if self.grad_var is None else self.grad_var.raw

    @property
    def grad_var(self) -> Variable | None:
        """The gradient Variable of the live Variable, else None."""
        variable = self.get_variable_or_none()
        return None if variable is None else variable.grad_var
