"""Start here with an implicit layer: a deep-equilibrium network separates two spirals.

python tutorials/examples/deep_equilibrium.py

The layer's output z is the solution of z = tanh(W z + U x + b). A loop finds z. The gradient comes
from the equation, by `tn.custom_fixed_point`, so backward keeps none of the loop's arrays.
Replace `equation` with your own equation, and `find` with your own solver.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: points on two spirals, with noise
rng = np.random.default_rng(0)
angles = np.sqrt(rng.uniform(0.05, 1.0, 400)) * 2 * np.pi
classes = rng.integers(0, 2, 400)
turned = angles + np.pi * classes
points = np.stack([angles * np.cos(turned), angles * np.sin(turned)], axis=1) / 3
points = (points + rng.normal(0, 0.1, points.shape)).astype("float32")


# 2. the model: an implicit layer, then a linear layer
class Equilibrium(nn.Module):
    def __init__(self, size):
        self.w, self.u = nn.Linear(size, size, bias=False), nn.Linear(2, size)
        self.solution = tn.custom_fixed_point(self.equation, self.find, solve="gmres")

    def equation(self, z, x):
        """The right side. |W| is at most 0.95, so the loop converges."""
        w = self.w.weight
        w = w * (0.95 / F.maximum(F.linalg.matrix_norm(w), 0.95))
        return F.tanh(F.linear(z, w) + self.u(x))

    def find(self, x):
        """The solver: any code. It runs without a graph."""
        z = tn.asarray(np.zeros((len(x), self.w.weight.shape[0]), dtype="float32"))
        for _ in range(200):
            z, before = self.equation(z, x), z
            if F.max(F.abs(z - before)) < 1e-5:
                break
        return z

    def forward(self, x):
        return self.solution(x)


tn.seed(0)
model = nn.Sequential(nn.Linear(2, 2), Equilibrium(40), nn.Linear(40, 2))

# 3. the training: a step with all training points
optimizer = nn.Adam(model, lr=0.01)
for step in range(1, 81):
    loss = F.softmax_cross_entropy(model(points[:300]), classes[:300])
    model.cleargrads()
    loss.backward()
    optimizer.update()
    if step % 20 == 0:
        right = nn.metrics.accuracy(model(points[300:]), classes[300:])
        print(f"after {step} steps: held-out accuracy: {100 * right:.1f} %")
