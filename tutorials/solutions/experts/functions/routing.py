"""Rows of a batch on their way to experts, and back."""

import numpy as np
from mynode.core.function_node import FunctionNode
from mynode.core.variable import Variable
from mynode.functions.indexing import TakeRows
from mynode.functions.statistical import mean, sum


class PutRows(FunctionNode):
    """y = zeros, with x[i] added to row indices[i].   gx[i] = gy[indices[i]]

    x: (m, size), indices: (m), integers -> y: (rows, size). The opposite of TakeRows.
    """

    def __init__(self, rows):
        self.rows = rows

    def forward(self, inputs):
        x, indices = inputs
        self.retain_inputs((1,))
        y = np.zeros((self.rows, *x.shape[1:]), x.dtype)
        np.add.at(y, indices, x)  # an index may come twice
        return (y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (indices,) = self.get_retained_inputs()
        return gy[indices], None


def take_rows(x, indices):
    """The rows of x at these places: (rows, size) and (m) -> (m, size)."""
    return TakeRows().apply((x, Variable(indices)))[0]


def put_rows(x, indices, rows):
    """Zeros of so many rows, with the rows of x at these places."""
    return PutRows(rows).apply((x, Variable(indices)))[0]


def choose(logits, k):
    """The numbers of the k largest logits of each row, the largest first: (n, experts) -> (n, k).

    Of equal logits, the one of the first expert counts as the larger.
    """
    return np.argsort(-logits, axis=1, kind="stable")[:, :k]


def gate_weights(p, chosen):
    """The weights of the experts: p at the chosen experts, and 0 at the others.

    p: (n, experts), chosen: (n, k) -> (n, experts). With k of 2 or more, the weights of each row
    are divided by their sum. With k = 1 they are not: the gate would get no gradient.

    Source: Shazeer et al., Outrageously Large Neural Networks, 2017; for k = 1: Fedus, Zoph and
    Shazeer, Switch Transformers, 2021.
    """
    mask = np.zeros(p.shape, p.dtype)
    np.put_along_axis(mask, chosen, 1.0, axis=1)
    kept = p * mask
    if chosen.shape[1] == 1:
        return kept
    return kept / sum(kept, axis=1, keepdims=True)


def balance_loss(p, chosen):
    """experts * sum of f * P: 1 if all experts get the same share, and more if few get all.

    f: the share of the choices that fell on each expert, a constant. P: the mean of p over rows.
    p: (n, experts), chosen: (n, k) -> ().

    Source: Fedus, Zoph and Shazeer, Switch Transformers, 2021.
    """
    experts = p.shape[1]
    f = np.bincount(chosen.ravel(), minlength=experts) / chosen.size
    return sum(mean(p, axis=0) * f.astype(p.dtype)) * experts
