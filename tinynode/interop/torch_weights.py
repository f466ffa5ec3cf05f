"""Weights by PyTorch's names: those that PyTorch trained, and those for a strict load there.

Requirement: a file of PyTorch's names fills a model of tinynode's layers without a table of names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy

from tinynode.devices import to_host
from tinynode.errors import OperandError, StateError, describe
from tinynode.habits import closest
from tinynode.interop.torch_names import COUNTER, IN_BOTH, NamedArray, named_arrays
from tinynode.nn.module import Module
from tinynode.nn.normalization_layers import BatchNorm
from tinynode.nn.safetensors_files import has_suffix
from tinynode.nn.serializers import load, save
from tinynode.nn.state import State, host_array

# --- from PyTorch --------------------------------------------------------------------------------


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
    state = _renamed("load_torch_weights", _arrays_of(weights), rename or {})
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
    left = [name for name in state if name.rpartition(".")[2] != COUNTER]
    if missing or left:
        raise StateError(_difference(missing, left))
    checked = {}
    for name, own in expected.items():
        checked[name] = _checked_array(names[name][1], found[name], own)
    model.load_state_dict(checked)


def _arrays_of(weights: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a file, or given arrays, by name."""
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


def _names_of_arrays(model: Module) -> dict[str, list[str]]:
    """For each name of the state all names of the array; the second one is PyTorch's."""
    found: dict[int, list[str]] = {}
    for place in named_arrays(model):
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


def _checked_array(torch_name: str, array: Any, own: Any) -> Any:
    """The array for an entry of the model, in the dtype of this entry."""
    if array.shape != own.shape or (array.dtype.kind == "f") != (own.dtype.kind == "f"):
        raise StateError(
            f"load_torch_weights: {torch_name} is {array.dtype} of shape {array.shape} in "
            f"the file, and {own.dtype} of shape {own.shape} here. Make the layer with the sizes "
            "of the file."
        )
    return array.astype(own.dtype)


def _difference(missing: list[str], left: list[str]) -> str:
    """The message for names of the file and of the model that differ."""
    lines = ["load_torch_weights: the names of the file and of the model differ."]
    lines += [f"  the file lacks {name}{_suggestion(name, left)}" for name in missing]
    lines += [f"  the model lacks {name}{_suggestion(name, missing)}" for name in left]
    lines.append(
        "Give rename={'beginning in the file': 'beginning in the model'}; None leaves entries of "
        "the file out, and keep=['beginning in the model'] keeps the model's own arrays."
    )
    return "\n".join(lines)


# --- to PyTorch ----------------------------------------------------------------------------------


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
    save(path, _renamed("save_torch_weights", state, rename or {}))


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
                raise _no_counterpart(name, place)
        if name in found:
            raise StateError(
                f"save_torch_weights: two arrays have the name {name}. Rename an attribute."
            )
        found[name] = to_host(place.variable.array)
        if isinstance(place.owner, BatchNorm):
            found[f"{name.rpartition('.')[0]}.{COUNTER}".lstrip(".")] = numpy.zeros((), "int64")
    return found


def _no_counterpart(name: str, place: NamedArray) -> StateError:
    """The error for an array of a layer that PyTorch does not have."""
    layer = place.name.rpartition(".")[0] or "the model"
    return StateError(
        f"save_torch_weights: {place.name} belongs to {layer} ({type(place.owner).__name__}), a "
        "layer without a counterpart in PyTorch. If a module of your own has the parameter there, "
        f"give rename={{{name!r}: {name!r}}}; None in place of the second name leaves it out."
    )


# --- the beginnings of names ---------------------------------------------------------------------


def _renamed(
    caller: str, state: Mapping[str, Any], rename: Mapping[str, str | None]
) -> dict[str, Any]:
    """The state with new beginnings of names.

    Raises:
        OperandError: ``rename`` is no dict.
        StateError: a beginning is unknown, or two arrays get one name.
    """
    if not isinstance(rename, Mapping):
        raise OperandError(
            f"{caller}: rename must be a dict of beginnings of names, got {describe(rename)}. "
            "Write rename={'encoder.': 'body.'}."
        )
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
            raise StateError(f"{caller}: rename gives two arrays the name {new}.")
        if new is not None:
            found[new] = array
    unused = [start for start in rename if start not in used]
    if unused:
        close = _suggestion(unused[0], list(state))
        raise StateError(
            f"{caller}: rename has {unused[0]!r}, but no name of the file begins so{close}."
        )
    return found


def _suggestion(name: str, others: Sequence[str]) -> str:
    """The closest of other names, in brackets; an empty text without one."""
    close = closest(name, others, cutoff=0.6)
    return f" (close: {close[0]})" if close else ""
