"""Products with Jacobians: vjp, jvp and linearize keep the type of the value."""

from __future__ import annotations

from typing import assert_type

import tinynode as tn
from tinynode import functions


def polar(x: tn.Variable) -> tuple[tn.Variable, tn.Variable]:
    return functions.cos(x), functions.sin(x)


x, v = tn.asarray([0.0, 1.0]), tn.asarray([1.0, 0.0])
value, pullback = tn.vjp(polar, x)
assert_type(value, tuple[tn.Variable, tn.Variable])
(gx,) = pullback((v, v))
(cosine, _), (slope, _) = tn.jvp(polar, (x,), (v,))
assert_type(slope, tn.Variable)
linear_value, linear = tn.linearize(polar, x)
assert_type(linear_value, tuple[tn.Variable, tn.Variable])
print(gx.shape, cosine.shape, slope.shape, linear(v)[0].shape)
