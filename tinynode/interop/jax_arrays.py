"""A function of Variables as a function of JAX, with a gradient rule of its own.

Requirement: gradients of every order, and under ``jit``. So the rule is a ``JaxFunction`` again.
JAX's arrays never change, and a rule cannot keep a graph. So the rule computes the outputs again.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy
import numpy

from tinynode.configuration import config, enable_grad, no_grad
from tinynode.core.variable import Variable
from tinynode.devices import Device, current_device, is_floating, to_host, using_device
from tinynode.errors import OperandError, describe, dtype_name
from tinynode.interop.calls import ForeignCall, Variables, gradients

Specs = tuple[Any, ...]
ALLOWED = (numpy.float32, numpy.float64, numpy.integer, numpy.bool_)


class JaxFunction:
    """The result of ``tinynode.interop.jax_function``: call it with JAX's or NumPy's arrays."""

    def __init__(self, call: ForeignCall | ForeignGradient) -> None:
        self.call = call
        self.with_rule = jax.custom_vjp(self.value)
        self.with_rule.defvjp(self.value_and_inputs, self.pull_back)

    def __repr__(self) -> str:
        return f"jax_function({self.call.name})"

    def __call__(self, *arrays: Any) -> Any:
        """The outputs of the function, as JAX's arrays."""
        outputs = self.with_rule(*[_array_for(self.call.name, i, a) for i, a in enumerate(arrays)])
        return outputs[0] if self.call.single else outputs

    def value(self, *arrays: Any) -> Any:
        """The outputs, in a tuple, by a call from JAX to Python."""
        specs = _specs_of_outputs(self.call, arrays)
        run = functools.partial(self.on_host, current_device(), specs)
        return jax.pure_callback(run, specs, *arrays, vmap_method="sequential")

    def on_host(self, device: Device, specs: Specs, *arrays: Any) -> tuple[Any, ...]:
        """The outputs as NumPy arrays; the device is that of the thread that called JAX."""
        with no_grad(), using_device(device):
            ys = self.call(*[Variable(numpy.asarray(a)) for a in arrays])
        hosts = [to_host(y.raw) for y in ys]
        return tuple(h.astype(s.dtype, copy=False) for h, s in zip(hosts, specs, strict=True))

    def value_and_inputs(self, *arrays: Any) -> tuple[Any, Any]:
        """The outputs, and the arrays that ``pull_back`` needs."""
        return self.with_rule(*arrays), arrays  # by the rule, for gradients of gradients

    def pull_back(self, arrays: Any, gradients_of_outputs: Any) -> tuple[Any, ...]:
        """dL/dx for each input; None, which JAX reads as zeros, for integers and bools."""
        given = [g for g in gradients_of_outputs if g.dtype != jax.dtypes.float0]
        found = iter(JaxFunction(ForeignGradient(self.call, len(arrays)))(*arrays, *given))
        floating = [numpy.issubdtype(a.dtype, numpy.floating) for a in arrays]
        return tuple(next(found) if one else None for one in floating)


class ForeignGradient:
    """The gradients of a call: a function of the inputs and of the output gradients."""

    single = False

    def __init__(self, call: ForeignCall | ForeignGradient, inputs: int) -> None:
        self.call, self.inputs = call, inputs
        self.name: str = f"gradient of {call.name}"

    def __call__(self, *variables: Variable) -> Variables:
        """dL/dx for each floating x of the first variables; the others are dL/dy."""
        record = config.enable_backprop
        with enable_grad():
            ys = self.call(*variables[: self.inputs])
            kept = [y for y in ys if is_floating(y.raw)]
            xs = [x for x in variables[: self.inputs] if x.requires_grad]
        return gradients(kept, xs, variables[self.inputs :], record)


# --- arguments, and shapes before any value is known ---------------------------------------------


def _array_for(name: str, position: int, value: Any) -> Any:
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


def _specs_of_outputs(call: Any, arrays: tuple[Any, ...]) -> Specs:
    """The shapes and dtypes of the outputs: for gradients those of the inputs, else by a trial."""
    if hasattr(call, "inputs"):
        kept = [a for a in arrays[: call.inputs] if numpy.issubdtype(a.dtype, numpy.floating)]
        return tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in kept)
    with no_grad(), numpy.errstate(all="ignore"):
        ys = call(*[Variable(_trial(a.shape, numpy.dtype(a.dtype))) for a in arrays])
    narrow = jax.dtypes.canonicalize_dtype
    return tuple(jax.ShapeDtypeStruct(y.shape, narrow(dtype_name(y.dtype))) for y in ys)


def _trial(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    """An input of the trial: ones; identity matrices, which have inverses; zeros for integers."""
    if not numpy.issubdtype(dtype, numpy.floating):
        return numpy.zeros(shape, dtype)
    if len(shape) < 2:
        return numpy.ones(shape, dtype)
    return numpy.broadcast_to(numpy.eye(*shape[-2:], dtype=dtype), shape).copy()
