"""The first values of weights."""

import math

from mynode import random


def lecun_normal(shape):
    """Draws from N(0, 1 / fan_in): the outputs vary as much as the inputs.

    fan_in, the number of inputs of an output, is the product of all axes but the first.
    """
    return random.normal(shape, 0.0, math.sqrt(1 / math.prod(shape[1:])))


def he_normal(shape):
    """Draws from N(0, 2 / fan_in): for layers behind a relu, since relu halves the mean square."""
    return random.normal(shape, 0.0, math.sqrt(2 / math.prod(shape[1:])))
