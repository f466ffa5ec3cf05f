"""Capstone exercise, solved: a damped spring, solved by a network."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

END = 3.0
TIMES = np.linspace(0.0, END, 33)[:, None]  # (33, 1), from 0


def derivative(y, t):
    """The derivative of each y[i] by t[i], with a graph."""
    (slope,) = tn.grad([F.sum(y)], [t], enable_double_backprop=True)
    return tn.asarray(np.zeros(t.shape)) if slope is None else slope


def loss_of(network, times):
    """mean (y'' + 0.5 y' + 4 y)^2 + (y(0) - 1)^2 + y'(0)^2, a Variable of shape ().

    network: a function from a Variable of times, (n, 1), to y, (n, 1); row by row. times: a NumPy
    array, (n, 1); times[0] is 0.
    """
    t = tn.asarray(times, requires_grad=True)
    y = network(t)
    dy = derivative(y, t)
    ddy = derivative(dy, t)
    residual = ddy + 0.5 * dy + 4.0 * y
    return F.mean(residual**2) + F.sum((y[0] - 1.0) ** 2) + F.sum(dy[0] ** 2)


class Network(nn.Module):
    """16 curves that bend at different times, added up."""

    def __init__(self):
        self.hidden = nn.Linear(1, 16, dtype="float64")
        self.output = nn.Linear(16, 1, dtype="float64")
        self.hidden.bias.array = np.random.default_rng(0).uniform(-2.0, 2.0, size=16)

    def forward(self, t):
        return self.output(F.tanh(self.hidden(t - END / 2)))


def solve():
    """A trained network: a function from times (n, 1), from 0 to END, to y."""
    tn.seed(0)
    network = Network()
    optimizer = nn.Adam(network, lr=0.05)
    for step in range(400):
        optimizer.lr = 0.05 * (1 - step / 400)
        loss = loss_of(network, TIMES)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
    return network
