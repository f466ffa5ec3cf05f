"""Optimizers change parameters along their gradients.

Step 9: write Optimizer.update, and update_one of SGD and of Adam. The docstrings have the
formulas.
"""

import numpy as np
from mynode.nn.module import Module


class Optimizer:
    """Base class. A subclass defines update_one, the update of a single array."""

    def __init__(self, parameters, lr):
        if isinstance(parameters, Module):
            parameters = parameters.parameters()
        self.lr = lr
        self.parameters = list(parameters)
        self.moments = [{} for _ in self.parameters]  # what update_one remembers
        self.count = 0

    def update_one(self, array, grad, moments, count):
        """The next array, and the next moments. count is 1 for the first step."""
        raise NotImplementedError(f"{type(self).__name__} has no update_one")

    def update(self):
        """Change every parameter along its gradient, once."""
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                raise ValueError(f"update: parameter {i} ({p.name}, {p.shape}) has no gradient")
        self.count += 1
        raise NotImplementedError("step 9: call update_one for each parameter")

    def cleargrads(self):
        """Forget the gradients of all parameters."""
        for p in self.parameters:
            p.cleargrad()


class SGD(Optimizer):
    """Stochastic gradient descent:   p <- p - lr * g"""

    def __init__(self, parameters, lr=0.01):
        super().__init__(parameters, lr)

    def update_one(self, array, grad, moments, count):
        raise NotImplementedError("step 9: SGD.update_one")


class Adam(Optimizer):
    """Steps of about lr, by fading means of the gradient g and of its square.

    In step t, with m = v = 0 before the first step:

        m <- b1 * m + (1 - b1) * g                  v <- b2 * v + (1 - b2) * g^2
        p <- p - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
    """

    def __init__(self, parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(parameters, lr)
        self.betas = betas
        self.eps = eps

    def update_one(self, array, grad, moments, count):
        raise NotImplementedError("step 9: Adam.update_one")
