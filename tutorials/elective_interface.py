# %% [markdown]
# # Elective: the standard is the interface
#
# **Goal.** You differentiate a function that somebody else wrote, without a change of the
# function.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# The **Array API standard** lists names of functions for arrays: `exp`, `sum`, `reshape`. A
# function that is written for the standard does not import an array library. The function asks
# the array: `xp = x.__array_namespace__()`. The answer is the **namespace**: an object with the
# functions.
#
# Here is such a function. It comes from a library for rotations, and it knows nothing of
# gradients:


# %%
def turned(points, rotvec):
    """Points (n, 3), turned about the axis ``rotvec`` (3) by its length in radians.

    p cos(a) + (k x p) sin(a) + k (k . p) (1 - cos(a)), with k = rotvec / a and a = |rotvec|.
    Source: Rodrigues, Des lois geometriques, 1840.
    """
    xp = rotvec.__array_namespace__()
    angle = xp.sqrt(xp.sum(rotvec * rotvec))
    axis = xp.broadcast_to(rotvec / angle, points.shape)
    along = xp.sum(axis * points, axis=-1, keepdims=True)
    across = xp.stack(
        [
            axis[:, 1] * points[:, 2] - axis[:, 2] * points[:, 1],
            axis[:, 2] * points[:, 0] - axis[:, 0] * points[:, 2],
            axis[:, 0] * points[:, 1] - axis[:, 1] * points[:, 0],
        ],
        axis=-1,
    )
    return points * xp.cos(angle) + across * xp.sin(angle) + axis * along * (1 - xp.cos(angle))


POINTS = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.5], [1.0, 1.0, 1.0]])
QUARTER = np.array([0.0, 0.0, np.pi / 2])
print(turned(POINTS, QUARTER).round(3))

# %% [markdown]
# ## Predict
# `turned` calls seven names of `xp`, and operators. A Variable has operators too. Which type has
# the result of `turned(points, rotvec)` with two Variables? Has the result a gradient?
#
# ## Run

# %%
points = tn.asarray(POINTS, requires_grad=False)
rotvec = tn.asarray(QUARTER)
result = turned(points, rotvec)
print(type(result).__name__, result.requires_grad)
print(np.allclose(tn.to_host(result), turned(POINTS, QUARTER)))
print(rotvec.__array_namespace__())

# %% [markdown]
# A Variable answers with a namespace of its own. Each function there is one of
# `tinynode.functions`: `xp.sqrt` is `F.sqrt`. So the foreign function grows a graph.
#
# ## See
# The graph of the length of the result. Find `Sqrt`, `Cos` and `Sin` of `turned`.

# %%
tn.show.graph(F.sum(turned(points, rotvec) ** 2))

# %% [markdown]
# With a gradient, the pose of an object is found. A camera saw the points turned by an unknown
# rotation. Gradient descent finds the rotation:

# %%
seen = turned(POINTS, np.array([0.4, -0.2, 0.9]))
rotvec = tn.asarray(np.array([0.1, 0.1, 0.1]))
target = tn.asarray(seen, requires_grad=False)
for step in range(61):
    loss = F.mean_squared_error(turned(points, rotvec), target)
    if step % 20 == 0:
        print(f"step {step:2}: loss {float(loss):.6f}, rotation {tn.to_host(rotvec).round(3)}")
    rotvec.cleargrad()
    loss.backward()
    rotvec.array = rotvec.array - 0.5 * rotvec.grad

# %% [markdown]
# SciPy has such a function too, `scipy.spatial.transform.Rotation`. SciPy asks arrays for their
# namespace if the setting `SCIPY_ARRAY_API=1` stands in the environment. If SciPy is installed,
# the next cell turns the points with SciPy, and its gradient goes through SciPy's code:

# %% tags=["varies"]
import os

os.environ["SCIPY_ARRAY_API"] = "1"
try:
    from scipy.spatial.transform import Rotation
except ImportError:
    print("SciPy is not installed: pip install scipy")
else:
    try:
        rotvec.cleargrad()
        by_scipy = Rotation.from_rotvec(rotvec).apply(points)
        F.sum(by_scipy * by_scipy * target).backward()
        print("a gradient through SciPy:", tn.to_host(rotvec.grad).round(3))
    except TypeError:
        print("SciPy was imported before the setting: start again")

# %% [markdown]
# ## Break it
# Not every function asks for the namespace. This one calls NumPy by name:


# %%
def length(x):
    return float(np.asarray(x * x).sum()) ** 0.5


try:
    length(rotvec)
except TypeError as error:
    print(str(error).split(":")[0])

# %% [markdown]
# `np.asarray` would take the numbers and leave the graph: the gradient would be lost in silence.
# So tinynode refuses. **An error is better than a gradient that is missing.**
#
# ## Fix it
# Your own functions can serve arrays and Variables alike. `tn.array_namespace(x)` gives the
# namespace for both, also for arrays of a library without `__array_namespace__`:


# %%
def norm(x):
    xp = tn.array_namespace(x)
    return xp.sqrt(xp.sum(x * x))


print(f"{float(norm(np.array([3.0, 4.0])))} {float(norm(tn.asarray([3.0, 4.0])))}")

# %% [markdown]
# **Cost.** Nothing is copied. A call of `xp.sqrt(x)` is a call of `F.sqrt(x)`, and one call more.
#
# Source: Meurer et al., Python Array API Standard: Toward Array Interoperability in the Scientific
# Python Ecosystem, 2023.
#
# ## Exercise
# The standard is the interface, so your own kind of number can go through the same code. A **dual
# number** is a pair: a value, and its rate of change. Your file has dual numbers with `+`, `-`,
# `*` and `/`. Write their namespace. Then other people's code computes derivatives **forward**,
# without any graph.
#
#     python -m tinynode.learn start interface
#     python -m tinynode.learn check interface
