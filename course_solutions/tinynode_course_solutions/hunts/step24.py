"""Bug hunt 24, solved: both checks for each function, with random numbers."""

import numpy as np

import tinynode as tn
from tinynode.gradient_check import check_backward, check_double_backward


def check(function, *inputs):
    rng = np.random.default_rng(3)
    y = function(*(tn.Variable(x) for x in inputs))
    g = np.asarray(rng.uniform(0.5, 1.5, size=y.shape))
    weights = tuple(rng.normal(size=x.shape) for x in inputs)
    check_backward(function, inputs, g, eps=1e-5)
    check_double_backward(function, inputs, g, weights, eps=1e-5)


def numbers(seed):
    return np.random.default_rng(seed).normal(size=5)


def test_functions_of_one_input(engine):
    for name in "cube", "flip", "cumulative_sum", "softplus", "exponential":
        check(getattr(engine, name), numbers(1))


def test_dot(engine):
    check(engine.dot, numbers(1), numbers(2))
