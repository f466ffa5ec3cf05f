"""A layer of experts: each row of a batch goes through few of them."""

import numpy as np
from mynode.functions.activation import softmax
from mynode.functions.routing import balance_loss, choose, gate_weights, put_rows, take_rows
from mynode.functions.shapes import reshape
from mynode.nn.layers import Linear
from mynode.nn.module import Module


class Experts(Module):
    """y = the sum over the k chosen experts e of weight_e(x) * expert_e(x), for each row x.

    After a call, chosen has the numbers of the experts, (n, k), and balance the balance loss.

    Source: Shazeer et al., Outrageously Large Neural Networks, 2017.
    """

    def __init__(self, in_size, experts, k=1):
        self.gate = Linear(in_size, len(experts))
        self.experts = experts
        self.k = k
        self.chosen = None
        self.balance = None

    def forward(self, x):
        logits = self.gate(x)
        p = softmax(logits)
        self.chosen = choose(logits.array, self.k)
        self.balance = balance_loss(p, self.chosen)
        weights = reshape(gate_weights(p, self.chosen), (-1, 1))
        y = None
        for e, expert in enumerate(self.experts):
            rows = np.flatnonzero((self.chosen == e).any(axis=1))
            if rows.size == 0:
                continue  # this expert computes nothing, and gets no gradient
            places = rows * len(self.experts) + e
            part = expert(take_rows(x, rows)) * take_rows(weights, places)
            part = put_rows(part, rows, x.shape[0])
            y = part if y is None else y + part
        return y
