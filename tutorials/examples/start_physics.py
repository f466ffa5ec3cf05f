"""Start here with a law of nature: find an unknown constant from measurements.

python tutorials/examples/start_physics.py

A cup of tea cools: dT/dt = -k (T - room). A network becomes the curve T(t), and k is trained too.
Replace `law` with your own equation, and `times` and `measured` with your own data.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: 20 noisy measurements in an hour; times in hours, temperatures in 100 degrees
K, ROOM, START = 2.5, 0.2, 0.9
rng = np.random.default_rng(0)
times = np.linspace(0.0, 1.0, 20)[:, None]
measured = ROOM + (START - ROOM) * np.exp(-K * times) + rng.normal(0, 0.005, times.shape)


# 2. the model: a smooth curve, and the constant as a Parameter
class Tea(nn.Module):
    def __init__(self):
        self.curve = nn.Sequential(nn.Linear(1, 24), F.tanh, nn.Linear(24, 1))
        self.k = nn.Parameter(np.ones((), dtype="float32"))  # a first guess

    def forward(self, t):
        return self.curve(t)


tn.seed(0)
model = Tea()
inside = np.linspace(0.0, 1.0, 50, dtype="float32")[:, None]  # the law holds between the data too


# 3. the loss: the error of the law, and the error of the measurements
def law(model, t):
    """dT/dt + k (T - room), which should be 0."""
    temperature = model(t)
    (slope,) = tn.grad([F.sum(temperature)], [t], enable_double_backprop=True)
    return slope + model.k * (temperature - ROOM)


def loss(model, t, temperature):
    points = tn.asarray(inside, requires_grad=True)
    return F.mean(law(model, points) ** 2) + 10 * F.mean_squared_error(model(t), temperature)


# 4. the training: an epoch is a step with all measurements
optimizer = nn.Adam(model, lr=0.01)
loader = nn.DataLoader(nn.ArrayDataset(times, measured), len(times))
for part in range(5):
    nn.Trainer(model, loss, optimizer, loader).run(400, quiet=True)
    print(f"after {400 * (part + 1)} steps: k = {float(model.k.array):.3f}")
print(f"the constant of the made-up data: {K}")
