"""Gradients measured by small steps, to judge those that backward computes.

Step 14: write the end of check_gradients. The page has the formula; compare is that of step 3.
"""

import numpy as np
from mynode.core.variable import Variable
from mynode.random import get_generator


def check_gradients(function, arrays, eps=1e-5, rtol=1e-6, atol=1e-8):
    """Compare two slopes of L = sum(g * function(*inputs)), for any number of inputs.

    g, and a direction for each input, are drawn. The inputs walk along their directions. Backward
    says how fast L changes: the sum of gradient * direction. A central difference measures it.
    arrays: the inputs, a list of arrays of float64.

    Raises:
        AssertionError: The slopes differ.
    """
    rng = get_generator()
    inputs = [Variable(array.copy()) for array in arrays]
    directions = [np.asarray(rng.normal(size=array.shape)) for array in arrays]
    y = function(*inputs)
    g = np.asarray(rng.normal(size=y.shape))
    y.grad = g.copy()
    y.backward()
    raise NotImplementedError(f"step 14: compare two slopes along {len(directions)} directions")
