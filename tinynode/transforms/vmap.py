"""vmap: a function of an example, run on all examples at once.

Requirement: no FunctionNode knows of vmap, and no gradient rule is written for vmap. The function
gets Variables on a *batched device*. The arrays there have one hidden axis at the front, and the
backend ``tinynode_batched`` lifts each array function over the axis.

Two FunctionNodes cross the border: ``IntoBatch`` and ``OutOfBatch``. So the graph leads from the
results through the function to the arguments, and backward works as everywhere.

    x (64, 3) -> IntoBatch -> x (3) on vmap(numpy) -> ... -> y () -> OutOfBatch -> y (64)

While a net is recorded, the hidden arrays are Variables instead of arrays, and the net records the
functions on these. So the net has operators on whole batches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Never, ParamSpec, TypeVar

from tinynode.core.array_arguments import RawArgument
from tinynode.core.conversion import as_flag
from tinynode.core.nested import MOST_LEAVES, check_nested
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Device,
    HiddenAxis,
    device_beside,
    find_device,
    from_host_data,
    hidden_axes,
)
from tinynode.errors import DeviceMixError, TraceError, VmapError, describe, unknown_keywords
from tinynode.transforms.batching import (
    lifted,
    lowered,
    new_axis,
    put_back_moved,
    shared,
    shared_with_examples,
)
from tinynode.transforms.trees import leaves_of, rebuilt, split_aux

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    f: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    has_aux: bool = False,
    **unknown: Never,
) -> Callable[P, R]:
    """A function that runs f on each example, all at once.

    f: x: (s), ... -> y: (t).   The result: x: (n, s), ... -> y: (n, t), y[i] = f(x[i], ...)

    Python's ``if`` and ``float()`` need one value, so both are errors on a value that differs
    between examples. Per-example gradients are ``vmap(gradient(loss), in_axes=(None, 0, 0))``.

        >>> rows = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> tn.vmap(lambda row: F.sum(row * row))(rows).tolist()
        [5.0, 25.0]

    Args:
        f: takes and gives Variables, also in tuples, lists and dicts.
        in_axes: the axis of the examples in each argument. None shares the argument with all
            examples. An integer or None for all arguments; or a tuple with an entry for each.
            The entry of a nested argument may be nested as the argument is. Arguments by keyword
            have the axis 0. Numbers and other objects are shared.
        out_axes: the axis of the examples in each result, in the same form. None wants a result
            without difference between the examples.
        has_aux: f returns a pair ``(result, aux)``, and the function gives the pair. Variables and
            arrays in ``aux`` have the examples at axis 0. Other values, such as a text or a Python
            number, come as they are.

    Raises:
        TypeError: f is no function; when called: a result is no Variable, or f gives no pair, and
            ``has_aux`` is True.
        ValueError: when called: no argument has examples, or the numbers of examples differ; an
            axis does not exist, or ``in_axes`` does not fit the arguments.
        DeviceMixError: when called: the arguments are on several devices.
        VmapError: when called: f asks for a value that differs between examples.

    Source: Bradbury et al., JAX: composable transformations of Python+NumPy programs, 2018.
    """
    if unknown:
        raise unknown_keywords("vmap", unknown)
    if not callable(f):
        raise TypeError(f"vmap: f must be a function, got {describe(f)}.")
    has_aux = as_flag("vmap", "has_aux", has_aux)

    @functools.wraps(f)
    def vmapped(*args: P.args, **kwargs: P.kwargs) -> R:
        mapped = [x for x in _leaves(args, kwargs, in_axes) if x[2] is not None]
        axis = _new_hidden_axis(mapped)
        with _entered(axis):
            # a name for the result would keep its Variables alive until the end of the block
            outputs: R = _results(_called(f, args, kwargs, in_axes, axis), out_axes, axis, has_aux)
            return outputs

    return vmapped


def _called(
    f: Callable[..., Any], args: Any, kwargs: dict[str, Any], in_axes: Any, axis: HiddenAxis
) -> Any:
    """The result of f, on Variables of an example."""
    given, keywords = [], {}
    for position, x in enumerate(args):
        given.append(_into(x, _entry(in_axes, position, len(args)), axis))
    for name, x in kwargs.items():
        keywords[name] = _into(x, 0, axis)
    result = f(*given, **keywords)
    check_nested("vmap", "the result of f", result, MOST_LEAVES)
    return result


# --- arguments and results -------------------------------------------------------------------


def _into(value: Any, axes: Any, axis: HiddenAxis) -> Any:
    """An argument with the examples in the hidden axis."""
    value = value.variable if isinstance(value, RawArgument) else value
    if isinstance(value, tuple | list):
        parts = [_into(x, _entry(axes, i, len(value)), axis) for i, x in enumerate(value)]
        return _like(value, parts)
    if isinstance(value, dict):
        return {key: _into(x, _entry(axes, key, len(value)), axis) for key, x in value.items()}
    x = _as_variable(value, axis.below)
    if x is None:
        return value
    for outer in hidden_axes.stack[:-1]:
        x = shared(x, outer)
    place = None if axes is None else axes % x.ndim
    return lifted(x, place, axis)


def _out_of(value: Any, axes: Any, axis: HiddenAxis, path: str) -> Any:
    """A result with the hidden axis as an ordinary axis."""
    if isinstance(value, tuple | list):
        parts = []
        for i, x in enumerate(value):
            parts.append(_out_of(x, _entry(axes, i, len(value)), axis, f"{path}[{i}]"))
        return _like(value, parts)
    if isinstance(value, dict):
        found = {}
        for key, x in value.items():
            found[key] = _out_of(x, _entry(axes, key, len(value)), axis, f"{path}[{key!r}]")
        return found
    x = _as_variable(value)
    if x is None:
        raise TypeError(
            f"vmap: {path} of f must be a Variable, got {describe(value)}. Return Variables, in "
            "tuples, lists or dicts."
        )
    return _shown_result(shared_with_examples(x), axes, axis, path)


def _results(returned: Any, out_axes: Any, axis: HiddenAxis, has_aux: bool) -> Any:
    """What f returned, with the hidden axis as an ordinary axis."""
    if not has_aux:
        return _out_of(returned, out_axes, axis, "the result")
    result, aux = split_aux("vmap", returned)
    return _out_of(result, out_axes, axis, "the result"), _aux_out_of(aux, axis)


def _aux_out_of(aux: Any, axis: HiddenAxis) -> Any:
    """The aux with the examples at axis 0 of each Variable and array."""
    found = []
    for path, value in leaves_of("vmap", aux, "aux"):
        is_array = _as_variable(value) is not None
        found.append(_out_of(value, 0, axis, path) if is_array else value)
    return rebuilt(aux, found)


def _shown_result(x: Variable, axes: int | None, axis: HiddenAxis, path: str) -> Variable:
    """A result with the hidden axis at a place; None asks for a result shared by all examples."""
    if axes is not None and not -x.ndim - 1 <= axes <= x.ndim:
        raise ValueError(
            f"vmap: out_axes={axes} for {path}, which has shape {x.shape} in each example: the "
            f"axis must lie from {-x.ndim - 1} to {x.ndim}."
        )
    if axes is None and x.raw.length != 1:
        raise VmapError(
            f"vmap: out_axes=None for {path}, which differs between the examples. Give an axis, "
            "or reduce the result after vmap."
        )
    place = None if axes is None else axes % (x.ndim + 1)
    return lowered(x, 0, axis)[0] if place is None else lowered(x, place, axis)


def _leaves(args: Any, kwargs: Any, in_axes: Any) -> Iterator[tuple[str, Variable, int | None]]:
    """The path, the Variable and the checked axis of each Variable or array of the arguments."""
    for position, value in enumerate(args):
        check_nested("vmap", f"argument {position}", value, MOST_LEAVES)
    for name, value in kwargs.items():
        check_nested("vmap", f"argument {name}", value, MOST_LEAVES)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"vmap: in_axes has {len(in_axes)} entries, f was called with {len(args)} positional "
            "arguments. Give an entry for each, or one integer for all."
        )
    waiting = [
        *((f"argument {i}", x, _entry(in_axes, i, len(args))) for i, x in enumerate(args)),
        *((f"argument {name}", x, 0) for name, x in kwargs.items()),
    ]
    device = _device_in([value for _, value, _ in waiting])
    while waiting:
        path, value, axes = waiting.pop(0)
        if isinstance(value, tuple | list):
            for i, x in enumerate(value):
                waiting.append((f"{path}[{i}]", x, _entry(axes, i, len(value))))
        elif isinstance(value, dict):
            for key, x in value.items():
                waiting.append((f"{path}[{key!r}]", x, _entry(axes, key, len(value))))
        elif (x := _as_variable(value, device)) is not None:
            yield path, x, _checked_axis(path, x, axes)


def _device_in(values: list[Any]) -> Device | None:
    """The device of the first Variable in nested values; arrays are arrays beside it."""
    waiting = list(values)
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, Variable):
            return value.device
        if isinstance(value, tuple | list | dict):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return None


def _entry(axes: Any, key: Any, count: int) -> Any:
    """The axes of a part of a nested value: an integer and None stand for all parts."""
    if axes is None or isinstance(axes, int):
        return axes
    if isinstance(axes, dict) and key in axes:
        return axes[key]
    if isinstance(axes, tuple | list) and isinstance(key, int) and len(axes) == count:
        return axes[key]
    raise ValueError(
        f"vmap: in_axes or out_axes has {describe(axes)} for a value with {count} parts, which "
        f"has no entry for part {key!r}. Give an integer or None, or an entry for each part."
    )


def _checked_axis(path: str, x: Variable, axis: Any) -> int | None:
    """The axis of the examples, counted from the front."""
    if axis is None:
        return None
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ValueError(
            f"vmap: in_axes for {path} must be an integer or None, got {describe(axis)}."
        )
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(
            f"vmap: in_axes={axis} for {path}, which has shape {x.shape}: there is no such axis. "
            "Give an axis of the argument, or None to share the argument with all examples."
        )
    return axis % x.ndim


def _as_variable(value: Any, beside: Device | None = None) -> Variable | None:
    """A Variable; an array wrapped without a gradient; None for other objects.

    An array lies on the device ``beside``, if the memory is the same.
    """
    if isinstance(value, RawArgument):
        return value.variable
    if isinstance(value, Variable):
        return value
    if not hasattr(value, "shape") or isinstance(value, type):
        return None
    value = from_host_data(value, "vmap", beside)
    device = find_device(value) if beside is None else device_beside(value, beside)
    return None if device is None else wrap_array(value, device, False)


def _like(value: Any, parts: list[Any]) -> Any:
    """Parts in a container of the same type, also in a named tuple."""
    if hasattr(value, "_make"):
        return value._make(parts)
    return type(value)(parts)


# --- the hidden axis -------------------------------------------------------------------------


def _new_hidden_axis(mapped: list[tuple[str, Variable, int | None]]) -> HiddenAxis:
    """The hidden axis of a call, from the arguments with examples."""
    if not mapped:
        raise ValueError(
            "vmap: no argument has examples: every entry of in_axes is None, or the arguments "
            "have no array. Give the axis of the examples for one argument."
        )
    sizes = {path: x.shape[axis] for path, x, axis in mapped if axis is not None}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{path} has {size}" for path, size in sizes.items())
        raise ValueError(
            f"vmap: the numbers of examples differ: {listed}. Give arguments of one length, or "
            "another axis in in_axes."
        )
    devices = {path: shared_with_examples(x).device for path, x, _ in mapped}
    if len(set(devices.values())) > 1:
        listed = ", ".join(f"{path} on {device}" for path, device in devices.items())
        raise DeviceMixError(
            f"vmap: the arguments are on several devices: {listed}. Move the arguments to one "
            "device with x.to_device(...)."
        )
    below = next(iter(devices.values()))
    return new_axis(below, next(iter(sizes.values())))


@contextmanager
def _entered(axis: HiddenAxis) -> Iterator[None]:
    """The hidden axis is the innermost one of the thread.

    Raises:
        VmapError: a Variable from outside was written to, and is still alive.
        TraceError: a backward pass in a net has reached a Variable from outside.
    """
    stack = hidden_axes.stack
    depth = len(stack)
    written: list[Variable] = []
    try:
        stack.append(axis)
        yield
    finally:
        del stack[depth:]  # a Ctrl-C may come before the axis is there
        written = put_back_moved(axis)
    if any(x.grad_var is not None for x in axis.shared):
        raise TraceError(
            "vmap: f calls backward(), which adds to the gradient of a Variable from outside. A "
            "net cannot repeat that. Call backward() on the results of vmap, or take gradients in "
            "f with tinynode.gradient."
        )
    if written:
        raise VmapError(
            f"vmap: f wrote a value of an example to a Variable ({describe(written[-1])}) from "
            "outside of f, which has one value for all examples. It has the old value again. "
            "Write to a Variable made in f, and return it. A layer such as BatchNorm writes its "
            "statistics in training: call it on the whole batch outside of vmap, or call eval()."
        )
