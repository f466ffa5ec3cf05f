"""State: the arrays of a model or an optimizer by name, for saving.

Requirement: a state of another model is refused before any array changes. The error gives every
missing or unknown name, or the shapes and dtypes of the first wrong array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from tinynode.core.variable import Variable
from tinynode.devices import is_array, to_host
from tinynode.errors import StateError, describe
from tinynode.safe_files import listed

State = dict[str, Any]
"""NumPy arrays by name."""


MOST_WITHOUT_BYTES = 1 << 24
"""The longest axis of an array without a byte in a file, and the most elements without bytes."""


def check_has_bytes(name: str, array: Any) -> None:
    """Refuse an endless shape in a small file, such as ``(2**40, 0)``.

    Raises:
        ValueError: the array has no bytes, and a long axis or very many elements.
    """
    elements = array.size if array.dtype.itemsize == 0 else 0
    if array.nbytes == 0 and max((elements, *array.shape)) > MOST_WITHOUT_BYTES:
        shape = str(array.shape)[:60]
        raise ValueError(f"{name} claims the shape {shape} without a byte of content")


def host_array(caller: str, name: str, value: Any) -> Any:
    """An array of any device as a NumPy array.

    Raises:
        StateError: the value is no array, or holds Python objects.
    """
    if isinstance(value, Variable) or not is_array(value):
        hint = " Give its array, x.array." if isinstance(value, Variable) else ""
        raise StateError(f"{caller}: {name} must be an array, got {describe(value)}.{hint}")
    host = to_host(value)
    if host.dtype.hasobject:
        raise StateError(f"{caller}: {name} is {describe(host)}: Python objects cannot be saved.")
    return host


def number_arrays(**numbers: float) -> State:
    """Python numbers as arrays: int64 for integers, float64 for others."""
    return {
        name: numpy.asarray(number, numpy.int64 if isinstance(number, int) else numpy.float64)
        for name, number in numbers.items()
    }


def widened_state(state: Any, expected: Mapping[str, Any]) -> Any:
    """A state with arrays of float16 as float32 where ``expected`` has float32."""
    if not isinstance(state, Mapping):
        return state
    wide = dict(state)
    for name, own in expected.items():
        is_half = getattr(state.get(name), "dtype", None) == numpy.float16
        if is_half and own.dtype == numpy.float32:
            wide[name] = wide[name].astype(numpy.float32)
    return wide


def checked_state(caller: str, state: Mapping[str, Any], expected: Mapping[str, Any]) -> State:
    """The state as host arrays, with the names, shapes and dtypes of ``expected``.

    Raises:
        StateError: the state is no mapping, or a name, shape or dtype differs.
    """
    if not isinstance(state, Mapping):
        raise StateError(
            f"{caller}: the state must be arrays by name, got {describe(state)}. A file is read "
            f"first: {caller.rpartition('.')[2]}(tinynode.nn.load('m.npz'))."
        )
    missing = [name for name in expected if name not in state]
    unknown = [name for name in state if name not in expected]
    if missing or unknown:
        parts = [f"the state lacks {listed(missing, 3)}"] if missing else []
        parts += [f"the state has {listed(unknown, 3)}, unknown here"] if unknown else []
        raise StateError(f"{caller}: {'; '.join(parts)}. Was it saved from another model?")
    checked = {name: host_array(caller, name, state[name]) for name in expected}
    for name, own in expected.items():
        if checked[name].shape != own.shape or checked[name].dtype != own.dtype:
            raise StateError(
                f"{caller}: {name} is {_kind(own)} here and {_kind(checked[name])} in the state. "
                "Make the model with the sizes and the dtype that it was saved with."
            )
    return checked


def _kind(array: Any) -> str:
    return f"{array.dtype} of shape {array.shape}"


def take_prefix(prefix: str, state: Mapping[str, Any]) -> State:
    """The entries with ``prefix/``, without the prefix."""
    start = f"{prefix}/"
    return {n.removeprefix(start): array for n, array in state.items() if n.startswith(start)}
