"""Exercise 12: train two models.

1. ``train``: the loop. It returns the list of losses, as plain numbers, one for each step: each
   is the loss *before* the update of its step.
2. ``fit_xor``: makes a model that gives two scores for a point, trains it with softmax
   cross-entropy on POINTS and CLASSES until the loss is below 0.05, and returns it.
3. ``fit_sine``: makes a model from (n, 1) to (n, 1), trains it with the mean squared error on
   ANGLES and SINES until that is below 0.001, and returns it.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F  # noqa: F401 - for you to use
from tinynode import nn  # noqa: F401 - for you to use

POINTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype="float32")
CLASSES = np.array([0, 1, 1, 0])  # XOR: 1 if exactly one of the two numbers is 1

ANGLES = np.linspace(-np.pi, np.pi, 64, dtype="float32").reshape(64, 1)
SINES = np.sin(ANGLES)


def train(model, optimizer, loss_of, steps):
    """Train for so many steps; ``loss_of(model)`` computes the loss. Returns the losses."""
    raise NotImplementedError("four lines in a loop, and a list")


def fit_xor():
    """A model that knows XOR: (n, 2) -> scores (n, 2)."""
    tn.seed(0)  # so that you get the same first weights each time
    raise NotImplementedError("make a model and an optimizer, call train, return the model")


def fit_sine():
    """A model that knows the sine between -pi and pi: (n, 1) -> (n, 1)."""
    tn.seed(0)
    raise NotImplementedError("one layer is not enough here either")
