"""Products of matrices, and of stacks of matrices.

Step 19: MatMul multiplies stacks. Change the check of the types to x: (..., n, k) and
y: (..., k, m). Backward uses .mT in place of .T, and sums the axes that were broadcast.
"""

from mynode.functions.shapes import permute_dims, unbroadcast


def matrix_transpose(x):
    """Each matrix of a stack with its axes exchanged: the last two axes of x."""
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
