"""Layers that normalise. Step 18: the page shows this file."""

import numpy as np
from mynode.functions.normalization import layer_norm
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class LayerNorm(Module):
    """y = (x - m) / sqrt(v + eps) * gamma + beta, over the last axis.

    x: (..., size) -> y: as x. gamma begins as ones, beta as zeros.
    """

    def __init__(self, shape, eps=1e-5):
        raise NotImplementedError("step 18: LayerNorm.__init__")

    def forward(self, x):
        raise NotImplementedError("step 18: LayerNorm.forward")
