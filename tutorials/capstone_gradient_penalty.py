# %% [markdown] tags=["portable"]
# # Capstone: a loss that contains a gradient
#
# **Goal.** You train a network whose loss asks for the network's own gradient, on any device, and
# everything that you have learned is needed for it.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn


def on_device(data):
    """NumPy data as a Variable on the device in use."""
    return tn.asarray(data, device=tn.get_device())


# %% [markdown]
# Here are two clouds of points. Each point of the second cloud is a point of the first one, moved
# by (1.2, 1.6): by a distance of 2. The points are then shuffled, and nobody tells who was who.
# **How far apart are the clouds?**

# %%
rng = np.random.default_rng(0)
first = rng.normal(scale=0.5, size=(60, 2))
second = rng.permutation(first + np.array([1.2, 1.6]))
cloud = ["first"] * 60 + ["second"] * 60
tn.show.points(np.concatenate([first, second]), cloud, title="How far apart?")

# %% [markdown]
# A network can find out. Call it the **critic**: it gives every place a height `f(x)`, and is
# trained to be high on the second cloud and low on the first. If no slope of `f` is steeper than
# 1, the difference of the mean heights, the **gap**, is at most the distance. And the best such
# critic reaches it.
#
#     gap = mean f(second) - mean f(first)        |slope of f| <= 1 everywhere
#
# But how do you tell a network not to be steep? The slope of `f` at `x` is its gradient, of length
# `|df/dx|`. Put it into the loss: a **gradient penalty**, small where the length is near 1.
#
#     loss = -gap + 10 * mean (|df/dx| - 1)^2
#
# To train on it, you need the gradient of this loss by the weights: the gradient of something in
# which a gradient stands. This is **double backprop**, and the reason why backward builds a graph
# (step 16). The idea is of Gulrajani and others, *Improved Training of Wasserstein GANs*, 2017.
#
# ## Predict
# Three trainings of the same critic: without the penalty; with it; and with it, but without
# `enable_double_backprop`. What will the gap be, about: 0, 2, or far more than 2? Three answers.
#
# ## Run
# `steepness` is the new part. The sum of `f` over all points is differentiated; as the height of a
# point depends on that point alone, row i of the result is the gradient at point i.


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
# Without the penalty the critic becomes steeper and steeper, and its gap means nothing. With it,
# the gap settles a little above 2. Why above? You can compute it. A critic of steepness `s` in the
# right direction has the gap `2 s` and the loss `-2 s + 10 (s - 1)^2`. Its derivative is 0 at
# `s = 1.1`: so the best gap is 2.2. The penalty is a price, and no wall.
#
# ## See
# The gap during the training, and the line at 2.2 that it should come to.

# %%
curves = {"gap": runs["penalty"][1], "2.2": [2.2] * 120}
tn.show.training_curves(curves, title="The gap, with penalty", y_label="gap")

# %% [markdown]
# The height along the straight way from the middle of one cloud to that of the other, and the
# straight line of slope 1. A critic that is fair climbs evenly.

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
# Now the graph of a penalty, for the smallest critic that bends: one `tanh`. Look for the
# functions of forward, and for those which the first backward added. The second backward, which
# trains, goes through all of them.

# %%
small = nn.Sequential(nn.Linear(2, 1, bias=False, dtype="float64"), F.tanh)
penalty = penalty_of(steepness(small, first))
penalty.name = "penalty"
tn.show.graph(penalty)

# %% [markdown]
# Is the gradient of all this right? Ask a difference, as in step 3: move one weight up and down.

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
# Leave `enable_double_backprop` away. Then `tn.grad` gives the same numbers, but without a graph.

# %%
runs["no double"] = train(10.0, double=False)
_, gaps, slopes = runs["no double"]
print(f"no double  gap {gaps[-1]:6.2f}   mean steepness {slopes[-1]:6.2f}")
print("the same as without a penalty:", np.allclose(gaps, runs["no penalty"][1]))

x = tn.asarray(first, device=tn.get_device(), requires_grad=True)
for double in (True, False):
    (slope,) = tn.grad([F.sum(small(x))], [x], enable_double_backprop=double)
    made_by = slope.creator.label if slope.creator else "nobody: a leaf"
    print(f"double={double!s:5}  slopes squared {float(F.sum(slope**2)):.4f}   made by {made_by}")

# %% [markdown]
# No error, no warning: the worst sort of mistake. The slope is computed, the penalty is in the
# loss, and printed it looks right. But the graph of the penalty ends at the slope, which nobody
# seems to have made. To backward it is a **constant**. So not one weight ever hears of it.
#
# ## Fix it
# Ask whether what you put into a loss depends on what you train. This costs one line, and would
# have found it:

# %%
for double in (False, True):
    critic = new_critic()
    found = penalty_of(steepness(critic, first, double))
    gradients = tn.grad([found], list(critic.parameters()))
    reached = sum(gradient is not None for gradient in gradients)
    print(f"double={double!s:5}  parameters that the penalty reaches: {reached} of 6")

# %% [markdown]
# One of six is not reached, and rightly so: the last bias lifts all of `f`, and changes no slope.
#
# **On any device.** Nothing above names one. So one line moves all of it, with double backprop:

# %%
for device in "numpy", "fast":
    with tn.using_device(device):
        _, gaps, _ = train(10.0, steps=25)
    print(f"{device:5} gap after 25 steps {gaps[-1]:.4f}")

# %% [markdown]
# Or `TINYNODE_DEVICE=fast`, before you start Python. `python -m tinynode train gradient-penalty`
# trains a larger one, on pictures of digits.
#
# ## What you have built
# | what was needed | you know it from |
# |---|---|
# | the critic: layers, Adam | steps 11, 12 |
# | the order of backward, and sums where a Variable is used twice | steps 4 to 6 |
# | what is kept between forward and backward, and freed after it | steps 7, 8 |
# | gradients that are Variables; functions for gradients | steps 16, 17 |
# | how you know that it is right | steps 3, 13, 16 |
# | that it runs anywhere | electives `portability`, `devices`, `fast_path`, `your_own_backend` |
#
# There is no magic left in it: you have written each of these parts, or read it.
#
# ## Exercise
# The older of the gradient penalties: a classifier that small changes of its input do not confuse.
# Its loss is the cross entropy, plus the squared length of the cross entropy's gradient with
# respect to the input. (Drucker and LeCun, *Improving Generalization Performance Using Double
# Backpropagation*, 1992.)
#
#     python -m tinynode.learn start gradient_penalty
#     python -m tinynode.learn check gradient_penalty
