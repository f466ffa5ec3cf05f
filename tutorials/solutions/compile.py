"""Solution: a training step that is recorded once."""

import numpy as np

import tinynode as tn
from tinynode import functions as F


def robust(errors, limit):
    """The mean of e^2 / 2 where |e| < limit, and of limit (|e| - limit / 2) elsewhere."""
    size = abs(errors)
    return F.mean(F.where(size < limit, errors * errors / 2, limit * (size - limit / 2)))


def make_step(model, optimizer):
    """A function that trains a model by one step."""

    @tn.compile
    def compiled(x, t, limit):
        optimizer.cleargrads()
        loss = robust(model(x) - t, limit)
        loss.backward()
        optimizer.update()
        return loss

    def step(x, t, limit):
        return compiled(x.detach(), t.detach(), np.asarray(limit))

    return step
