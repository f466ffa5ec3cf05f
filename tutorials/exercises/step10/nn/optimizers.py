"""Optimizers change parameters along their gradients.

Step 10: write AdamW.update_one.
"""


class AdamW(Adam):
    """Adam with decoupled weight decay:   p <- p - lr * weight_decay * p, then the step of Adam"""

    def __init__(self, parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(parameters, lr, betas, eps)
        self.weight_decay = weight_decay

    def update_one(self, array, grad, moments, count):
        raise NotImplementedError("step 10: make the array smaller, then let Adam move it")
