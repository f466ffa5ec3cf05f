"""Parameters, layers and optimizers."""

from mynode.nn import schedules
from mynode.nn.attention import MultiHeadAttention
from mynode.nn.image_layers import Conv2d, Flatten, MaxPool2d
from mynode.nn.language_model import GPT
from mynode.nn.layers import Dropout, Embedding, Linear, Residual, Sequential
from mynode.nn.module import Module
from mynode.nn.normalization_layers import LayerNorm
from mynode.nn.optimizers import SGD, Adam, AdamW, Optimizer
from mynode.nn.parameter import Parameter
from mynode.nn.recurrent_layers import GRUCell
from mynode.nn.transformer import Block
