"""Matrix products: stacks of matrices times one matrix become one product."""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.devices import Fallback
from tinynode.functions import Linear, MatMul
from tinynode_fast.blocks import Arrays, Entry


def product(x: Any, matrix: Any) -> Any:
    """x @ matrix for x (..., n, k), the leading axes of x flattened: one call of BLAS."""
    shape = (*x.shape[:-1], matrix.shape[1])
    y = numpy.matmul(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), matrix)
    return y.reshape(shape)


def matmul(node: Any, arrays: Arrays) -> Any:
    x, y = arrays
    if x.ndim == 2:
        return None
    if y.ndim != 2 or not x.flags.c_contiguous:
        return Fallback("not a stack of matrices times one matrix")
    node.retain_inputs((0, 1))
    return (product(x, y),)


def linear(node: Any, arrays: Arrays) -> Any:
    x, w = arrays[:2]
    if not x.flags.c_contiguous or any(other.dtype != x.dtype for other in arrays):
        return Fallback("not in one piece of memory, or of several dtypes")
    node.retain_inputs((0, 1))
    y = product(x, w.T)
    if len(arrays) == 3:
        numpy.add(y, arrays[2], y)
    return (y,)


KERNELS: dict[type, Entry] = {
    MatMul: Entry("matmul", 4096, matmul),
    Linear: Entry("linear", 4096, linear),
}
