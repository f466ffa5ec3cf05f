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
from tinynode.nn.resizing_layers import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool3d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose3d,
    MaxPool1d,
    MaxPool3d,
    PReLU,
    Upsample,
)
from tinynode.nn.serializers import load, save

__all__ = [
    "Adam",
    "AdamW",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "Optimizer",
    "PReLU",
    "Parameter",
    "RMSNorm",
    "SGD",
    "Sequential",
    "Upsample",
    "clip_gradients",
    "datasets",
    "initializers",
    "load",
    "save",
]
