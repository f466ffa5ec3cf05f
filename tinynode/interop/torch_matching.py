"""Arrays of a file beside the names of a model: which array belongs to which parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from tinynode.errors import StateError
from tinynode.habits import closest
from tinynode.interop.torch_names import NamedArray, named_arrays
from tinynode.nn.module import Module
from tinynode.nn.state import State


def names_of_arrays(model: Module) -> dict[str, list[str]]:
    """For each name of the state all names of the array; the second one is PyTorch's."""
    found: dict[int, list[str]] = {}
    for place in named_arrays(model):
        names = found.setdefault(id(place.variable), [])
        names += [place.name, place.torch_name]
    return {names[0]: names for names in found.values()}


def only_array(names: list[str], state: State) -> Any:
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


def checked_array(torch_name: str, array: Any, own: Any) -> Any:
    """The array for an entry of the model, in the dtype of this entry."""
    if array.shape != own.shape or (array.dtype.kind == "f") != (own.dtype.kind == "f"):
        raise StateError(
            f"load_torch_weights: {torch_name} is {array.dtype} of shape {array.shape} in "
            f"the file, and {own.dtype} of shape {own.shape} here. Make the layer with the sizes "
            "of the file."
        )
    return array.astype(own.dtype)


def difference(missing: list[str], left: list[str]) -> str:
    """The message for names of the file and of the model that differ."""
    lines = ["load_torch_weights: the names of the file and of the model differ."]
    lines += [f"  the file lacks {name}{suggestion(name, left)}" for name in missing]
    lines += [f"  the model lacks {name}{suggestion(name, missing)}" for name in left]
    lines.append(
        "Give rename={'beginning in the file': 'beginning in the model'}; None leaves entries of "
        "the file out, and keep=['beginning in the model'] keeps the model's own arrays."
    )
    return "\n".join(lines)


def suggestion(name: str, others: Sequence[str]) -> str:
    """The closest of other names, in brackets; an empty text without one."""
    close = closest(name, others, cutoff=0.6)
    return f" (close: {close[0]})" if close else ""


def no_counterpart(name: str, place: NamedArray) -> StateError:
    """The error for an array of a layer that PyTorch does not have."""
    layer = place.name.rpartition(".")[0] or "the model"
    return StateError(
        f"save_torch_weights: {place.name} belongs to {layer} ({type(place.owner).__name__}), a "
        "layer without a counterpart in PyTorch. If a module of your own has the parameter there, "
        f"give rename={{{name!r}: {name!r}}}; None in place of the second name leaves it out."
    )
