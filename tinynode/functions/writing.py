"""Writing into arrays that nobody else holds yet, for libraries with and without writable arrays.

Requirement: functions fill an array piece by piece where that is quickest, and still run on
libraries whose arrays never change. A backend of such a library has the capability ``"put"`` and a
function ``put(array, place, value)``, which gives a new array. So callers go on with the result.
"""

from __future__ import annotations

from typing import Any, cast

from tinynode.backend import Array, backend_of


def put(array: Array, place: Any, value: Any) -> Array:
    """The array with a value at an index: the same array where it can be written to."""
    backend = backend_of(array)
    if "put" in backend.capabilities:
        return cast(Any, backend).put(array, place, value)
    array[place] = value
    return array


def put_sum(array: Array, place: Any, value: Array) -> Array:
    """The array with a value added at a basic index, likewise."""
    backend = backend_of(array)
    if "put" in backend.capabilities:
        return cast(Any, backend).put(array, place, array[place] + value)
    array[place] += value
    return array
