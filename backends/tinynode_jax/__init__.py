"""JAX's CPU arrays as a backend of tinynode.

Requirement: a library whose arrays cannot be written to takes one small module as well. So this
backend has ``put``, which gives a new array where the others write into the old one.

JAX computes in float32 unless it is told otherwise, and turns float64 arrays into float32 without
an error. Importing this module therefore sets ``jax_enable_x64``, before it makes an array: on
every backend a Variable has the dtype that was asked for. The setting is the whole process's.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy

jax.config.update("jax_enable_x64", True)

name = "jax"
version = jax.__version__
capabilities = frozenset({"cpu", "float64"})

_DEVICES = {str(device.id): device for device in jax.devices("cpu")}


def devices() -> tuple[str, ...]:
    """One, unless ``XLA_FLAGS=--xla_force_host_platform_device_count=2`` asks for more."""
    return tuple(_DEVICES)


def namespace() -> Any:
    """``jax.numpy`` speaks the Array API standard by itself."""
    return jax.numpy


def owns(array: object) -> bool:
    """Whether an object is an array of JAX."""
    return isinstance(array, jax.Array)


def index_of(array: Any) -> str:
    """The number of the CPU device on which an array lies."""
    return str(array.device.id)


def from_host(array: Any, index: str) -> Any:
    """An array with the same values; a copy, since JAX's arrays must never change."""
    return jax.numpy.array(array, copy=True, device=_DEVICES[index])


def to_host(array: Any) -> Any:
    """A NumPy array that cannot be written to; it may share memory."""
    return numpy.asarray(array)


def synchronize(index: str) -> None:
    """JAX returns before it has computed, so wait for every array that is still held."""
    for array in jax.live_arrays("cpu"):
        array.block_until_ready()


def lift(value: object) -> None:
    """There are no scalars: every result of JAX is an array already."""


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    """The portable forward; kernels of one's own would be called here."""
    return node.forward(arrays)


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros: the standard has no such function."""
    shape = (length, *values.shape[1:])
    zeros = jax.numpy.zeros(shape, dtype=values.dtype, device=values.device)
    return zeros.at[indices].add(values)


def put(array: Any, key: Any, value: Any) -> Any:
    """A copy of the array with the value at an index: ``array[key] = value`` is an error."""
    return array.at[key].set(value)
