"""The signatures of decorated functions."""

from __future__ import annotations

from typing import reveal_type

import tinynode as tn
from tinynode import functions


def loss(weight: tn.Variable, x: tn.Variable, scale: float = 1.0) -> tn.Variable:
    return functions.sum(weight * x) * scale


compiled = tn.compile(loss)
reveal_type(compiled)
reveal_type(tn.vmap(loss))
reveal_type(tn.gradient(loss))
reveal_type(tn.value_and_grad(loss))
reveal_type(tn.hessian(loss))
reveal_type(tn.jacobian(loss))
reveal_type(tn.compile(tn.gradient(loss)))
reveal_type(tn.no_grad()(loss))
