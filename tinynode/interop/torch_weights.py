"""Weights that PyTorch trained, for the same layers here.

Requirement: a file of PyTorch's names fills a model of tinynode's layers without a table of names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tinynode.errors import StateError
from tinynode.interop.torch_files import arrays_of, renamed
from tinynode.interop.torch_names import difference, torch_names_of
from tinynode.nn.module import Module
from tinynode.nn.state import State

_COUNTER = "num_batches_tracked"
"""BatchNorm's number of steps in PyTorch; tinynode has no such buffer."""


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
    accepted too. Floating arrays are cast to the dtypes of the model's arrays.

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
    state = renamed(arrays_of(weights), rename or {})
    expected = model.state_dict()
    torch_names = torch_names_of(model, expected)
    kept = tuple([keep] if isinstance(keep, str) else keep)
    found: State = {}
    missing = []
    for name, own in expected.items():
        given = next((n for n in (name, torch_names[name]) if n in state), None)
        if given is not None:
            found[name] = state.pop(given)
        elif kept and name.startswith(kept):
            found[name] = own
        else:
            missing.append(torch_names[name])
    left = [name for name in state if name.rpartition(".")[2] != _COUNTER]
    if missing or left:
        raise StateError(difference(missing, left))
    checked = {name: _checked(name, torch_names, found, own) for name, own in expected.items()}
    model.load_state_dict(checked)


def _checked(name: str, torch_names: Mapping[str, str], found: State, own: Any) -> Any:
    """The array for an entry of the model, in the dtype of this entry."""
    array = found[name]
    if array.shape != own.shape or (array.dtype.kind == "f") != (own.dtype.kind == "f"):
        raise StateError(
            f"load_torch_weights: {torch_names[name]} is {array.dtype} of shape {array.shape} in "
            f"the file, and {own.dtype} of shape {own.shape} here. Make the layer with the sizes "
            "of the file."
        )
    return array.astype(own.dtype)
