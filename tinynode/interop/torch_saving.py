"""Weights under PyTorch's names, for a strict load in PyTorch."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy

from tinynode.devices import to_host
from tinynode.errors import OperandError, StateError, describe
from tinynode.interop.torch_files import renamed
from tinynode.interop.torch_layers import COUNTER, IN_BOTH
from tinynode.interop.torch_matching import no_counterpart
from tinynode.interop.torch_names import named_arrays
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm
from tinynode.nn.safetensors_files import has_suffix
from tinynode.nn.serializers import save
from tinynode.nn.state import State


def save_torch_weights(
    path: str | os.PathLike[str], model: Module, *, rename: Mapping[str, str | None] | None = None
) -> None:
    """Write a model's weights under PyTorch's names, for the same layers there.

        nn.save_torch_weights("net.safetensors", model)
        # in PyTorch: model.load_state_dict(safetensors.torch.load_file("net.safetensors"))

    PyTorch's model needs the same attributes, and the same numbers in ``Sequential``. The file has
    each name of a shared parameter. ``num_batches_tracked`` of a BatchNorm is 0.

    Args:
        path: the file, ending in ``.safetensors``; an existing file is replaced.
        model: a model of layers that PyTorch has too.
        rename: beginnings of PyTorch's names, with new beginnings; None leaves these entries out.
            A layer of your own is written if a beginning fits, under its own names.

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
    for place in named_arrays(model):
        name = place.torch_name
        if not isinstance(place.owner, IN_BOTH):  # with the own name of the array
            name = ".".join([*name.split(".")[:-1], place.name.split(".")[-1]])
            if not name.startswith(named):
                raise no_counterpart(name, place)
        if name in found:
            raise StateError(
                f"save_torch_weights: two arrays have the name {name}. Rename an attribute."
            )
        found[name] = to_host(place.variable.array)
        if isinstance(place.owner, BatchNorm):
            found[f"{name.rpartition('.')[0]}.{COUNTER}".lstrip(".")] = numpy.zeros((), "int64")
    return found
