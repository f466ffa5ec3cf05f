# %% [markdown]
# # Elective: vmap is a backend
#
# **Goal.** You run a function of one example on a whole batch at once, and get the gradient of
# each example. The function does not change, and no FunctionNode does.

# %%
import time

import numpy as np

import tinynode as tn
from tinynode import functions as F

rng = np.random.default_rng(0)


def loss(w, x, t):
    """The logistic loss of one example, of class t = 1 or -1. w: (3), x: (3), t: () -> ()."""
    return F.softplus(-t * F.vecdot(w, x))


# %% [markdown]
# This is how a loss stands in a textbook: no axis for the batch. Now there are 64 examples. A loop
# calls `loss` 64 times, and each NumPy call works on three numbers. The other way is to rewrite
# `loss` for arrays of shape (64, 3), with the right `axis` everywhere.
#
# There is a third way. FunctionNodes do not work on arrays by themselves: they ask the **backend**
# for a namespace, and call its functions (the elective `your_own_backend`). So let there be a
# backend whose arrays hide an axis:
#
# | inside of `loss` | what the array really has | what the backend calls |
# |---|---|---|
# | `x`, shape (3) | shape (64, 3) | |
# | `w`, shape (3) | shape (1, 3): shared by all examples | |
# | `x.shape` | | `raw.shape[1:]` |
# | `sum(x, axis=0)` | | `sum(raw, axis=1)` |
# | `x * t`, shapes (3) and () | shapes (64, 3) and (64) | `raw * reshape(t.raw, (64, 1))` |
#
# `tn.vmap(f, in_axes)` puts the examples into such arrays, calls `f` **once**, and takes the
# result out. `in_axes` names the axis of the examples in each argument; `None` shares an argument.
#
# ## Predict
# The next cell runs `loss` with a line that prints shapes. There are 64 examples. How many lines
# are printed? Which shape has `x`?
#
# ## Run

# %%
w = tn.asarray(rng.normal(size=3), requires_grad=True)
xs = tn.asarray(rng.normal(size=(64, 3)), requires_grad=False)
ts = F.sign(xs @ np.array([1.0, -2.0, 0.5]))


def told(w, x, t):
    print("inside: w", w.shape, " x", x.shape, " t", t.shape, " on", x.device)
    return loss(w, x, t)


losses = tn.vmap(told, in_axes=(None, 0, 0))(w, xs, ts)
print("outside:", losses.shape)

# %% [markdown]
# One line. `f` sees a single example, on the device `vmap(numpy)`. A hook (step 26) shows the
# arrays below, with the hidden axis:


# %%
class Shapes(tn.FunctionHook):
    name = "shapes"

    def forward_preprocess(self, function, in_data):
        print(f"{function.label:15}", *(getattr(x, "raw", x).shape for x in in_data))


with Shapes():
    losses = tn.vmap(loss, in_axes=(None, 0, 0))(w, xs, ts)

# %% [markdown]
# ## See
# The graph of the 64 losses. Only the first and the last functions know of vmap: `IntoBatch` hides
# an axis, `OutOfBatch` shows it again. In between are the FunctionNodes of `loss`, as they are.

# %%
w.name, xs.name, ts.name, losses.name = "w", "x", "t", "losses"
tn.show.graph(losses)

# %% [markdown]
# Backward runs on the same arrays, so gradients keep the hidden axis as well. `tn.gradient(loss)`
# is a function like any other. With vmap, it gives **a gradient for each example**:

# %%
each = tn.vmap(tn.gradient(loss), in_axes=(None, 0, 0))
gradients = each(w, xs, ts)
print("for each example:", gradients.shape)

losses.grad = np.ones(64)
losses.backward()
print(
    "their sum is the usual gradient:",
    np.allclose(tn.to_host(gradients).sum(axis=0), tn.to_host(w.grad)),
)


# %% [markdown]
# A usual backward gives the sum only. The loop gives the same as vmap, in more time:


# %%
def loop(w, xs, ts):
    """A gradient for each example, one after the other."""
    one = tn.gradient(loss)
    return F.stack([one(w, xs[i], ts[i]) for i in range(64)])


print("the same:", np.allclose(tn.to_host(loop(w, xs, ts)), tn.to_host(gradients)))


# %% tags=["varies"]
def shortest(function):
    """The shortest time of 10, in milliseconds."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        function(w, xs, ts)
        times.append(1e3 * (time.perf_counter() - start))
    return round(min(times), 2)


tn.show.bars(
    {"loop": shortest(loop), "vmap": shortest(each)},
    title="Gradients of 64 examples",
    x_label="milliseconds",
)

# %% [markdown]
# What are such gradients good for? Here is a fitted model, and a batch in which example 5 has a
# wrong label. The gradient of example 5 is the longest: this example pulls at `w` like no other.

# %%
fitted = tn.asarray(np.array([4.0, -8.0, 2.0]), requires_grad=False)
labels = tn.to_host(ts).copy()
labels[5] = -labels[5]
pulls = np.linalg.norm(tn.to_host(each(fitted, xs, labels)), axis=1)
print("the longest of all 64 gradients: example", pulls.argmax())
tn.show.bars(
    {f"example {i}": round(float(pulls[i]), 3) for i in range(8)},
    title="Length of the gradient",
)

# %% [markdown]
# ## Break it
# The function of one example may do what fits one example only. This activation decides with `if`:


# %%
def leaky(x):
    """x: () -> ()."""
    if x > 0:
        return x
    return 0.1 * x


numbers = tn.asarray(np.array([1.0, -2.0, 3.0]), requires_grad=False)
try:
    tn.vmap(leaky)(numbers)
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# Python runs one branch of an `if`, but the examples differ: two need the first branch, one needs
# the second. The backend has no single answer, and refuses. The same holds for `float(x)` and for
# `while`.
#
# ## Fix it
# Compute both branches, and choose number by number, with `F.where`. The function of one example
# is still a function of one example:


# %%
def leaky_where(x):
    return F.where(x > 0, x, 0.1 * x)


print(tn.to_host(leaky_where(numbers[1])), tn.to_host(tn.vmap(leaky_where)(numbers)))

# %% [markdown]
# vmap nests, since the arrays of a backend may hide an axis of arrays that hide an axis. Here the
# inner vmap runs over the rows of `b`, the outer one over the rows of `a`:

# %%
a, b = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
outer = tn.vmap(lambda x: tn.vmap(lambda y: F.vecdot(x, y))(b))
print(outer(a).shape, np.allclose(tn.to_host(outer(a)), a @ b.T))

# %% [markdown]
# **Cost.** Time: one NumPy call for each function, not 64. A gradient for each example is an array
# of 64 times the size of `w`. For a model with a million float32 parameters, the array has 256 MB.
#
# The backend is in [namespace.py](../source/backends/tinynode_batched/namespace.md) and
# [lifting.py](../source/backends/tinynode_batched/lifting.md); vmap is in
# [vmap.py](../source/tinynode/transforms/vmap.md).
#
# Source: Bradbury et al., JAX: Composable Transformations of Python+NumPy Programs, 2018.
#
# ## Exercise
# Write a small backend of this kind: arrays with a hidden axis, a namespace with `add`,
# `multiply`, `sum` and `matmul`, and `vmap` itself. Then other people's code, written for one
# example, runs on all.
#
#     python -m tinynode.learn start vmap
#     python -m tinynode.learn check vmap
