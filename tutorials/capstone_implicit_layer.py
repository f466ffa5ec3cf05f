# %% [markdown]
# # Capstone: a layer defined by an equation
#
# **Goal.** You write a layer whose output is the solution of an equation. The gradient comes from
# the equation, so backward needs no memory of the iterations that found the solution.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import gradient_check

# %% [markdown]
# A usual layer computes its output by a formula. An **implicit layer** has an equation with the
# output on both sides:
#
# $$y = \tanh(W y + x)$$
#
# Such a $y$ is a **fixed point**. An iteration finds it: start with $y = 0$ and put $y$ into the
# right side, again and again. If $W$ is small enough, the changes of $y$ shrink by a factor below
# 1 in each round. Here the largest singular value of $W$ is 0.9.
#
# (Bai, Kolter and Koltun, *Deep Equilibrium Models*, 2019.)

# %%
rng = np.random.default_rng(0)
SIZE, ROWS = 16, 32
orthogonal = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
x_data, w_data = rng.normal(scale=0.3, size=(ROWS, SIZE)), 0.9 * orthogonal


def step(y, x, w):
    """The right side, for rows: tanh(y W^T + x)."""
    return F.tanh(F.linear(y, w) + x)


def unrolled(x, w, rounds):
    """The iteration as usual functions; backward goes through all rounds."""
    y = x * 0.0
    for _ in range(rounds):
        y = step(y, x, w)
    return y


# %% [markdown]
# ## Predict
# 1. The loop of 10 rounds keeps 51 kB for backward. How much does the loop of 100 rounds keep?
#    And how much must be kept at least, if the solution $y$ and the equation are known?
# 2. The loop stops after 10 rounds. Is the gradient as precise as $y$, more precise, or less?
#
# ## Run
# The gradient needs no loop. Let $s = 1 - y^2$ be the slope of the tanh at the solution. A small
# change $dx$ makes a change $dy$ that fulfils the equation too:
#
# $$dy = s \odot (W\, dy + dx)$$
#
# This is a **linear** equation for $dy$, and the iterations do not occur in it. This is the
# **implicit function theorem**. Backward needs the transposed equation. Let $g$ be the gradient
# $dL/dy$ that arrives at the layer. Then
#
# $$h = g + W^T (s \odot h) \qquad \frac{dL}{dx} = s \odot h \qquad
# \frac{dL}{dW} = (s \odot h)\, y^T$$
#
# So backward solves a system of 16 linear equations for each row, $(1 - W^T \mathrm{diag}(s))\, h
# = g$. It is written with functions of tinynode, so it can be differentiated again.


# %%
class FixedPoint(tn.FunctionNode):
    """y with y = tanh(y W^T + x).

    x: (n, d), w: (d, d) -> y: (n, d).   dL/dx = s h,  dL/dW = (s h)^T y,  s = 1 - y^2,
    h: the solution of h = dL/dy + (s h) W
    """

    def forward(self, inputs):
        x, w = inputs
        xp = tn.namespace_of(x)
        y = xp.zeros_like(x)
        for _ in range(500):
            y, before = xp.tanh(y @ w.T + x), y
            if xp.max(xp.abs(y - before)) < 1e-13:
                break
        self.retain_inputs((1,))
        self.retain_outputs((0,))
        return (y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (w,) = self.get_retained_inputs()
        (y,) = self.get_retained_outputs()
        s = 1.0 - y * y
        system = np.eye(SIZE) - F.matrix_transpose(w) * F.expand_dims(s, axis=1)  # (n, d, d)
        h = F.squeeze(F.linalg.solve(system, F.expand_dims(gy, axis=2)), axis=2)
        gx = s * h
        return gx, F.matmul(F.matrix_transpose(gx), y)


def fixed_point(x, w):
    """The solution y of y = tanh(y W^T + x), row by row."""
    return FixedPoint().apply((x, w))[0]


# %%
x, w = tn.asarray(x_data, requires_grad=True), tn.asarray(w_data, requires_grad=True)
y = fixed_point(x, w)
print("both sides are equal:", np.allclose(tn.to_host(y), tn.to_host(step(y, x, w)), atol=1e-12))

F.sum(y**3).backward()
gx, gw = tn.to_host(x.grad), tn.to_host(w.grad)
x.cleargrad(), w.cleargrad()
F.sum(unrolled(x, w, 150) ** 3).backward()
print("same gradient of x as by 150 rounds:", np.allclose(gx, tn.to_host(x.grad), atol=1e-7))
print("same gradient of W as by 150 rounds:", np.allclose(gw, tn.to_host(w.grad), atol=1e-7))

# %% [markdown]
# ## See
# The graph of three rounds, and the graph of the layer. The solution is one function, however many
# rounds its forward takes.

# %%
tn.show.graph(unrolled(x, w, 3))

# %%
tn.show.graph(fixed_point(x, w))

# %% [markdown]
# ## Break it
# Two shortcuts that are often tried. The first stops the loop early. The second finds the right
# $y$ without a graph, and adds one round with a graph, so that backward has something to do.


# %%
def last_round(x, w):
    """The right solution; but backward sees one round only."""
    with tn.no_backprop_mode():
        y = fixed_point(x, w)
    return step(y, x, w)


def gradient_of_x(layer):
    x, w = tn.asarray(x_data, requires_grad=True), tn.asarray(w_data, requires_grad=True)
    y = layer(x, w)
    F.sum(y**3).backward()
    return tn.to_host(y), tn.to_host(x.grad)


def distance(a, b):
    """The length of a - b, relative to that of b."""
    return np.linalg.norm(a - b) / np.linalg.norm(b)


y_right, g_right = gradient_of_x(fixed_point)
y_short, g_short = gradient_of_x(lambda x, w: unrolled(x, w, 10))
y_last, g_last = gradient_of_x(last_round)
for name, y, g in (("10 rounds", y_short, g_short), ("last round only", y_last, g_last)):
    print(f"{name:16} y is wrong by {distance(y, y_right):5.1%}", end="   ")
    print(f"gradient is wrong by {distance(g, g_right):5.1%}")

# %%
counts = [2, 5, 10, 15, 20, 30, 40, 50]
errors = {"y": [], "gradient": []}
for rounds in counts:
    y, g = gradient_of_x(lambda x, w, rounds=rounds: unrolled(x, w, rounds))
    errors["y"].append(distance(y, y_right))
    errors["gradient"].append(distance(g, g_right))
tn.show.lines(
    counts,
    errors,
    log_y=True,
    title="Errors of the loop",
    x_label="rounds",
    y_label="relative error",
)

# %% [markdown]
# The gradient of the short loop is less precise than its solution. The second shortcut is worse:
# its solution is exact, and its gradient is wrong, since $y$ on the right side depends on $x$ too.
# A training with such gradients does not fail. It goes into a slightly wrong direction.
#
# ## Fix it
# The checks of step 24 find it: `check_backward` compares with differences, and
# `check_double_backward` does the same for the gradient of the gradient.


# %%
gy, ggx, ggw = (rng.normal(size=shape) for shape in ((3, SIZE), (3, SIZE), (SIZE, SIZE)))
for layer in last_round, fixed_point:
    try:
        gradient_check.check_backward(layer, (x_data[:3], w_data), gy, eps=1e-5)
        print(f"{layer.__name__:12} first order: right")
    except AssertionError:
        print(f"{layer.__name__:12} first order: wrong")
inputs = x_data[:3], w_data
gradient_check.check_double_backward(fixed_point, inputs, gy, (ggx, ggw), eps=1e-5)
print("fixed_point  second order: right")

# %% [markdown]
# The second order is right without further work. Backward consists of functions of tinynode, and
# the solution in it, `get_retained_outputs()`, is a Variable of the graph.
#
# **Cost.** The loop keeps arrays for each round. The layer keeps $y$ and $W$.

# %%
layers = {f"{rounds} rounds": rounds for rounds in (10, 50, 100)}
kept = {}
for name, rounds in layers.items():
    with tn.hooks.MemoryHook() as memory:
        y = unrolled(x, w, rounds)
    kept[name] = memory.current_bytes() / 1000
with tn.hooks.MemoryHook() as memory:
    y = fixed_point(x, w)
kept["fixed_point"] = memory.current_bytes() / 1000
for name, size in kept.items():
    print(f"{name:12} {size:5.0f} kB kept")

# %% [markdown]
# The price is the linear system: about $d^3$ multiplications for each row. For a large $d$, an
# iteration solves this system as well.
#
# ## Exercise
# The position of a planet is the solution of **Kepler's equation**. $M$ is the time, as an angle;
# $e$ the eccentricity of the orbit, from 0 to below 1; and $E$ the angle to be found:
#
# $$E - e \sin E = M$$
#
# Write it as a function of $M$ and $e$ with gradients of first and second order. Forward uses
# Newton's method. Backward comes from the equation.
#
#     python -m tinynode.learn start implicit_layer
#     python -m tinynode.learn check implicit_layer
