"""Weights that PyTorch trained, for the same layers here.

Requirement: a file of PyTorch's names fills a model of tinynode's layers without a table of names.
Layers of both have the same shapes. Three kinds of names differ, and are translated:

    PyTorch                         tinynode
    0.weight                        layers.0.weight      in a Sequential
    weight, bias                    gamma, beta          of a normalisation
    running_var                     running_variance     of BatchNorm
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tinynode.errors import StateError
from tinynode.nn.layers import Sequential
from tinynode.nn.module import Module
from tinynode.nn.serializers import load
from tinynode.nn.state import State, host_array

_RENAMED = {"gamma": "weight", "beta": "bias", "running_variance": "running_var"}
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
    state = _renamed(_arrays(weights), rename or {})
    expected = model.state_dict()
    torch_names = _torch_names(model, expected)
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
        raise StateError(_difference(missing, left))
    checked = {name: _checked(name, torch_names, found, own) for name, own in expected.items()}
    model.load_state_dict(checked)


def _arrays(weights: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(weights, Mapping):
        return {name: _host(name, value) for name, value in weights.items()}
    if os.fspath(weights).endswith((".pt", ".pth", ".bin")):
        raise StateError(
            f"load_torch_weights: {os.fspath(weights)} holds pickled objects, which may run code. "
            "In PyTorch write safetensors.torch.save_file(model.state_dict(), 'net.safetensors')."
        )
    return load(weights)


def _host(name: str, value: Any) -> Any:
    """An array, or a tensor on the CPU, as a NumPy array."""
    detach = getattr(value, "detach", None)
    return host_array("load_torch_weights", name, detach().numpy() if detach else value)


def _renamed(state: Mapping[str, Any], rename: Mapping[str, str | None]) -> dict[str, Any]:
    """The state with new beginnings of names."""
    used: set[str] = set()
    found: dict[str, Any] = {}
    for name, array in state.items():
        old = max((start for start in rename if name.startswith(start)), key=len, default=None)
        new: str | None = name
        if old is not None:
            used.add(old)
            begin = rename[old]
            new = None if begin is None else begin + name.removeprefix(old)
        if new in found:
            raise StateError(f"load_torch_weights: rename gives two arrays the name {new}.")
        if new is not None:
            found[new] = array
    unused = [start for start in rename if start not in used]
    if unused:
        close = _suggestion(unused[0], list(state))
        raise StateError(
            f"load_torch_weights: rename has {unused[0]!r}, but no name of the file begins "
            f"so{close}."
        )
    return found


def _torch_names(model: Module, names: Iterable[str]) -> dict[str, str]:
    """For each of the model's names PyTorch's name for the same array."""
    modules = dict(model.named_modules())
    translated = {}
    for name in names:
        parts = name.split(".")
        kept = []
        for i, part in enumerate(parts):
            owner = modules.get(".".join(parts[:i]))
            if isinstance(owner, Sequential) and part == "layers":
                continue  # PyTorch counts the layers of a Sequential directly
            kept.append(part)
        kept[-1] = _RENAMED.get(kept[-1], kept[-1])
        translated[name] = ".".join(kept)
    return translated


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


def _difference(missing: list[str], left: list[str]) -> str:
    lines = ["load_torch_weights: the names of the file and of the model differ."]
    lines += [f"  the file lacks {name}{_suggestion(name, left)}" for name in missing]
    lines += [f"  the model lacks {name}{_suggestion(name, missing)}" for name in left]
    lines.append(
        "Give rename={'beginning in the file': 'beginning in the model'}; None leaves entries of "
        "the file out, and keep=['beginning in the model'] keeps the model's own arrays."
    )
    return "\n".join(lines)


def _suggestion(name: str, others: list[str]) -> str:
    close = difflib.get_close_matches(name, others, n=1, cutoff=0.6)
    return f" (close: {close[0]})" if close else ""
