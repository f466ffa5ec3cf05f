"""NaNHook: the origin of the first NaN.

Requirement: a NaN in the loss does not show the origin. The hook looks at every result, in
forward and in backward, and stops at the first NaN. The error names the function, the output or
gradient, and the line of user code that called the function. Debug mode finds NaN too, beside
other checks. The hook works without debug mode, and also on a single function.
"""

from __future__ import annotations

from typing import NoReturn

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array
from tinynode.errors import NaNError, describe
from tinynode.hooks import debug
from tinynode.hooks.calls import CallHook, OptionalArrays


class NaNHook(CallHook):
    """Raises NaNError at the first function that gives a NaN.

    A backward is judged by the returned gradients, not by the functions inside. To know
    the line of user code, the hook keeps each function's stack, as debug mode does. Stacks take
    time: use the hook to find a NaN, not in every run.

        with NaNHook():
            loss = model(x)
            loss.backward()
    """

    name = "NaNHook"

    def begin(self, function: FunctionNode, direction: str, arrays: OptionalArrays) -> None:
        if direction == "forward" and function.stack is None:
            function.stack = debug.capture_stack()

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        if self.is_inside_backward():
            return
        for i, y in enumerate(outputs):
            if debug.has_nan(y.raw):
                _raise(function, f"output {i}", "forward", y.raw, _origin(inputs))

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        for i, gy in enumerate(grad_outputs):
            if gy is not None and debug.has_nan(gy.raw):
                hint = (
                    "The NaN came in with this gradient: backward started from it, or the "
                    "contributions of several functions add up to NaN."
                )
                _raise(function, f"the gradient of output {i}", "backward", gy.raw, hint)
        for i, gx in zip(target_input_indexes, grad_inputs, strict=True):
            if isinstance(gx, Variable) and debug.has_nan(gx.raw):
                hint = (
                    "The gradients of its outputs hold none: look at its inputs, where its "
                    "derivative may be infinite or undefined."
                )
                _raise(function, f"the gradient of input {i}", "backward", gx.raw, hint)


def _raise(function: FunctionNode, what: str, direction: str, array: Array, hint: str) -> NoReturn:
    raise NaNError(
        f"{function.label} is the first function with a NaN: in {direction}, {what} "
        f"({describe(array)}). The function was called at {debug.user_line(function)}. {hint}"
    )


def _origin(inputs: tuple[Variable, ...]) -> str:
    """A hint: the NaN was in an input already, or not."""
    for i, x in enumerate(inputs):
        if debug.has_nan(x.raw):
            return f"Its input {i} held a NaN already: look at where that comes from."
    return "Its inputs hold none: look at their values there."
