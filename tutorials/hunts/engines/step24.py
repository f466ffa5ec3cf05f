"""The right engine of hunt 24: six functions that can be differentiated twice."""

import tinynode as tn
from tinynode import functions as F


class Cube(tn.FunctionNode):
    """y = x^3."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g * (3.0 * x * x),)


class Flip(tn.FunctionNode):
    """y = x in reverse order."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).flip(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return (F.flip(g),)


class CumulativeSum(tn.FunctionNode):
    """y[k] = x[0] + ... + x[k]."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).cumulative_sum(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return (F.flip(F.cumulative_sum(F.flip(g))),)


class Softplus(tn.FunctionNode):
    """y = log(1 + e^x)."""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        self.retain_inputs((0,))
        return (xp.log1p(xp.exp(inputs[0])),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g / (1.0 + F.exp(-x)),)


class Dot(tn.FunctionNode):
    """y = a[0] b[0] + a[1] b[1] + ..."""

    def forward(self, inputs):
        a, b = inputs
        self.retain_inputs((0, 1))
        return (tn.namespace_of(a).sum(a * b),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g * b, a * g


class Exponential(tn.FunctionNode):
    """y = e^x, with the output kept for backward."""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (tn.namespace_of(inputs[0]).exp(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (y * g,)


def cube(x):
    return Cube().apply((x,))[0]


def flip(x):
    return Flip().apply((x,))[0]


def cumulative_sum(x):
    return CumulativeSum().apply((x,))[0]


def softplus(x):
    return Softplus().apply((x,))[0]


def dot(a, b):
    return Dot().apply((a, b))[0]


def exponential(x):
    return Exponential().apply((x,))[0]
