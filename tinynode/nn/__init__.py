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

from tinynode.nn import datasets, initializers, schedules
from tinynode.nn.adaptive import Adagrad, Lion, NAdam, RMSprop
from tinynode.nn.averages import ExponentialMovingAverage
from tinynode.nn.clipping import clip_gradients, clip_gradients_by_value
from tinynode.nn.image_layers import (
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    MaxPool2d,
)
from tinynode.nn.layers import Dropout, Embedding, Linear, Sequential
from tinynode.nn.lbfgs import LBFGS
from tinynode.nn.loss_scaling import LossScaler
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from tinynode.nn.optimizers import SGD, Adam, AdamW, Optimizer
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.nn.serializers import load, save

__all__ = [
    "Adagrad",
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
    "ExponentialMovingAverage",
    "Flatten",
    "GroupNorm",
    "LBFGS",
    "LayerNorm",
    "Linear",
    "Lion",
    "LossScaler",
    "MaxPool2d",
    "Module",
    "NAdam",
    "Optimizer",
    "Parameter",
    "RMSNorm",
    "RMSprop",
    "SGD",
    "Sequential",
    "clip_gradients",
    "clip_gradients_by_value",
    "datasets",
    "initializers",
    "load",
    "save",
    "schedules",
]
