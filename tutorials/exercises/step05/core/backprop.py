"""The backward pass: from a result to the leaves.

Step 5: change run_backward, so that the gradient of a box is the sum over all uses of the box.
"""
