"""Dispatch: a backend's own kernel, else the portable definition, then 0-d arrays for scalars.

Requirement: there is a single way from a function and arrays to the outputs. Eager code, nets,
CuPy and optimizers all take this way. So every ``Fallback`` is counted, and no retained array of a
kernel is left over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tinynode.core.hooks import FunctionHook, tell_failed
from tinynode.core.messages import (
    forward_too_large,
    is_too_large,
    note_constants,
    output_not_array,
    output_not_tuple,
)
from tinynode.devices import (
    Array,
    Arrays,
    Device,
    Fallback,
    count_use,
    fallback_uses,
    is_float16,
    narrowed_arrays,
    widened_array,
)


def run_forward(function: Any, arrays: Arrays, device: Device, output_device: Device) -> Arrays:
    """The output arrays of a FunctionNode.

    Args:
        function: the FunctionNode; ``function.forward`` is the portable definition.
        arrays: the input arrays, on ``device``.
        device: the device of the inputs. The backend may have a kernel for the function.
        output_device: the device of the outputs.

    Raises:
        InvalidType: the shapes of a broadcasting function do not broadcast.
        OutputError: ``forward`` did not return a tuple of arrays.
        SizeError: the result does not fit into the memory.
    """
    if function.wide and any(map(is_float16, arrays)):
        return _run_wide(function, arrays, device, output_device)
    try:
        outputs = device.backend.forward(function, arrays)
        if type(outputs) is not tuple:
            outputs = _after_fallback(outputs, function, arrays, device)
    except Exception as error:
        if function.is_broadcasting:  # shapes that need only broadcast are checked after an error
            function.check_types(arrays)
        if is_too_large(error):
            raise forward_too_large(function, arrays, error) from error
        note_constants(error, function)
        raise
    if len(outputs) == 1:  # the short ways of an array, and of a scalar of the array library
        (y,) = outputs
        if type(y) in output_device.array_types:
            return outputs
        if type(y) in output_device.scalar_types:
            return (output_device.xp.asarray(y),)
    return _lift(outputs, output_device, function.label)


def _run_wide(function: Any, arrays: Arrays, device: Device, output_device: Device) -> Arrays:
    """``run_forward`` in float32 for inputs of float16; then the outputs are float16 again."""
    wide = tuple([widened_array(x) for x in arrays])
    return narrowed_arrays(run_forward(function, wide, device, output_device), arrays)


def watched_inputs(function: Any, hooks: Sequence[Any], inputs: Sequence[Any]) -> Arrays:
    """The arrays of the input Variables, after the event ``before_forward`` of hooks."""
    for hook in hooks:
        hook.before_forward(function, inputs)
    return tuple([x.raw for x in inputs])


def run_watched(
    function: Any, hooks: Sequence[Any], arrays: Arrays, device: Device, output_device: Device
) -> Arrays:
    """``run_forward`` between the events of hooks; the types are checked before."""
    if function.is_broadcasting:
        function.check_types(arrays)
    try:
        for hook in hooks:
            hook.forward_preprocess(function, arrays)
        outputs = via(hooks)(function, arrays, device, output_device)
        for hook in hooks:
            hook.forward_postprocess(function, arrays)
    except BaseException as error:
        tell_failed(hooks, function, "forward", error)
        raise
    return outputs


def via(hooks: Sequence[Any]) -> Callable[..., Arrays]:
    """``run_forward``, or the replacement of a hook."""
    for one in hooks:
        if issubclass(type(one), FunctionHook) and one.forward_runner is not None:
            return one.forward_runner  # type: ignore[no-any-return]
    return run_forward


def _after_fallback(result: Any, function: Any, arrays: Arrays, device: Device) -> Arrays:
    """Run the portable forward if a kernel returned ``Fallback``; the result is a tuple."""
    if is_fallback(result):
        function.retain_inputs(())
        function.retain_outputs(())
        with device.active():
            result = run_portable(result, device, function.label, function.forward, arrays)
    if isinstance(result, tuple):
        return tuple(result)
    raise output_not_tuple(function.label, result)


def is_fallback(result: Any) -> bool:
    """True for the class ``Fallback`` and for instances of the class."""
    return result is Fallback or isinstance(result, Fallback)


def run_portable(
    fallback: Any, device: Device, label: str, portable: Callable[..., Any], *arguments: Any
) -> Any:
    """Run a portable definition after a ``Fallback``, and count the use with the reason."""
    reason = fallback.reason if isinstance(fallback, Fallback) else "no reason given"
    start = time.perf_counter()
    result = portable(*arguments)
    seconds = time.perf_counter() - start
    count_use(fallback_uses, (device.backend.name, label, reason), seconds)
    return result


def _lift(outputs: tuple[Any, ...], device: Device, label: str) -> Arrays:
    """Scalars of the array library as 0-d arrays. None stays None; other objects are errors."""
    lifted: list[Array | None] = []
    for position, output in enumerate(outputs):
        array = None if output is None else device.lift(output)
        if array is None and output is not None:
            raise output_not_array(label, position, output, device)
        lifted.append(array)
    return tuple(lifted)


def add_arrays(a: Array, b: Array, device: Device) -> Array:
    """a + b, of two arrays of one device, without a FunctionNode."""
    total = device.xp.add(a, b)
    return total if type(total) in device.array_types else device.lift(total)
