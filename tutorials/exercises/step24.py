"""Exercise 24: three functions that cannot be differentiated twice.

Their gradients are right, but they are computed with arrays, so the graph is cut.
Mend the three ``backward`` methods, so that ``check_double_backward`` passes for each function.
The forward methods are right; leave them as they are.
"""

import tinynode as tn
from tinynode import functions as F  # noqa: F401 - for you to use


class CumulativeSum(tn.FunctionNode):
    """y[k] = x[0] + ... + x[k].   With g = dL/dy:   dL/dx[k] = g[k] + g[k + 1] + ..."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).cumulative_sum(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        xp = g.xp
        return (tn.Variable(xp.flip(xp.cumulative_sum(xp.flip(g.array)))),)


class Softplus(tn.FunctionNode):
    """y = log(1 + e^x).   dL/dx = dL/dy / (1 + e^-x)"""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        self.retain_inputs((0,))
        return (xp.log1p(xp.exp(inputs[0])),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g / (1.0 + x.xp.exp(-x.array)),)


class Dot(tn.FunctionNode):
    """y = a[0] b[0] + a[1] b[1] + ...   With g = dL/dy:   dL/da = g b   dL/db = g a"""

    def forward(self, inputs):
        a, b = inputs
        self.retain_inputs((0, 1))
        return (tn.namespace_of(a).sum(a * b),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g * b.array, g * a.array


def cumulative_sum(x):
    return CumulativeSum().apply((x,))[0]


def softplus(x):
    return Softplus().apply((x,))[0]


def dot(a, b):
    return Dot().apply((a, b))[0]
