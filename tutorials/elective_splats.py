# %% [markdown]
# # Elective: splats that paint a picture
#
# **Goal.** A picture becomes a sum of 48 soft spots. Gradients move the spots, and change their
# sizes and colours. The operation is a FunctionNode of your own engine.

# %%
import time

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course import use_mynode

use_mynode("splats")
from mynode import mean_squared_error, nn
from mynode.functions.splats import splats

HEIGHT, WIDTH, COUNT = 24, 32, 48


def paint():
    """A picture made by code, (24, 32, 3): a red ball and a green hill before a blue sky."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    picture = np.stack([0.3 + 0 * rows, 0.5 + rows / 80, 0.9 - rows / 60], axis=2)
    picture[rows > 18 - 5 * np.sin(columns / 10)] = [0.15, 0.55, 0.2]
    picture[(rows - 8) ** 2 + (columns - 22) ** 2 < 25] = [0.9, 0.25, 0.15]
    return picture


picture = paint()

# %% [markdown]
# A **splat** has a place, a size and a colour: 2 + 1 + 3 numbers. Its weight falls softly with the
# distance $d$ from its place, and the picture is the sum over the splats:
#
# $$w = e^{-d^2 / (2\, \text{size}^2)} \qquad y = \sum w\, c$$
#
# In three dimensions, with millions of splats, such sums show whole rooms from photographs.
#
# ## Predict
# 1. The picture has 24 · 32 pixels of 3 numbers. How many numbers have 48 splats?
# 2. A pixel is brighter than it should be. Where does the gradient move a splat beside it?
# 3. How does a splat change that is far from all edges, so that it has the right colour?
# 4. What is the gradient of a splat with the size 0.02, between the middles of four pixels?
#
# ## Run
# Adam needs no other settings than for a network. The sizes are positive at the start, and stay so
# here: the gradient of a size grows as the splat gets smaller, while it touches a pixel at all.


# %%
def start(seed=0):
    """Places anywhere, the size 3, dark colours."""
    rng = np.random.default_rng(seed)
    places = rng.uniform([0, 0], [HEIGHT, WIDTH], size=(COUNT, 2))
    return [places, np.full(COUNT, 3.0), rng.uniform(0.1, 0.3, size=(COUNT, 3))]


def fit(arrays, updates=400):
    """The parameters after the updates, and the losses."""
    parameters = [nn.Parameter(array, name="splats") for array in arrays]
    optimizer, losses = nn.Adam(parameters, 0.05), []
    for _ in range(updates):
        optimizer.cleargrads()
        loss = mean_squared_error(splats(*parameters, HEIGHT, WIDTH), picture)
        loss.backward()
        optimizer.update()
        losses.append(loss.array.item())
    return parameters, losses


parameters, losses = fit(start())
print(f"loss {losses[0]:.4f} before, {losses[-1]:.5f} after {len(losses)} updates")
print(f"the best single colour: {picture.var(axis=(0, 1)).mean():.4f}")

# %% [markdown]
# ## See
# The red part of three pictures: before the fit, after the fit, and the picture itself.

# %%
before = splats(*[nn.Parameter(one, name="splats") for one in start()], HEIGHT, WIDTH).array
after = splats(*parameters, HEIGHT, WIDTH).array


def side_by_side(pictures):
    """(height, width) each -> one matrix, with a column between."""
    return np.concatenate([np.pad(one, ((0, 0), (0, 1))) for one in pictures], axis=1)


def show(pictures, title):
    """A matrix without names of rows and columns."""
    matrix = side_by_side(pictures)
    return tn.show.matrix(
        matrix, rows=[""] * len(matrix), columns=[""] * matrix.shape[1], title=title
    )


show([before[..., 0], after[..., 0], picture[..., 0]], "Red: before, after, the picture")

# %%
tn.show.lines(range(400), losses, log_y=True, title="Loss", x_label="update", y_label="loss")

# %% [markdown]
# ## The time of a gradient
# tinynode can compute the same picture from small operations, without a backward of its own.
# `tn.compile` records the operations once and plans them as a net. Measured here, now:


# %%
target = tn.asarray(picture, requires_grad=False)
rows = np.arange(HEIGHT)[None, :, None] + 0.5
columns = np.arange(WIDTH)[None, None, :] + 0.5


def small_operations(places, sizes, colours):
    """The loss, of operations of tinynode: (n, 2), (n), (n, 3) -> ()"""
    down = rows - F.reshape(places[:, 0], (-1, 1, 1))
    right = columns - F.reshape(places[:, 1], (-1, 1, 1))
    w = F.exp(-0.5 * (down**2 + right**2) / F.reshape(sizes, (-1, 1, 1)) ** 2)
    y = F.matmul(F.reshape(w, (COUNT, -1)).mT, colours)
    return F.mean((y - F.reshape(target, (-1, 3))) ** 2)


def eager(*arrays):
    """The three gradients."""
    xs = [tn.asarray(array, requires_grad=True) for array in arrays]
    return tn.grad([small_operations(*xs)], xs)


def own(*arrays):
    """The three gradients, by the FunctionNode of the exercise."""
    xs = [nn.Parameter(array, name="splats") for array in arrays]
    mean_squared_error(splats(*xs, HEIGHT, WIDTH), picture).backward()
    return [x.grad for x in xs]


arrays = start()
compiled = tn.compile(tn.gradient(small_operations, argnums=(0, 1, 2)))
found = [own(*arrays), [tn.to_host(g) for g in eager(*arrays)]]
found.append([tn.to_host(g) for g in compiled(*arrays)])
for name, gradients in zip(("eager", "compiled"), found[1:], strict=True):
    same = all(np.allclose(a, b) for a, b in zip(found[0], gradients, strict=True))
    print(f"{name}: the same gradients as by the FunctionNode: {same}")


# %% tags=["varies"]
def milliseconds(function):
    """The least time of 20 calls."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        function(*arrays)
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


for name, function in (("FunctionNode", own), ("eager", eager), ("compiled", compiled)):
    print(f"{name:12} {milliseconds(function):6.2f} ms for a gradient")

# %% [markdown]
# ## Break it
# Start with very small splats. Small spots should show fine edges:

# %%
places, _, colours = start()
tiny, stuck = fit([places, np.full(COUNT, 0.02), colours])
moved = np.abs(tiny[0].array - places).max(axis=1) > 0.01
print(f"loss {stuck[0]:.4f} before, {stuck[-1]:.4f} after")
print(f"splats that stayed where they were: {np.sum(~moved)} of {COUNT}")

# %% [markdown]
# A splat of the size 0.02 reaches no middle of a pixel, unless it is there by chance. Half a pixel
# away, its weight is $e^{-312}$, so its gradients are 0. No error is raised. A few splats are near
# a middle. They grow, and do all the work.
#
# ## Fix it
# Start with splats that overlap. Then each pixel has a splat, and each splat has pixels. The 3 of
# `start` is about half of the distance between splats, and the fit may shrink them:

# %%
print("sizes after the fit, from", parameters[1].array.min().round(2), end=" ")
print("to", parameters[1].array.max().round(2))

# %% [markdown]
# **Cost.** A gradient costs splats · pixels, here 48 · 768. Most weights are nearly 0. Programs
# with millions of splats compute the near ones only, in tiles of pixels. For backward, `Splats`
# keeps its inputs, 48 · 6 numbers. The weights are computed twice.
#
# Source: Kerbl, Kopanas, Leimkühler and Drettakis, 3D Gaussian Splatting for Real-Time Radiance
# Field Rendering, 2023. There, splats are ellipses in space, and hide those behind.
#
# ## Exercise
# The exercise adds `functions/splats.py` to your package. It needs steps 1 to 13. Write
# `weights_of`, and `forward` and `backward` of `Splats`.
#
#     python -m tinynode.learn start splats
#     python -m tinynode.learn check splats
