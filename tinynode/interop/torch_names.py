"""The names of weights in PyTorch and here.

Layers of both have the same shapes. These kinds of names differ, and are translated:

    PyTorch                             tinynode
    0.weight                            layers.0.weight     in a Sequential
    weight, bias                        gamma, beta         of a normalisation
    running_var                         running_variance    of BatchNorm
    parametrizations.weight.original0   weight_g            of WeightNorm; original1 is weight_v
    parametrizations.weight.original    weight_original     of SpectralNorm
    parametrizations.weight.0._u        weight_u            of SpectralNorm; likewise _v
    bias                                layer.bias          in both of these

A shared parameter has a name for each place in PyTorch, and the first of these names here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tinynode.nn.attention import MultiHeadAttention
from tinynode.nn.image_layers import WindowLayer
from tinynode.nn.layers import Bilinear, Embedding, Linear, PReLU, Sequential
from tinynode.nn.module import Module, Wrapper, members_of
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tinynode.nn.parameter import Buffer, Parameter
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


def _last_part(owner: Module, name: str) -> str:
    """The last part of PyTorch's name for an array of a module."""
    if not isinstance(owner, WeightNorm | SpectralNorm):
        return _RENAMED.get(name, name)
    kinds = _IN_WEIGHT_NORM if isinstance(owner, WeightNorm) else _IN_SPECTRAL_NORM
    return f"parametrizations.{owner.name}.{kinds[name.removeprefix('weight_')]}"


def _has_no_name(module: Any, key: Any) -> bool:
    """True for an attribute that PyTorch's names leave out, such as ``layers`` of a Sequential."""
    if isinstance(module, WeightNorm | SpectralNorm):
        return bool(key == "layer")
    return isinstance(module, Sequential) and bool(key == "layers")


class NamedArray(NamedTuple):
    """A name of a parameter or buffer, PyTorch's name for it, and the innermost module around."""

    name: str
    torch_name: str
    variable: Parameter | Buffer
    owner: Module


def named_arrays(model: Module) -> list[NamedArray]:
    """Every name of each parameter and buffer, in the order of ``state_dict``."""
    found: list[NamedArray] = []
    waiting: list[Any] = [((), (), model, model, ())]
    while waiting:
        path, torch_path, value, owner, around = waiting.pop()
        while isinstance(value, Wrapper):  # a compiled layer has the names of the layer
            value = value.function
        if isinstance(value, Parameter | Buffer):
            torch_name = ".".join([*torch_path[:-1], _last_part(owner, path[-1])])
            found.append(NamedArray(".".join(path), torch_name, value, owner))
            continue
        if any(value is other for other in around):  # a module or a list that holds itself
            continue
        inner = value if isinstance(value, Module) else owner
        for key, child in reversed(members_of(value)):
            if not _is_at_rest(value, key, owner):
                longer = torch_path if _has_no_name(value, key) else (*torch_path, str(key))
                waiting.append(((*path, str(key)), longer, child, inner, (*around, value)))
    return found


def _is_at_rest(layer: Any, key: Any, wrapper: Module) -> bool:
    """True for the weight that a wrapper such as WeightNorm computes anew."""
    if not isinstance(wrapper, WeightNorm | SpectralNorm):
        return False
    return layer is wrapper.layer and bool(key == wrapper.name)
