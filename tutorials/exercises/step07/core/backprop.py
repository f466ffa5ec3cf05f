"""The backward pass: from a result to the leaves.

Step 7: write check_shape; run_backward calls it for each gradient.
"""


def check_shape(function, i, gx):
    """A gradient has the shape of its input."""
    raise NotImplementedError("step 7: raise ValueError if gx.shape is another shape")
