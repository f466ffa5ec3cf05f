# %% [markdown]
# # Elective: forward mode for nothing
#
# **Goal.** You get derivatives along a direction from two backward passes, without one new rule.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F

# %% [markdown]
# `backward` starts at the result and goes to the arguments. This is **reverse mode**. With a
# weight `u` for each result, `backward` gives `u J`: the rows of the Jacobian `J`, added up with
# the weights. The name is **vjp**: vector, Jacobian, product.
#
# The other product is `J v`: the change of all results for a step `v` of the arguments. The name
# is **jvp**, and the method is **forward mode**. A function of two numbers with three results:

# %%
W = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]])


def f(x):  # (2,) -> (3,)
    return F.tanh(x @ W)


POINT = np.array([0.1, 0.2])
V = np.array([1.0, -1.0])  # a direction in the space of x
STEP = 1e-6
by_differences = (f(POINT + STEP * V).array - f(POINT - STEP * V).array) / (2 * STEP)
print(by_differences.round(6))

# %% [markdown]
# ## Predict
# Take `u = (1, 1, 1)` and compute `g = u J` by `tn.grad`. Now change `u` to `2 u`. What happens
# to `g`? And what to the derivative of `g` with respect to `u`?
#
# ## Run

# %%
for factor in (1.0, 2.0):
    x = tn.asarray(POINT)
    u = tn.asarray(np.full(3, factor))
    (g,) = tn.grad([f(x)], [x], [u], enable_double_backprop=True)
    (slope,) = tn.grad([g], [u], [tn.asarray(V)])
    print(f"g {g.array.round(4)}, slope of g along v {slope.array.round(6)}")

# %% [markdown]
# `g` doubles: `u J` is **linear** in `u`. So the slope does not depend on `u`. And the slope is
# the very `J v` from above. In formulas: the derivative of `sum_ij u_i J_ij v_j` with respect to
# `u_i` is `sum_j J_ij v_j`.
#
# So `u` is a **dummy**: each value will do. Two calls of `tn.grad` make forward mode, for every
# function that has a `backward`. `tn.jvp` does this:

# %%
value, tangent = tn.jvp(f, (POINT,), (V,))
print(tangent.array.round(6))

# %% [markdown]
# The trick is from J. Townsend, "A new trick for calculating Jacobian vector products", 2017.
#
# ## See
# The graph of `g`. The dummy `u` goes into the backward functions, and nothing else depends on
# it. Find `u` in the picture, and follow the arrows to `g`:

# %%
x, u = tn.asarray(POINT, name="x"), tn.asarray(np.ones(3), name="u")
(g,) = tn.grad([f(x)], [x], [u], enable_double_backprop=True)
g.name = "g"
tn.show.graph(g)

# %% [markdown]
# At one point, `v -> J v` is a net without any `tanh`. `tn.linearize` prints the net. The slopes
# of tanh are constants there:

# %%
value, linear = tn.linearize(f, POINT)
print(linear)
print(linear(V).array.round(6))

# %% [markdown]
# ## Break it
# The trick needs a graph of the gradient. Without `enable_double_backprop=True`, `g` is a number
# without a past:

# %%
x, u = tn.asarray(POINT), tn.asarray(np.ones(3))
(g,) = tn.grad([f(x)], [x], [u])
print(tn.grad([g], [u], [tn.asarray(V)]))

# %% [markdown]
# `[None]`: nothing leads from `g` back to `u`. A `backward` that computes with arrays breaks the
# trick too, in the same way. Its numbers are right, and its graph is missing:


# %%
class Cube(tn.FunctionNode):
    """y = x * x * x"""

    def forward(self, inputs):
        self.retain_inputs((0,))
        (x,) = inputs
        return (x * x * x,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        (gy,) = grad_outputs
        return (tn.Variable(3 * x.array * x.array * gy.array),)


def cube(x):
    return Cube().apply((tn.as_variable(x),))[0]


try:
    tn.jvp(cube, (POINT,), (V,))
except tn.TinynodeError as error:
    print(type(error).__name__)

# %% [markdown]
# ## Fix it
# A `backward` of Variables is differentiable, and linear in `gy`:


# %%
class GoodCube(Cube):
    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        (gy,) = grad_outputs
        return (3.0 * x * x * gy,)


def good_cube(x):
    return GoodCube().apply((tn.as_variable(x),))[0]


value, tangent = tn.jvp(good_cube, (POINT,), (V,))
print(tangent.array.round(6), (3 * POINT**2 * V).round(6))

# %% [markdown]
# **Cost.** A `jvp` runs the function, a backward pass for the dummy, and a second backward pass:
# 3 to 4 times the function. No result depends on the dummy's numbers. So `tn.compile` leaves the
# first backward pass out, and a compiled `jvp` costs about 2 times the function. Of a function
# with one argument and 1,000 results, one `jvp` gives all derivatives; reverse mode needs 1,000
# passes.
#
# ## Exercise
# Write `jvp` yourself, with two calls of `tn.grad`. Then use it: the slope along a line, and the
# product of a Hessian and a vector, which is a `jvp` of a gradient.
#
#     python -m tinynode.learn start forward_mode
#     python -m tinynode.learn check forward_mode
