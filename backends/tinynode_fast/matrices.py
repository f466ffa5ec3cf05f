"""Matrix products: stacks of matrices times one matrix become one product."""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.devices import Fallback


def product(x: Any, y: Any, out: Any = None) -> Any:
    """x y for x (..., n, k) and y (k, m), the leading axes of x flattened: one call of BLAS."""
    rows = math.prod(x.shape[:-1])
    flat = None if out is None else out.reshape(rows, y.shape[1])
    z = numpy.matmul(x.reshape(rows, x.shape[-1]), y, flat)
    return z.reshape(*x.shape[:-1], y.shape[1])


def matmul(node: Any, x: Any, y: Any) -> Any:
    if x.ndim == 2:
        return None
    if y.ndim != 2 or not x.flags.c_contiguous:
        return Fallback("not a stack of matrices times one matrix")
    return (product(x, y),)


def linear(node: Any, x: Any, w: Any, b: Any = None) -> Any:
    if not x.flags.c_contiguous or w.dtype != x.dtype or (b is not None and b.dtype != x.dtype):
        return Fallback("not in one piece of memory, or of several dtypes")
    y = product(x, w.T)
    if b is not None:
        numpy.add(y, b, y)
    return (y,)
