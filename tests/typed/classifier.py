"""A classifier: a Module, a loss, a compiled training step."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import tinynode as tn
from tinynode import functions, nn


class Classifier(nn.Module):
    def __init__(self, size: int, classes: int) -> None:
        self.hidden = nn.Linear(size, 8)
        self.last = nn.Linear(8, classes)

    def forward(self, x: tn.Variable) -> tn.Variable:
        scores: tn.Variable = self.last(functions.relu(self.hidden(x)))
        return scores


model = Classifier(4, 3)
optimizer = nn.Adam(model, lr=0.01)


@tn.compile
def loss_of(x: tn.Variable, labels: tn.Variable) -> tn.Variable:
    return functions.softmax_cross_entropy(model(x), labels)


images = tn.asarray(np.ones((2, 4), np.float32), requires_grad=False)
labels = tn.asarray(np.array([0, 2]))

for _ in range(2):
    optimizer.cleargrads()
    loss_of(images, labels).backward()
    optimizer.update()
loss = loss_of(images, labels)
assert_type(loss, tn.Variable)
assert_type(model.parameters(), list[nn.Parameter])
print(float(loss))
