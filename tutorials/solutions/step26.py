"""Solution 26: a hook that remembers where the first NaN was made."""

from tinynode import FunctionHook


def has_nan(variables):
    """Whether one of these Variables holds a NaN; None holds none."""
    return any(bool(v.xp.any(v.xp.isnan(v.array))) for v in variables if v is not None)


class NaNHook(FunctionHook):
    """Remembers which function made the first NaN, in ``first``."""

    name = "first NaN"

    def __init__(self):
        self.first = None
        self.depth = 0  # of the backwards that are running

    def added(self, function):
        self.first = None
        self.depth = 0  # an error may have ended a backward before its end

    def backward_preprocess(self, function, in_data, out_grad):
        self.depth += 1

    def applied(self, function, inputs, outputs):
        self.judge(function, "forward", inputs, outputs)

    def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
        self.depth -= 1
        self.judge(function, "backward", grad_outputs, grad_inputs)

    def judge(self, function, direction, given, results):
        """Remember the function, if it is the first that made a NaN."""
        if self.first is None and self.depth == 0 and has_nan(results) and not has_nan(given):
            self.first = function.label, direction
