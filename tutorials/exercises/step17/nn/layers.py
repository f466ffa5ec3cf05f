"""Layers: modules with parameters of their own. Step 17: Embedding is given."""

from mynode import random
from mynode.functions.network import embedding
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class Embedding(Module):
    """A trained row of numbers for each index.   indices: (n) -> y: (n, size)"""

    def __init__(self, rows, size):
        self.weight = Parameter(random.normal((rows, size)), name="weight")

    def forward(self, indices):
        return embedding(indices, self.weight)
