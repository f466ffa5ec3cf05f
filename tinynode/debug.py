"""What debug mode does: where a function was called, NaN, and arrays changed behind our back.

Requirement: the error shows the user's line, not ours; and none of this costs anything while debug
mode is off.
"""

from __future__ import annotations

import os
import traceback
import zlib
from typing import TYPE_CHECKING, Any

from tinynode.backend import Array, namespace_of, to_host
from tinynode.errors import InplaceError, NaNError, dtype_name

if TYPE_CHECKING:
    from tinynode.function_node import FunctionNode

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def capture_stack() -> traceback.StackSummary:
    """The stack of the caller, without the frames of tinynode itself."""
    frames = traceback.extract_stack()
    users = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    return traceback.StackSummary.from_list(users)


def user_line(function: FunctionNode) -> str:
    """Where the user applied a function, as ``file:line``; says how to find out if unknown."""
    if not function.stack:
        return "an unknown line (debug mode was off during forward)"
    frame = function.stack[-1]
    return f"{frame.filename}:{frame.lineno}"


def has_nan(array: Array | None) -> bool:
    """Whether a floating or complex array holds a NaN."""
    if array is None:
        return False
    namespace = namespace_of(array)
    if not namespace.isdtype(array.dtype, ("real floating", "complex floating")):
        return False
    return bool(namespace.any(namespace.isnan(array)))


def check_nan(
    function: FunctionNode, arrays: tuple[Array | None, ...], direction: str, first: int = 0
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


def check_unchanged(function: FunctionNode) -> None:
    """Raise InplaceError if an array that the function retained in debug mode has changed."""
    for what, array, expected in function.retained_checksums:
        if checksum(array) != expected:
            raise InplaceError(
                f"{what} of {function.label} (shape {tuple(array.shape)}, "
                f"{dtype_name(array.dtype)}) was changed in place after forward at "
                f"{user_line(function)}: its gradient would be wrong. Copy the array before you "
                "write to it, or write after backward."
            )


def add_forward_stack(error: BaseException, function: FunctionNode) -> None:
    """Add to an error of a backward where the function was called in forward."""
    if function.stack and isinstance(error, Exception):
        lines: list[Any] = traceback.format_list(function.stack)
        error.add_note(
            f"{function.label} was called in forward here. Stacktrace of the function is below:\n"
            + "".join(lines).rstrip()
        )
