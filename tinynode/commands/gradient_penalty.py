"""The job ``train gradient-penalty``: a perceptron with a gradient in the loss.

The loss is the cross entropy c, plus the squared norm of dc/dx for the pixels x. So small changes
of an image change the output little. The gradient of the loss needs second derivatives.

Source: Drucker and LeCun, Improving Generalization Performance Using Double Backpropagation, 1992.
"""

from __future__ import annotations

from tinynode import nn
from tinynode.commands.digits import SIDE, load_data
from tinynode.commands.job import Job, accuracy, accuracy_line
from tinynode.configuration import force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.functions import softmax_cross_entropy, sum, tanh
from tinynode.transforms.trees import or_zeros

PENALTY = 0.05
"""The factor of the squared norm of the gradient."""


def make_model() -> nn.Module:
    """64 pixels, two hidden layers of a smooth activation, 10 classes."""
    return nn.Sequential(
        nn.Linear(SIDE * SIDE, 128),
        tanh,
        nn.Linear(128, 128),
        tanh,
        nn.Linear(128, 10),
    )


def penalized_cross_entropy(model: nn.Module, x: Variable, t: Variable) -> Variable:
    """(1/n) sum over images of   c_i + PENALTY * |dc_i/dx_i|^2,   c_i the cross entropy.

    x: (n, 64), t: (n) -> 0-d. The cross entropy c_i depends on x_i alone, so row i of the
    gradient of the sum is dc_i/dx_i.
    """
    with force_backprop_mode():  # in evaluation too
        pixels = asarray(x, requires_grad=True)
        total = softmax_cross_entropy(model(pixels), t, reduction="sum")
        (gradient,) = grad([total], [pixels], enable_double_backprop=True)
    slope = or_zeros(gradient, pixels)
    return (total + PENALTY * sum(slope * slope)) / float(t.size)


JOB = Job(
    name="gradient-penalty",
    summary="a perceptron whose loss contains a gradient: it needs second derivatives",
    load_data=load_data,
    make_model=make_model,
    loss=penalized_cross_entropy,
    metrics={"accuracy": accuracy},
    result=accuracy_line,
    epochs=40,
    batch_size=16,
    lr=0.002,
)
