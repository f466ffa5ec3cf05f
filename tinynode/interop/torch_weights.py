"""Weights that PyTorch trained, for the same layers here.

Requirement: a file of PyTorch's names fills a model of tinynode's layers without a table of names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tinynode.errors import StateError
from tinynode.interop.torch_files import arrays_of, renamed
from tinynode.interop.torch_layers import COUNTER
from tinynode.interop.torch_matching import checked_array, difference, names_of_arrays, only_array
from tinynode.nn.module import Module
from tinynode.nn.state import State


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
    names = names_of_arrays(model)
    kept = tuple([keep] if isinstance(keep, str) else keep)
    found: State = {}
    missing = []
    for name, own in expected.items():
        given = [other for other in names[name] if other in state]
        if given:
            found[name] = only_array(given, state)
        elif kept and name.startswith(kept):
            found[name] = own
        else:
            missing.append(names[name][1])
    left = [name for name in state if name.rpartition(".")[2] != COUNTER]
    if missing or left:
        raise StateError(difference(missing, left))
    checked = {}
    for name, own in expected.items():
        checked[name] = checked_array(names[name][1], found[name], own)
    model.load_state_dict(checked)
