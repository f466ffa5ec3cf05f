"""Debug mode: a hook that shows where a function was called, and finds NaN and changed arrays.

Requirement: the error shows the line of the user, not a line of tinynode. Debug mode costs nothing
while off. ``tn.set_debug(True)`` or ``using_config(debug=True)`` turns the hook on.
"""

from __future__ import annotations

import os
import traceback
import zlib
from typing import Any

from tinynode.core.hooks import FunctionHook, debug_hooks
from tinynode.devices import Array, Arrays, namespace_of, to_host
from tinynode.errors import InplaceError, NaNError, dtype_name

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class DebugHook(FunctionHook):
    """Keeps forward stacks, looks for NaN, and finds retained arrays that were changed in place.

    Raises:
        NaNError: an output or a gradient holds a NaN.
        InplaceError: a retained array has other values than after forward.
    """

    name = "debug mode"

    def forward_preprocess(self, function: Any, in_data: Arrays) -> None:
        function.stack = capture_stack()

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        check_nan(function, tuple(y.raw for y in outputs), "forward")
        if function.inputs is not None:
            function.retained_checksums = checksums_of(function)

    def backward_preprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        check_unchanged(function)

    def after_backward(
        self,
        function: Any,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> None:
        for i, gx in zip(target_input_indexes, grad_inputs, strict=True):
            check_nan(function, (getattr(gx, "raw", None),), "backward", i)


debug_hooks.append(DebugHook())


def capture_stack() -> traceback.StackSummary:
    """The stack of the caller, without the frames of tinynode."""
    frames = traceback.extract_stack()
    users = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    return traceback.StackSummary.from_list(users)


def user_line(function: Any) -> str:
    """The line that called a function, as ``file:line``, or a hint how to find the line."""
    if not function.stack:
        return "an unknown line (debug mode was off during forward)"
    frame = function.stack[-1]
    return f"{frame.filename}:{frame.lineno}"


def has_nan(array: Array | None) -> bool:
    """True if a floating or complex array holds a NaN."""
    if array is None:
        return False
    namespace = namespace_of(array)
    if not namespace.isdtype(array.dtype, ("real floating", "complex floating")):
        return False
    return bool(namespace.any(namespace.isnan(array)))


def check_nan(
    function: Any, arrays: tuple[Array | None, ...], direction: str, first: int = 0
) -> None:
    """Raise NaNError if an output (forward), or a gradient of an input (backward), holds a NaN.

    The arrays' positions count from ``first``.
    """
    for position, array in enumerate(arrays, first):
        if array is not None and has_nan(array):
            what = "output" if direction == "forward" else "the gradient of input"
            raise NaNError(
                f"NaN is detected on {direction} computation of {function.label}: {what} "
                f"{position}, shape {tuple(array.shape)}, {dtype_name(array.dtype)}; the function "
                f"was called at {user_line(function)}. Look at its inputs there."
            )


def checksum(array: Array) -> int:
    """A number that changes when the array's values change."""
    host = to_host(array)
    return zlib.crc32(host.tobytes())


def checksums_of(function: Any) -> tuple[tuple[str, Array, int], ...]:
    """For each retained array of a function: the name in messages, the array, the checksum."""
    retained = [(f"input {i}", function._input_data[i]) for i in function._retained_input_indexes]
    for i in function._retained_output_indexes:
        retained.append((f"output {i}", function._output_data[i]))
    return tuple((what, x, checksum(x)) for what, x in retained if x is not None)


def check_unchanged(function: Any) -> None:
    """Raise InplaceError if a retained array has changed since forward."""
    for what, array, expected in getattr(function, "retained_checksums", ()):
        if checksum(array) != expected:
            raise InplaceError(
                f"{what} of {function.label} (shape {tuple(array.shape)}, "
                f"{dtype_name(array.dtype)}) was changed in place after forward at "
                f"{user_line(function)}: its gradient would be wrong. Copy the array before you "
                "write to it, or write after backward."
            )
