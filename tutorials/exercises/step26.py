"""Exercise 26: a hook that remembers where the first NaN was made.

``hook.first`` is None, or the label of a function and the word "forward" or "backward", such as
``("Log", "forward")``. It is

- the first function with a NaN in its outputs and no NaN in its inputs; or
- the first function whose backward gave a NaN, without a NaN in the gradients of its outputs,

whichever comes first. A function inside of a backward is a part of this backward: the hook names
the outer function. When the hook is registered (``added``), ``first`` is None again.
"""

from tinynode import FunctionHook


def has_nan(variables):
    """Whether one of these Variables holds a NaN; None holds none."""
    return any(bool(v.xp.any(v.xp.isnan(v.array))) for v in variables if v is not None)


class NaNHook(FunctionHook):
    """Remembers which function made the first NaN, in ``first``."""

    name = "first NaN"

    def __init__(self):
        self.first = None

    def applied(self, function, inputs, outputs):
        raise NotImplementedError("has_nan(outputs), has_nan(inputs)")

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        raise NotImplementedError("has_nan(grad_inputs), has_nan(grad_outputs)")
