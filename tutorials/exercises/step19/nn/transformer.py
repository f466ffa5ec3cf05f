"""The block of which transformers are made.

Step 19: Block.forward is yours; the docstring has the formula.
"""

from mynode.functions.activation import relu
from mynode.nn.attention import MultiHeadAttention
from mynode.nn.layers import Linear
from mynode.nn.module import Module
from mynode.nn.normalization_layers import LayerNorm


class Block(Module):
    """x + attention(norm1(x)), then x + down(relu(up(norm2(x)))).

    x: (batch, length, size) -> y: as x. Places exchange numbers in the attention only; up and
    down, a perceptron with a hidden layer of 4 size, work on each place alone.

    Source: Vaswani et al., Attention Is All You Need, 2017; the norms stand in front of the
    branches, as in Xiong et al., On Layer Normalization in the Transformer Architecture, 2020.
    """

    def __init__(self, size, heads):
        self.norm1 = LayerNorm(size)
        self.attention = MultiHeadAttention(size, heads)
        self.norm2 = LayerNorm(size)
        self.up = Linear(size, 4 * size)
        self.down = Linear(4 * size, size)

    def forward(self, x):
        raise NotImplementedError("step 19: Block.forward")
