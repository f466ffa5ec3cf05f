# %% [markdown] tags=["portable"]
# # Step 12: train something
#
# **Goal.** Gradients change numbers until a model fits its data: first a line, then a border
# between two classes of points.

# %%
import inspect

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

rng = np.random.default_rng(0)  # for the data
tn.seed(0)  # for the first weights


def on_device(data):
    """NumPy data as a Variable on the device in use."""
    return tn.asarray(data, device=tn.get_device())


# %% [markdown]
# ## Predict
# Forty points near the line `t = 2 x - 1`. What is added to each is random, with a standard
# deviation of 0.1. A line `y = w x + b` is to be fitted, so that the **mean squared error**, the
# mean of `(y - t)^2`, is small. How small can it become: 0, about 0.01, or about 0.1?

# %%
x_data = rng.uniform(-1.0, 1.0, size=(40, 1))
t_data = 2.0 * x_data - 1.0 + rng.normal(scale=0.1, size=(40, 1))
x, t = on_device(x_data), on_device(t_data)

# %% [markdown]
# ## Run
# `nn.Linear(1, 1)` is a **layer**: it holds the numbers to be trained, its **parameters** `weight`
# and `bias`, and computes `y = x W^T + b`. The gradient says in which direction the loss grows
# fastest. So each parameter is moved a little against its gradient; how far is the **learning
# rate**, here 0.3. This is all that training is:

# %%
line = nn.Linear(1, 1, dtype="float64")
for step in range(61):
    loss = F.mean_squared_error(line(x), t)
    for p in line.parameters():
        p.cleargrad()
    loss.backward()
    for p in line.parameters():
        p.array = p.array - 0.3 * p.grad
    if step % 20 == 0:
        w, b = float(line.weight[0, 0]), float(line.bias[0])
        print(f"step {step:2}   loss {float(loss):.4f}   w {w:.4f}   b {b:.4f}")

# %% [markdown]
# `w` and `b` have come near 2 and -1. The loss stops near 0.01, the square of 0.1: no line can
# follow what is random.
#
# The two lines that move the parameters are an **optimizer**, here **SGD**, stochastic gradient
# descent. (Stochastic: with much data, each step looks at a random part of it. Here it sees all.)
# `nn.SGD` does the same; `momentum` is 0 if you do not ask for it:

# %%
print(inspect.getsource(nn.SGD.step))

# %% [markdown]
# From now on the loop is a function. Remember its four lines: compute the loss, forget the old
# gradients, backward, update.


# %%
def train(model, optimizer, loss_of, steps):
    """The losses of a training; ``loss_of(model)`` computes one."""
    losses = []
    for _ in range(steps):
        loss = loss_of(model)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    return losses


def squared_error(model):
    return F.mean_squared_error(model(x), t)


curves = {}
for lr in 0.02, 0.3, 1.05:
    tn.seed(0)
    line = nn.Linear(1, 1, dtype="float64")
    curves[f"lr {lr}"] = train(line, nn.SGD(line, lr=lr), squared_error, 40)
for name, losses in curves.items():
    print(f"{name:8} loss at first {losses[0]:.4f}, at last {losses[-1]:.4g}")

# %% [markdown]
# ## See
# The **loss curves** of three learning rates. Which one is too small, which too large?

# %%
tn.show.training_curves(curves, log=True, title="A line, three learning rates")

# %% [markdown]
# Now two classes of points: an inner disc, and a ring around it. The model gives two **scores**
# for each point, and the class with the higher score is its answer. **Softmax** makes
# probabilities of scores, and the loss is minus the logarithm of the right class's probability:
#
#     p[k] = exp(score[k]) / sum of exp(score)        loss = -log(p[right class])
#
# A model that knows nothing gives each class one half: a loss of log 2, or 0.69.

# %%
angle = rng.uniform(0.0, 2.0 * np.pi, size=120)
labels = np.arange(120) % 2
radius = np.where(labels == 0, rng.uniform(0.0, 0.8, 120), rng.uniform(1.2, 2.0, 120))
point_data = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
points, classes = on_device(point_data), on_device(labels)


def cross_entropy(model):
    return F.softmax_cross_entropy(model(points), classes)


def network():
    """Two numbers in, sixteen hidden ones, two scores out."""
    tn.seed(1)
    return nn.Sequential(
        nn.Linear(2, 16, dtype="float64"), F.tanh, nn.Linear(16, 2, dtype="float64")
    )


def accuracy(model):
    """The share of the points whose right class has the higher score."""
    with tn.no_backprop_mode():
        scores = model(points)
    return (tn.to_host(scores.array).argmax(axis=1) == labels).mean()


# %% [markdown]
# **Adam** is an optimizer that many people try first. It keeps two running means for each
# parameter, of its gradient and of the gradient's square, and divides one by the root of the
# other: so every parameter moves by about `lr` in a step, whether its gradients are large or
# small, and by less where they keep changing their sign.

# %%
curves = {}
for name, optimizer_of in (("SGD", nn.SGD), ("Adam", nn.Adam)):
    model = network()
    curves[name] = train(model, optimizer_of(model, lr=0.05), cross_entropy, 100)
    print(f"{name:4} loss {curves[name][-1]:.4f}, right: {accuracy(model):.0%}")
tn.show.training_curves(curves, title="Disc and ring: the same network, the same learning rate")

# %% [markdown]
# Behind the points you see what the network of the last curve answers everywhere. The line where
# the colours meet is its **decision boundary**:


# %%
def answer(places):
    return F.argmax(model(places), axis=1)


tn.show.points(points, labels, region=answer, title="What the network answers")

# %% [markdown]
# ## Break it
# Two mistakes that everybody makes once. In the first, nobody forgets the old gradients, so each
# step adds its own to all those before. In the second, `F.tanh` is missing: two layers without a
# bend between them are one layer, and its boundary is a straight line.


# %%
class Forgetful(nn.SGD):
    """Its cleargrads does nothing, as if you had left out that line."""

    def cleargrads(self):
        pass


line = nn.Linear(1, 1, dtype="float64")
losses = train(line, Forgetful(line, lr=0.3), squared_error, 40)
print("without cleargrads, every 5th loss:", " ".join(f"{loss:.2f}" for loss in losses[::5]))

straight = nn.Sequential(nn.Linear(2, 16, dtype="float64"), nn.Linear(16, 2, dtype="float64"))
losses = train(straight, nn.Adam(straight, lr=0.05), cross_entropy, 100)
print(f"without tanh: loss {losses[-1]:.4f}, right: {accuracy(straight):.0%}")

# %% [markdown]
# Neither raises an error. The first curve goes up and down and does not settle; the second stays
# near 0.69, what a model that knows nothing has. **Always look at the loss curve**, and know what
# a guess would cost.
#
# ## Fix it

# %%
line = nn.Linear(1, 1, dtype="float64")
losses = train(line, nn.SGD(line, lr=0.3), squared_error, 40)
print("with cleargrads, every 5th loss:", " ".join(f"{loss:.2f}" for loss in losses[::5]))
bent = nn.Sequential(straight[0], F.tanh, straight[1])
losses = train(bent, nn.Adam(bent, lr=0.05), cross_entropy, 100)
print(f"with tanh: loss {losses[-1]:.4f}, right: {accuracy(bent):.0%}")

# %% [markdown]
# ## Exercise
# Write the loop yourself, then train two models with it. **XOR**: four points, where a straight
# line cannot part the classes. And a network that follows the sine from -pi to pi. The check asks
# for a loss below 0.05, and for an error below 0.001.
#
#     python -m tinynode.learn start 12
#     python -m tinynode.learn check 12
