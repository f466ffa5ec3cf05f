"""Parameters, layers and optimizers."""

from mynode.nn.image_layers import Conv2d, Flatten, MaxPool2d
from mynode.nn.layers import Dropout, Linear, Sequential
from mynode.nn.module import Module
from mynode.nn.optimizers import SGD, Adam, AdamW, Optimizer
from mynode.nn.parameter import Parameter
