# %% [markdown] tags=["portable"]
# # Capstone: a loss that contains a gradient
#
# **Goal.** You train a network whose loss contains the network's own gradient, on any device.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def on_device(data):
    """NumPy data as a Variable on the device in use."""
    return tn.asarray(data, device=tn.get_device())


# %% [markdown]
# Here are two clouds of points. Each point of the second cloud is a point of the first cloud,
# moved by $(1.2, 1.6)$: by a distance of 2. Then the points are shuffled, so the pairs are
# unknown. **How far apart are the clouds?**

# %%
rng = np.random.default_rng(0)
first = rng.normal(scale=0.5, size=(60, 2))
second = rng.permutation(first + np.array([1.2, 1.6]))
cloud = ["first"] * 60 + ["second"] * 60
tn.show.points(np.concatenate([first, second]), cloud, title="How far apart?")

# %% [markdown]
# A network can find the distance. The network is called the **critic**: it gives every place a
# height $f(x)$, high on the second cloud and low on the first. If no slope of $f$ is steeper than
# 1, the difference of the mean heights, the **gap**, is at most the distance. The best such critic
# reaches the distance.
#
# $$\mathrm{gap} = \mathrm{mean}\, f(\mathrm{second}) - \mathrm{mean}\, f(\mathrm{first})
# \qquad \left|\frac{df}{dx}\right| \le 1 \text{ everywhere}$$
#
# The slope of $f$ at $x$ is its gradient, of length $|df/dx|$. A **gradient penalty** in the loss
# keeps this length near 1:
#
# $$L = -\mathrm{gap} + 10 \cdot \mathrm{mean} \left(\left|\frac{df}{dx}\right| - 1\right)^2$$
#
# The training needs the gradient of this loss by the weights: the gradient of a formula that
# contains a gradient. This is **double backprop** (step 22). The idea is from Gulrajani and
# others, *Improved Training of Wasserstein GANs*, 2017.
#
# ## Predict
# Three trainings of the same critic: without the penalty; with the penalty; and with the penalty,
# but without `enable_double_backprop`. Is the gap about 0, about 2, or far more than 2? Write down
# three answers.
#
# ## Run
# `steepness` is the new part. It differentiates the sum of $f$ over all points. The height of a
# point depends on this point alone, so row $i$ of the result is the gradient at point $i$.


# %%
def steepness(critic, points, double=True):
    """|df/dx| at each point."""
    x = tn.asarray(points, device=tn.get_device(), requires_grad=True)
    (slope,) = tn.grad([F.sum(critic(x))], [x], enable_double_backprop=double)
    return F.sqrt(F.sum(slope * slope, axis=1) + 1e-12)  # the root has no slope at 0


def penalty_of(lengths):
    return F.mean((lengths - 1.0) ** 2)


def new_critic():
    tn.seed(0)
    return nn.Sequential(
        nn.Linear(2, 24, dtype="float64"),
        F.tanh,
        nn.Linear(24, 24, dtype="float64"),
        F.tanh,
        nn.Linear(24, 1, dtype="float64"),
    )


def train(weight, double=True, steps=120):
    """A trained critic, and what gap and steepness were on the way."""
    rng = np.random.default_rng(1)
    critic = new_critic()
    optimizer = nn.Adam(critic, lr=0.01)
    low, high = on_device(first), on_device(second)
    gaps, slopes = [], []
    for _ in range(steps):
        share = rng.uniform(size=(60, 1))
        between = share * first + (1.0 - share) * second  # random places from cloud to cloud
        gap = F.mean(critic(high)) - F.mean(critic(low))
        lengths = steepness(critic, between, double)
        loss = -gap + weight * penalty_of(lengths)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        gaps.append(float(gap))
        slopes.append(float(F.mean(lengths)))
    return critic, gaps, slopes


runs = {}
runs["no penalty"] = train(0.0)
runs["penalty"] = train(10.0)
for name, (_, gaps, slopes) in runs.items():
    print(f"{name:10} gap {gaps[-1]:6.2f}   mean steepness {slopes[-1]:6.2f}")

# %% [markdown]
# Without the penalty the critic becomes steeper and steeper, and its gap means nothing. With the
# penalty, the gap comes near 2.2. The value can be computed: a critic of steepness $s$ in the
# right direction has the gap $2s$ and the loss $-2s + 10\,(s-1)^2$. The derivative of this loss is
# 0 at $s = 1.1$, so the best gap is 2.2.
#
# ## See
# The gap during the training, and the computed value 2.2.

# %%
curves = {"gap": runs["penalty"][1], "2.2": [2.2] * 120}
tn.show.training_curves(curves, title="The gap, with penalty", y_label="gap")

# %% [markdown]
# The height along the straight path from the middle of one cloud to the middle of the other, and
# the line of slope 1.

# %%
walk = np.linspace(0.0, 2.0, 21)
way = first.mean(axis=0) + walk[:, None] * np.array([0.6, 0.8])
with tn.no_backprop_mode():
    heights = tn.to_host(runs["penalty"][0](on_device(way)).array)[:, 0]
tn.show.lines(
    walk,
    {"height": heights - heights[0], "slope 1": walk},
    title="From cloud to cloud",
    x_label="distance walked",
    y_label="height",
)

# %% [markdown]
# Now the graph of a penalty, for a small critic with one `tanh`. Look for the functions of
# forward, and for the functions of the first backward. The second backward, for the training, goes
# through all functions.

# %%
small = nn.Sequential(nn.Linear(2, 1, bias=False, dtype="float64"), F.tanh)
penalty = penalty_of(steepness(small, first))
penalty.name = "penalty"
tn.show.graph(penalty)

# %% [markdown]
# A difference checks the gradient, as in step 3: move one weight up and down.

# %%
weight = small[0].weight
penalty.backward()
data, eps = tn.to_host(weight.array), 1e-5
ends = []
for step in (eps, -eps):
    weight.array = on_device(data + np.array([[step, 0.0]])).array
    ends.append(float(penalty_of(steepness(small, first))))
by_backward = tn.to_host(weight.grad)[0, 0]
by_difference = (ends[0] - ends[1]) / (2 * eps)
print(f"by backward {by_backward:.6f}   by difference {by_difference:.6f}")

# %% [markdown]
# ## Break it
# Leave `enable_double_backprop` out. Then `tn.grad` gives the same numbers, but without a graph.

# %%
runs["no double"] = train(10.0, double=False)
_, gaps, slopes = runs["no double"]
print(f"no double  gap {gaps[-1]:6.2f}   mean steepness {slopes[-1]:6.2f}")
print("the same as without a penalty:", np.allclose(gaps, runs["no penalty"][1]))

x = tn.asarray(first, device=tn.get_device(), requires_grad=True)
for double in (True, False):
    (slope,) = tn.grad([F.sum(small(x))], [x], enable_double_backprop=double)
    made_by = slope.creator.label if slope.creator else "no function: a leaf"
    print(f"double={double!s:5}  slopes squared {float(F.sum(slope**2)):.4f}   made by {made_by}")

# %% [markdown]
# There is no error and no warning. The slope and the penalty have the right values. But the graph
# of the penalty ends at the slope, a leaf. For backward the slope is a **constant**. So the
# penalty changes no weight.
#
# ## Fix it
# Count the parameters with a gradient of the penalty. One line finds the mistake:

# %%
for double in (False, True):
    critic = new_critic()
    found = penalty_of(steepness(critic, first, double))
    gradients = tn.grad([found], list(critic.parameters()))
    reached = sum(gradient is not None for gradient in gradients)
    print(f"double={double!s:5}  parameters that the penalty reaches: {reached} of 6")

# %% [markdown]
# 5 of 6 is right: the last bias lifts all of $f$, and changes no slope.
#
# **On any device.** The program names no device. So one line moves the whole training:

# %%
for device in "numpy", "fast":
    with tn.using_device(device):
        _, gaps, _ = train(10.0, steps=25)
    print(f"{device:5} gap after 25 steps {gaps[-1]:.4f}")

# %% [markdown]
# The setting `TINYNODE_DEVICE=fast` does the same. `python -m tinynode train gradient-penalty`
# trains a larger critic, on pictures of digits.
#
# **Cost.** The graph of the slope keeps more arrays until the second backward:

# %%
with tn.hooks.MemoryHook() as memory:
    height = F.sum(new_critic()(on_device(first)))
    print(f"heights alone: {memory.current_bytes() / 1000:.0f} kB kept")
with tn.hooks.MemoryHook() as memory:
    lengths = steepness(new_critic(), first)
    print(f"with slopes:   {memory.current_bytes() / 1000:.0f} kB kept")

# %% [markdown]
# ## What you have built
# | what was needed | you know it from |
# |---|---|
# | the critic: layers, Adam | steps 8, 9 |
# | the order of backward, and sums where a Variable is used twice | steps 4 to 6 |
# | what is kept between forward and backward, and freed after it | steps 11, 12 |
# | gradients that are Variables; functions for gradients | steps 22, 23 |
# | checks of gradients | steps 3, 14, 24 |
# | other devices | electives `portability`, `devices`, `fast_path`, `your_own_backend` |
#
# You have written or read each of these parts.
#
# ## Exercise
# An older gradient penalty: a classifier that is robust against small changes of its input. Its
# loss is the cross entropy, plus the squared length of the cross entropy's gradient by the input.
# (Drucker and LeCun, *Improving Generalization Performance Using Double Backpropagation*, 1992.)
#
#     python -m tinynode.learn start gradient_penalty
#     python -m tinynode.learn check gradient_penalty
