"""Diffusion: pictures from noise, by a network that names the noise in a picture.

Elective diffusion: write the functions after linear_schedule. The page shows add_noise.
"""

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
    raise NotImplementedError("elective diffusion: signal_left")


def add_noise(x, noise, t, a):
    """sqrt(a_t) x + sqrt(1 - a_t) noise: all steps up to step t at once, for each row its own t.

    x and noise: (n, d), t: (n), integers, a: (steps) -> (n, d)
    """
    raise NotImplementedError("elective diffusion: add_noise")


def noise_loss(model, x, noise, t, a):
    """The mean of (noise - model(picture with noise, t))^2.

    x and noise: arrays (n, d), t: (n), model: Variable (n, d), t -> Variable (n, d). The result:
    a Variable, ().
    """
    raise NotImplementedError("elective diffusion: noise_loss")


def remove_noise(x, named, t, b, fresh):
    """One step back, from step t to t - 1, with the noise that the network named.

    mean = (x - b_t / sqrt(1 - a_t) named) / sqrt(1 - b_t). Beside it, sqrt(b_t) fresh is added,
    except in the last step back, t = 0.

    x, named and fresh: (n, d), t: an integer, b: (steps) -> (n, d)
    """
    raise NotImplementedError("elective diffusion: remove_noise")


def draw_pictures(model, shape, b, rng):
    """Pictures from noise: all steps back, from the last to 0, without a graph.

    rng draws the first noise, then fresh noise for each step back. shape: (n, d) -> (n, d)

    Source: Ho, Jain and Abbeel, Denoising Diffusion Probabilistic Models, 2020.
    """
    raise NotImplementedError("elective diffusion: draw_pictures")
