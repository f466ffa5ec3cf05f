"""Random numbers, from a single generator."""

import numpy as np

_generator = np.random.default_rng()


def get_generator():
    """The generator that draws all numbers."""
    return _generator


def seed(n):
    """Start the generator anew: the same seed, the same numbers."""
    global _generator
    _generator = np.random.default_rng(n)


def normal(shape, mean=0.0, deviation=1.0):
    """Normally distributed numbers."""
    return get_generator().normal(mean, deviation, shape)
