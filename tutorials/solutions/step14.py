"""Solution 14: the three bugs, found and repaired."""

import tinynode as tn
from tinynode import functions as F

FOUND = ("Product", "Share", "Tanh")


class Tanh(tn.FunctionNode):
    """y = tanh(x), for x of any shape."""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (tn.namespace_of(inputs[0]).tanh(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (g * (1 - y * y),)


class SoftSign(tn.FunctionNode):
    """y = x / (1 + |x|), for x of any shape."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] / (1 + abs(inputs[0])),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g / (1 + abs(x)) ** 2,)


class LeakyReLU(tn.FunctionNode):
    """y = x where x > 0, else 0.1 x; for x of any shape."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (tn.namespace_of(inputs[0]).where(inputs[0] > 0, inputs[0], 0.1 * inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (F.where(x > 0, g, 0.1 * g),)


class Product(tn.FunctionNode):
    """z = a b, for a and b of one shape."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g * b, g * a


class Transpose(tn.FunctionNode):
    """y = x with its two axes swapped."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).permute_dims(inputs[0], (1, 0)),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return (F.permute_dims(g, (1, 0)),)


class Share(tn.FunctionNode):
    """y = x / sum(x), for positive x of any shape: the share of each in the whole."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] / tn.namespace_of(inputs[0]).sum(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        total = F.sum(x)
        return ((g - F.sum(g * x) / total) / total,)
