"""Attention with several heads.

Step 19: join and forward are yours.
"""

from mynode.functions.network import scaled_dot_product_attention
from mynode.functions.shapes import permute_dims, reshape
from mynode.nn.layers import Linear
from mynode.nn.module import Module


class MultiHeadAttention(Module):
    """Several attentions side by side: each head looks by a part of the queries and keys.

    x: (batch, length, size) -> y: as x. With causal, place i looks at places 0 to i only.

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """

    def __init__(self, size, heads, causal=True):
        if size % heads:
            raise ValueError(f"MultiHeadAttention: heads={heads} must divide size={size}")
        self.heads = heads
        self.causal = causal
        self.query = Linear(size, size, bias=False)
        self.key = Linear(size, size, bias=False)
        self.value = Linear(size, size, bias=False)
        self.out = Linear(size, size)

    def split(self, x):
        """A part of the last axis for each head.

        x: (batch, length, size) -> (batch, heads, length, size / heads)
        """
        batch, length, size = x.shape
        parts = reshape(x, (batch, length, self.heads, size // self.heads))
        return permute_dims(parts, (0, 2, 1, 3))

    def join(self, parts):
        """The parts of the heads side by side again: what split has parted."""
        raise NotImplementedError("step 19: MultiHeadAttention.join")

    def forward(self, x):
        if x.ndim != 3:
            raise ValueError(
                f"MultiHeadAttention: x must be (batch, length, size), got the shape {x.shape}"
            )
        raise NotImplementedError("step 19: MultiHeadAttention.forward")
