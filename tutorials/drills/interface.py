"""Drills of the interface: dual numbers under other people's code."""

import numpy as np


def draw_functions(rng):
    return {
        "value": rng.uniform(0.5, 2, (2, 3)),
        "rate": rng.normal(size=(2, 3)),
        "number": float(rng.uniform(1, 2)),
    }


def drill_functions(work, inputs):
    """exp, sin, sqrt, sum, asarray: values and rates, also in mixed formulas"""
    x = work.Dual(inputs["value"], inputs["rate"])
    xp = x.__array_namespace__()
    number = inputs["number"]
    found = [xp is x.__array_namespace__(api_version="2024.12"), xp.asarray(x) is x]
    formulas = (xp.exp(x), xp.sin(x), xp.sqrt(x), xp.sum(x), xp.asarray(number))
    formulas += (xp.asarray(inputs["value"]), xp.sqrt(xp.exp(x) * number + 1.0), 2.0 / x - x * x)
    formulas += (inputs["value"] * x, xp.sum(xp.sin(x) * x) / number)
    for y in formulas:
        found += [type(y).__name__, np.asarray(y.value), np.asarray(y.rate)]
    return [*found, inputs["value"], x.value]


def draw_wave(rng):
    return {"value": rng.normal(size=4), "rates": rng.normal(size=(3, 4))}


def drill_wave(work, inputs):
    """Other people's code gives its derivative along a direction"""
    found = []
    for rate in inputs["rates"]:
        y = work.wave(work.Dual(inputs["value"], rate))
        found += [np.asarray(y.value), np.asarray(y.rate)]
    return found
