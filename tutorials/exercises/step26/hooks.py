"""Hooks: objects that are told of each operation, forward and backward.

Step 26: write judge of NaNHook; the rest is given. In core/, apply and run_backward tell each hook
in hooks.active.
"""

import numpy as np


class FunctionHook:
    """Base class. In a with block, the hook is told of all operations."""

    def applied(self, function, inputs, outputs):
        """Called after an operation was applied, with Variables."""

    def backward_preprocess(self, function, in_data, out_grad):
        """Called before the backward of an operation."""

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        """Called after the backward of an operation."""

    def __enter__(self):
        active.append(self)
        return self

    def __exit__(self, *error):
        active.remove(self)


active = []
"""The hooks of the with blocks that are open."""


def has_nan(values):
    """True if one of these Variables or arrays holds a NaN; None holds none."""
    arrays = [getattr(v, "array", v) for v in values if v is not None]
    return any(bool(np.isnan(array).any()) for array in arrays if array.dtype.kind == "f")


class NaNHook(FunctionHook):
    """Remembers which operation made the first NaN, in first: ("Exp", "forward")."""

    def __init__(self):
        self.first = None
        self.depth = 0  # of the backwards that are running

    def __enter__(self):
        self.first = None
        self.depth = 0  # an error may have ended a backward before its end
        return super().__enter__()

    def applied(self, function, inputs, outputs):
        self.judge(function, "forward", inputs, outputs)

    def backward_preprocess(self, function, in_data, out_grad):
        self.depth += 1

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        self.depth -= 1
        self.judge(function, "backward", grad_outputs, grad_inputs)

    def judge(self, function, direction, given, results):
        """Remember the operation, if it is the first that made a NaN."""
        raise NotImplementedError("step 26: has_nan(results), has_nan(given), and the depth")
