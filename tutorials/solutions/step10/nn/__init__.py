"""Parameters, layers and optimizers."""

from mynode.nn.layers import Dropout, Linear, Sequential
from mynode.nn.module import Module
from mynode.nn.optimizers import SGD, Adam, AdamW, Optimizer
from mynode.nn.parameter import Parameter
