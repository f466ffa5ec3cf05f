"""Exercise 0: a solution. The update goes downhill, with a large learning rate."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

LEARNING_RATE = 3.0


def update(parameters, learning_rate):
    """Move each parameter by learning_rate times its gradient."""
    for p in parameters:
        p.array = p.array - learning_rate * p.grad


# The rest is right.


def data():
    """100 points in a disc (class 0) and in a ring (class 1)."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 2.0 * np.pi, 100)
    radius = np.repeat([1.0, 3.0], 50) + rng.normal(scale=0.2, size=100)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype(np.float32), np.repeat([0, 1], 50)


def train(learning_rate, iterations=30):
    """The loss before each iteration, and the loss at the end."""
    points, classes = data()
    tn.seed(0)
    net = nn.Sequential(nn.Linear(2, 4), F.tanh, nn.Linear(4, 2))
    losses = []
    for _ in range(iterations):
        loss = F.softmax_cross_entropy(net(points), classes)
        net.cleargrads()
        loss.backward()
        update(net.parameters(), learning_rate)
        losses.append(float(loss.array))
    losses.append(float(F.softmax_cross_entropy(net(points), classes).array))
    return losses


if __name__ == "__main__":
    losses = train(LEARNING_RATE)
    for iteration in range(0, 31, 5):
        print(f"after {iteration:2} iterations: loss {losses[iteration]:.3f}")
