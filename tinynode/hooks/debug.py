"""Debug mode: a hook that shows where a function was called, and finds NaN and changed arrays.

Requirement: the error shows the line of the user, not a line of tinynode. Debug mode costs nothing
while off. ``tn.set_debug(True)`` or ``using_config(debug=True)`` turns the hook on.
"""

from __future__ import annotations

import os
import threading
import traceback
import zlib
from typing import Any

from tinynode.configuration import config
from tinynode.core.hooks import FunctionHook, debug_hooks
from tinynode.core.messages import forward_stack
from tinynode.devices import Array, Arrays, namespace_of, to_host, without_hidden_axes
from tinynode.errors import InplaceError, NaNError, NonFiniteError, dtype_name, printable
from tinynode.hooks.not_finite import (
    Bad,
    capitalized,
    first_bad,
    forward_facts,
    guard_text,
    is_finite,
    place_text,
    retained,
)
from tinynode.hooks.origins import (
    Origin,
    OriginFinder,
    earliest_forward,
    gradients_at_end,
    has_ended,
    place_of,
    text_in_forward,
)
from tinynode.hooks.origins import user_line as user_line

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _ThreadFinder(threading.local):
    """The finder of this thread."""

    def __init__(self) -> None:
        self.finder = OriginFinder()


_thread = _ThreadFinder()


class DebugHook(FunctionHook):
    """Keeps forward stacks, looks for NaN and inf, and finds retained arrays changed in place.

    A gradient counts at the end of a pass: infinity behind a mask that makes zero is no error.

    Raises:
        NaNError: an output or a gradient holds a NaN.
        NonFiniteError: a gradient is infinite. ``config.debug_infinite = False`` allows that.
        InplaceError: a retained array has other values than after forward.
    """

    name = "debug mode"

    def forward_preprocess(self, function: Any, in_data: Arrays) -> None:
        function.stack = capture_stack()

    def applied(self, function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        finder = _thread.finder
        finder.applied(function, inputs, outputs)
        if not finder.is_inside_backward:
            check_nan(function, inputs, outputs)
        if function.inputs is not None:
            function.retained_checksums = checksums_of(function)

    def before_backward(self, sweep: Any, function: Any) -> None:
        _thread.finder.before_backward(sweep, function)

    def backward_preprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        check_unchanged(function)
        _thread.finder.backward_preprocess(function, in_data, out_grad)

    def after_backward(
        self,
        function: Any,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Any, ...],
        grad_inputs: tuple[Any, ...],
    ) -> None:
        _thread.finder.after_backward(function, target_input_indexes, grad_outputs, grad_inputs)

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        finder = _thread.finder
        finder.after_accumulate(sweep, function)
        if has_ended(sweep):
            check_gradients(sweep, finder.origins_of(sweep))

    def failed(self, function: Any, direction: str, error: BaseException) -> None:
        _thread.finder.failed(function, direction, error)


debug_hooks.append(DebugHook())


def capture_stack() -> traceback.StackSummary:
    """The stack of the caller, without the frames of tinynode."""
    frames = traceback.extract_stack()
    users = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    return traceback.StackSummary.from_list(users)


def has_nan(array: Array | None) -> bool:
    """True if a floating or complex array holds a NaN."""
    if array is None:
        return False
    array = without_hidden_axes(array)
    namespace = namespace_of(array)
    if not namespace.isdtype(array.dtype, ("real floating", "complex floating")):
        return False
    return bool(namespace.any(namespace.isnan(array)))


def check_nan(function: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """Raise NaNError if an output of a forward holds a NaN."""
    for position, y in enumerate(outputs):
        array = y.raw
        if has_nan(array):
            head = (
                f"NaN is detected on forward computation of {function.label}: output {position}, "
                f"shape {tuple(array.shape)}, {dtype_name(array.dtype)}; the function was called "
                f"at {place_of(function)}."
            )
            facts = forward_facts(function, [x.raw for x in inputs], array)
            raise NaNError("\n".join([head, *facts, *_deeper(function, inputs)]))


def _deeper(function: Any, inputs: tuple[Any, ...]) -> list[str]:
    """The origin of the inputs that were not finite, and the guard."""
    bad = [i for i, x in enumerate(inputs) if not is_finite(x.raw)]
    if not bad:
        return [guard_text(function)]
    creator = inputs[bad[0]].creator_node
    origin = None if creator is None else earliest_forward(creator)
    if origin is None:
        return [f"Input {bad[0]} was not finite before the function.", guard_text(function)]
    return [text_in_forward(origin), *origin.facts]


def check_gradients(sweep: Any, origins: dict[Any, Origin]) -> None:
    """Raise an error if a gradient at the end of a pass is NaN, or infinite.

    Raises:
        NaNError: a gradient is NaN.
        NonFiniteError: a gradient is infinite, and ``config.debug_infinite`` is True.
    """
    for node, array in gradients_at_end(sweep):
        origin = origins.get(node)
        if is_finite(array) or not (config.debug_infinite or (origin and origin.is_nan)):
            continue
        bad = first_bad(array)
        raise _gradient_error(node, bad, origin)


def _gradient_error(node: Any, bad: Bad, origin: Origin | None) -> NonFiniteError:
    """The error for a gradient at the end of a pass."""
    kind = NaNError if bad.is_nan else NonFiniteError
    name = f"the gradient of {printable(node.name)}" if node.name else "the gradient of a variable"
    shape = tuple(node.shape)
    if origin is None:
        return kind(
            f"{capitalized(name)}, shape {shape}, is not finite: contributions of several "
            f"functions add up to {bad.value} at {place_text(bad.place)}. Scale the loss."
        )
    word = "NaN" if origin.is_nan else "Infinity"
    where = (
        ""
        if origin.function is None
        else f"; the function was called at {place_of(origin.function)}"
    )
    error = kind(
        "\n".join(
            [
                f"{word} is detected on backward computation of {origin.head}{where}.",
                *origin.facts,
                f"So {name}, shape {shape}, has {bad.value} at {place_text(bad.place)}.",
            ]
        )
    )
    if origin.function is not None and origin.function.stack:
        error.add_note(forward_stack(origin.function))
    return error


def checksum(array: Array) -> int:
    """A number that changes when the array's values change."""
    host = to_host(without_hidden_axes(array))
    return zlib.crc32(host.tobytes())


def checksums_of(function: Any) -> tuple[tuple[str, Array, int], ...]:
    """For each retained array of a function: the name in messages, the array, the checksum."""
    return tuple((what, x, checksum(x)) for what, x in retained(function))


def check_unchanged(function: Any) -> None:
    """Raise InplaceError if a retained array has changed since forward."""
    for what, array, expected in function.retained_checksums:
        if checksum(array) != expected:
            raise InplaceError(
                f"{what} of {function.label} (shape {tuple(array.shape)}, "
                f"{dtype_name(array.dtype)}) was changed in place after forward at "
                f"{user_line(function)}: its gradient would be wrong. Copy the array before you "
                "write to it, or write after backward."
            )
