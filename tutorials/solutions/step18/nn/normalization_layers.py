"""Layers that normalise."""

import numpy as np
from mynode.functions.normalization import layer_norm
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class LayerNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta, over the last axis.

    x: (..., size) -> y: as x. gamma begins as ones, beta as zeros.
    """

    def __init__(self, shape, eps=1e-5):
        self.gamma = Parameter(np.ones(shape), name="gamma")
        self.beta = Parameter(np.zeros(shape), name="beta")
        self.eps = eps

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps)
