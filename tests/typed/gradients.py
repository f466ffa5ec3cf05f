"""Gradients of a function of two arguments."""

from __future__ import annotations

from typing import Any, assert_type

import tinynode as tn
from tinynode import functions


def loss(weight: tn.Variable, x: tn.Variable, *, scale: float = 1.0) -> tn.Variable:
    return functions.sum((weight * x) ** 2) * scale


weight, x = tn.asarray([1.0, 2.0]), tn.asarray([3.0, 4.0])
value, gw = tn.value_and_grad(loss)(weight, x, scale=0.5)
assert_type(value, tn.Variable)
both = tn.gradient(loss, argnums=(0, 1))(weight, x)
assert_type(both, tuple[Any, ...])
pair = tn.value_and_grad(loss, (0, 1))(weight, x)
assert_type(pair, tuple[tn.Variable, tuple[Any, ...]])
curvature = tn.hessian(loss)(weight, x)
print(value.item(), gw.tolist(), len(both), curvature.shape)
