"""Sums and means over axes.

Step 18: var is yours, made of mean and square. The mean inside keeps its axes for the difference.
"""

from mynode.functions.exponential import square


def var(x, axis=None, *, keepdims=False):
    """The variance over an axis, several, or all: the mean of (x - mean)^2."""
    raise NotImplementedError("step 18: var")
