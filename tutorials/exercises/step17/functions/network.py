"""What the layers of a network compute.

Step 17: the causal mask and attention are yours; linear(x, w) is x W^T.
"""

import math

import numpy as np
from mynode.core.variable import Variable
from mynode.functions.activation import softmax
from mynode.functions.indexing import TakeRows
from mynode.functions.products import matmul


def embedding(indices, w):
    """A row of w for each index: (n), integers, and (rows, size) -> (n, size)."""
    if not isinstance(indices, Variable):
        indices = Variable(np.asarray(indices))
    return TakeRows().apply((w, indices))[0]


def masked(scores, mask=None, causal=False):
    """The scores, and -inf where a query must not look: softmax makes a weight of 0 of -inf.

    scores: (..., n, m). mask: (n, m), False where a query must not look. causal: query i looks at
    keys 0 to i only. With a mask and causal, both hold.
    """
    if causal:
        raise NotImplementedError("step 17: np.tri(n, m, dtype=bool) is False above the diagonal")
    if mask is None:
        return scores
    return scores + np.where(mask, 0.0, -np.inf).astype(scores.dtype)


def scaled_dot_product_attention(query, key, value, mask=None, causal=False):
    """softmax(query key^T / sqrt(d)) value: a mean of the values, by how well the keys fit.

    query: (n, d), key: (m, d), value: (m, e) -> (n, e). mask: (n, m), False where a query must
    not look. causal: query i looks at keys 0 to i only.
    """
    raise NotImplementedError("step 17: scaled_dot_product_attention")
