# %% [markdown]
# # Capstone: a network that solves a differential equation
#
# **Goal.** You train a network whose loss contains its own first and second derivative, so that
# the network becomes the solution of a differential equation.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# %% [markdown]
# A weight hangs on a spring. At time $t$ its position is $y(t)$, and the spring pulls it back:
#
# $$y''(t) = -y(t) \qquad y(0) = 0 \qquad y'(0) = 1$$
#
# The exact solution is $y(t) = \sin t$. The network shall find it **without any data**: nobody
# tells it a value of the sine. A **physics-informed network** is trained on the equation itself.
# (Raissi, Perdikaris and Karniadakis, *Physics-informed neural networks*, 2019; Lagaris, Likas and
# Fotiadis, 1998.)
#
# The **residual** of a function is $y'' + y$: it is 0 everywhere for a solution. The loss is the
# mean square of the residual at 33 times $t_i$, plus the errors of the two conditions at $t = 0$:
#
# $$L = \frac{1}{33} \sum_i \bigl(y''(t_i) + y(t_i)\bigr)^2 + y(0)^2 + \bigl(y'(0) - 1\bigr)^2$$
#
# ## Predict
# Three networks are trained in the same way, and compared with $\sin t$ between 0 and $2\pi$.
# Which of the three find the solution?
#
# 1. A network with `tanh`, and both calls of `tn.grad` with `enable_double_backprop=True`.
# 2. The same network, but the second call of `tn.grad` without it.
# 3. A network with `relu` in place of `tanh`.
#
# ## Run
# The network is a function of time: one number in, 16 hidden numbers, one number out. The biases
# start at random, so that the 16 curves bend at different times.

# %%
END = 2 * np.pi
times = np.linspace(0.0, END, 33)[:, None]  # (33, 1)


def new_network(activation):
    tn.seed(0)
    hidden, output = nn.Linear(1, 16, dtype="float64"), nn.Linear(16, 1, dtype="float64")
    hidden.bias.array = np.random.default_rng(0).uniform(-2.0, 2.0, size=16)
    return nn.Sequential(hidden, activation, output)


# %% [markdown]
# `tn.grad` differentiates the sum of all $y(t_i)$. Since $y(t_i)$ depends on $t_i$ alone, row $i$
# of the result is $y'(t_i)$. The same call on $y'$ gives $y''$. A gradient `None` means an exact
# zero.


# %%
def derivative(y, t, double=True):
    """The derivative of each y[i] by t[i], as a Variable."""
    (slope,) = tn.grad([F.sum(y)], [t], enable_double_backprop=double)
    return tn.asarray(np.zeros(t.shape)) if slope is None else slope


def solution_and_derivatives(network, double=True):
    t = tn.asarray(times, requires_grad=True)
    y = network(t - END / 2)  # the middle of the times is 0
    dy = derivative(y, t)
    return y, dy, derivative(dy, t, double)


def loss_of(network, double=True):
    y, dy, ddy = solution_and_derivatives(network, double)
    return F.mean((ddy + y) ** 2) + F.sum(y[0] ** 2) + F.sum((dy[0] - 1.0) ** 2)


def train(network, double=True, steps=300):
    optimizer = nn.Adam(network, lr=0.02)
    losses = []
    for step in range(steps):
        optimizer.lr = 0.02 * (1 - step / steps)
        loss = loss_of(network, double)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss))
    return losses


def largest_error(network):
    with tn.no_backprop_mode():
        return float(F.max(F.abs(network(times - END / 2) - np.sin(times))))


# %% [markdown]
# `loss.backward()` is the third differentiation: it goes through the graphs of $y$, of $y'$ and of
# $y''$, down to the weights.

# %%
network = new_network(F.tanh)
print(f"largest error before the training: {largest_error(network):.2f}")
losses = train(network)
print(f"loss: first {losses[0]:.2f}, last {losses[-1]:.4f}")
print(f"largest error: {largest_error(network):.3f}")

# %% [markdown]
# ## See
# The network, its derivatives, and the exact solution. The network and the sine are one curve.

# %%
y, dy, ddy = solution_and_derivatives(network)
tn.show.lines(
    times[:, 0],
    {"network y": y[:, 0], "sin t": np.sin(times[:, 0]), "y'": dy[:, 0], "y''": ddy[:, 0]},
    title="The solution of y'' = -y, without data",
    x_label="t",
    y_label="",
)

# %% [markdown]
# The next picture is the graph of $y''$ for the smallest network that bends. Find the functions of
# the network, of the first `tn.grad`, and of the second. A `loss.backward()` goes through all.

# %%
weight, t = tn.asarray(0.5, requires_grad=True), tn.asarray(1.0, requires_grad=True)
weight.name, t.name = "w", "t"
bend = derivative(derivative(F.tanh(weight * t), t), t)
bend.name = "y''"
tn.show.graph(bend)

# %% [markdown]
# ## Break it
# First, the second call of `tn.grad` makes no graph. Then, `relu` in place of `tanh`.

# %%
no_graph, with_relu = new_network(F.tanh), new_network(F.relu)
train(no_graph, double=False, steps=150)
train(with_relu, steps=150)
networks = {"tanh": network, "no graph of y''": no_graph, "relu": with_relu}
for name, one in networks.items():
    works = "solves the equation" if largest_error(one) < 0.01 else "is wrong"
    print(f"{name:16} {works}")

# %%
with tn.no_backprop_mode():
    found = {name: one(times - END / 2).numpy()[:, 0] for name, one in networks.items()}
found["no graph of y''"] = found["no graph of y''"].clip(-3.0, 3.0)
tn.show.lines(times[:, 0], found, title="Three networks", x_label="t", y_label="y, cut at 3")

# %% [markdown]
# Neither mistake raises an error.
#
# - Without its graph, $y''$ is a constant for backward. The training moves $y$ towards $-y''$, but
#   does not know that $y''$ moves as well. Each step changes $y''$, and the loss grows.
# - A network of `relu` consists of straight pieces. Its second derivative is 0 wherever it exists,
#   so `tn.grad` gives `None`. The residual is $y$ alone, and the training pulls $y$ towards 0.
#
# ## Fix it
# Count the parameters that $y''$ reaches. The count shows both mistakes before the training.


# %%
def reached(network, double=True):
    """The number of parameters with a gradient of the mean of y'' squared."""
    ddy = solution_and_derivatives(network, double)[2]
    gradients = tn.grad([F.mean(ddy**2)], list(network.parameters()))
    return sum(gradient is not None for gradient in gradients)


print("tanh:           ", reached(new_network(F.tanh)), "of 4 parameters")
print("no graph of y'':", reached(new_network(F.tanh), double=False), "of 4 parameters")
print("relu:           ", reached(new_network(F.relu)), "of 4 parameters")

# %% [markdown]
# 3 of 4 is right: the last bias lifts $y$ and changes no derivative. Any activation with a second
# derivative works: `tanh`, `sin`, `sigmoid`, `softplus`, `gelu`.
#
# **Cost.** Each derivative keeps the arrays of its own graph until `loss.backward()`.

# %%
with tn.hooks.MemoryHook() as memory:
    t = tn.asarray(times, requires_grad=True)
    y = network(t - END / 2)
    print(f"y:           {memory.current_bytes() / 1000:3.0f} kB kept")
    dy = derivative(y, t)
    print(f"y and y':    {memory.current_bytes() / 1000:3.0f} kB kept")
    ddy = derivative(dy, t)
    print(f"all three:   {memory.current_bytes() / 1000:3.0f} kB kept")

# %% [markdown]
# ## Exercise
# Now the spring is damped: friction takes energy away. Write the loss, and train a network.
#
# $$y'' + 0.5\, y' + 4\, y = 0 \qquad y(0) = 1 \qquad y'(0) = 0$$
#
#     python -m tinynode.learn start differential_equation
#     python -m tinynode.learn check differential_equation
