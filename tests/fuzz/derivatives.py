"""Results, first and second gradients of a function: the numbers that are compared.

A printed program contains the source of ``derivatives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tinynode as tn


def derivatives(function: Any, arrays: Any, flags: Any, device: str = "numpy") -> list[Any]:
    """Results, first gradients, second gradients along random directions; None means zero.

    Args:
        function: takes Variables, and returns a list of Variables.
        arrays: NumPy arrays, the arguments.
        flags: True for each argument that requires a gradient.
        device: the device of the run.
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
        free, found = [x for x in xs if x.requires_grad], [y for y in ys if y.requires_grad]
        gys = [like(y) for y in found]
        if not free or not found:
            return [ys, [], []]
        gxs = tn.grad(found, free, gys, enable_double_backprop=True)
        known = [gx for gx in gxs if gx is not None and gx.requires_grad]
        ggs = tn.grad(known, [*free, *gys], [like(gx) for gx in known]) if known else []
        return [ys, gxs, ggs]
