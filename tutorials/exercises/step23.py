"""Exercise 23: tanh with an optimised gradient.

1. ``TanhGrad``: the function of two inputs, y = tanh(x) and gy, that gives gx = gy (1 - y^2).
   ``forward`` works on arrays. ``backward`` gives the gradients of y and of gy, and computes only
   those in ``target_input_indexes``. These gradients must be differentiable as well.
2. ``Tanh.backward``: applies ``TanhGrad``. Tanh retains its output, not its input.
"""

import tinynode as tn
from tinynode import functions as F  # noqa: F401 - for you to use


class Tanh(tn.FunctionNode):
    """y = tanh(x).   x: (n) -> y: (n).   dL/dx = dL/dy (1 - y^2)"""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        self.retain_outputs((0,))
        return (xp.tanh(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("get_retained_outputs() gives y; apply TanhGrad to y and gy")


class TanhGrad(tn.FunctionNode):
    """gx = gy (1 - y^2).   y: (n), gy: (n) -> gx: (n).   With h = dL/dgx: dL/dy = ..."""

    def forward(self, inputs):
        raise NotImplementedError("inputs is a tuple of two arrays: y and gy")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("gx is a formula of y and of gy: what are its two derivatives?")


def tanh(x):
    return Tanh().apply((x,))[0]
