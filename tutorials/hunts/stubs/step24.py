"""Bug hunt 24: write tests for gradients of gradients.

``engine`` is a module with six functions of Variables. It promises, for one axis of 64-bit
numbers:

    cube(x)              x^3
    flip(x)              x in reverse order
    cumulative_sum(x)    y[k] = x[0] + ... + x[k]
    softplus(x)          log(1 + e^x)
    dot(a, b)            a[0] b[0] + a[1] b[1] + ..., one number
    exponential(x)       e^x

All can be differentiated as often as one likes, and each gradient is right. The course plants 20
bugs, one at a time, in copies of the engine. Each of your tests gets the engine, passes on the
right one, and should fail on many a copy. Most copies are right in the first order.

    python -m tinynode.learn hunt 24
"""

import numpy as np

import tinynode as tn


def test_second_derivative_is_there(engine):
    """A test that catches nothing: it asks for a Variable, and not for its numbers."""
    x = tn.Variable(np.array([0.5, 1.0]))
    for function in engine.flip, engine.cumulative_sum:
        y = function(x)
        assert y.shape == x.shape
