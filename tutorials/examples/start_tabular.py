"""Start here with a table: learn a column of a .csv file from the other columns.

python tutorials/examples/start_tabular.py

Set `FILE` to your own file, and "price" with the name of your column.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: here a made-up table; the price depends on the other columns, with some noise
rng = np.random.default_rng(0)
FILE = Path(tempfile.mkdtemp()) / "houses.csv"
with open(FILE, "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["area", "rooms", "age", "price"])
    for _ in range(600):
        area, rooms, age = rng.uniform(30, 200), int(rng.integers(1, 7)), rng.uniform(0, 80)
        price = 3.0 * area + 20.0 * rooms - 0.02 * area * age + rng.normal(0, 10)
        writer.writerow([round(area), rooms, round(age), round(price)])

table = nn.TableDataset(FILE, "price", regression=True)
columns, price = table.arrays
columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)  # each column: mean 0, size 1
mean, size = price.mean(), price.std()
data = nn.ArrayDataset(columns, (price - mean) / size)
train, held_out = nn.split_dataset(data, 0.2)

# 2. the model
tn.seed(0)
model = nn.Sequential(nn.Linear(3, 32), F.relu, nn.Linear(32, 32), F.relu, nn.Linear(32, 1))


# 3. the loss, and a measure in the unit of the price
def loss(model, x, y):
    return F.mean_squared_error(model(x)[:, 0], y)


def error(model, x, y):
    return size * F.mean_absolute_error(model(x)[:, 0], y).item()


# 4. the training
trainer = nn.Trainer(
    model,
    loss,
    nn.Adam(model, lr=0.005),
    nn.DataLoader(train, 32, shuffle=True),
    validation=nn.DataLoader(held_out, 120),
    metrics={"error": error},
    patience=10,
)
trainer.run(60)
print(f"mean error of a held-out price: {trainer.evaluate()['error']:.1f}")
print(f"the error of guessing the mean price: {np.abs(price - mean).mean():.1f}")
