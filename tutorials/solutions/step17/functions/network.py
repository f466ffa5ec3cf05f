"""What the layers of a network compute."""

import math

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.functions.activation import softmax
from mynode.functions.arithmetic import as_operands
from mynode.functions.indexing import TakeRows
from mynode.functions.products import matmul
from mynode.type_check import expect, is_floating


class Linear(FunctionNode):
    """y = x W^T + b.   With the rows of gy:   gx = gy W, gW = gy^T x, gb = the sum of the rows

    x: (..., in), W: (out, in), b: (out) -> y: (..., out)
    """

    def check_type_forward(self, in_types):
        x, w = in_types[:2]
        expect(is_floating(x), is_floating(w))
        expect(x.ndim >= 1, w.ndim == 2)
        expect(x.shape[-1] == w.shape[1])
        if len(in_types) == 3:
            expect(in_types[2].ndim == 1)
            expect(in_types[2].shape[0] == w.shape[0])

    def forward(self, inputs):
        x, w = inputs[:2]
        self.retain_inputs((0, 1))
        y = x @ w.T
        return (y if len(inputs) == 2 else y + inputs[2],)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        rows = gy.reshape(-1, w.shape[0])
        gx = gy @ w if 0 in target_input_indexes else None
        gw = rows.T @ x.reshape(-1, w.shape[1]) if 1 in target_input_indexes else None
        gb = rows.sum(axis=0)
        return (gx, gw, gb)[: len(self.inputs)]


def linear(x, w, b=None):
    """x W^T + b."""
    x, w = as_operands(x, w)
    return Linear().apply((x, w) if b is None else (x, w, b))[0]


def embedding(indices, w):
    """A row of w for each index: (n), integers, and (rows, size) -> (n, size)."""
    if not isinstance(indices, Variable):
        indices = Variable(np.asarray(indices))
    return TakeRows().apply((w, indices))[0]


def masked(scores, mask=None, causal=False):
    """The scores, and -inf where a query must not look: softmax makes a weight of 0 of -inf.

    scores: (..., n, m). mask: (n, m), False where a query must not look. causal: query i looks at
    keys 0 to i only. With a mask and causal, both hold.
    """
    if causal:
        seen = np.tri(*scores.shape[-2:], dtype=bool)
        mask = seen if mask is None else mask & seen
    if mask is None:
        return scores
    return scores + np.where(mask, 0.0, -np.inf).astype(scores.dtype)


def scaled_dot_product_attention(query, key, value, mask=None, causal=False):
    """softmax(query key^T / sqrt(d)) value: a mean of the values, by how well the keys fit.

    query: (n, d), key: (m, d), value: (m, e) -> (n, e). mask: (n, m), False where a query must
    not look. causal: query i looks at keys 0 to i only.
    """
    scores = linear(query, key) / math.sqrt(query.shape[1])
    return matmul(softmax(masked(scores, mask, causal)), value)
