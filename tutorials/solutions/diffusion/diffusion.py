"""Diffusion: pictures from noise, by a network that names the noise in a picture."""

import numpy as np
from mynode.configuration import no_backprop_mode
from mynode.core.variable import Variable
from mynode.functions.loss import mean_squared_error


def linear_schedule(steps, first=0.1, last=8.0):
    """b, the share of noise of each step: `steps` numbers in a row from first to last, / steps."""
    return np.linspace(first, last, steps) / steps


def signal_left(b):
    """a: a_t = (1 - b_0) (1 - b_1) ... (1 - b_t), the share of the picture after step t.

    b: (steps) -> a: (steps)
    """
    return np.cumprod(1.0 - b)


def add_noise(x, noise, t, a):
    """sqrt(a_t) x + sqrt(1 - a_t) noise: all steps up to step t at once, for each row its own t.

    x and noise: (n, d), t: (n), integers, a: (steps) -> (n, d)
    """
    share = a[t][:, None]
    return np.sqrt(share) * x + np.sqrt(1.0 - share) * noise


def noise_loss(model, x, noise, t, a):
    """The mean of (noise - model(picture with noise, t))^2.

    x and noise: arrays (n, d), t: (n), model: Variable (n, d), t -> Variable (n, d). The result:
    a Variable, ().
    """
    noisy = add_noise(x, noise, t, a)
    return mean_squared_error(model(Variable(noisy, requires_grad=False), t), noise)


def remove_noise(x, named, t, b, fresh):
    """One step back, from step t to t - 1, with the noise that the network named.

    mean = (x - b_t / sqrt(1 - a_t) named) / sqrt(1 - b_t). Beside it, sqrt(b_t) fresh is added,
    except in the last step back, t = 0.

    x, named and fresh: (n, d), t: an integer, b: (steps) -> (n, d)
    """
    mean = (x - b[t] / np.sqrt(1.0 - signal_left(b)[t]) * named) / np.sqrt(1.0 - b[t])
    if t == 0:
        return mean
    return mean + np.sqrt(b[t]) * fresh


def draw_pictures(model, shape, b, rng):
    """Pictures from noise: all steps back, from the last to 0, without a graph.

    rng draws the first noise, then fresh noise for each step back. shape: (n, d) -> (n, d)

    Source: Ho, Jain and Abbeel, Denoising Diffusion Probabilistic Models, 2020.
    """
    x = rng.normal(size=shape)
    with no_backprop_mode():
        for t in reversed(range(len(b))):
            named = model(Variable(x), np.full(shape[0], t)).array
            x = remove_noise(x, named, t, b, rng.normal(size=shape))
    return x
