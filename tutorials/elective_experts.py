# %% [markdown]
# # Elective: experts
#
# **Goal.** You build a layer with many experts, of which each row uses one or two. You see where
# the gradient goes, and what keeps all experts at work.

# %%
import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("experts")
from mynode import Variable, mean_squared_error, nn, seed, softmax, sum
from mynode.functions.routing import choose, gate_weights
from mynode.nn.experts import Experts

# %% [markdown]
# A larger network computes more for each row. **Experts** make a layer larger without that. The
# layer has $E$ networks. A **gate**, a `Linear` layer, gives a logit for each expert, and each row
# goes through the $k$ experts with the largest logits. With $p = \text{softmax}(\text{logits})$:
#
# $$y = \sum_{e \text{ chosen}} w_e \ \text{expert}_e(x)$$
#
# - $k = 1$: $w_e = p_e$.
# - $k \ge 2$: $w_e = p_e$ over the sum of the chosen $p$.
#
# The choice is a step: a little change of a logit changes no choice, so the choice has no
# gradient. The **weight** $w_e$ has one. By it the gate learns: an expert that helped gets a
# larger $p$.
#
# ## Predict
# A layer has 4 experts and $k = 1$. A batch has 6 rows.
# 1. With which part of the parameters of the experts does a row compute?
# 2. No row chooses expert 2. Which gradient does the weight of expert 2 get?
#
# ## Run
# The layer collects the rows of each expert with `take_rows`, calls the expert once, and puts the
# results back with `put_rows`:
#
# <!-- mynode: nn/experts.py Experts -->

# %%
seed(1)
layer = Experts(2, [nn.Linear(2, 2) for _ in range(4)])
x = Variable(np.random.default_rng(2).normal(size=(6, 2)), requires_grad=False)
y = layer(x)
sum(y * y).backward()
print("chosen:", layer.chosen[:, 0])
for e, expert in enumerate(layer.experts):
    gradient = expert.weight.grad
    what = (
        "no gradient" if gradient is None else f"a gradient of norm {np.linalg.norm(gradient):.2f}"
    )
    print(f"expert {e}: {np.sum(layer.chosen == e)} of 6 rows, {what}")
print(f"gate: a gradient of norm {np.linalg.norm(layer.gate.weight.grad):.2f}")

# %% [markdown]
# An expert without rows is not in the graph at all: it costs no time, and gets no gradient.
#
# ## See
# Now the layer learns. The points of the plane come from four places. Each place has a linear
# function of its own, so four linear experts can be right everywhere.

# %%
rng = np.random.default_rng(0)
places = np.array([[1.5, 1.5], [-1.5, 1.5], [-1.5, -1.5], [1.5, -1.5]])
maps, offsets = rng.normal(size=(4, 2, 2)), 1.5 * rng.normal(size=(4, 2))
place = np.repeat(np.arange(4), 50)
near = 0.5 * rng.normal(size=(200, 2))
points = places[place] + near
values = np.einsum("nij,nj->ni", maps[place], near) + offsets[place]


def train(number, balance):
    """A trained layer, and its loss. balance is the weight of the balance loss."""
    seed(number)
    layer = Experts(2, [nn.Linear(2, 2) for _ in range(4)])
    optimizer = nn.Adam(layer, lr=0.03)
    for _ in range(200):
        optimizer.cleargrads()
        loss = mean_squared_error(layer(Variable(points, requires_grad=False)), Variable(values))
        (loss + layer.balance * balance).backward()
        for parameter in optimizer.parameters:
            if parameter.grad is None:  # of an expert without rows
                parameter.grad = np.zeros_like(parameter.array)
        optimizer.update()
    return layer, float(loss.array)


# %% tags=["varies"]
alone, loss = train(4, balance=0.0)
print(f"loss {loss:.2f}, rows of the experts: {np.bincount(alone.chosen[:, 0], minlength=4)}")


def expert_of(layer):
    """The number of the expert for each point."""

    def number(points):
        return choose(layer.gate(Variable(np.asarray(points))).array, 1)[:, 0]

    return number


tn.show.points(points, alone.chosen[:, 0], region=expert_of(alone), title="Who computes where")

# %% [markdown]
# Three experts do the work of four. The fourth gets no rows, so it learns nothing. So it does not
# become better, and gets no rows: it stays behind for ever.
#
# The cure is a second loss. $f_e$ is the share of the rows that chose expert $e$, and $P_e$ is the
# mean of $p_e$ over all rows:
#
# $$\text{balance} = E \sum_e f_e P_e$$
#
# It is 1 if all experts have the same share, and $E$ if one has all. $f$ is a constant, and $P$
# has a gradient: of an expert with many rows, each $p$ falls. With this loss added:

# %% tags=["varies"]
balanced, loss = train(4, balance=1.0)
print(f"loss {loss:.2f}, rows of the experts: {np.bincount(balanced.chosen[:, 0], minlength=4)}")
tn.show.points(points, balanced.chosen[:, 0], region=expert_of(balanced), title="With balance")

# %% [markdown]
# Balance is no promise of a smaller loss: the experts share the rows, and may share them badly.
# Try other numbers for `seed`.
#
# ## Break it
# Two mistakes. The first: weights are divided by their sum, also for $k = 1$. The sum has a single
# term, so each weight is 1, for any $p$:

# %%
logits = Variable(np.array([[2.0, 1.0, 0.0], [0.0, 0.5, 1.0]]))
chosen = choose(logits.array, 1)
for name in ("divided", "as it is"):
    logits.cleargrad()
    weights = gate_weights(softmax(logits), chosen)
    if name == "divided":
        weights = weights / sum(weights, axis=1, keepdims=True)
    sum(weights * np.array([5.0, 3.0, 1.0])).backward()
    print(f"{name:8}:", logits.grad.round(3)[0] + 0.0)

# %% [markdown]
# The gate would never learn, without an error. The second mistake has an error: the optimizer
# meets a parameter without a gradient.

# %%
try:
    nn.Adam(layer).update()
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# ## Fix it
# For $k = 1$ the weight is $p_e$ itself. And for an expert without rows, the gradient is zero: the
# function `train` above sets it. With Adam, the expert still moves a little by its moments.
#
# **Cost.** A row computes with $k$ of $E$ experts. With $k = 1$, a layer of 4 experts has 4 times
# the parameters of one expert, and the same time. But all parameters, gradients and moments are in
# memory (see the elective `bytes`). And each expert has a smaller product of matrices (see
# `roofline`).
#
# Source: Shazeer et al., Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts
# Layer, 2017; Fedus, Zoph and Shazeer, Switch Transformers: Scaling to Trillion Parameter Models
# with Simple and Efficient Sparsity, 2021. The first has noise in the gate, the second has $k = 1$
# and this balance loss.
#
# ## Exercise
# The exercise adds two files to your package. It needs steps 1 to 17.
#
# 1. `functions/routing.py`: `PutRows`, the opposite of `TakeRows`; `choose`, `gate_weights` and
#    `balance_loss`.
# 2. `nn/experts.py`: `Experts.forward`, in which experts without rows are left out.
#
#     python -m tinynode.learn start experts
#     python -m tinynode.learn check experts
