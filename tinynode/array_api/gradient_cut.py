"""A warning where the code of another library makes a number of a Variable with a gradient."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from tinynode.configuration import config
from tinynode.errors import GradientCutWarning

CONSUMERS = frozenset({"array_api_extra", "scipy", "sklearn", "xarray"})
"""Libraries with code for arrays of any kind."""


def warn_of_cut(x: Any, conversion: str) -> None:
    """Warn if the code of another library makes a number of a Variable with a gradient.

    A program may want the number ``float(loss)``. In SciPy the gradient would end unseen.
    """
    caller = sys._getframe(2).f_globals.get("__name__", "").partition(".")[0]
    if caller in CONSUMERS and x.requires_grad and config.enable_backprop:
        warnings.warn(
            f"{conversion} in {caller}: x requires a gradient, and the gradient ends here: the "
            "result is a number. Choose another function, or give x.detach().",
            GradientCutWarning,
            stacklevel=4,
        )
