"""Weights of PyTorch from a file, as NumPy arrays with the names that the user wants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tinynode.errors import OperandError, StateError, describe
from tinynode.interop.torch_matching import suggestion
from tinynode.nn.serializers import load
from tinynode.nn.state import host_array


def arrays_of(weights: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
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


def renamed(
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
        close = suggestion(unused[0], list(state))
        raise StateError(
            f"{caller}: rename has {unused[0]!r}, but no name of the file begins so{close}."
        )
    return found
