"""Solution 24: three functions that can be differentiated twice."""

import tinynode as tn
from tinynode import functions as F


class CumulativeSum(tn.FunctionNode):
    """y[k] = x[0] + ... + x[k].   With g = dL/dy:   dL/dx[k] = g[k] + g[k + 1] + ..."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).cumulative_sum(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return (F.flip(F.cumulative_sum(F.flip(g))),)


class Softplus(tn.FunctionNode):
    """y = log(1 + e^x).   dL/dx = dL/dy / (1 + e^-x)"""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        self.retain_inputs((0,))
        return (xp.log1p(xp.exp(inputs[0])),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g / (1.0 + F.exp(-x)),)


class Dot(tn.FunctionNode):
    """y = a[0] b[0] + a[1] b[1] + ...   With g = dL/dy:   dL/da = g b   dL/db = g a"""

    def forward(self, inputs):
        a, b = inputs
        self.retain_inputs((0, 1))
        return (tn.namespace_of(a).sum(a * b),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g * b, g * a


def cumulative_sum(x):
    return CumulativeSum().apply((x,))[0]


def softplus(x):
    return Softplus().apply((x,))[0]


def dot(a, b):
    return Dot().apply((a, b))[0]
