"""Embedding, dropout and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.backend import is_integer
from tinynode.configuration import config
from tinynode.errors import OperandError, describe
from tinynode.functions.activation import softmax
from tinynode.functions.gathering import TakeRows, require_integers
from tinynode.functions.linear import matmul, matrix_transpose
from tinynode.functions.operands import as_operand, as_operands
from tinynode.functions.selection import where
from tinynode.functions.shaping import reshape
from tinynode.variable import Variable, wrap_array


def embedding(indices: Any, w: Any) -> Variable:
    """y[...] = w[indices[...]]: a row of w for each index.

    dL/dw = zeros, to which each row of dL/dy is added at its index.

    Args:
        indices: integers from 0 to rows - 1, of any shape.
        w: (rows, size).

    Returns:
        (shape of indices, size).

    Raises:
        OperandError: the indices are not integers.
        IndexError: an index is out of bounds.
        ValueError: w does not have two axes.
    """
    w = as_operand("embedding", "w", w)
    if w.ndim != 2:
        raise ValueError(f"embedding: w must be (rows, size), its shape is {w.shape}.")
    rows = require_integers("embedding", indices, w, w.shape[0])
    taken = TakeRows().apply((w, reshape(rows, -1)))[0]
    return reshape(taken, (*rows.shape, w.shape[1]))


def dropout(x: Any, ratio: float = 0.5, generator: Any = None) -> Variable:
    """x * mask / (1 - ratio); an element of the mask is 0 with probability ``ratio``, else 1.

    Outside training (``config.train`` False) it is x itself.

    Args:
        x: floating.
        ratio: from 0 to below 1.
        generator: the ``numpy.random.Generator`` that draws the mask, on the host, so it is the
            same on every device.

    Source: Srivastava et al., Dropout, 2014.

    Raises:
        ValueError: the ratio is out of range.
        OperandError: no generator was given.
    """
    source = as_operand("dropout", "x", x)
    if not 0.0 <= ratio < 1.0:
        raise ValueError(f"dropout: ratio must lie in 0 to below 1, got {ratio}.")
    if not config.train or ratio == 0.0:
        return source
    if not hasattr(generator, "random"):
        raise OperandError(
            f"dropout: generator must be a numpy.random.Generator, got {describe(generator)}. "
            "Make one with numpy.random.default_rng(seed)."
        )
    kept = numpy.asarray(generator.random(source.shape) >= ratio)
    mask = source.xp.astype(source._device.from_host(kept), source.dtype)
    return source * wrap_array(mask * (1.0 / (1.0 - ratio)), source._device, False)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False
) -> Variable:
    """softmax(query key^T / sqrt(d)) value, where the mask lets.

    Args:
        query: (..., n, d).
        key: (..., m, d).
        value: (..., m, e).
        mask: bool, broadcasts to (..., n, m): True where a query may see a key; or None.
        causal: query i sees keys 0 to i only.

    Returns:
        (..., n, e); zeros for a query that may see no key.

    Source: Vaswani et al., Attention Is All You Need, 2017.

    Raises:
        OperandError: the mask is not bool.
        InvalidType: the shapes do not fit together.
    """
    query, key = as_operands("scaled_dot_product_attention", query, key)
    value = as_operand("scaled_dot_product_attention", "value", value)
    scores = matmul(query * (1.0 / math.sqrt(query.shape[-1])), matrix_transpose(key))
    if mask is not None:
        mask = as_operand("scaled_dot_product_attention", "mask", mask)
        if is_integer(mask._array) or mask.dtype != mask.xp.bool:
            raise OperandError(
                "scaled_dot_product_attention: mask must be bool, True where a query may see a "
                f"key, got {describe(mask)}."
            )
        scores = where(mask, scores, -math.inf)
    if causal:
        n, m = scores.shape[-2:]
        xp, device = scores.xp, scores._array.device
        allowed = xp.arange(n, device=device)[:, None] >= xp.arange(m, device=device)[None, :]
        scores = where(allowed, scores, -math.inf)
    return matmul(softmax(scores, axis=-1), value)
