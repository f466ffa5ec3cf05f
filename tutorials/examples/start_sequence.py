"""Start here with sequences: a recurrent network that predicts the next number of a wave.

python tutorials/examples/start_sequence.py

Replace `waves.train_inputs` with your own numbers: (sequences, length).
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: waves of unknown frequency; the target of a position is the next number
waves = nn.datasets.make_sines(400, 32, noise=0.02)
train = nn.ArrayDataset(waves.train_inputs[:, :, None], waves.train_targets[:, :, None])
held_out = nn.ArrayDataset(waves.held_out_inputs[:, :, None], waves.held_out_targets[:, :, None])


# 2. the model: the LSTM reads a number at a time, and remembers
class Predictor(nn.Module):
    """(n, length, 1) -> (n, length, 1)."""

    def __init__(self, size):
        self.lstm = nn.LSTM(1, size, batch_first=True)
        self.output = nn.Linear(size, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.output(states)


tn.seed(0)
model = Predictor(24)


# 3. the loss
def loss(model, x, y):
    return F.mean_squared_error(model(x), y)


# 4. the training: the rate falls along half a cosine, and long gradients are shortened
train_loader = nn.DataLoader(train, 32, shuffle=True)
optimizer = nn.Adam(model, lr=0.02)
trainer = nn.Trainer(
    model,
    loss,
    optimizer,
    train_loader,
    validation=nn.DataLoader(held_out, 80),
    schedule=nn.schedules.CosineSchedule(optimizer, steps=15 * len(train_loader)),
    clip=1.0,
)
trainer.run(15)
error = trainer.evaluate()["loss"] ** 0.5
x, y = held_out.arrays
print(f"root mean square error of the next number: {error:.3f}")
print(f"the error of guessing no change: {np.sqrt(((x - y) ** 2).mean()):.3f}")
