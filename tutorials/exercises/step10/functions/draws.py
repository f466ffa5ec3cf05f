"""Random numbers inside of a network.

Step 10: write dropout. get_generator().random(shape) draws evenly from 0 to 1.
"""

from mynode.configuration import config
from mynode.random import get_generator


def dropout(x, ratio=0.5):
    """x * mask; an element of the mask is 0 with probability ratio, else 1 / (1 - ratio).

    Outside of training, with config.train False, the result is x.
    """
    raise NotImplementedError("step 10: a mask of x's shape and dtype, times x")
