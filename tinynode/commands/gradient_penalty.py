"""The job ``train gradient-penalty``: a perceptron whose loss contains a gradient.

The loss is the cross entropy, plus the squared norm of its gradient with respect to the pixels: a
model that small changes of the image do not confuse. Its own gradient needs second derivatives.

Source: Drucker and LeCun, Improving Generalization Performance Using Double Backpropagation, 1992.
"""

from __future__ import annotations

from tinynode import nn
from tinynode.commands.digits import SIDE, jittered
from tinynode.commands.training import Job
from tinynode.core.backprop import grad
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.functions import softmax_cross_entropy, sum, tanh

PENALTY = 0.05
"""What the squared norm of the gradient is multiplied by."""


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
    """(1/n) sum over images of   c_i + PENALTY * |dc_i/dx_i|^2,   c_i its cross entropy.

    x: (n, 64), t: (n) -> 0-d. An image's cross entropy depends on its own pixels alone, so the
    gradient of the sum of all has the gradient of each as its rows.
    """
    pixels = asarray(x, requires_grad=True)
    total = softmax_cross_entropy(model(pixels), t, reduction="sum")
    (slope,) = grad([total], [pixels], enable_double_backprop=True)
    assert slope is not None
    return (total + PENALTY * sum(slope * slope)) / float(t.size)


JOB = Job(
    name="gradient-penalty",
    summary="a perceptron whose loss contains a gradient: it needs second derivatives",
    load_data=nn.datasets.load_digits,
    make_model=make_model,
    vary=jittered,
    loss=penalized_cross_entropy,
    epochs=40,
    batch_size=16,
    lr=0.002,
)
