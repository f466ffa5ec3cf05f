"""The ``linalg`` of CuPy arrays: array_api_compat's, with a ``solve`` that broadcasts stacks.

Not yet run on a GPU. CuPy 14 solves only for stacks of equal shape, where the standard
broadcasts.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy
from array_api_compat.cupy.linalg import *  # noqa: F403 - a namespace is a module of many names


def solve(x1: Any, x2: Any, /) -> Any:
    """X with x1 X = x2.   x1: (..., n, n), x2: (..., n, m) or (n) -> (..., n, m) or (..., n)"""
    if x2.ndim == 1:
        return cupy.linalg.solve(x1, x2)
    stack = numpy.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a = cupy.broadcast_to(x1, (*stack, *x1.shape[-2:]))
    b = cupy.broadcast_to(x2, (*stack, *x2.shape[-2:]))
    return cupy.linalg.solve(a, b)
