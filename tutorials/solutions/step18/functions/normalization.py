"""Normalisation: means of 0 and variances of 1."""

from mynode.functions.arithmetic import as_operands
from mynode.functions.exponential import sqrt
from mynode.functions.statistical import mean, var


def layer_norm(x, gamma, beta=None, eps=1e-5):
    """(x - m) / sqrt(v + eps) * gamma + beta: each row with the mean 0 and the variance 1.

    x: (..., size), gamma: (size), beta: (size) -> y: as x. m and v are the mean and the variance
    over the trailing axes, the axes of gamma.

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.
    """
    x, gamma = as_operands(x, gamma)
    if x.shape[-gamma.ndim :] != gamma.shape:
        raise ValueError(
            f"layer_norm: x has shape {x.shape}, and gamma {gamma.shape}; "
            f"the last lengths of x must be {gamma.shape}"
        )
    axes = tuple(range(-gamma.ndim, 0))
    centred = x - mean(x, axes, keepdims=True)
    y = centred / sqrt(var(x, axes, keepdims=True) + eps) * gamma
    return y if beta is None else y + beta
