"""Drills of REINFORCE: logarithms of probabilities, returns, baselines and the loss."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients


def _module(work):
    return importlib.import_module(f"{work.__name__}.reinforce")


def draw_logarithms(rng):
    n, k = (int(number) for number in rng.integers(2, 7, 2))
    return {
        "scores": 3.0 * rng.normal(size=(n, k)),
        "large": 700.0 * rng.normal(size=(n, k)),
        "actions": rng.integers(0, k, n),
        "gy": rng.normal(size=n),
    }


def drill_logarithms(work, inputs):
    """log_probability and its gradient, with both dtypes, and large scores"""
    found, chosen = [], _module(work).log_probability
    for dtype in ("float64", "float32"):
        scores, gy = inputs["scores"].astype(dtype), inputs["gy"].astype(dtype)
        parts = gradients(work, lambda s: chosen(s, inputs["actions"]), [scores], gy)
        found += [*parts, [str(part.dtype) for part in parts]]
    with np.errstate(all="ignore"):
        found.append(chosen(work.Variable(inputs["large"].copy()), inputs["actions"]).array)
    return found


def draw_returns(rng):
    n, steps = (int(number) for number in rng.integers(2, 7, 2))
    return {"rewards": rng.normal(size=(n, steps)), "discount": float(rng.uniform(0.2, 0.95))}


def drill_returns(work, inputs):
    """returns with and without a discount, the baseline, and no input changes"""
    module, rewards = _module(work), inputs["rewards"].copy()
    found = [module.returns(rewards), module.returns(rewards, inputs["discount"])]
    return [*found, module.baseline(rewards), rewards]


def draw_loss(rng):
    n, steps, k = (int(number) for number in rng.integers(2, 6, 3))
    return {
        "scores": rng.normal(size=(n * steps, k)),
        "advantage": rng.normal(size=(n, steps)),
        "actions": rng.integers(0, k, (n, steps)),
    }


def drill_loss(work, inputs):
    """policy_loss and its gradient"""

    def loss(s):
        return _module(work).policy_loss(s, inputs["actions"], inputs["advantage"].copy())

    return gradients(work, loss, [inputs["scores"]], np.array(1.0))
