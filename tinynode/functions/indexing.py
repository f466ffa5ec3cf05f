"""Reading and writing parts of an array: what ``x[index]`` and ``x[index] = v`` stand on.

Where an index with arrays names an element several times, its gradients add up.
"""

from __future__ import annotations

import math
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, is_integer, namespace_of
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.gathering import AddAt, take
from tinynode.functions.indexes import (
    Index,
    check_fits,
    freeze_index,
    thaw_index,
    turned,
    variable_in,
    written,
)
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.shaping import broadcasts_to, reshape


class GetItem(FunctionNode):
    """y = x[index].

    x: (s), integer or bool arrays: as the index has them -> y: (shape of the selection).
    dL/dx = zeros of shape s, to which dL/dy is added at index
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        x, *arrays = inputs
        self.retain_inputs(range(1, len(inputs)))
        place = thaw_index(self.index, x.shape, tuple(arrays))
        return (turned(x, self.index)[place],)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        shape = tuple(self.inputs[0].shape)  # type: ignore[index]
        if not arrays:
            return GetItemGrad(self.index, shape).apply(grad_outputs)
        positions = Positions(self.index, shape).apply(arrays)[0]
        flat = AddAt(math.prod(shape)).apply((reshape(gy, -1), positions))[0]
        return (reshape(flat, shape), *(None for _ in arrays))


def get_item(x: Any, index: Any) -> Variable:
    """x[index]. The result is a value, not a view.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index holds something else than integers, slices, ``...``, None, and
            integer or bool arrays.
        ValueError: the step of a slice is 0.
    """
    x = as_operand("get_item", "x", x, variable_in(index))
    frozen, arrays = freeze_index("get_item", index, x)
    check_fits("get_item", frozen, x, arrays)
    if len(arrays) == 1 and len(frozen) == 1 and is_integer(arrays[0].raw):
        return take(x, arrays[0], axis=0)
    return GetItem(frozen).apply((x, *arrays))[0]


class GetItemGrad(FunctionNode):
    """gx = zeros of ``shape`` with gy written at a basic index.   gy: (selection) -> gx: (shape)

    The gradient of ``GetItem`` without arrays. Its own:   dL/dgy = dL/dgx[index]
    """

    def __init__(self, index: Index, shape: tuple[int, ...]) -> None:
        self.index = index
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        (gy,) = inputs
        zeros = namespace_of(gy).zeros(self.shape, dtype=gy.dtype, device=gy.device)
        return (written(zeros, self.index, (), gy),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        return GetItem(self.index).apply(grad_outputs)


class Positions(FunctionNode):
    """p = the places in the flattened array that an index with arrays selects; no gradient.

    integer or bool arrays -> p: (number of selected elements), integer.
    """

    def __init__(self, index: Index, shape: tuple[int, ...]) -> None:
        self.index = index
        self.shape = shape

    def forward(self, inputs: Arrays) -> Arrays:
        xp = namespace_of(inputs[0])
        places = xp.arange(math.prod(self.shape), device=inputs[0].device)
        places = xp.reshape(places, self.shape)
        selected = turned(places, self.index)[thaw_index(self.index, self.shape, inputs)]
        return (xp.reshape(selected, (-1,)),)


class SetItem(FunctionNode):
    """y = a copy of x with v written at index.

    x: (s), v: (broadcasts to the selection), integer or bool arrays -> y: (s).
    With g = dL/dy:   dL/dx = g with zeros at index   dL/dv = g[index], summed to v's shape. Where
    arrays name an element several times, it is not defined which value stays.
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    def forward(self, inputs: Arrays) -> Arrays:
        x, v, *arrays = inputs
        xp = namespace_of(x)
        self.retain_inputs(range(2, len(inputs)))
        value = v if v.dtype == x.dtype else xp.astype(v, x.dtype)
        return (written(xp.asarray(x, copy=True), self.index, tuple(arrays), value),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        arrays = self.get_retained_inputs()
        assert gy is not None
        gx = gv = None
        if 0 in target_input_indexes:
            _, zero = as_operands("set_item", gy, 0)
            gx = SetItem(self.index).apply((gy, zero, *arrays))[0]
        if 1 in target_input_indexes:
            gv = unbroadcast(GetItem(self.index).apply((gy, *arrays))[0], self, 1)
        return (gx, gv, *(None for _ in arrays))


def set_item(x: Any, index: Any, value: Any) -> Variable:
    """A copy of x with ``value`` written at an index: what ``x[index] = value`` stands on.

    The value is cast to the dtype of x.

    Raises:
        IndexError: the index does not fit the shape.
        OperandError: the index holds something that is no index.
        ValueError: the value does not broadcast to the selection.
    """
    names = ("x", "value")
    x, value = as_operands("set_item", x, value, names, beside=variable_in(index))
    frozen, arrays = freeze_index("set_item", index, x)
    check_fits("set_item", frozen, x, arrays)
    fitting = _fitting(value, frozen, x, arrays)
    return SetItem(frozen).apply((x, fitting, *arrays))[0]


def _fitting(value: Variable, index: Index, x: Variable, arrays: list[Variable]) -> Variable:
    """The value, without leading axes of length 1 that the selection does not have."""
    place = thaw_index(index, x.shape, tuple(array.raw for array in arrays))
    selection = tuple(x.raw[place].shape)
    extra = value.ndim - len(selection)
    shape = value.shape[extra:] if extra > 0 else value.shape
    if math.prod(shape) != value.size or not broadcasts_to(shape, selection):
        raise ValueError(
            f"set_item: value has shape {value.shape}, which does not broadcast to the selection, "
            f"of shape {selection}. Reshape or index the value."
        )
    return reshape(value, shape)
