"""Bug hunt 14, solved: random inputs, a random g, shapes with different lengths."""

import numpy as np

import tinynode as tn
from tinynode.gradient_check import check_backward


def numbers(*shape):
    return np.random.default_rng(1).normal(size=shape)


def away_from_zero(*shape):
    x = numbers(*shape)
    return np.copysign(abs(x) + 0.1, x)


def check(function, *inputs):
    inputs = tuple(np.asarray(x) for x in inputs)
    y = function(*(tn.Variable(x) for x in inputs))
    g = np.random.default_rng(2).normal(size=y.shape)
    check_backward(function, inputs, g, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_tanh(engine):
    check(engine.tanh, numbers(40))


def test_leaky_relu(engine):
    x = np.array([-2.0, -0.3, 0.2, 0.4, 3.0])
    y = engine.leaky_relu(tn.Variable(x))
    assert np.allclose(y.array, [-0.2, -0.03, 0.2, 0.4, 3.0])
    check(engine.leaky_relu, x)


def test_two_inputs(engine):
    check(engine.product, numbers(3, 2), away_from_zero(2, 3).T)
    check(engine.quotient, numbers(3, 2), away_from_zero(2, 3).T)


def test_shapes(engine):
    check(engine.transpose, numbers(2, 3, 4))
    check(engine.row_mean, numbers(2, 3))


def test_share(engine):
    check(engine.share, abs(numbers(5)) + 0.1)


def test_affine(engine):
    check(engine.affine, numbers(4, 3), numbers(2, 3), numbers(2))
