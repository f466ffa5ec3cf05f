"""Weights that PyTorch trained, for the same layers here, and the way back.

Requirement: a file of PyTorch's names fills a model of tinynode's layers without a table of names.
A file that a model is written to fills PyTorch's layers, with ``strict=True``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from tinynode.devices import to_host
from tinynode.errors import OperandError, StateError, describe
from tinynode.interop.torch_files import arrays_of, renamed
from tinynode.interop.torch_names import NamedArray, difference, places_of
from tinynode.nn.attention import MultiHeadAttention
from tinynode.nn.image_layers import WindowLayer
from tinynode.nn.layers import Bilinear, Embedding, Linear, PReLU
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from tinynode.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from tinynode.nn.safetensors_files import has_suffix
from tinynode.nn.serializers import save
from tinynode.nn.state import State
from tinynode.nn.weight_norms import SpectralNorm, WeightNorm

_COUNTER = "num_batches_tracked"
"""BatchNorm's number of steps in PyTorch; tinynode has no such buffer."""

_IN_BOTH = (
    *(Linear, Bilinear, Embedding, PReLU, WindowLayer, MultiHeadAttention),
    *(BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm, WeightNorm, SpectralNorm),
    *(RNN, LSTM, GRU, RNNCell, LSTMCell, GRUCell),
)
"""The layers with arrays of their own that PyTorch has too, with the same shapes."""


def load_torch_weights(
    model: Module,
    weights: str | os.PathLike[str] | Mapping[str, Any],
    *,
    rename: Mapping[str, str | None] | None = None,
    keep: Iterable[str] = (),
) -> None:
    """Fill a model with weights that PyTorch trained, by name.

        # in PyTorch: safetensors.torch.save_file(model.state_dict(), "net.safetensors")
        nn.load_torch_weights(model, "net.safetensors", rename={"backbone.": "body."})

    Names of ``nn.Sequential`` and of the normalisations are translated. A model's own names are
    accepted too. Floating arrays are cast to the dtypes of the model's arrays. A shared parameter
    may have any of its names, or several of them with equal arrays.

    Args:
        model: a model with the layers of the weights.
        weights: a ``.safetensors`` or ``.npz`` file, or arrays by name.
        rename: beginnings of names of the file, with new beginnings. The longest fitting beginning
            counts. None leaves these entries of the file out.
        keep: beginnings of the model's own names: arrays that the file may lack, such as a new
            head. These arrays keep their values.

    Raises:
        StateError: the names differ, with suggestions, or a shape or a kind of dtype differs. The
            model is unchanged.
    """
    state = renamed("load_torch_weights", arrays_of(weights), rename or {})
    expected = model.state_dict()
    names = _names_of_arrays(model)
    kept = tuple([keep] if isinstance(keep, str) else keep)
    found: State = {}
    missing = []
    for name, own in expected.items():
        given = [other for other in names[name] if other in state]
        if given:
            found[name] = _only_array(given, state)
        elif kept and name.startswith(kept):
            found[name] = own
        else:
            missing.append(names[name][1])
    left = [name for name in state if name.rpartition(".")[2] != _COUNTER]
    if missing or left:
        raise StateError(difference(missing, left))
    checked = {name: _checked(names[name][1], found[name], own) for name, own in expected.items()}
    model.load_state_dict(checked)


def _names_of_arrays(model: Module) -> dict[str, list[str]]:
    """For each name of the state all names of the array; the second one is PyTorch's."""
    found: dict[int, list[str]] = {}
    for place in places_of(model):
        names = found.setdefault(id(place.variable), [])
        names += [place.name, place.torch_name]
    return {names[0]: names for names in found.values()}


def _only_array(names: list[str], state: State) -> Any:
    """The array with these names, which are taken out of the state.

    Raises:
        StateError: the names have different arrays, and the model has one parameter.
    """
    arrays = {name: state.pop(name) for name in dict.fromkeys(names)}
    first, array = next(iter(arrays.items()))
    for name, other in arrays.items():
        if other.shape != array.shape or not numpy.array_equal(other, array, equal_nan=True):
            raise StateError(
                f"load_torch_weights: {first} and {name} differ in the file, and the model has "
                "one parameter for both. Give each layer a parameter of its own, or leave a name "
                f"out: rename={{{name!r}: None}}."
            )
    return array


def _checked(torch_name: str, array: Any, own: Any) -> Any:
    """The array for an entry of the model, in the dtype of this entry."""
    if array.shape != own.shape or (array.dtype.kind == "f") != (own.dtype.kind == "f"):
        raise StateError(
            f"load_torch_weights: {torch_name} is {array.dtype} of shape {array.shape} in "
            f"the file, and {own.dtype} of shape {own.shape} here. Make the layer with the sizes "
            "of the file."
        )
    return array.astype(own.dtype)


def save_torch_weights(
    path: str | os.PathLike[str],
    model: Module,
    *,
    rename: Mapping[str, str | None] | None = None,
) -> None:
    """Write a model's weights under PyTorch's names, for the same layers there.

        nn.save_torch_weights("net.safetensors", model)
        # in PyTorch: model.load_state_dict(safetensors.torch.load_file("net.safetensors"))

    PyTorch's model needs the same attributes, and the same numbers in ``Sequential``. The file has
    each name of a shared parameter, and 0 for ``num_batches_tracked`` of a BatchNorm.

    Args:
        path: the file, ending in ``.safetensors``; an existing file is replaced.
        model: a model of layers that PyTorch has too.
        rename: beginnings of PyTorch's names, with new beginnings. The longest fitting beginning
            counts. None leaves these entries out of the file. A layer of your own is written if a
            beginning fits, under its own names.

    Raises:
        StateError: a layer has no counterpart in PyTorch, two arrays have one name, or the path
            has another ending. No file is written.
        ImportError: the library safetensors is not installed.
        OSError: the file cannot be written; an old file is still whole.
    """
    if not isinstance(model, Module):
        raise OperandError(
            f"save_torch_weights: model must be a Module, got {describe(model)}. The path comes "
            "first: save_torch_weights('net.safetensors', model)."
        )
    if not has_suffix(path):
        raise StateError(
            f"save_torch_weights: the path must end in .safetensors, got {os.fspath(path)}. In "
            "PyTorch read the file with safetensors.torch.load_file(path)."
        )
    state = _torch_state(model, tuple(rename or ()))
    save(path, renamed("save_torch_weights", state, rename or {}))


def _torch_state(model: Module, named: tuple[str, ...]) -> State:
    """The arrays by PyTorch's names; ``named`` has beginnings of names that any layer may have.

    Raises:
        StateError: a layer has no counterpart in PyTorch, or two arrays have one name.
    """
    found: State = {}
    for place in places_of(model):
        name = place.torch_name
        if not isinstance(place.owner, _IN_BOTH):
            name = ".".join([*name.split(".")[:-1], place.name.split(".")[-1]])
            if not name.startswith(named):
                raise _no_counterpart(name, place)
        if name in found:
            raise StateError(
                f"save_torch_weights: two arrays have the name {name}. Rename an attribute."
            )
        found[name] = to_host(place.variable.array)
        if isinstance(place.owner, BatchNorm):
            found[f"{name.rpartition('.')[0]}.{_COUNTER}".lstrip(".")] = numpy.zeros((), "int64")
    return found


def _no_counterpart(name: str, place: NamedArray) -> StateError:
    """The error for an array of a layer that PyTorch does not have."""
    layer = place.name.rpartition(".")[0] or "the model"
    return StateError(
        f"save_torch_weights: {place.name} belongs to {layer} ({type(place.owner).__name__}), a "
        "layer without a counterpart in PyTorch. If a module of your own has the parameter there, "
        f"give rename={{{name!r}: {name!r}}}; None in place of the second name leaves it out."
    )
