"""Hooks: objects that are told of each operation, forward and backward.

Step 26: FunctionHook, active and has_nan are given. Write NaNHook. In core/, apply and
run_backward tell each hook in hooks.active.
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

    first = None

    def applied(self, function, inputs, outputs):
        raise NotImplementedError("step 26: has_nan(outputs), has_nan(inputs)")

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        raise NotImplementedError("step 26: has_nan(grad_inputs), has_nan(grad_outputs)")
