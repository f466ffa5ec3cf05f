"""The right engine of hunt 14: eight functions with their gradients."""

import tinynode as tn
from tinynode import functions as F


class Tanh(tn.FunctionNode):
    """y = tanh(x), for x of any shape."""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (tn.namespace_of(inputs[0]).tanh(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (g * (1 - y * y),)


class LeakyReLU(tn.FunctionNode):
    """y = x where x > 0, else 0.1 x; for x of any shape."""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (tn.namespace_of(x).where(x > 0, x, 0.1 * x),)

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


class Quotient(tn.FunctionNode):
    """z = a / b, for a and b of one shape."""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        return (inputs[0] / inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        return g / b, -g * a / (b * b)


class Transpose(tn.FunctionNode):
    """y = x with its three axes in the order 2, 0, 1."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).permute_dims(inputs[0], (2, 0, 1)),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return (F.permute_dims(g, (1, 2, 0)),)


class Share(tn.FunctionNode):
    """y = x / sum(x), for positive x of any shape."""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (x / tn.namespace_of(x).sum(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        total = F.sum(x)
        return ((g - F.sum(g * x) / total) / total,)


class RowMean(tn.FunctionNode):
    """y[i] = the mean of row i of x."""

    def forward(self, inputs):
        self.columns = inputs[0].shape[1]
        return (tn.namespace_of(inputs[0]).mean(inputs[0], axis=1),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        column = F.reshape(g, (g.shape[0], 1))
        return (F.broadcast_to(column, (g.shape[0], self.columns)) / self.columns,)


class Affine(tn.FunctionNode):
    """y = x w^T + b, for x of shape (n, k), w of shape (m, k), b of shape (m)."""

    def forward(self, inputs):
        x, w, b = inputs
        self.retain_inputs((0, 1))
        return (x @ tn.namespace_of(w).permute_dims(w, (1, 0)) + b,)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        x, w = self.get_retained_inputs()
        gx = g @ w
        gw = F.permute_dims(g, (1, 0)) @ x
        return gx, gw, F.sum(g, axis=0)


def tanh(x):
    return Tanh().apply((x,))[0]


def leaky_relu(x):
    return LeakyReLU().apply((x,))[0]


def product(a, b):
    return Product().apply((a, b))[0]


def quotient(a, b):
    return Quotient().apply((a, b))[0]


def transpose(x):
    return Transpose().apply((x,))[0]


def share(x):
    return Share().apply((x,))[0]


def row_mean(x):
    return RowMean().apply((x,))[0]


def affine(x, w, b):
    return Affine().apply((x, w, b))[0]
