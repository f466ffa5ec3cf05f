"""Drills of the differential equation: the loss, its gradient, and a trained network."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def draw_loss(rng):
    return {"w": rng.normal(size=4), "rest": np.sort(rng.uniform(0.1, 3, 6))}


def drill_loss(work, inputs):
    """loss_of for a curve with parameters, for a line, for a constant: values and gradients"""
    times = np.concatenate([[0.0], inputs["rest"]])[:, None]
    found = []
    for kind in ("curve", "line", "constant"):
        w = nn.Parameter(inputs["w"].copy())

        def network(t, w=w, kind=kind):
            if kind == "curve":
                return w[0] * F.sin(w[1] * t + w[2]) + w[3]
            return w[0] + w[1] * t if kind == "line" else w[0] + 0.0 * t

        loss = work.loss_of(network, times)
        (g,) = tn.grad([loss], [w])
        found += [loss.array, g.array, times]
    return found


def draw_solution(rng):
    return {"times": np.sort(rng.uniform(0, 3, 20))[:, None]}


def drill_solution(work, inputs):
    """solve: the largest error is below 0.05"""
    times = inputs["times"]
    frequency = np.sqrt(4.0 - 0.25**2)
    right = np.exp(-0.25 * times) * (
        np.cos(frequency * times) + 0.25 / frequency * np.sin(frequency * times)
    )
    y = work.solve()(tn.asarray(times)).array
    return [list(y.shape), bool(np.max(abs(y - right)) < 0.05)]
