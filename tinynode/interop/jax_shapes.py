"""Shapes and dtypes for JAX, before any value is known; and JAX's arrays as NumPy's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy
import numpy

from tinynode.configuration import no_grad
from tinynode.core.variable import Variable
from tinynode.errors import OperandError, describe, dtype_name

Specs = tuple[Any, ...]
ALLOWED = (numpy.float32, numpy.float64, numpy.integer, numpy.bool_)


def array_for(name: str, position: int, value: Any) -> Any:
    """A JAX array from an array or a number; other dtypes than ``ALLOWED`` are refused."""
    try:
        array = jax.numpy.asarray(value)
    except TypeError as error:
        raise OperandError(
            f"jax_function({name}): argument {position} is {describe(value)}; expected an array. "
            f"Write jnp.asarray(...); give constants by keyword to jax_function."
        ) from error
    if not any(numpy.issubdtype(array.dtype, kind) for kind in ALLOWED):
        raise OperandError(
            f"jax_function({name}): argument {position} has dtype {array.dtype}; expected "
            f"float32, float64, integers or bools. Try: x.astype(jnp.float32)"
        )
    return array


def specs_of_outputs(call: Any, arrays: tuple[Any, ...]) -> Specs:
    """The shapes and dtypes of the outputs: for gradients those of the inputs, else by a trial."""
    if hasattr(call, "inputs"):
        kept = [a for a in arrays[: call.inputs] if numpy.issubdtype(a.dtype, numpy.floating)]
        return tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in kept)
    with no_grad(), numpy.errstate(all="ignore"):
        ys = call(*[Variable(trial(a.shape, numpy.dtype(a.dtype))) for a in arrays])
    narrow = jax.dtypes.canonicalize_dtype
    return tuple(jax.ShapeDtypeStruct(y.shape, narrow(dtype_name(y.dtype))) for y in ys)


def trial(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    """An input of the trial: ones; identity matrices, which have inverses; zeros for integers."""
    if not numpy.issubdtype(dtype, numpy.floating):
        return numpy.zeros(shape, dtype)
    if len(shape) < 2:
        return numpy.ones(shape, dtype)
    return numpy.broadcast_to(numpy.eye(*shape[-2:], dtype=dtype), shape).copy()


def to_numpy(array: Any) -> Any:
    """The array on the host. JAX's memory is shared on the CPU, and cannot be written to."""
    return numpy.asarray(array)
