"""The loss of a model that predicts numbers. Step 9: the code is yours, from what you have."""

from mynode.functions.arithmetic import subtract
from mynode.functions.statistical import mean


def mean_squared_error(x, y):
    """The mean of (x - y)^2; x and y have one shape."""
    difference = subtract(x, y)
    if x.shape != y.shape:  # broadcasting would hide a mistake
        raise ValueError(f"mean_squared_error: the shapes differ: {x.shape} and {y.shape}")
    raise NotImplementedError("step 9: mean_squared_error")
