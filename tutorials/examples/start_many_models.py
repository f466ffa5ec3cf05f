"""Start here with uncertainty: eight networks at once say how sure they are.

python tutorials/examples/start_many_models.py

Put your own inputs and targets in `make_data`. Where the networks disagree, data is missing.
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


# 1. the data: a wave with noise, without measurements between -1 and 1
def make_data(rng, n):
    x = rng.uniform(1, 3, n) * rng.choice([-1, 1], n)
    t = np.sin(2 * x) + 0.1 * rng.normal(size=n)
    return x[:, None].astype("float32"), t.astype("float32")


rng = np.random.default_rng(0)
x, t = make_data(rng, 200)
test_x, test_t = make_data(rng, 500)  # rows that nothing is chosen by


# 2. the model gives a mean and the logarithm of a deviation: the noise of the data
def make_model():
    return nn.Sequential(nn.Linear(1, 32), F.tanh, nn.Linear(32, 32), F.tanh, nn.Linear(32, 2))


tn.seed(0)
model = make_model()
states = [make_model().state_dict() for _ in range(8)]
stacked = {name: nn.Parameter(np.stack([s[name] for s in states])) for name in states[0]}
optimizer = nn.Adam(stacked.values(), lr=0.01)


def predict(parameters, x):
    y = nn.functional_call(model, parameters, x)
    return y[:, 0], F.exp(y[:, 1])


# 3. the loss of one model: the negative logarithm of a normal density
def loss(parameters, x, t):
    mean, deviation = predict(parameters, x)
    return F.gaussian_nll(mean, t, deviation**2)


# 4. the training: each model draws examples of its own
@tn.compile
def step(x, t):
    losses = tn.vmap(loss)(stacked, x, t)
    optimizer.cleargrads()
    losses.sum().backward()
    optimizer.update()
    return losses.mean()


for i in range(1, 1001):
    rows = rng.integers(0, len(x), (8, 64))
    value = float(step(x[rows], t[rows]))
    if i % 200 == 0:
        print(f"step {i}: loss {value:.3f}")


# 5. all models together: the variances inside of the models, and between them
def ensemble(x):
    with tn.no_grad():
        found = tn.vmap(predict, in_axes=(0, None))(stacked, x)
    means, deviations = [tn.to_host(y) for y in found]
    return means.mean(axis=0), np.sqrt((deviations**2).mean(axis=0) + means.var(axis=0))


mean, deviation = ensemble(test_x)
inside = np.abs(mean - test_t) < 2 * deviation
_, far = ensemble(np.array([[0.0], [5.0]], "float32"))
print(f"deviation at the data: {deviation.mean():.2f}, at 0: {far[0]:.2f}, at 5: {far[1]:.2f}")
print(f"test rows within two deviations: {100 * inside.mean():.1f} %")
