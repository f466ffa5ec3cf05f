from mynode.nn.attention import MultiHeadAttention
from mynode.nn.transformer import Block
