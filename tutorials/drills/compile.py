"""Drills of compiled steps: the same numbers, and a model that runs once."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def draw_robust(rng):
    limits = [float(limit) for limit in rng.uniform(0.2, 2, 3)]
    signs = rng.choice([-1.0, 1.0], 3)
    return {"errors": np.concatenate([rng.normal(size=4), signs * limits]), "limits": limits}


def drill_robust(work, inputs):
    """robust, as it is and compiled: the value and gradients of two orders"""
    found = []
    for f in (work.robust, tn.compile(work.robust)):
        for limit in inputs["limits"]:
            errors = tn.Variable(inputs["errors"].copy())
            y = f(errors, limit)
            (g,) = tn.grad([y], [errors], enable_double_backprop=True)
            (h,) = tn.grad([F.sum(g * g * g)], [errors])
            found += [np.asarray(y.array), g.array, h.array]
    return found


def draw_training(rng):
    limits = [float(limit) for limit in rng.uniform(0.2, 2, 6)]
    return {
        "x": rng.normal(size=(5, 2)),
        "t": rng.normal(size=(5, 1)) * 3,
        "limits": limits,
        "seed": int(rng.integers(0, 99)),
    }


def drill_training(work, inputs):
    """make_step trains as before, for two optimizers; the model runs once"""
    found = []
    for kind in ("sgd", "adam"):
        tn.seed(inputs["seed"])
        net = nn.Sequential(
            nn.Linear(2, 5, dtype="float64"), F.tanh, nn.Linear(5, 1, dtype="float64")
        )
        optimizer = nn.SGD(net, lr=0.1, momentum=0.5) if kind == "sgd" else nn.Adam(net, lr=0.05)
        runs = []

        def model(x, net=net, runs=runs):
            runs.append(1)
            return net(x)

        step = work.make_step(model, optimizer)
        x, t = tn.Variable(inputs["x"].copy()), tn.Variable(inputs["t"].copy())
        losses = [float(step(x, t, limit)) for limit in inputs["limits"]]
        found += [losses, [p.array for p in net.parameters()], len(runs), x.array]
    return found
