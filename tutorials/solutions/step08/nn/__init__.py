"""Parameters, layers and optimizers."""

from mynode.nn.layers import Linear, Sequential
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter
