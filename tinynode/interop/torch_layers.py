"""The layers that PyTorch has too, and the parts of names that differ there."""

from __future__ import annotations

from typing import Any

from tinynode.nn.attention import MultiHeadAttention
from tinynode.nn.image_layers import WindowLayer
from tinynode.nn.layers import Bilinear, Embedding, Linear, PReLU, Sequential
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tinynode.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from tinynode.nn.weight_norms import SpectralNorm, WeightNorm

COUNTER = "num_batches_tracked"
"""BatchNorm's number of steps in PyTorch; tinynode has no such buffer."""

IN_BOTH = (
    *(Linear, Bilinear, Embedding, PReLU, WindowLayer, MultiHeadAttention),
    *(BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm, WeightNorm, SpectralNorm),
    *(RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell),
)
"""The layers with arrays of their own that PyTorch has too, with the same shapes."""

_RENAMED = {"gamma": "weight", "beta": "bias", "running_variance": "running_var"}
_IN_WEIGHT_NORM = {"g": "original0", "v": "original1"}
_IN_SPECTRAL_NORM = {"original": "original", "u": "0._u", "v": "0._v"}


def last_part(owner: Module, name: str) -> str:
    """The last part of PyTorch's name for an array of a module."""
    if not isinstance(owner, WeightNorm | SpectralNorm):
        return _RENAMED.get(name, name)
    kinds = _IN_WEIGHT_NORM if isinstance(owner, WeightNorm) else _IN_SPECTRAL_NORM
    return f"parametrizations.{owner.name}.{kinds[name.removeprefix('weight_')]}"


def has_no_name(module: Any, key: Any) -> bool:
    """True for an attribute that PyTorch's names leave out, such as ``layers`` of a Sequential."""
    if isinstance(module, WeightNorm | SpectralNorm):
        return bool(key == "layer")
    return isinstance(module, Sequential) and bool(key == "layers")
