"""Linear layers, embedding and attention."""

from __future__ import annotations

import math
from typing import Any, Never

from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, any_true, is_float16, is_integer, namespace_of
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions import guards
from tinynode.functions.activation import softmax
from tinynode.functions.attributes import Shape
from tinynode.functions.checked import checked_shape
from tinynode.functions.comparison import not_equal
from tinynode.functions.data_types import narrowed, promoted, widened
from tinynode.functions.indexing import TakeRows, index_list
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_operand,
    as_operands,
    first_variable,
)
from tinynode.functions.products import (
    MatMul,
    matmul,
    matmul_array,
    matrix_transpose,
    transposed_times,
)
from tinynode.functions.searching import where
from tinynode.functions.shapes import (
    broadcast_shapes,
    expand_dims,
    permute_dims,
    reshape,
    reshaped,
)
from tinynode.functions.statistical import Sum
from tinynode.type_check import TypeInfoTuple, expect

__all__ = ["Linear", "bilinear", "embedding", "linear", "scaled_dot_product_attention"]
__dir__ = __all__.copy  # for completion


class Linear(FunctionNode):
    """y = x W^T + b.

    x: (..., in), W: (out, in), b: (out) -> y: (..., out).
    With g = dL/dy, leading axes flattened:
    dL/dx = g W   dL/dW = g^T x   dL/db = sum of the rows of g
    """

    input_counts = (2, 3)
    guard = guards.PRODUCT
    is_polynomial = True
    input_names = ("x", "w", "b")
    type_hint = (
        "W has shape (out, in), where in is the length of the last axis of x, and the dtype of x."
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
        x, w, *b = inputs
        self.retain_inputs((0, 1))
        y = matmul_array(x, w.mT)
        if b:
            y += b[0]
        return (y,)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        is_matrix = x.ndim == 2
        flat = gy if is_matrix else reshaped(gy, (math.prod(x.shape[:-1]), w.shape[0]))
        gradients: list[Variable | None] = []
        for i in target_input_indexes:
            if i == 0:
                gradients.append(matmul(gy, w) if gy.ndim == 1 else MatMul().apply((gy, w))[0])
            elif i == 1:
                flat_x = x if is_matrix else reshaped(x, (flat.shape[0], w.shape[1]))
                gradients.append(transposed_times(flat, flat_x))
            else:
                gradients.append(Sum((0,), keepdims=False).apply((flat,))[0])
        return tuple(gradients)


def linear(x: Any, w: Any, b: Any = None, **unknown: Never) -> Variable:
    """x W^T + b.

    y[..., o] = the sum over i of x[..., i] W[o, i], + b[o].   x: (..., in) -> y: (..., out).

        >>> x, w = tn.asarray([[1.0, 2.0]]), tn.asarray([[3.0, 4.0]])
        >>> F.linear(x, w, tn.asarray([0.5])).tolist()
        [[11.5]]

    Args:
        x: (..., in).
        w: the weight, (out, in).
        b: the bias, (out), or None.

    Raises:
        InvalidType: the shapes do not fit together, or floats stand beside integers.
    """
    if unknown:
        raise unknown_keywords("linear", unknown)
    x, w = as_operands("linear", x, w, names=("x", "w"), beside=b)
    if b is None:
        return Linear().apply(promoted(x, w))[0]
    if not isinstance(b, Variable):  # a raw array takes the dtype of the weight
        as_operand("linear", "b", b, w)  # refuses a number
        b = as_operands("linear", b, w, names=("b", "w"))[0]
    return Linear().apply(promoted(x, w, b))[0]


def bilinear(x1: Any, x2: Any, w: Any, b: Any = None) -> Variable:
    """y[n, o] = b[o] + the sum over i, j of x1[n, i] w[o, i, j] x2[n, j].

    Args:
        x1: (n, in1).
        x2: (n, in2).
        w: (out, in1, in2).
        b: (out), or None.

    Raises:
        ValueError: the shapes do not fit together.
    """
    x1, w = as_operands("bilinear", x1, w, names=("x1", "w"), beside=first_variable(x2, b))
    x2 = as_operands("bilinear", x2, w, names=("x2", "w"))[0]
    if (
        x1.ndim != 2
        or x2.ndim != 2
        or w.ndim != 3
        or w.shape[1:] != (x1.shape[1], x2.shape[1])
        or x1.shape[0] != x2.shape[0]
    ):
        raise ValueError(
            "bilinear: x1 must be (n, in1), x2 (n, in2) and w (out, in1, in2); got shapes "
            f"{x1.shape}, {x2.shape} and {w.shape}."
        )
    n, (out, in1, in2) = x1.shape[0], w.shape
    left = reshape(
        matmul(x1, reshape(permute_dims(w, (1, 0, 2)), (in1, out * in2))), (n, out, in2)
    )
    y = reshape(matmul(left, reshape(x2, (n, in2, 1))), (n, out))
    if b is None:
        return y
    bias = as_operands("bilinear", b, y, names=("b", "x1"))[0]
    if bias.shape != (out,):
        raise ValueError(f"bilinear: b must have shape ({out},), got {bias.shape}.")
    return y + bias


def embedding(
    indices: Any, w: Any, padding_index: int | None = None, **unknown: Never
) -> Variable:
    """y[...] = w[indices[...]]: a row of w for each index.

    dL/dw = zeros, plus each row of dL/dy at the index.

    Args:
        indices: integers from 0 to rows - 1, of any shape.
        w: (rows, size).
        padding_index: an index whose row of w gets no gradient, or None.

    Returns:
        (shape of indices, size).

    Raises:
        OperandError: the indices are not integers.
        IndexError: an index is negative, or not below the number of rows.
        ValueError: w does not have two axes.
    """
    if unknown:
        raise unknown_keywords("embedding", unknown)
    w = as_operand("embedding", "w", w, indices)
    if w.ndim != 2:
        raise ValueError(f"embedding: w must be (rows, size), its shape is {w.shape}.")
    if isinstance(indices, list | tuple | int):
        indices = index_list("embedding", "indices", indices, w)
    rows = as_operand("embedding", "indices", indices, w)
    if not is_integer(rows.raw):
        raise OperandError(f"embedding: indices must be integers, got {describe(indices)}.")
    rows = CheckedRows(w.shape).apply((rows,))[0]
    taken = TakeRows().apply((w, reshape(rows, -1)))[0]
    y = reshaped(taken, (*rows.shape, w.shape[1]))
    if padding_index is None:
        return y
    counted = not_equal(rows, as_integer("embedding", "padding_index", padding_index))
    return where(expand_dims(counted, -1), y, y.detach())


class CheckedRows(FunctionNode):
    """y = x, the indices of rows of a matrix, or an IndexError.

    x: (s), integer -> y: (s). No gradient.
    """

    is_elementwise = True

    def __init__(self, shape: Shape) -> None:
        self.shape = checked_shape(self, shape)

    def forward(self, inputs: Arrays) -> Arrays:
        check_rows(inputs[0], self.shape)
        return inputs


def check_rows(indices: Array, shape: tuple[int, ...]) -> None:
    """Raise IndexError if an index is no row of a matrix of the given shape."""
    xp = namespace_of(indices)
    if math.prod(indices.shape) and any_true((indices < 0) | (indices >= shape[0])):
        raise IndexError(
            f"embedding: indices run from {int(xp.min(indices))} to {int(xp.max(indices))}; w "
            f"(shape {shape}) has the rows 0 to {shape[0] - 1}."
        )


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    causal: bool = False,
    **unknown: Never,
) -> Variable:
    """softmax(query key^T / sqrt(d)) value, where the mask lets.

    Args:
        query: (..., n, d).
        key: (..., m, d).
        value: (..., m, e).
        mask: bool, broadcasts to (..., n, m): True where a query may see a key; or None.
        causal: query i sees keys 0 to i only.

    Returns:
        (..., n, e); zeros for a query without visible keys.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    Raises:
        OperandError: the query is not floating, or the mask is not bool.
        ValueError: the shapes do not fit together.
    """
    if unknown:
        raise unknown_keywords("scaled_dot_product_attention", unknown)
    query, key, value = _check_attention(query, key, value, mask)
    causal = as_flag("scaled_dot_product_attention", "causal", causal)
    return matmul(attention_weights(query, key, mask, causal), value)


def attention_weights(
    query: Variable,
    key: Variable,
    mask: Any = None,
    causal: bool = False,
    bias: Any = None,
    start: int = 0,
) -> Variable:
    """softmax(query key^T / sqrt(d) + bias), and 0 where the mask hides: (..., n, m).

    The arguments are those of ``scaled_dot_product_attention``; ``bias`` is added to the scores.
    With ``causal``, query i sees keys 0 to start + i.
    """
    scale = 1.0 / math.sqrt(query.shape[-1] or 1)
    # a float16 score ends at 65,504
    scores = matmul(widened(query) * scale, matrix_transpose(widened(key)))
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = where(_check_mask(mask, scores), scores, -math.inf)
    if causal:
        n, m = scores.shape[-2:]
        xp, device = scores.xp, scores.raw.device
        last = xp.arange(start, start + n, device=device)
        allowed = last[:, None] >= xp.arange(m, device=device)[None, :]
        scores = where(allowed, scores, -math.inf)
    weights = softmax(scores, axis=-1)
    return narrowed(weights, query) if is_float16(key.raw) else weights


def _check_attention(
    query: Any, key: Any, value: Any, mask: Any
) -> tuple[Variable, Variable, Variable]:
    """The three as Variables; raises ValueError unless the shapes fit together."""
    name = "scaled_dot_product_attention"
    first = first_variable(value, mask)
    query, key = as_operands(name, query, key, names=("query", "key"), beside=first)
    value = as_operands(name, value, query, names=("value", "query"))[0]
    as_floating(name, "query", query)
    fits = min(query.ndim, key.ndim, value.ndim) >= 2 and query.shape[-1] == key.shape[-1]
    if not fits or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"{name}: query must be (..., n, d), key (..., m, d) and value (..., m, e); got "
            f"shapes {query.shape}, {key.shape} and {value.shape}."
        )
    try:
        broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{name}: the leading axes of query {query.shape}, key {key.shape} and value "
            f"{value.shape} do not broadcast together."
        ) from None
    return query, key, value


def _check_mask(mask: Any, scores: Variable) -> Variable:
    """The mask as a Variable; raises unless the mask is bool and broadcasts with the scores."""
    name = "scaled_dot_product_attention"
    given = as_operand(name, "mask", mask, scores)
    if given.dtype != given.xp.bool:
        raise OperandError(
            f"{name}: mask must be bool, True where a query may see a key, got {describe(mask)}."
        )
    try:
        broadcast_shapes(given.shape, scores.shape)
    except ValueError:
        raise ValueError(
            f"{name}: mask has shape {given.shape}, which does not broadcast with that of the "
            f"scores, {scores.shape}: (..., queries, keys)."
        ) from None
    return given
