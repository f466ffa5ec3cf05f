"""Layers: modules with parameters of their own, and a chain of layers.

Step 10: Linear gets a further parameter, initializer=lecun_normal, behind a star. Write Dropout.
"""

from mynode.functions.draws import dropout
from mynode.nn.module import Module


class Dropout(Module):
    """In training, each number is 0 with probability ratio; the others grow by 1 / (1 - ratio)."""

    def __init__(self, ratio=0.5):
        raise NotImplementedError("step 10: keep the ratio")

    def forward(self, x):
        raise NotImplementedError("step 10: call dropout")
