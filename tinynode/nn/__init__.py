"""Training: parameters, layers, optimizers, saving and loading, small data sets.

from tinynode import nn
from tinynode.functions import relu, softmax_cross_entropy

model = nn.Sequential(nn.Linear(64, 128), relu, nn.Linear(128, 10))
optimizer = nn.Adam(model, lr=0.001)

optimizer.cleargrads()
softmax_cross_entropy(model(images), labels).backward()
optimizer.update()

nn.save("model.npz", model)
model.load_state_dict(nn.load("model.npz"))
"""

import typing

from tinynode import functions, habits
from tinynode.nn import datasets, initializers
from tinynode.nn.image_layers import (
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    MaxPool2d,
)
from tinynode.nn.layers import Dropout, Embedding, Linear, Sequential
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from tinynode.nn.optimizers import SGD, Adam, AdamW, Optimizer, clip_gradients
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.nn.serializers import load, save

__all__ = [
    "Adam",
    "AdamW",
    "AvgPool2d",
    "BatchNorm",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "Optimizer",
    "Parameter",
    "RMSNorm",
    "SGD",
    "Sequential",
    "clip_gradients",
    "datasets",
    "initializers",
    "load",
    "save",
]


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise habits.missing_attribute("nn", name, __all__, functions.__all__)
