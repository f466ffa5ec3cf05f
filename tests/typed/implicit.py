"""A root with a gradient: custom_root gives the solver's parameters."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import tinynode as tn


def square_root(x: tn.Variable, theta: tn.Variable) -> tn.Variable:
    return x * x - theta


@tn.custom_root(square_root)
def solve(theta: tn.Variable, *, shift: float = 0.0) -> Any:
    return np.sqrt(theta.array) + shift


x = solve(tn.asarray(np.array(4.0)))
assert_type(x, tn.Variable)
print(x.item(), tn.gradient(solve)(tn.asarray(np.array(4.0))).item())
