"""The Array API namespace of CuPy arrays: array_api_compat's, with another ``clip`` and ``solve``.

Not yet run on a GPU. array_api_compat clips through boolean masks. The host waits for the GPU to
count each mask. For ``solve`` see ``linalg``.
"""

from __future__ import annotations

from typing import Any

import cupy
from array_api_compat.cupy import *  # noqa: F403 - a namespace is a module of many names

import tinynode_cupy.linalg as linalg  # noqa: F401 - a part of the namespace


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """x held between min and max, in the dtype of x; NaN stays, and a bound that is NaN wins."""
    y = x
    if min is not None:
        y = cupy.maximum(y, cupy.asarray(min, dtype=x.dtype))
    if max is not None:
        y = cupy.minimum(y, cupy.asarray(max, dtype=x.dtype))
    return y.copy() if y is x else y
