"""Rows of a batch on their way to experts, and back.

Elective experts: write PutRows, choose, gate_weights and balance_loss.
"""

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
        raise NotImplementedError("elective experts: PutRows.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("elective experts: PutRows.backward")


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
    raise NotImplementedError("elective experts: choose")


def gate_weights(p, chosen):
    """The weights of the experts: p at the chosen experts, and 0 at the others.

    p: (n, experts), chosen: (n, k) -> (n, experts). With k of 2 or more, the weights of each row
    are divided by their sum. With k = 1 they are not: the gate would get no gradient.

    Source: Shazeer et al., Outrageously Large Neural Networks, 2017; for k = 1: Fedus, Zoph and
    Shazeer, Switch Transformers, 2021.
    """
    raise NotImplementedError("elective experts: gate_weights")


def balance_loss(p, chosen):
    """experts * sum of f * P: 1 if all experts get the same share, and more if few get all.

    f: the share of the choices that fell on each expert, a constant. P: the mean of p over rows.
    p: (n, experts), chosen: (n, k) -> ().

    Source: Fedus, Zoph and Shazeer, Switch Transformers, 2021.
    """
    raise NotImplementedError("elective experts: balance_loss")
