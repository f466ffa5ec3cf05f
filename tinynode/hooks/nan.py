"""NaNHook: where the first NaN comes from.

Requirement: a NaN in the loss says nothing about its origin. The hook looks at every result, in
forward and in backward, and stops at the first NaN: with the function, the output or gradient, and
the line of user code that called the function. Debug mode does this too, among other checks; the
hook works without it, and on one function where that is enough.
"""

from __future__ import annotations

from typing import NoReturn

from tinynode.core import debug
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays
from tinynode.errors import NaNError, describe
from tinynode.hooks.calls import CallHook


class NaNHook(CallHook):
    """Raises NaNError at the first function that gives a NaN.

    A backward is judged by the gradients that it returns, not by the functions that it is made of.
    For the line of user code, the hook keeps each function's stack, as debug mode does; that takes
    time, so it is for finding a NaN, and not for every day.

        with NaNHook():
            loss = model(x)
            loss.backward()
    """

    name = "NaNHook"

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        super().forward_preprocess(function, in_data)
        if function.stack is None:
            function.stack = debug.capture_stack()

    def applied(
        self, function: FunctionNode, inputs: tuple[Variable, ...], outputs: tuple[Variable, ...]
    ) -> None:
        for position, y in enumerate(outputs):
            if debug.has_nan(y.raw) and not self.is_inside_backward():
                _raise(function, f"output {position}", "forward", y.raw, _origin(inputs))

    def after_backward(
        self,
        function: FunctionNode,
        target_input_indexes: tuple[int, ...],
        grad_outputs: tuple[Variable | None, ...],
        grad_inputs: tuple[Variable | None, ...],
    ) -> None:
        for position, gy in enumerate(grad_outputs):
            if gy is not None and debug.has_nan(gy.raw):
                hint = (
                    "The NaN came in with this gradient: backward started from it, or the "
                    "contributions of several functions add up to NaN."
                )
                _raise(function, f"the gradient of output {position}", "backward", gy.raw, hint)
        for position, gx in zip(target_input_indexes, grad_inputs, strict=True):
            if isinstance(gx, Variable) and debug.has_nan(gx.raw):
                hint = (
                    "The gradients of its outputs hold none: look at its inputs, where its "
                    "derivative may be infinite or undefined."
                )
                _raise(function, f"the gradient of input {position}", "backward", gx.raw, hint)


def _raise(function: FunctionNode, what: str, direction: str, array: Array, hint: str) -> NoReturn:
    raise NaNError(
        f"{function.label} is the first function with a NaN: in {direction}, {what} "
        f"({describe(array)}). The function was called at {debug.user_line(function)}. {hint}"
    )


def _origin(inputs: tuple[Variable, ...]) -> str:
    """Whether the NaN was in an input already."""
    for position, x in enumerate(inputs):
        if debug.has_nan(x.raw):
            return f"Its input {position} held a NaN already: look at where that comes from."
    return "Its inputs hold none: look at their values there."
