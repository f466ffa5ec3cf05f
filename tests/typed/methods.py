"""Compiled methods: a method keeps its parameters, without self."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import tinynode as tn
from tinynode import functions, nn


class Model(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(2, 1)

    @tn.compile
    def loss(self, x: tn.Variable, weight: float = 1.0) -> tn.Variable:
        return functions.mean(self.linear(x) ** 2) * weight

    @tn.compile(inside_hooks=True)
    def twice(self, x: tn.Variable) -> tuple[tn.Variable, tn.Variable]:
        return x, x * 2


model = Model()
x = tn.asarray(np.ones((4, 2), np.float32))
assert_type(model.loss(x, weight=0.5), tn.Variable)
assert_type(model.twice(x), tuple[tn.Variable, tn.Variable])
print(model.loss(x).shape)
