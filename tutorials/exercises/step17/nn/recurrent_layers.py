"""Layers that remember: a step of a sequence changes the state.

Step 17: gates and forward are yours.

GRUCell has six layers Linear for the matrices A to F of the formulas, in this order. Those of the
state have no bias.
"""

from mynode.functions.exponential import sigmoid
from mynode.functions.trigonometric import tanh
from mynode.nn.layers import Linear
from mynode.nn.module import Module


class GRUCell(Module):
    """h' = (1 - z) h + z n: where the gate z is near 0 the state stays, near 1 it is replaced.

    z = sigmoid(A x + B h)   r = sigmoid(C x + D h)   n = tanh(E x + F (r h))
    x: (n, in_size), h: (n, size) -> h': (n, size)

    In PyTorch, r is applied after the product with F, and z and 1 - z are exchanged.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.
    """

    def __init__(self, in_size, size):
        self.update_x, self.update_h = Linear(in_size, size), Linear(size, size, bias=False)
        self.reset_x, self.reset_h = Linear(in_size, size), Linear(size, size, bias=False)
        self.new_x, self.new_h = Linear(in_size, size), Linear(size, size, bias=False)

    def gates(self, x, h):
        """The gates z and r: how much is replaced, and how much of h the new state sees."""
        raise NotImplementedError("step 17: GRUCell.gates: return z, r")

    def forward(self, x, h):
        raise NotImplementedError("step 17: GRUCell.forward")
