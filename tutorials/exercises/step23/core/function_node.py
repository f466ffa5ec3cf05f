"""One use of an operation.

Step 23: gradient_by is given.
"""

from mynode.core.variable import Variable


def gradient_by(function, *inputs):
    """The outputs of a gradient function: recorded for Variables, plain arrays for arrays."""
    if any(isinstance(x, Variable) for x in inputs):
        return function.apply(inputs)
    return function.forward(inputs)
