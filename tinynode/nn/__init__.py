"""Training: parameters, layers, optimizers, data, metrics, saving and loading.

from tinynode import nn
from tinynode.functions import relu, softmax_cross_entropy

model = nn.Sequential(nn.Linear(64, 128), relu, nn.Linear(128, 10))
optimizer = nn.Adam(model, lr=0.001)

optimizer.cleargrads()
softmax_cross_entropy(model(images), labels).backward()
optimizer.update()

nn.save("model.npz", model)
model.load_state_dict(nn.load("model.npz"))

nn.save_checkpoint("run.npz", model=model, optimizer=optimizer, epoch=3)
epoch = nn.load_checkpoint("run.npz", model=model, optimizer=optimizer)["epoch"]
"""

import typing

import tinynode.interop  # noqa: F401 - the package first: see late_imports
from tinynode import functions, habits, late_imports
from tinynode.interop.torch_weights import load_torch_weights, save_torch_weights
from tinynode.nn import datasets, initializers, metrics, schedules, transforms
from tinynode.nn.adaptive import Adagrad, Lion, NAdam, RMSprop
from tinynode.nn.attention import KeyValueCache, MultiHeadAttention
from tinynode.nn.averages import ExponentialMovingAverage
from tinynode.nn.checkpoints import load_checkpoint, save_checkpoint
from tinynode.nn.clipping import clip_gradients, clip_gradients_by_value
from tinynode.nn.containers import ModuleDict, ModuleList
from tinynode.nn.data import ArrayDataset, DataLoader, Dataset, Subset, split_dataset
from tinynode.nn.data_files import ImageFolder, TableDataset
from tinynode.nn.image_layers import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tinynode.nn.layers import Bilinear, Dropout, Embedding, Identity, Linear, PReLU, Sequential
from tinynode.nn.lbfgs import LBFGS
from tinynode.nn.loss_scaling import LossScaler
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tinynode.nn.optimizers import SGD, Adam, AdamW, Optimizer
from tinynode.nn.parameter import Buffer, Parameter
from tinynode.nn.positions import PositionalEncoding, RotaryEncoding, sinusoidal_positions
from tinynode.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from tinynode.nn.resizing_layers import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    Flatten,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    Upsample,
)
from tinynode.nn.serializers import load, save
from tinynode.nn.trainer import Trainer
from tinynode.nn.transformer import DecoderCache, TransformerBlock, TransformerDecoderBlock
from tinynode.nn.weight_norms import SpectralNorm, WeightNorm

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "ArrayDataset",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bilinear",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DataLoader",
    "Dataset",
    "DecoderCache",
    "Dropout",
    "Embedding",
    "ExponentialMovingAverage",
    "Flatten",
    "GRU",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "ImageFolder",
    "InstanceNorm",
    "KeyValueCache",
    "LBFGS",
    "LSTM",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "Lion",
    "LossScaler",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiHeadAttention",
    "NAdam",
    "Optimizer",
    "PReLU",
    "Parameter",
    "PositionalEncoding",
    "RMSNorm",
    "RMSprop",
    "RNN",
    "RNNCell",
    "RotaryEncoding",
    "SGD",
    "Sequential",
    "SpectralNorm",
    "Subset",
    "TableDataset",
    "Trainer",
    "TransformerBlock",
    "TransformerDecoderBlock",
    "Upsample",
    "WeightNorm",
    "clip_gradients",
    "clip_gradients_by_value",
    "datasets",
    "functional_call",
    "initializers",
    "load",
    "load_checkpoint",
    "load_torch_weights",
    "metrics",
    "save",
    "save_checkpoint",
    "save_torch_weights",
    "schedules",
    "sinusoidal_positions",
    "split_dataset",
    "transforms",
]
__dir__ = __all__.copy  # for completion


if typing.TYPE_CHECKING:
    from tinynode.nn.model_function import functional_call as functional_call
else:

    def __getattr__(name: str) -> typing.Any:
        """``functional_call``, or the error for a wrong name; Python asks for missing names only.

        The transforms import ``nn``, so their module is imported at the first use.
        """
        if name != "functional_call":
            raise habits.missing_attribute("nn", name, __all__, functions.__all__)
        globals()[name] = late_imports.import_late("tinynode.nn.model_function").functional_call
        return globals()[name]
