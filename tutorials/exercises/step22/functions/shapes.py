"""The same numbers in another shape.

Step 22: repeat is given; SumTo.backward calls repeat in place of np.broadcast_to.
"""

import numpy as np
from mynode.core.variable import Variable


def repeat(g, shape):
    """A gradient repeated to a larger shape: an array, or a Variable in the graph."""
    return broadcast_to(g, shape) if isinstance(g, Variable) else np.broadcast_to(g, shape).copy()
