"""The backward pass: from a result to the leaves.

Step 4: write both functions. In core/variable.py, add the method backward.
"""

import numpy as np


def backward(y):
    """Write the gradient of y into every box that y was computed from."""
    raise NotImplementedError("step 4: visit the operations, from the last one to the first")


def run_backward(function):
    """Run the backward of one operation, and write the gradients of its inputs."""
    raise NotImplementedError("step 4: call function.backward, and set x.grad of each input")
