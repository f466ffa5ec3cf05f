"""Random numbers inside of a network."""

from mynode.configuration import config
from mynode.random import get_generator


def dropout(x, ratio=0.5):
    """x * mask; an element of the mask is 0 with probability ratio, else 1 / (1 - ratio).

    Outside of training, with config.train False, the result is x.
    """
    if not config.train:
        return x
    kept = get_generator().random(x.shape) >= ratio
    return x * (kept / (1.0 - ratio)).astype(x.dtype)
