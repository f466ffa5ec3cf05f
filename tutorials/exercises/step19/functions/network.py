"""What the layers of a network compute.

Step 19: attention_weights is yours, for stacks: scores, masked, softmax. Then
scaled_dot_product_attention is the product of attention_weights and value.
"""

from mynode.functions.products import matrix_transpose


def attention_weights(query, key, mask=None, causal=False):
    """softmax(query key^T / sqrt(d)): how much each query looks at each key.

    query: (..., n, d), key: (..., m, d) -> (..., n, m). mask: (n, m), False where a query must
    not look. causal: query i looks at keys 0 to i only.
    """
    raise NotImplementedError("step 19: attention_weights")
