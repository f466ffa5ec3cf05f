"""Low-rank adaptation: a large frozen matrix, and a small trained product beside it.

Step 21: write the rest of LoRALinear. Its weight and bias are arrays, no parameters.
"""

import numpy as np
from mynode.functions.network import linear
from mynode.nn.initializers import lecun_normal
from mynode.nn.layers import Linear
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class LoRALinear(Module):
    """y = x W^T + bias + scale * (x A^T) B^T: only A and B are trained; W and bias are frozen.

    A: (rank, in_size), B: (out_size, rank). B begins as zeros: y begins as that of the layer.

    Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021.
    """

    def __init__(self, layer, rank, scale=1.0):
        self.weight = layer.weight.array
        self.bias = None if layer.bias is None else layer.bias.array
        self.scale = scale
        out_size, in_size = self.weight.shape
        dtype = self.weight.dtype
        raise NotImplementedError("step 21: LoRALinear.__init__: self.a and self.b, Parameters")

    def forward(self, x):
        raise NotImplementedError("step 21: LoRALinear.forward")

    def merged(self):
        """A layer Linear with the same outputs: its weight is W + scale * B A."""
        out_size, in_size = self.weight.shape
        layer = Linear(in_size, out_size, bias=self.bias is not None, initializer=np.zeros)
        if self.bias is not None:
            layer.bias.array = self.bias
        raise NotImplementedError("step 21: LoRALinear.merged: the weight of the layer")


def freeze(model):
    """Let no parameter of the model want a gradient."""
    for p in model.parameters():
        p.requires_grad = False
        p.node.requires_grad = False  # the graph asks the node


def add_lora(model, rank, scale=1.0):
    """Freeze a GPT, and adapt each layer Linear.

    Returns the trained parameters, for an optimizer: two for each adapted layer.
    """
    freeze(model)
    for block in model.blocks:
        attention = block.attention
        attention.query = LoRALinear(attention.query, rank, scale)
        attention.key = LoRALinear(attention.key, rank, scale)
        attention.value = LoRALinear(attention.value, rank, scale)
        attention.out = LoRALinear(attention.out, rank, scale)
        block.up = LoRALinear(block.up, rank, scale)
        block.down = LoRALinear(block.down, rank, scale)
    model.head = LoRALinear(model.head, rank, scale)
    return [p for p in model.parameters() if p.requires_grad]


def merge_lora(model):
    """Put the merged layers in place of the adapted ones."""
    for block in model.blocks:
        attention = block.attention
        attention.query = attention.query.merged()
        attention.key = attention.key.merged()
        attention.value = attention.value.merged()
        attention.out = attention.out.merged()
        block.up = block.up.merged()
        block.down = block.down.merged()
    model.head = model.head.merged()
