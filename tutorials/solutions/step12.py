"""Solution 12: train two models."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

POINTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype="float32")
CLASSES = np.array([0, 1, 1, 0])  # XOR: 1 if exactly one of the two numbers is 1

ANGLES = np.linspace(-np.pi, np.pi, 64, dtype="float32").reshape(64, 1)
SINES = np.sin(ANGLES)


def train(model, optimizer, loss_of, steps):
    """Train for so many steps; ``loss_of(model)`` computes the loss. Returns the losses."""
    losses = []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    return losses


def fit_xor():
    """A model that knows XOR: (n, 2) -> scores (n, 2)."""
    tn.seed(0)
    model = nn.Sequential(nn.Linear(2, 8), F.tanh, nn.Linear(8, 2))

    def loss_of(model):
        return F.softmax_cross_entropy(model(POINTS), CLASSES)

    train(model, nn.Adam(model, lr=0.05), loss_of, 200)
    return model


def fit_sine():
    """A model that knows the sine between -pi and pi: (n, 1) -> (n, 1)."""
    tn.seed(0)
    model = nn.Sequential(nn.Linear(1, 16), F.tanh, nn.Linear(16, 1))

    def loss_of(model):
        return F.mean_squared_error(model(ANGLES), SINES)

    train(model, nn.Adam(model, lr=0.02), loss_of, 600)
    return model
