"""Hidden checks of the elective compile: another model, other limits, no second recording."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn
from tinynode_course.checks import expect_close, expect_equal

LOOK = "A choice is F.where, and what changes from call to call is an array."


def check_robust(work):
    """robust at the limit and beyond, for other limits."""
    errors = np.array([-3.0, -0.5, 0.0, 0.5, 2.0])
    for limit in (0.5, 1.0, 2.5):
        size = abs(errors)
        right = np.where(size < limit, errors**2 / 2, limit * (size - limit / 2)).mean()
        got = work.robust(tn.Variable(errors), tn.Variable(np.array(limit)))
        expect_close(f"robust, limit {limit}", got.array, right, LOOK)


def check_recorded_once(work):
    """Ten limits, one run of the model in Python."""
    runs = []
    tn.seed(1)
    layer = nn.Linear(3, 1, dtype="float64")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            runs.append(1)
            return F.tanh(self.layer(x))

    model = Model()
    step = work.make_step(model, nn.SGD(model, lr=0.1))
    rng = np.random.default_rng(0)
    x = tn.Variable(rng.normal(size=(6, 3)), requires_grad=False)
    t = tn.Variable(rng.normal(size=(6, 1)), requires_grad=False)
    for k in range(10):
        step(x, t, 1.0 / (1 + k))
    expect_equal("the runs of the model, for ten limits", len(runs), 1, LOOK)
