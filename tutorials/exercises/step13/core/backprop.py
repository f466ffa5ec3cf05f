"""The backward pass: from a result to the leaves.

Step 13: backward calls check_start, which is given, and y.grad is used up. run_backward asks for
wanted gradients.
"""


def check_start(y):
    """backward starts at a computed number, or at a computed array with a gradient in y.grad."""
    if y.creator_node is None:
        raise ValueError("y.backward(): no recorded operation has computed y")
    if y.grad is None and y.array.size != 1:
        raise ValueError(f"y.backward(): y has shape {y.array.shape}; set y.grad first")
