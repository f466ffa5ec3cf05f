"""A layer of experts: each row of a batch goes through few of them.

Elective experts: write Experts.forward.
"""

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
        raise NotImplementedError("elective experts: Experts.forward")
