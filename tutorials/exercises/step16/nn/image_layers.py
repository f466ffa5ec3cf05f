"""Layers for images, (n, channels, height, width). Step 16: the page shows Conv2d."""

import numpy as np
from mynode.functions.convolution import conv2d
from mynode.functions.pooling import max_pool2d
from mynode.functions.shapes import reshape
from mynode.nn.initializers import lecun_normal
from mynode.nn.module import Module
from mynode.nn.parameter import Parameter


class Conv2d(Module):
    """A kernel for each output channel, the same at every place of the image."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        raise NotImplementedError("step 16: Conv2d.__init__")

    def forward(self, x):
        raise NotImplementedError("step 16: Conv2d.forward")


class MaxPool2d(Module):
    """The largest pixel of each window."""

    def __init__(self, kernel_size, stride=None):
        raise NotImplementedError("step 16: MaxPool2d.__init__")

    def forward(self, x):
        raise NotImplementedError("step 16: MaxPool2d.forward")


class Flatten(Module):
    """All numbers of an image in a row."""

    def forward(self, x):
        raise NotImplementedError("step 16: Flatten.forward")
