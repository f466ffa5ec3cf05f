# %% [markdown]
# # Elective: vmap is a backend
#
# **Goal.** You run a function of one example on all examples at once, and see why no gradient rule
# had to change.

# %%
import time

import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# A loss of **one** example. Nothing here knows of a batch:

# %%
rng = np.random.default_rng(0)
w = tn.asarray(rng.normal(size=(8, 4)))
X = tn.asarray(rng.normal(size=(64, 8)), requires_grad=False)  # 64 examples
T = tn.asarray(rng.normal(size=(64, 4)), requires_grad=False)


def loss(w, x, t):  # x: (8,), t: (4,)
    return F.sum((F.tanh(x @ w) - t) ** 2)


# %% [markdown]
# Which example pulls hardest at the weights? For that, the gradient of **each** example is needed,
# and `backward` of the sum gives the total only. A loop gives all 64:

# %%
gradient = tn.gradient(loss)
one_by_one = np.stack([gradient(w, X[i], T[i]).array for i in range(64)])
print(one_by_one.shape)

# %% [markdown]
# `tn.vmap` gives the same without a loop. `in_axes` says where the examples are: `None` for `w`,
# which all examples share, and axis 0 for `x` and `t`.
#
# ## Predict
# The function `loss` prints the shape of `x` below. Which shape does it print, and how many times?
#
# ## Run


# %%
def talking_loss(w, x, t):
    print("x:", x.shape, type(x.array).__name__)
    return loss(w, x, t)


each = tn.vmap(tn.gradient(talking_loss), in_axes=(None, 0, 0))(w, X, T)
print(each.shape, np.allclose(each.array, one_by_one))

# %% [markdown]
# One print, and the shape of one example. The array of `x` is a `BatchedArray`. It has a **hidden
# axis** in front, with 64 rows. The array of `w` has a hidden axis of length 1: shared by all.
#
# A backend is a set of functions for arrays. So `vmap` is a backend: `add`, `sum`, `matmul` for
# arrays with a hidden axis. The FunctionNodes run as they are, forward and backward.
#
# ## See
# The graph. `IntoBatch` hides the axis of the examples, `OutOfBatch` shows it again. Between the
# two stand the functions of one example:

# %%
losses = tn.vmap(loss, in_axes=(None, 0, 0))(w, X, T)
losses.name = "losses"
tn.show.graph(losses)

# %% [markdown]
# The graph leads through. So the ordinary backward works, and adds up over the examples:

# %%
F.sum(losses).backward()
print(np.allclose(w.grad, each.array.sum(axis=0)))


# %% [markdown]
# What does the backend do with `x @ w`? While a net is recorded, the batched device leaves no
# trace. The net has the operators on whole batches: one product of all 64 rows with `w`.


# %%
def layer(x):
    return F.tanh(x @ w)


print(tn.trace(tn.vmap(layer), X).net)

# %% [markdown]
# Which example pulls hardest?

# %%
norms = F.linalg.vector_norm(each, axis=(1, 2))
print(int(np.argmax(norms.array)), norms.array.max().round(2))

# %% [markdown]
# ## Break it
# A function may look at a value. But here are 64 values, and `if` needs one:


# %%
def leaky(x):
    return x if x > 0 else 0.1 * x


try:
    tn.vmap(leaky)(X[:, 0])
except tn.TinynodeError as error:
    print(type(error).__name__)
    print(str(error).split(". ")[1])

# %% [markdown]
# ## Fix it
# `where` computes both branches, and chooses for each example:


# %%
def good_leaky(x):
    return F.where(x > 0, x, 0.1 * x)


expected = np.where(X.array[:, 0] > 0, X.array[:, 0], 0.1 * X.array[:, 0])
print(np.allclose(tn.vmap(good_leaky)(X[:, 0]).array, expected))

# %% [markdown]
# **Cost.** One pass for all examples: the calls of Python are paid once, not 64 times. The memory
# grows: the gradients of 64 examples take 64 times the bytes of `w`. Measure the time:

# %% tags=["varies"]
start = time.perf_counter()
for i in range(64):
    gradient(w, X[i], T[i])
middle = time.perf_counter()
tn.vmap(gradient, in_axes=(None, 0, 0))(w, X, T)
end = time.perf_counter()
print(f"loop {1e3 * (middle - start):.1f} ms, vmap {1e3 * (end - middle):.1f} ms")

# %% [markdown]
# ## Exercise
# Write the backend yourself, small: an array with a hidden axis, and a few functions that know of
# it. Then code for one example runs on all.
#
#     python -m tinynode.learn start vmap
#     python -m tinynode.learn check vmap
