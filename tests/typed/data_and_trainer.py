"""Data, loaders, a schedule, and the Trainer."""

from __future__ import annotations

import numpy as np

import tinynode as tn
from tinynode import functions, nn

x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(-1, 1)
train, held_out = nn.split_dataset(nn.ArrayDataset(x, x**2), 0.25, seed=0)
model = nn.Sequential(nn.Linear(1, 8), functions.tanh, nn.Linear(8, 1))


def loss(model: nn.Module, x: tn.Variable, y: tn.Variable) -> tn.Variable:
    return functions.mean_squared_error(model(x), y)


optimizer = nn.SGD(model, lr=0.1)
loader = nn.DataLoader(train, 8)
trainer = nn.Trainer(model, loss, optimizer, loader, validation=nn.DataLoader(held_out, 8))
trainer.run(2)
names: list[str] = [name for name, _ in model.named_parameters()]
print(names, tn.random.uniform((2,)).shape)
