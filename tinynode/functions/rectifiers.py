"""Rectifiers beyond ReLU: with learned slopes, with an upper bound, of two signs, of groups."""

from __future__ import annotations

from typing import Any

from tinynode.core.variable import Variable
from tinynode.functions.activation import relu
from tinynode.functions.comparison import clip
from tinynode.functions.manipulation import concat
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    as_number,
    as_operands,
    normalize_axis,
)
from tinynode.functions.shapes import reshape
from tinynode.functions.statistical import max as max_

__all__ = ["clipped_relu", "crelu", "maxout", "prelu", "relu6"]
__dir__ = __all__.copy  # for completion


def prelu(x: Any, w: Any) -> Variable:
    """x where x > 0, else w * x; the gradient at 0 is w.

    dL/dw = the sum of dL/dy * x over the elements with x < 0 and the slope w.

    Args:
        x: (n, channels, ...), or of any shape if w is a single slope.
        w: the slopes: (channels), or of a single element.

    Source: He et al., Delving Deep into Rectifiers, 2015.

    Raises:
        OperandError: x or w is not floating.
        ValueError: the number of slopes is neither 1 nor that of x's channels.
    """
    x, w = as_operands("prelu", x, w, names=("x", "w"))
    as_floating("prelu", "x", x)
    as_floating("prelu", "w", w)
    if w.size == 1:
        slopes = reshape(w, ())
    elif x.ndim >= 2 and w.shape == x.shape[1:2]:
        slopes = reshape(w, (w.size, *(1 for _ in x.shape[2:])))
    else:
        raise ValueError(
            f"prelu: w must have one element, or one for each channel of x (shape {x.shape}, axis "
            f"1); its shape is {w.shape}."
        )
    return relu(x) + slopes * clip(x, max=0.0)


def clipped_relu(x: Any, limit: float = 20.0) -> Variable:
    """x held between 0 and a limit, elementwise; the gradient at both bounds is 1, as in ``clip``.

    Source: Hannun et al., Deep Speech, 2014.

    Raises:
        OperandError: x is not floating, or the limit is not a number.
        ValueError: the limit is not positive.
    """
    x = as_floating("clipped_relu", "x", x)
    if not as_number("clipped_relu", "limit", limit) > 0:
        raise ValueError(f"clipped_relu: limit must be positive, got {limit}.")
    return clip(x, 0.0, float(limit))


def relu6(x: Any) -> Variable:
    """x held between 0 and 6, elementwise: ``clipped_relu`` with the limit 6.

    Source: Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10, 2010.

    Raises:
        OperandError: x is not floating.
    """
    return clip(as_floating("relu6", "x", x), 0.0, 6.0)


def crelu(x: Any, axis: int = 1) -> Variable:
    """relu(x) and relu(-x), joined along an axis: twice as long there.

    Source: Shang et al., Understanding and Improving CNNs via Concatenated Rectified Linear Units,
    2016.

    Raises:
        OperandError: x is not floating.
        ValueError: the axis does not exist.
    """
    x = as_floating("crelu", "x", x)
    axis = normalize_axis("crelu", axis, x.ndim)
    return concat([relu(x), relu(-x)], axis=axis)


def maxout(x: Any, size: int, axis: int = 1) -> Variable:
    """The largest element of each group of ``size`` neighbours along an axis.

    Ties share the gradient evenly. x: (..., m * size, ...) -> (..., m, ...).

    Source: Goodfellow et al., Maxout Networks, 2013.

    Raises:
        OperandError: x is not floating, or the size is not an integer.
        ValueError: the axis does not exist, or the size does not divide the length.
    """
    x = as_floating("maxout", "x", x)
    axis = normalize_axis("maxout", axis, x.ndim)
    size = as_integer("maxout", "size", size)
    if size < 1 or x.shape[axis] % size:
        raise ValueError(
            f"maxout: size={size} does not divide axis {axis} of x (shape {x.shape})."
        )
    groups = (*x.shape[:axis], x.shape[axis] // size, size, *x.shape[axis + 1 :])
    return max_(reshape(x, groups), axis=axis + 1)
