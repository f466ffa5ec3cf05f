"""Capstone exercise: attention with a window, and samples from the most probable characters.

1. ``windowed_attention``: position i reads the positions i - window + 1 to i. A window of 1 reads
   the position itself; a large window gives causal attention. Forbidden scores become -inf before
   the softmax. The result must have gradients with respect to q, k and v.
2. ``top_k``: probabilities with 0 for all characters but the k with the largest scores. Their
   probabilities sum to 1. Of equal scores, the character with the lower number comes first.
"""

import numpy as np

from tinynode import functions as F  # noqa: F401 - for you to use


def windowed_attention(q, k, v, window):
    """y_i = sum over j of w_ij v_j,   w_ij = softmax over j of q_i . k_j / sqrt(d).

    q, k: (..., n, d); v: (..., n, e); Variables. window: an int of at least 1. Returns a Variable,
    (..., n, e).
    """
    raise NotImplementedError("write windowed_attention")


def top_k(scores, k):
    """The probabilities of the k largest scores: exp(score) / sum of these exp.

    scores: a NumPy array, (letters). Returns a NumPy array of float64, (letters).
    """
    raise NotImplementedError("write top_k")


if __name__ == "__main__":  # python tiny_gpt.py
    import tinynode as tn

    x = tn.asarray(np.eye(4))
    print(windowed_attention(x, x, x, 2).array.round(2))
    print(top_k(np.array([2.0, 1.0, 3.0, 0.0]), 2).round(2))
