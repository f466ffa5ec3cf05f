"""Layers: modules with parameters of their own, and a chain of layers.

Step 8: Linear is given; write Sequential.forward.
"""

import numpy as np
from mynode.functions.network import linear
from mynode.nn.initializers import lecun_normal
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class Linear(Module):
    """y = x W^T + b.   x: (n, in_size) -> y: (n, out_size)"""

    def __init__(self, in_size, out_size, bias=True):
        self.weight = Parameter(lecun_normal((out_size, in_size)), name="weight")
        self.bias = Parameter(np.zeros(out_size), name="bias") if bias else None

    def forward(self, x):
        return linear(x, self.weight, self.bias)


class Sequential(Module):
    """Calls layers and functions, each with the output of the one before."""

    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        raise NotImplementedError("step 8: call each layer")
