"""Layers: modules with parameters of their own, and a chain of layers."""

import numpy as np
from mynode import random
from mynode.functions.draws import dropout
from mynode.functions.network import embedding, linear
from mynode.nn.initializers import lecun_normal
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class Linear(Module):
    """y = x W^T + b.   x: (n, in_size) -> y: (n, out_size)"""

    def __init__(self, in_size, out_size, bias=True, *, initializer=lecun_normal):
        self.weight = Parameter(initializer((out_size, in_size)), name="weight")
        self.bias = Parameter(np.zeros(out_size), name="bias") if bias else None

    def forward(self, x):
        return linear(x, self.weight, self.bias)


class Sequential(Module):
    """Calls layers and functions, each with the output of the one before."""

    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Residual(Sequential):
    """y = x + f(x), where f is the chain of layers. f(x) has the shape of x.

    Source: He et al., Deep Residual Learning for Image Recognition, 2016.
    """

    def forward(self, x):
        return x + super().forward(x)


class Dropout(Module):
    """In training, each number is 0 with probability ratio; the others grow by 1 / (1 - ratio)."""

    def __init__(self, ratio=0.5):
        self.ratio = ratio

    def forward(self, x):
        return dropout(x, self.ratio)


class Embedding(Module):
    """A trained row of numbers for each index.   indices: (n) -> y: (n, size)"""

    def __init__(self, rows, size):
        self.weight = Parameter(random.normal((rows, size)), name="weight")

    def forward(self, indices):
        return embedding(indices, self.weight)
