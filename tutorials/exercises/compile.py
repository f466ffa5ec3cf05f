"""Exercise compile: a training step that is recorded once.

``robust`` and ``make_step`` below are right and slow. They cannot be compiled, since they decide
by the values of Variables. Write both anew.

1. ``robust(errors, limit)``: the same number for the same errors, as functions of Variables, so
   that ``tn.compile(robust)`` works. Its first and second gradients must be the same, too.
2. ``make_step(model, optimizer)``: a function ``step(x, t, limit)`` that does one step of training
   and returns its loss, as a Variable. The work is done by a compiled function. ``x`` and ``t``
   are Variables; ``limit`` is a Python number, different at each call. For calls of one
   shape, ``model`` itself runs once only.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def robust(errors, limit):
    """The mean of e^2 / 2 where |e| < limit, and of limit (|e| - limit / 2) elsewhere."""
    parts = []
    for e in F.reshape(errors, (-1,)):
        small = float(abs(e)) < limit
        parts.append(e * e / 2 if small else limit * (abs(e) - limit / 2))
    return sum(parts) / len(parts)


def make_step(model, optimizer):
    """A function that trains a model by one step."""

    def step(x, t, limit):
        loss = robust(model(x) - t, limit)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    return step


if __name__ == "__main__":  # python compile.py
    rng = np.random.default_rng(0)
    model = nn.Linear(2, 1, dtype="float64")
    step = make_step(model, nn.SGD(model, lr=0.1))
    x, t = (tn.Variable(rng.normal(size=(6, n))) for n in (2, 1))
    for number in range(5):
        print(float(step(x, t, 1.0 / (1 + number))))
