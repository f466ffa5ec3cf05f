"""Exercise 3: a judge for backward.

1. Choose EPS64 and EPS32, the steps for a central difference in float64 and in float32. The check
   wants errors below 1e-9 in float64, and below 5e-3 in float32.
2. Write agrees(function, x, gy): True if the backward of function(x).creator_node, called with the
   gradient gy, gives what numerical_grad measures, within a tolerance; else False.
   x is a Variable in float64, gy is an array of its shape; function is one like square.
"""

import numpy as np  # noqa: F401 - you will need it
from engine03 import numerical_grad  # noqa: F401 - you will need it

EPS64 = 1e-12
EPS32 = 1e-12


def agrees(function, x, gy):
    raise NotImplementedError("compare backward with numerical_grad")
