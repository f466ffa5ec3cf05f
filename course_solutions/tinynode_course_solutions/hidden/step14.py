"""Hidden checks of exercise 14: other functions, other seeds, other shapes."""

import numpy as np

from tinynode_course.checks import expect_equal

LOOK = "The sum over all inputs of gradient times direction, against a central difference."


def _blames(work, function, arrays, seed):
    from mynode.gradient_check import check_gradients

    work.seed(seed)
    try:
        check_gradients(function, arrays)
    except AssertionError:
        return True
    return False


def _scaled(work, factors):
    """a + 2 b + 3 c, with a factor for each gradient."""

    class Scaled(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] + 2.0 * inputs[1] + 3.0 * inputs[2],)

        def backward(self, target_input_indexes, grad_outputs):
            (g,) = grad_outputs
            return tuple(g * factor for factor in factors)

    def scaled(*inputs):
        return Scaled().apply(inputs)[0]

    return scaled


def check_factors(work):
    """A wrong factor of any input is blamed, for ten seeds."""
    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=(3, 2)) for _ in range(3)]
    for factors in (1.0, 2.0, 3.0), (1.0, 2.0, 2.9), (1.0, -2.0, 3.0), (0.0, 2.0, 3.0):
        for seed in range(10):
            found = _blames(work, _scaled(work, factors), arrays, seed)
            what = f"a + 2 b + 3 c with the factors {factors} is blamed"
            expect_equal(what, found, factors != (1.0, 2.0, 3.0), LOOK)


def check_scalars(work):
    """Single numbers, empty arrays and arrays of one axis are no special cases."""
    for shape in ((), (0,), (5,)):
        array = np.asarray(np.random.default_rng(4).normal(size=shape))
        for name in ("exp", "tanh", "sin"):
            found = _blames(work, getattr(work, name), [array], 1)
            expect_equal(f"{name} of the shape {shape} is blamed", found, False, LOOK)


def check_layers(work):
    """A loss of a network is checked for its weight and its bias."""
    rng = np.random.default_rng(5)
    x, labels = rng.normal(size=(4, 3)), np.array([0, 1, 1, 0])

    def loss(w, b):
        return work.softmax_cross_entropy(work.linear(work.Variable(x), w, b), labels)

    arrays = [rng.normal(size=(2, 3)), rng.normal(size=2)]
    expect_equal("the loss of a layer is blamed", _blames(work, loss, arrays, 2), False, LOOK)
