"""Start here with a function of your own: forward, backward, the check, and its use in a model.

python tutorials/examples/start_custom_function.py

The example is the activation x / (1 + |x|), "softsign". Replace `Softsign` with your own function.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check, nn


# 1. the function: arrays in forward, Variables in backward
class Softsign(tn.FunctionNode):
    """y = x / (1 + |x|).   x: (s) -> y: (s).   gx = gy / (1 + |x|)^2."""

    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        xp = tn.namespace_of(x)  # the array library: NumPy, CuPy or another
        return (x / (1 + xp.abs(x)),)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        (gy,) = grad_outputs
        return (gy / (1 + F.abs(x)) ** 2,)


def softsign(x):
    """The lower-case function, for users."""
    (y,) = Softsign().apply((x,))
    return y


# 2. the check: backward agrees with differences, first and second order
x = np.array([[-2.0, -0.5, 0.3], [0.7, 1.5, 3.0]])
gy = np.ones_like(x)
gradient_check.check_backward(softsign, x, gy, dtype="float64")
gradient_check.check_double_backward(softsign, x, gy, 2 * gy, dtype="float64")
print("backward is right, to second order")

# 3. the use: two spirals, told apart by a network with the new activation
tn.seed(0)
spirals = nn.datasets.make_spirals(600)
train = nn.ArrayDataset(spirals.train_inputs, spirals.train_targets)
model = nn.Sequential(nn.Linear(2, 32), softsign, nn.Linear(32, 32), softsign, nn.Linear(32, 2))


def loss(model, points, labels):
    return F.softmax_cross_entropy(model(points), labels)


loader = nn.DataLoader(train, 32, shuffle=True)
nn.Trainer(model, loss, nn.Adam(model, lr=0.02), loader).run(40, quiet=True)
accuracy = nn.metrics.accuracy(model(spirals.held_out_inputs), spirals.held_out_targets)
print(f"held-out accuracy: {100 * accuracy:.1f} %")
