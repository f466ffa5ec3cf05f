"""Memory: checkpoint keeps the result of the function, no_grad the decorated function."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import tinynode as tn
from tinynode import functions, nn

layer = nn.Linear(3, 3)


def block(x: tn.Variable) -> tn.Variable:
    return functions.tanh(layer(x))


@tn.no_grad()
def predict(x: tn.Variable, rounds: int = 2) -> tn.Variable:
    for _ in range(rounds):
        x = block(x)
    return x


x = tn.asarray(np.ones((1, 3), np.float32))
y = tn.checkpoint(block, x)
assert_type(y, tn.Variable)
functions.sum(y).backward()
assert_type(predict(x, rounds=3), tn.Variable)
with tn.no_grad(), tn.using_device("numpy"), tn.using_config("train", False):
    print(predict(x).shape)
