"""Gradients of each example: vmap of a gradient, compiled."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import tinynode as tn
from tinynode import functions


def score(weight: tn.Variable, x: tn.Variable) -> tn.Variable:
    return functions.sum(weight * x)


@tn.compile
def all_scores(weight: tn.Variable, x: tn.Variable) -> tn.Variable:
    return tn.vmap(score, in_axes=(None, 0))(weight, x)


weight = tn.asarray(np.ones(3, np.float32))
x = tn.asarray(np.ones((5, 3), np.float32))
assert_type(all_scores(weight, x), tn.Variable)
gradients = tn.vmap(tn.gradient(score), in_axes=(None, 0))(weight, x)
print(all_scores(weight, x).shape, gradients.shape)
