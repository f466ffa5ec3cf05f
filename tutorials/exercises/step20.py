"""Exercise 20: a hook that remembers where the first NaN was made.

``hook.first`` is None, or the label of a function and the word "forward" or "backward", such as
``("Log", "forward")``. It is

- the first function whose outputs hold a NaN, while none of its inputs does; or
- the first whose backward gave a NaN, while no gradient of its outputs holds one,

whichever comes first. What runs inside of a backward belongs to that backward, and is not named
itself. When the hook is registered (``added``), it starts anew.
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
