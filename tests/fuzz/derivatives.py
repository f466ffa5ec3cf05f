"""Results, first and second gradients of a function: the numbers that are compared.

A printed program contains the source of ``derivatives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tinynode as tn


def derivatives(function: Any, arrays: Any, flags: Any, device: str = "numpy") -> list[Any]:
    """Results, gradients and second gradients, along random directions; None means zero.

    Args:
        function: takes Variables, and returns a list of Variables.
        arrays: NumPy arrays, the arguments.
        flags: True for each argument that requires a gradient.
        device: the device of the run.

    Returns:
        The results; a gradient for each such argument; a second gradient for each such argument,
        and for the direction of each floating result.
    """
    rng = np.random.default_rng(5)
    place = tn.get_device(device)

    def like(variable: Any) -> Any:
        drawn = np.asarray(rng.integers(-2000, 2001, variable.shape) / 1000)
        return tn.Variable(place.from_host(drawn.astype(str(variable.dtype).split(".")[-1])))

    with tn.using_device(device), np.errstate(all="ignore"):
        pairs = zip(arrays, flags, strict=True)
        xs = [tn.Variable(place.from_host(x), requires_grad=flag) for x, flag in pairs]
        ys = function(*xs)
        free = [x for x in xs if x.requires_grad]
        gys = [like(y) for y in ys if "float" in str(y.dtype)]
        vs = [like(x) for x in free]
        pairs = zip([y for y in ys if "float" in str(y.dtype)], gys, strict=True)
        known = [(y, gy) for y, gy in pairs if y.requires_grad]
        gxs, ggs = [None] * len(free), [None] * len([*free, *gys])
        if known and free:
            ends, starts = [list(one) for one in zip(*known, strict=True)]
            gxs = tn.grad(ends, free, starts, enable_double_backprop=True)
        pairs = zip(gxs, vs, strict=True)
        known = [(gx, v) for gx, v in pairs if gx is not None and gx.requires_grad]
        if known:
            ends, starts = [list(one) for one in zip(*known, strict=True)]
            ggs = tn.grad(ends, [*free, *gys], starts)
        return [ys, gxs, ggs]
