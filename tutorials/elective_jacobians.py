# %% [markdown]
# # Elective: Jacobians three ways, and which is cheapest when
#
# **Goal.** You choose the way to a Jacobian by counting passes.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# A function has n arguments and m results. The **Jacobian** `J` has m rows and n columns:
# `J[i, j] = dy[i] / dx[j]`. A backward pass with the weight 1 at result i gives **row** i, a
# vjp. A pass of forward mode along argument j gives **column** j, a jvp.

# %%
rng = np.random.default_rng(0)
FEW_TO_MANY = rng.normal(size=(2, 100))
MANY_TO_FEW = rng.normal(size=(100, 2))


def wide(x):  # (2,) -> (100,)
    return F.tanh(x @ FEW_TO_MANY)


def narrow(x):  # (100,) -> (2,)
    return F.tanh(x @ MANY_TO_FEW)


def diffusion(x):  # (40,) -> (40,): each result depends on three neighbours
    zero = 0 * x[:1]
    left, right = F.concat([zero, x[:-1]]), F.concat([x[1:], zero])
    return left - 2 * x + right + x * (1 - x * x)


# %% [markdown]
# ## Predict
# How many passes does `J` take by rows, and how many by columns? Answer for `wide`, for `narrow`
# and for `diffusion`. Is there a better way for `diffusion`?
#
# ## Run
# Both ways as loops, so that the passes can be counted:


# %%
def by_rows(f, x):
    value, pullback = tn.vjp(f, x)
    rows = []
    for i in range(value.size):
        u = np.zeros(value.size)
        u[i] = 1.0
        rows.append(tn.to_host(pullback(u)[0]))
    return np.stack(rows), len(rows)


def by_columns(f, x):
    columns = []
    for j in range(len(x)):
        v = np.zeros(len(x))
        v[j] = 1.0
        columns.append(tn.to_host(tn.jvp(f, (x,), (v,))[1]))
    return np.stack(columns, axis=1), len(columns)


for name, f, n in (("wide", wide, 2), ("narrow", narrow, 100), ("diffusion", diffusion, 40)):
    x = rng.normal(size=n)
    (J, rows), (K, columns) = by_rows(f, x), by_columns(f, x)
    print(f"{name:9} J {J.shape}: {rows:3} rows, {columns:3} columns, equal {np.allclose(J, K)}")

# %% [markdown]
# Few results: by rows. Few arguments: by columns. A loss has a single result, so its gradient is a
# single row. This is why training uses `backward`.
#
# `tn.jacrev` goes by rows, `tn.jacfwd` by columns. Both run up to 128 passes at the same time, by
# `vmap`:

# %%
x = rng.normal(size=2)
print(np.allclose(tn.to_host(tn.jacrev(wide)(x)), tn.to_host(tn.jacfwd(wide)(x))))

# %% [markdown]
# ## See
# The Jacobian of `diffusion` is nearly empty. Row i has entries at i - 1, i and i + 1 only.
# Columns 0, 3, 6 ... share no row. So a **single** jvp, with 1 at all of these, gives all their
# entries: each row of the result belongs to one column. Such columns get the same **colour**:

# %%
from tinynode.transforms.colouring import colour_columns

distance = np.abs(np.subtract.outer(np.arange(40), np.arange(40)))
pattern = distance <= 1
colours = colour_columns(pattern)
print("".join("abc"[c] for c in colours))
for row in pattern[:6]:
    print("".join("abc"[c] if entry else "." for c, entry in zip(colours, row, strict=True)))

# %% [markdown]
# No row has a letter twice. Three colours, three passes, for any length:

# %%
x = rng.normal(size=40)
J = tn.to_host(tn.jacobian(diffusion, sparsity=pattern)(x))
print(np.allclose(J, tn.to_host(tn.jacrev(diffusion)(x))))
tn.show.matrix(J[:12, :12], title="the first 12 rows and columns")


# %% [markdown]
# The second derivatives of a loss are a Jacobian too: the Jacobian of the gradient. The gradient
# goes by reverse mode, and its columns by forward mode. This is `tn.hessian`:


# %%
def loss(x):
    return F.sum(wide(x) ** 2)


H = tn.to_host(tn.hessian(loss)(np.array([0.3, -0.2])))
print(H.round(3).tolist(), np.allclose(H, H.T))

# %% [markdown]
# ## Break it
# The pattern is a promise. Here is one that forgets the right neighbour:

# %%
wrong = (np.subtract.outer(np.arange(40), np.arange(40)) >= 0) & pattern
found = tn.to_host(tn.jacobian(diffusion, sparsity=wrong)(x))
print(np.abs(found - J).max() > 0.5)

# %% [markdown]
# No error, and wrong numbers: two entries fell into the same place. In debug mode tinynode
# compares one product with a random vector:

# %%
try:
    with tn.using_config(debug=True):
        tn.jacobian(diffusion, sparsity=wrong)(x)
except ValueError as error:
    print(str(error).split(". ")[0])

# %% [markdown]
# ## Fix it
# A pattern that is too large costs passes, and stays right. With five diagonals instead of three:

# %%
larger = distance <= 2
print(max(colour_columns(larger)) + 1, "colours")
print(np.allclose(tn.to_host(tn.jacobian(diffusion, sparsity=larger)(x)), J))

# %% [markdown]
# **Cost.** Rows: m backward passes. Columns: n passes of the jvp. Colours: as many passes as
# colours. The whole `J` takes m n numbers: for 1,000 arguments and results in float64, 8 MB.
#
# Source: Curtis, Powell and Reid, On the Estimation of Sparse Jacobian Matrices, 1974.
#
# ## Exercise
# Write all three ways, and the function that chooses.
#
#     python -m tinynode.learn start jacobians
#     python -m tinynode.learn check jacobians
