"""Matrix products and the affine layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, namespace_of
from tinynode.functions.broadcasting import unbroadcast
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.reduction import sum
from tinynode.functions.shaping import permute_dims, reshape
from tinynode.type_check import broadcasts, expect

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


class MatMul(FunctionNode):
    """z = x @ y, for matrices or stacks of matrices.

    x: (..., n, k), y: (..., k, m) -> z: (..., n, m), the leading axes broadcast.
    With g = dL/dz:   dL/dx = sum_to(g @ y^T, shape of x)   dL/dy = sum_to(x^T @ g, shape of y)
    """

    input_names = ("x", "y")
    type_hint = "the last axis of x must be as long as the last but one of y."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x, y = in_types
        expect(x.ndim >= 2, y.ndim >= 2)
        expect(x.shape[-1] == y.shape[-2])
        if x.ndim > 2 or y.ndim > 2:
            expect(broadcasts(x, y, last=2))

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (namespace_of(x).matmul(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(matmul(gz, matrix_transpose(y)), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(matmul(matrix_transpose(x), gz), self, 1)
        return gx, gy


def matmul(x: Any, y: Any) -> Variable:
    """The matrix product x @ y; one-dimensional operands count as a row (x) and a column (y).

    Raises:
        InvalidType: the shapes do not fit together.
    """
    x, y = as_operands("matmul", x, y)
    row = reshape(x, (1, *x.shape)) if x.ndim == 1 else x
    column = reshape(y, (*y.shape, 1)) if y.ndim == 1 else y
    z = MatMul().apply((row, column))[0]
    if x.ndim == 1:
        z = reshape(z, (*z.shape[:-2], z.shape[-1]))
    return reshape(z, z.shape[:-1]) if y.ndim == 1 else z


def matrix_transpose(x: Any) -> Variable:
    """x with its last two axes swapped.

    Raises:
        ValueError: x has fewer than two axes.
    """
    x = as_operand("matrix_transpose", "x", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x needs two axes at least, its shape is {x.shape}.")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


class Linear(FunctionNode):
    """y = x W^T + b.

    x: (..., in), W: (out, in), b: (out) -> y: (..., out).
    With g = dL/dy, leading axes flattened:
    dL/dx = g W   dL/dW = g^T x   dL/db = sum of the rows of g
    """

    input_names = ("x", "w", "b")
    type_hint = (
        "W has shape (out, in), where in is the length of the last axis of x, and x's dtype: a "
        'NumPy array keeps its own in asarray, so cast, asarray(x, dtype="float32").'
    )

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        expect(in_types.size() >= 2, in_types.size() <= 3)
        x, w = in_types[0], in_types[1]
        expect(x.ndim >= 1, w.ndim == 2)
        expect(x.shape[-1] == w.shape[1], x.dtype == w.dtype)
        if len(in_types) == 3:
            b = in_types[2]
            expect(b.ndim == 1, b.dtype == w.dtype)
            expect(b.shape[0] == w.shape[0])  # only now: a 0-d array has no shape[0]

    def forward(self, inputs: Arrays) -> Arrays:
        x, w = inputs[0], inputs[1]
        xp = namespace_of(x)
        self.retain_inputs((0, 1))
        y = xp.matmul(x, xp.matrix_transpose(w))
        return (y,) if len(inputs) == 2 else (xp.add(y, inputs[2]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        assert gy is not None
        rows = math.prod(gy.shape[:-1])
        flat = reshape(gy, (rows, w.shape[0]))
        gradients: list[Variable | None] = []
        for i in target_input_indexes:
            if i == 0:
                gradients.append(matmul(gy, w))
            elif i == 1:
                gradients.append(matmul(flat.T, reshape(x, (rows, w.shape[1]))))
            else:
                gradients.append(sum(flat, axis=0))
        return tuple(gradients)


def linear(x: Any, w: Any, b: Any = None) -> Variable:
    """x W^T + b.

    Args:
        x: (..., in).
        w: the weight, (out, in).
        b: the bias, (out), or None.

    Raises:
        InvalidType: the shapes or dtypes do not fit together.
    """
    x, w = as_operands("linear", x, w, names=("x", "w"), beside=b)
    if b is None:
        return Linear().apply((x, w))[0]
    if not isinstance(b, Variable):  # a raw array takes the dtype of the weight
        as_operand("linear", "b", b, w)  # refuses a number
        b = as_operands("linear", b, w, names=("b", "w"))[0]
    return Linear().apply((x, w, b))[0]
