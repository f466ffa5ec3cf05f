"""The backward pass: from a result to the leaves.

Step 7: check_shape is given; run_backward calls it for each gradient.
"""


def check_shape(function, i, gx):
    """A gradient has the shape of its input."""
    shape = function.inputs[i].shape
    if gx.shape != shape:
        raise ValueError(
            f"{type(function).__name__}.backward: input {i} has shape {shape}, "
            f"and its gradient has shape {gx.shape}"
        )
