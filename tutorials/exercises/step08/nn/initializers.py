"""The first values of weights.

Step 8: write lecun_normal, with random.normal(shape, mean, deviation).
"""

import math

from mynode import random


def lecun_normal(shape):
    """Draws from N(0, 1 / fan_in): the outputs vary as much as the inputs.

    fan_in, the number of inputs of an output, is the product of all axes but the first.
    """
    raise NotImplementedError("step 8: the deviation is the root of the variance 1 / fan_in")
