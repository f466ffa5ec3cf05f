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
from tinynode.nn.attention import MultiHeadAttention, TransformerBlock
from tinynode.nn.containers import ModuleDict, ModuleList
from tinynode.nn.image_layers import (
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Flatten,
    MaxPool2d,
)
from tinynode.nn.layers import Bilinear, Dropout, Embedding, Identity, Linear, Sequential
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tinynode.nn.optimizers import SGD, Adam, AdamW, Optimizer, clip_gradients
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.nn.positions import PositionalEncoding, RotaryEncoding, sinusoidal_positions
from tinynode.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from tinynode.nn.serializers import load, save
from tinynode.nn.weight_norms import SpectralNorm, WeightNorm

__all__ = [
    "Adam",
    "AdamW",
    "AvgPool2d",
    "BatchNorm",
    "Bilinear",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRU",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiHeadAttention",
    "Optimizer",
    "Parameter",
    "PositionalEncoding",
    "RMSNorm",
    "RNN",
    "RNNCell",
    "RotaryEncoding",
    "SGD",
    "Sequential",
    "SpectralNorm",
    "TransformerBlock",
    "WeightNorm",
    "clip_gradients",
    "datasets",
    "initializers",
    "load",
    "save",
    "sinusoidal_positions",
]
