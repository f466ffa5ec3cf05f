"""Drills of diffusion: noise in and out, the loss with its gradient, and pictures from noise."""

import importlib

import numpy as np


def _module(work):
    return importlib.import_module(f"{work.__name__}.diffusion")


def _draw(rng):
    steps, n, d = (int(number) for number in rng.integers(3, 8, 3))
    x, noise, fresh = rng.normal(size=(3, n, d))
    return {
        "b": rng.uniform(0.02, 0.5, steps),
        "x": x,
        "noise": noise,
        "fresh": fresh,
        "t": rng.integers(0, steps, n),
        "weight": float(rng.normal()),
        "seed": int(rng.integers(1000)),
    }


def draw_noise(rng):
    return _draw(rng)


def drill_noise(work, inputs):
    """signal_left, add_noise and remove_noise in every step, and no input changes"""
    module = _module(work)
    b, x, noise, fresh = (inputs[name].copy() for name in ("b", "x", "noise", "fresh"))
    a = np.cumprod(1.0 - inputs["b"])
    found = [module.signal_left(b), module.add_noise(x, noise, inputs["t"], a)]
    found += [module.remove_noise(x, noise, t, b, fresh) for t in range(len(b))]
    return [*found, b, x, noise, fresh]


def draw_loss(rng):
    return _draw(rng)


def drill_loss(work, inputs):
    """noise_loss, its gradient, and what the network is told"""
    weight = work.Variable(np.array(inputs["weight"]))
    told = []

    def model(x, t):
        told.extend([x.array.copy(), np.asarray(t).copy()])
        return x * weight

    a = np.cumprod(1.0 - inputs["b"])
    loss = _module(work).noise_loss(model, inputs["x"], inputs["noise"], inputs["t"], a)
    loss.backward()
    return [loss.array, weight.grad, *told]


def draw_pictures(rng):
    return _draw(rng)


def drill_pictures(work, inputs):
    """draw_pictures: values, the steps in order, and no graph"""
    weight = work.Variable(np.array(0.5))
    told = []

    def model(x, t):
        y = x * weight
        told.append([np.asarray(t).tolist(), y.creator_node is None])
        return y

    rng = np.random.default_rng(inputs["seed"])
    drawn = _module(work).draw_pictures(model, inputs["x"].shape, inputs["b"].copy(), rng)
    return [drawn, told]
