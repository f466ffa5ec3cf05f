"""Layers: modules with parameters of their own. Step 17: the page shows Embedding."""

from mynode import random
from mynode.functions.network import embedding
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class Embedding(Module):
    """A trained row of numbers for each index.   indices: (n) -> y: (n, size)"""

    def __init__(self, rows, size):
        raise NotImplementedError("step 17: Embedding.__init__")

    def forward(self, indices):
        raise NotImplementedError("step 17: Embedding.forward")
