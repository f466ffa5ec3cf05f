"""Bug hunt 14: write tests that catch wrong gradients.

``engine`` is a module with eight functions of Variables. It promises, for 64-bit numbers:

    tanh(x)           for x of any shape
    leaky_relu(x)     x where x > 0, else 0.1 x; for x of any shape
    product(a, b)     a b, for two inputs of one shape
    quotient(a, b)    a / b, for two inputs of one shape
    transpose(x)      the three axes of x in the order 2, 0, 1
    share(x)          x / sum(x), for positive x of any shape
    row_mean(x)       the means of the rows of a matrix
    affine(x, w, b)   x w^T + b, for x: (n, k), w: (m, k), b: (m)

All gradients are right. The course plants 20 bugs, one at a time, in copies of the engine. Each
of your tests gets the engine, passes on the right one, and should fail on many a copy. What makes
an input so special that a wrong gradient looks right there?

    python -m tinynode.learn hunt 14
"""

import numpy as np

import tinynode as tn
from tinynode.gradient_check import check_backward


def test_tanh_at_zero(engine):
    """A test that catches nothing: most wrong formulas are right at 0."""
    y = engine.tanh(tn.Variable(np.zeros(3)))
    assert y.array.tolist() == [0.0, 0.0, 0.0]
    check_backward(engine.tanh, np.zeros(3), np.ones(3))
