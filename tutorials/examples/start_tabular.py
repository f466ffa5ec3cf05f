"""Start here with a table: learn a column of a .csv file from the other columns.

python tutorials/examples/start_tabular.py

Set `FILE` to your own file, and `TARGET` to the column to learn. Your file is only read.
"""

from pathlib import Path

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

FILE = None  # such as Path("mydata.csv"); None stands for made-up houses
TARGET = "price"


# 1. the data: the price of a made-up house depends on the other columns, with some noise
def make_houses(n):
    rng = np.random.default_rng(0)
    area, rooms, age = rng.uniform(30, 200, n), rng.integers(1, 7, n), rng.uniform(0, 80, n)
    price = 3.0 * area + 20.0 * rooms - 0.02 * area * age + rng.normal(0, 10, n)
    return np.stack([area, rooms, age], axis=1), price


if FILE is None:
    columns, target = make_houses(600)
else:
    columns, target = nn.TableDataset(Path(FILE).expanduser(), TARGET, regression=True).arrays
rest, test = nn.split_dataset(nn.ArrayDataset(columns, target), 0.2)
train, validation = nn.split_dataset(rest, 0.2)

# mean 0 and size 1, by the rows to train on: the other rows stand for rows that are not known yet
x, y = train.batch(np.arange(len(train)))
means, sizes = x.mean(axis=0), x.std(axis=0) + 1e-9
mean, size = y.mean(), y.std()


def normalised(batch, rng):
    x, y = batch
    return (x - means) / sizes, (y - mean) / size


# 2. the model
tn.seed(0)
inputs = columns.shape[1]
model = nn.Sequential(nn.Linear(inputs, 32), F.relu, nn.Linear(32, 32), F.relu, nn.Linear(32, 1))


# 3. the loss, and a measure in the unit of the target
def loss(model, x, y):
    return F.mean_squared_error(model(x)[:, 0], y)


def error(model, x, y):
    return size * F.mean_absolute_error(model(x)[:, 0], y).item()


# 4. the training: it ends after 10 epochs without a smaller loss on the validation rows
optimizer = nn.Adam(model, lr=0.005)
loader = nn.DataLoader(train, 32, shuffle=True, batch_transform=normalised)
held_out = nn.DataLoader(validation, 120, batch_transform=normalised)
metrics = {"error": error}
trainer = nn.Trainer(
    model, loss, optimizer, loader, validation=held_out, metrics=metrics, patience=10
)
trainer.run(60)

# 5. the result, on rows that nothing was chosen by
test_rows = nn.DataLoader(test, 120, batch_transform=normalised)
print(f"mean error of {TARGET}: {trainer.evaluate(test_rows)['error']:.1f}")
_, y = test.batch(np.arange(len(test)))
print(f"the error of guessing the mean {TARGET}: {np.abs(y - mean).mean():.1f}")
