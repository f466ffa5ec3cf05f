"""Products: matmul, tensordot, vecdot, outer, cross, einsum."""

from __future__ import annotations

import functools
import inspect
import math
import string
from collections.abc import Sequence
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, einsum_array, namespace_of, sum_array, vecdot_array
from tinynode.devices.products import matrix_product
from tinynode.errors import OperandError, describe
from tinynode.functions import guards
from tinynode.functions.arithmetic import BroadcastingNode, multiply
from tinynode.functions.arithmetic import abs as absolute
from tinynode.functions.attributes import AxisFromEnd, Labels
from tinynode.functions.checked import (
    checked,
    checked_flag,
    checked_labels,
    checked_subscripts,
)
from tinynode.functions.complex_numbers import conj
from tinynode.functions.indexing import get_item
from tinynode.functions.masking import keep_zeros
from tinynode.functions.operands import (
    as_integer,
    as_operand,
    as_operands,
    as_shape,
    first_variable,
    is_index,
    normalize_axes,
)
from tinynode.functions.shapes import (
    PermuteDims,
    broadcast_to,
    expand_dims,
    permute_dims,
    reshape,
    reshaped,
    unbroadcast,
)
from tinynode.type_check import TypeInfoTuple, broadcasts, expect

__all__ = [
    "Cross",
    "Einsum",
    "MatMul",
    "MatMulOfTransposed",
    "VecDot",
    "einsum",
    "matmul",
    "matrix_transpose",
    "tensordot",
    "vecdot",
]
__dir__ = __all__.copy  # for completion


class MatMul(FunctionNode):
    """z = x @ y, for matrices or stacks of matrices.

    x: (..., n, k), y: (..., k, m) -> z: (..., n, m), the leading axes broadcast.
    With g = dL/dz:   dL/dx = sum_to(g @ y^T, shape of x)   dL/dy = sum_to(x^T @ g, shape of y)
    """

    input_counts = (2,)
    guard = guards.PRODUCT
    complex_rule = "conjugate"
    is_polynomial = True
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
        return (matmul_array(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(times_transposed(gz, y), self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(transposed_times(x, gz), self, 1)
        return gx, gy


class MatMulOfTransposed(FunctionNode):
    """z = x' y', for two matrices: x' is x or x^T, y' is y or y^T, by the flags.

    x': (n, k), y': (k, m) -> z: (n, m).
    With g = dL/dz:   dL/dx' = g y'^T   dL/dy' = x'^T g, each transposed for x^T and y^T
    """

    input_counts = (2,)
    guard = guards.PRODUCT
    complex_rule = "conjugate"
    is_polynomial = True
    input_names = ("x", "y")

    def __init__(self, transpose_x: bool, transpose_y: bool) -> None:
        self.transpose_x = checked_flag(self, "transpose_x", transpose_x)
        self.transpose_y = checked_flag(self, "transpose_y", transpose_y)

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        x = x.mT if self.transpose_x else x
        y = y.mT if self.transpose_y else y
        return (matrix_product(x, y),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        x_turned, y_turned = self.transpose_x, self.transpose_y
        gx = gy = None
        if 0 in target_input_indexes:
            order = (y, gz, y_turned, True) if x_turned else (gz, y, False, not y_turned)
            gx = unbroadcast(_product_of_matrices(*order), self, 0)
        if 1 in target_input_indexes:
            order = (gz, x, True, x_turned) if y_turned else (x, gz, not x_turned, False)
            gy = unbroadcast(_product_of_matrices(*order), self, 1)
        return gx, gy


def _product_of_matrices(x: Variable, y: Variable, turn_x: bool, turn_y: bool) -> Variable:
    """x y of two matrices, each transposed first if asked."""
    node = MatMulOfTransposed(turn_x, turn_y) if turn_x or turn_y else MatMul()
    return node.apply((x, y))[0]


def transposed_times(x: Variable, y: Variable) -> Variable:
    """x^T y, of matrices or stacks of matrices; two matrices take one function."""
    if x.ndim == y.ndim == 2:
        return MatMulOfTransposed(True, False).apply((x, y))[0]
    return MatMul().apply((transposed(x), y))[0]


def times_transposed(x: Variable, y: Variable) -> Variable:
    """x y^T, of matrices or stacks of matrices; two matrices take one function."""
    if x.ndim == y.ndim == 2:
        return MatMulOfTransposed(False, True).apply((x, y))[0]
    return MatMul().apply((x, transposed(y)))[0]


FEW_ROWS, MANY_COLUMNS = range(8, 129), 128
"""Such products are quicker transposed; small ones would only mix the orders of memory."""


def matmul_array(x: Array, y: Array) -> Array:
    """x @ y, of arrays. A stack of matrices times one matrix is computed as a single product.

    A few rows are computed as (y^T x^T)^T: BLAS takes less time with the longer side first.
    """
    xp, leading = namespace_of(x), x.shape[:-1]
    if len(leading) > 1 and len(y.shape) == 2:
        z = matrix_product(xp.reshape(x, (math.prod(leading), x.shape[-1])), y)
        return xp.reshape(z, (*leading, y.shape[1]))
    if len(y.shape) == 2 and y.shape[1] >= MANY_COLUMNS and leading and leading[0] in FEW_ROWS:
        return matrix_product(y.mT, x.mT).mT
    return matrix_product(x, y)


def matmul(x: Any, y: Any) -> Variable:
    """The matrix product x @ y; one-dimensional operands count as a row (x) and a column (y).

    z[..., i, j] = the sum over k of x[..., i, k] y[..., k, j].
    x: (..., n, k), y: (..., k, m) -> z: (..., n, m), with broadcasting of the leading axes.

        >>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> F.matmul(x, tn.asarray([1.0, 1.0])).tolist()
        [3.0, 7.0]

    Raises:
        InvalidType: the shapes do not fit together.
    """
    x, y = as_operands("matmul", x, y)
    is_row, is_column = x.ndim == 1, y.ndim == 1
    row = reshaped(x, (1, *x.shape)) if is_row else x
    column = reshaped(y, (*y.shape, 1)) if is_column else y
    z = MatMul().apply((row, column))[0]
    if not is_row and not is_column:
        return z
    *leading, rows, columns = z.shape
    if not is_row:
        leading.append(rows)
    if not is_column:
        leading.append(columns)
    return reshaped(z, tuple(leading))


def matrix_transpose(x: Any) -> Variable:
    """x with the last two axes swapped.

    Raises:
        ValueError: x has fewer than two axes.
    """
    x = as_operand("matrix_transpose", "x", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x needs two axes at least, its shape is {x.shape}.")
    return transposed(x)


def transposed(x: Variable) -> Variable:
    """``matrix_transpose`` of a matrix or a stack of matrices, without a check."""
    ndim = len(x.shape)
    return PermuteDims((*range(ndim - 2), ndim - 1, ndim - 2)).apply((x,))[0]


def tensordot(x: Any, y: Any, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Variable:
    """The sum of products over pairs of axes, as a single matrix product.

    Args:
        x: a Variable or an array.
        y: a Variable or an array.
        axes: how many of x's last axes meet y's first; or the axes of x and the axes of y.

    Raises:
        OperandError: ``axes`` is neither an integer nor a pair.
        ValueError: the axes do not exist, or differ in length.
    """
    x, y = as_operands("tensordot", x, y)
    x_axes, y_axes = _paired_axes(axes, x, y)
    if [x.shape[i] for i in x_axes] != [y.shape[i] for i in y_axes]:
        raise ValueError(
            f"tensordot: axes {x_axes} of x (shape {x.shape}) and {y_axes} of y (shape {y.shape}) "
            "must pair up in length."
        )
    x_rest = tuple(i for i in range(x.ndim) if i not in x_axes)
    y_rest = tuple(i for i in range(y.ndim) if i not in y_axes)
    inner = math.prod(x.shape[i] for i in x_axes)
    left_shape = tuple(x.shape[i] for i in x_rest)
    right_shape = tuple(y.shape[i] for i in y_rest)
    left = reshape(permute_dims(x, x_rest + x_axes), (math.prod(left_shape), inner))
    right = reshape(permute_dims(y, y_axes + y_rest), (inner, math.prod(right_shape)))
    return reshape(matmul(left, right), left_shape + right_shape)


def _paired_axes(axes: Any, x: Variable, y: Variable) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of x and of y summed by ``tensordot``, counted from the front."""
    if is_index(axes):
        axes = as_integer("tensordot", "axes", axes)
        if not 0 <= axes <= x.ndim or axes > y.ndim:
            raise ValueError(
                f"tensordot: axes={axes}, but x has {x.ndim} axes and y has {y.ndim}."
            )
        return tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise OperandError(
            "tensordot: axes must be an integer, or a pair (axes of x, axes of y), got "
            f"{describe(axes)}."
        )
    of_x, of_y = (as_shape("tensordot", f"axes[{i}]", axes[i]) for i in (0, 1))
    return normalize_axes("tensordot", of_x, x.ndim), normalize_axes("tensordot", of_y, y.ndim)


class VecDot(BroadcastingNode):
    """z = the sum of conj(x) * y over an axis, counted from the last; conj(x) is x if x is real.

    x: (s), y: (t) -> z: (broadcast of s and t, without the axis).
    With g = dL/dz, the axis put back:   dL/dx = sum_to(conj(g) y, s)   dL/dy = sum_to(g x, t)
    """

    is_elementwise = False
    complex_rule = "own"
    is_polynomial = True

    def __init__(self, axis: AxisFromEnd) -> None:
        self.axis: int = checked(self, "axis", axis)

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (vecdot_array(x, y, self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        spread = expand_dims(gz, self.axis)
        turned = conj(spread) if self.is_complex else spread
        factors = (turned, y), (spread, x)
        gradients: list[Variable | None] = [None, None]
        for i in target_input_indexes:
            product = factors[i][0] * factors[i][1]
            if self.is_masked:
                product = keep_zeros(product, spread, product)
            gradients[i] = unbroadcast(product, self, i)
        return tuple(gradients)


def vecdot(x: Any, y: Any, *, axis: int = -1) -> Variable:
    """The sum of conj(x) * y over an axis, counted from the last; the other axes broadcast.

    Raises:
        ValueError: the axis does not exist, or the lengths differ.
    """
    x, y = as_operands("vecdot", x, y)
    axis = as_integer("vecdot", "axis", axis)
    if axis >= 0 or -axis > min(x.ndim, y.ndim):
        raise ValueError(
            f"vecdot: axis {axis} must be negative, and exist in x (shape {x.shape}) and in y "
            f"(shape {y.shape}): axes are counted from the last."
        )
    if x.shape[axis] != y.shape[axis]:
        raise ValueError(
            f"vecdot: axis {axis} must have one length in x and y, got {x.shape[axis]} (shape "
            f"{x.shape}) and {y.shape[axis]} (shape {y.shape})."
        )
    return VecDot(axis).apply((x, y))[0]


def outer(x1: Any, x2: Any) -> Variable:
    """The outer product x1_i x2_j of two vectors.

    Raises:
        ValueError: x1 or x2 is not one-dimensional.
    """
    x1, x2 = as_operands("outer", x1, x2, ("x1", "x2"))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are needed, got shapes {x1.shape} and {x2.shape}.")
    return multiply(expand_dims(x1, 1), x2)


class Cross(BroadcastingNode):
    """z = cross(x, y), the cross product along an axis of length 3, counted from the last.

    x: (s), y: (t) -> z: (broadcast of s and t).
    With g = dL/dz:   dL/dx = sum_to(cross(y, g), s)   dL/dy = sum_to(cross(g, x), t)
    """

    is_elementwise = False
    complex_rule = "conjugate"
    is_polynomial = True
    input_names = ("x1", "x2")

    def __init__(self, axis: AxisFromEnd) -> None:
        self.axis: int = checked(self, "axis", axis)

    def forward(self, inputs: Arrays) -> Arrays:
        x, y = inputs
        self.retain_inputs((0, 1))
        return (namespace_of(x).linalg.cross(x, y, axis=self.axis),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gy = None
        if 0 in target_input_indexes:
            gx = unbroadcast(Cross(self.axis).apply((y, gz))[0], self, 0)
        if 1 in target_input_indexes:
            gy = unbroadcast(Cross(self.axis).apply((gz, x))[0], self, 1)
        return gx, gy


def cross(x1: Any, x2: Any, *, axis: int = -1) -> Variable:
    """The cross product of vectors of three elements along an axis; other axes broadcast.

    Raises:
        ValueError: the axis does not have length 3.
    """
    x1, x2 = as_operands("cross", x1, x2, ("x1", "x2"))
    axis = as_integer("cross", "axis", axis)
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim) or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"cross: axis {axis} must be negative and of length 3 in x1 (shape {x1.shape}) and x2 "
            f"(shape {x2.shape})."
        )
    return Cross(axis).apply((x1, x2))[0]


@functools.cache
def _orders(einsum: Any) -> bool:
    """True if an einsum takes ``optimize``; PyTorch's optimizes by default."""
    parameters = inspect.signature(einsum).parameters.values()
    return any(p.name == "optimize" or p.kind is p.VAR_KEYWORD for p in parameters)


def _of_one_dtype(xp: Any, inputs: Arrays) -> Arrays:
    """The arrays, cast where the dtypes differ: not every einsum promotes."""
    if all(x.dtype == inputs[0].dtype for x in inputs):
        return inputs
    dtype = xp.result_type(*inputs)
    return tuple(xp.astype(x, dtype) for x in inputs)


class Einsum(FunctionNode):
    """y = the sum of products by subscripts; no label twice in an operand.

    x_i: (lengths of the labels) -> y: (lengths of the output's labels).
    dL/dx_i = the sum of products of dL/dy and the other operands. The output has x_i's labels,
    and is repeated along the labels of x_i alone
    """

    input_counts = (1, ...)
    complex_rule = "conjugate"
    is_polynomial = True
    wide = True

    def __init__(self, inputs: tuple[Labels, ...], output: Labels) -> None:
        self.subscripts = checked_subscripts(self, inputs)
        self.output = checked_labels(self, "output", output)

    @property
    def label(self) -> str:
        return f"Einsum({','.join(self.subscripts)}->{self.output})"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(range(len(inputs)))
        xp = namespace_of(inputs[0])
        arrays = _of_one_dtype(xp, inputs)
        if hasattr(xp, "einsum"):
            if len(inputs) <= 2:
                return (einsum_array(self.subscripts, self.output, arrays),)
            text = f"{','.join(self.subscripts)}->{self.output}"
            options = {"optimize": True} if _orders(xp.einsum) else {}
            return (xp.einsum(text, *arrays, **options),)
        return (self._portable_einsum(xp, arrays),)

    def _portable_einsum(self, xp: Any, inputs: Arrays) -> Array:
        """Multiply all inputs, broadcast over all labels, then sum: simple, but takes memory."""
        rest = sorted(set("".join(self.subscripts)) - set(self.output))
        labels = self.output + "".join(rest)
        total = None
        for subscript, x in zip(self.subscripts, inputs, strict=True):
            order = sorted(
                range(x.ndim), key=[labels.index(label) for label in subscript].__getitem__
            )
            lengths = dict(zip(subscript, x.shape, strict=True))
            wide = xp.permute_dims(x, tuple(order)) if order else x
            wide = xp.reshape(wide, tuple(lengths.get(label, 1) for label in labels))
            total = wide if total is None else total * wide
        axes = tuple(range(len(self.output), len(labels)))
        return sum_array(total, axes) if axes else total

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        xs = self.get_retained_inputs()
        if self.is_masked and gy is not None:
            xs = tuple(self._counting(k, x, gy) for k, x in enumerate(xs))
        gradients = []
        for i in target_input_indexes:
            gradients.append(self._gradient(i, xs, gy))
        return tuple(gradients)

    def _counting(self, k: int, x: Variable, gy: Variable) -> Variable:
        """Operand k, but 0 where it is not finite and only gradients of 0 concern it."""
        subscript = self.subscripts[k]
        reached = "".join(label for label in subscript if label in self.output)
        size = Einsum((self.output,), reached).apply((absolute(gy),))[0]
        lengths = zip(subscript, x.shape, strict=True)
        size = reshape(size, tuple(n if label in reached else 1 for label, n in lengths))
        return keep_zeros(x, size, x)

    def _gradient(self, i: int, xs: tuple[Variable, ...], gy: Variable | None) -> Variable:
        subscript = self.subscripts[i]
        others = [k for k in range(len(xs)) if k != i]
        texts = (self.output, *(self.subscripts[k] for k in others))
        known = set("".join(texts))
        reached = "".join(label for label in subscript if label in known)
        gradient = Einsum(texts, reached).apply((gy, *(xs[k] for k in others)))[0]
        shape = tuple(
            n if label in known else 1 for label, n in zip(subscript, xs[i].shape, strict=True)
        )
        return unbroadcast(broadcast_to(reshape(gradient, shape), xs[i].shape), self, i)


def einsum(subscripts: Any, *operands: Any) -> Variable:
    """The sum of products in Einstein's notation: ``einsum("ij,jk->ik", x, y)`` is x @ y.

    Without ``->`` the labels used once are the output's, in alphabetical order. ``...`` stands
    for axes that broadcast. A label twice in an operand takes the diagonal.

    In the form with lists each operand is followed by its labels, integers from 0 to 25, or
    ``Ellipsis``; the output's labels come last: ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

        >>> x = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> F.einsum("ij->j", x).tolist()
        [4.0, 6.0]

    Raises:
        OperandError: there is no operand, or a label is no integer.
        ValueError: the subscripts do not describe the operands.
    """
    if operands and not isinstance(subscripts, str):
        subscripts, operands = _subscripts_of_lists((subscripts, *operands))
    if not isinstance(subscripts, str) or not operands:
        raise OperandError(
            "einsum: give the subscripts as text, then the operands: einsum('ij,jk->ik', x, y); "
            f"got {describe(subscripts)}."
        )
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        raise OperandError(
            "einsum: give the operands one by one, einsum(subscripts, x, y), got "
            f"{describe(operands[0])}."
        )
    first = first_variable(*operands)
    first = operands[0] if first is None else first
    xs = [
        as_operands("einsum", x, first, (f"operands[{i}]", "operands"))[0]
        for i, x in enumerate(operands)
    ]
    texts, output = _parse(subscripts, tuple([x.shape for x in xs]))
    inputs = list(texts)
    lengths: dict[str, int] = {}
    for position, (text, x) in enumerate(zip(inputs, xs, strict=True)):
        inputs[position], xs[position] = _without_repeats(text, x)
        for label, n in zip(inputs[position], xs[position].shape, strict=True):
            known = lengths.get(label, 1)
            if known != 1 and n not in (1, known):
                raise ValueError(
                    f"einsum: label {label!r} of operand {position} has length {n}, but "
                    f"{known} elsewhere."
                )
            lengths[label] = n if known == 1 else known
    for position, text in enumerate(inputs):
        xs[position] = broadcast_to(xs[position], tuple(lengths[label] for label in text))
    return Einsum(tuple(inputs), output).apply(xs)[0]


def _subscripts_of_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The form with lists as text: the subscripts, and the operands."""
    operands, labels = arguments[0:-1:2], arguments[1::2]
    texts = [_letters(label) for label in labels]
    # a list behind the last pair is the output's
    output = f"->{_letters(arguments[-1])}" if len(arguments) % 2 else ""
    return ",".join(texts) + output, operands


def _letters(labels: Any) -> str:
    if not isinstance(labels, list | tuple):
        raise OperandError(
            "einsum: give the subscripts as text, then the operands: einsum('ij,jk->ik', x, y); "
            "or a list of labels behind each operand: einsum(x, [0, 1], y, [1, 2], [0, 2]). Got "
            f"{describe(labels)} in place of a list."
        )
    letters = ""
    for label in labels:
        if label is Ellipsis:
            letters += "..."
        elif is_index(label) and 0 <= label < len(string.ascii_lowercase):
            letters += string.ascii_lowercase[label]
        else:
            raise OperandError(
                f"einsum: a label must be an integer from 0 to 25 or Ellipsis, got "
                f"{describe(label)}."
            )
    return letters


@functools.lru_cache(maxsize=1024)
def _parse(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """Labels of each operand and of the output; ``...`` becomes capital letters."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, output = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise ValueError(
            f"einsum: {subscripts!r} describes {len(inputs)} operands, {len(shapes)} were given."
        )
    for text in (*inputs, output):
        letters = text.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ValueError(
                f"einsum: {text!r} in {subscripts!r} is not made of letters and one '...'."
            )
    free = [label for label in string.ascii_uppercase if label not in subscripts]
    widths = []
    for text, shape in zip(inputs, shapes, strict=True):
        named = len(text.replace("...", ""))
        if named > len(shape) or (named < len(shape) and "..." not in text):
            raise ValueError(f"einsum: {text!r} does not fit an operand of shape {shape}.")
        widths.append(len(shape) - named if "..." in text else 0)
    dots = "".join(free[: max(widths)])
    expanded = [
        text.replace("...", dots[len(dots) - width :])
        for text, width in zip(inputs, widths, strict=True)
    ]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        output = "..." + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    output = output.replace("...", dots)
    if len(set(output)) != len(output) or not set(output) <= set("".join(expanded)):
        raise ValueError(
            f"einsum: the output of {subscripts!r} needs labels of the operands, once."
        )
    return tuple(expanded), output


def _without_repeats(text: str, x: Variable) -> tuple[str, Variable]:
    """Take the diagonal of each pair of axes with the same label."""
    for label in text:
        while text.count(label) > 1:
            i, j = text.index(label), text.rindex(label)
            n = x.shape[i]
            if x.shape[j] != n:
                raise ValueError(f"einsum: label {label!r} has lengths {n} and {x.shape[j]}.")
            rest = [k for k in range(x.ndim) if k not in (i, j)]
            flat = reshape(permute_dims(x, (*rest, i, j)), (*(x.shape[k] for k in rest), n * n))
            x = get_item(flat, (..., slice(None, None, n + 1)))
            text = "".join(text[k] for k in rest) + label
    return text, x
