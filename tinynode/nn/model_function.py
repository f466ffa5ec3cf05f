"""A model as a function of its parameters.

Requirement: a transform differentiates with respect to arguments, and ``vmap`` takes examples from
arguments. So the parameters of a model have to be arguments, without a second way to write models.
For the time of the call, each Parameter stands on the node and the array of another Variable. So
every use of the Parameter counts: in tuples, in closures, and in compiled layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tinynode.core.conversion import assign, restore
from tinynode.core.variable import Variable
from tinynode.errors import (
    DeviceMixError,
    OperandError,
    StateError,
    describe,
    dtype_name,
    short_text,
)
from tinynode.functions import identity
from tinynode.habits import closest
from tinynode.nn.module import Module, Wrapper
from tinynode.nn.parameter import Buffer
from tinynode.transforms.batching import is_lifted
from tinynode.transforms.captures import standing_in_lock
from tinynode.transforms.trees import as_leaf

ONE_BY_ONE = (
    "functional_call: the inputs are a single tuple here. They stand one by one: "
    "functional_call(model, parameters, *inputs)."
)
"""The note for an error after a call in the form of PyTorch."""


class _Substitute(NamedTuple):
    """A value in the place of a Parameter or Buffer.

    Attributes:
        own: the Parameter or Buffer.
        given: the user's Variable, or a Variable on the user's array.
        value: what ``own`` stands on: a result of ``given``.
    """

    own: Variable
    given: Variable
    value: Variable


def functional_call(
    model: Any, parameters: Mapping[str, Any], /, *inputs: Any, **options: Any
) -> Any:
    """The outputs of a model with other values in place of its parameters.

    Gradients of every order flow to the values, and nothing of the model changes.

        def loss(parameters, x, t):
            return F.mean_squared_error(nn.functional_call(model, parameters, x), t)

        parameters = dict(model.named_parameters())
        gradients = tn.gradient(loss)(parameters, x, t)     # a dict with the same names

    Args:
        model: a Module, or a compiled Module.
        parameters: Variables or arrays by the names of ``state_dict``, each of the shape and the
            dtype of the parameter. The model has its own values for names that are missing. A
            parameter with several names has the first one. Buffers may be given too.
        inputs: the arguments of the model.
        options: the arguments of the model by keyword.

    A write to a buffer, such as BatchNorm's statistics in training, goes to the given Variable, if
    this requires no gradient. Writes to buffers that are not given, or given as arrays, are lost.

    Returns:
        The outputs of the model.

    Raises:
        StateError: the model has no such name, or a shape or a dtype differs.
        DeviceMixError: a value is on another device than the parameter.
        TypeError: ``model`` is no Module, ``parameters`` is no dict, or a value is no array.
    """
    owner = model
    while isinstance(owner, Wrapper):
        owner = owner.function
    if not isinstance(owner, Module):
        raise OperandError(
            f"functional_call: model must be a Module, got {describe(model)}. Write "
            "nn.functional_call(model, parameters, x)."
        )
    every = dict([*owner.named_parameters(), *owner.named_buffers()])
    substitutes = _checked(every, parameters)
    with _standing_in(list(every.values()), substitutes):
        try:
            outputs = model(*inputs, **options)
        except Exception as error:
            if len(inputs) == 1 and isinstance(inputs[0], tuple):
                error.add_note(ONE_BY_ONE)
            raise
        written = [(one, one.own.raw, one.own.device) for one in substitutes if _is_written(one)]
    for one, array, device in written:
        assign(one.given, array, device)
    return outputs


def _checked(every: Mapping[str, Variable], parameters: Any) -> list[_Substitute]:
    """The values of the user beside the model's own Variables."""
    if not isinstance(parameters, Mapping):
        raise OperandError(
            "functional_call: parameters must be a dict of values by name, got a "
            f"{type(parameters).__name__}. Give dict(model.named_parameters()), or a part of it."
        )
    found = []
    for name, value in parameters.items():
        if name not in every:
            raise _unknown(name, list(every))
        own = every[name]
        given = as_leaf("functional_call", f"parameters[{name!r}]", value, own.device)
        _check(name, given, own)
        stands_on = given.detach() if isinstance(own, Buffer) else identity(given)
        found.append(_Substitute(own, given, stands_on))
    return found


def _unknown(name: Any, names: list[str]) -> StateError:
    """The error for a name that the model has not."""
    close = closest(str(name), names)
    others = f"Did you mean {close[0]!r}?" if close else f"The names begin with {names[:3]}."
    return StateError(
        f"functional_call: the model has no parameter or buffer {short_text(name)}. {others} "
        "The names are those of model.state_dict(); a parameter with several names has the first "
        "one."
    )


def _check(name: str, given: Variable, own: Variable) -> None:
    """Refuse a value of another shape, dtype or device than the parameter."""
    is_lifted_own = is_lifted(own.device, given.device)  # by a call around this call
    is_beside = given.device is own.device or is_lifted(given.device, own.device)
    if not is_beside and not is_lifted_own:
        raise DeviceMixError(
            f"functional_call: {name} is on {own.device} in the model, got a value on "
            f"{given.device}. Move it with value.to_device({str(own.device)!r})."
        )
    if given.shape != own.shape:
        raise StateError(
            f"functional_call: {name} must have the shape {own.shape}, got {given.shape}. For "
            "several models at once, give the stacked values to tinynode.vmap."
        )
    if given.dtype != own.dtype:
        raise StateError(
            f"functional_call: {name} must have the dtype {dtype_name(own.dtype)}, got "
            f"{dtype_name(given.dtype)}. Cast it with value.astype({dtype_name(own.dtype)!r})."
        )


def _is_written(one: _Substitute) -> bool:
    """True if the model wrote to a buffer, and the user's Variable takes the value."""
    is_buffer = isinstance(one.own, Buffer) and not one.given.requires_grad
    return is_buffer and one.own.raw is not one.value.raw


@contextmanager
def _standing_in(every: Sequence[Variable], substitutes: Sequence[_Substitute]) -> Iterator[None]:
    """Let the model's Variables stand on the values; afterwards all of ``every`` is as before.

    Threads take turns: the model's Variables belong to one call at a time.
    """
    with standing_in_lock:
        before = [(v, v.node, v.raw, v.grad_var) for v in every]
        try:
            for one in substitutes:
                restore(one.own, one.value.node, one.value.raw, None)
            yield
        finally:
            for v, node, array, gradient in before:
                restore(v, node, array, gradient)
