# %% [markdown]
# # Elective: forward mode for nothing
#
# **Goal.** You compute derivatives along a direction, without a new rule for any function: two
# calls of `tn.grad` are enough.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F

rng = np.random.default_rng(0)
W = rng.normal(scale=0.5, size=(3, 4))


def f(x):
    """x: (3) -> y: (4)."""
    return F.tanh(F.matmul(x, W))


# %% [markdown]
# The **Jacobian** $J$ has all first derivatives of `f`: a row for each result, a column for each
# argument, $J_{ij} = \partial y_i / \partial x_j$. Two products with $J$ have names:
#
# | product | the question | name | mode |
# |---|---|---|---|
# | $u J$ | $u$ weighs the results. How does the sum depend on each $x_j$? | **vjp** | reverse |
# | $J v$ | $x$ moves along $v$. How fast does each $y_i$ change? | **jvp** | forward |
#
# `backward` of each FunctionNode computes the first product. The elective `interface` computes the
# second product with dual numbers: a second rule for each function. tinynode has more than 200
# FunctionNodes. Is there a way without 200 new rules?
#
# There is. The vjp is
#
# $$g(u) = u J$$
#
# For a fixed $x$, the matrix $J$ is constant. So $g$ is a **linear** function of $u$, and its own
# Jacobian is $J$, transposed. A vjp of $g$ with the weights $v$ is $J v$.
#
# (J. Townsend, *A new trick for calculating Jacobian vector products*, 2017.)
#
# ## Predict
# `f` has 4 results, so $J$ has 4 rows. With one backward pass for each row, $J v$ takes 4 passes.
# 1. How many passes does $J v$ take by the trick? And for a function with 1000 results?
# 2. The trick needs a $u$ to start with. Which $u$ is the right one?
#
# ## Run
# Six lines. `u` is a **dummy**: nobody wants the gradient at this `u`.


# %%
def jvp(f, x, v):
    """The value of f, and J v."""
    y = f(x)
    u = tn.asarray(np.ones(y.shape), requires_grad=True)
    (g,) = tn.grad([y], [x], [u], enable_double_backprop=True)
    (jv,) = tn.grad([g], [u], [v])
    return y, jv


def by_rows(f, x):
    """The whole Jacobian: a backward pass for each row."""
    y = f(x)
    rows = []
    for u in np.eye(y.size):
        (row,) = tn.grad([y], [x], [tn.asarray(u)])
        rows.append(tn.to_host(row))
    return np.stack(rows)


x = tn.asarray(np.array([0.5, -1.0, 0.25]), requires_grad=True)
v = tn.asarray(np.array([1.0, 0.0, 2.0]), requires_grad=False)
print("two calls: ", tn.to_host(jvp(f, x, v)[1]).round(6))
print("row by row:", (by_rows(f, x) @ v.numpy()).round(6))

# %% [markdown]
# Two passes, for any number of results. The next cell counts the passes with a hook (step 26), for
# a function with 1000 results:


# %%
class Passes(tn.FunctionHook):
    name = "passes"

    def __init__(self):
        self.count = 0

    def sweep_began(self, sweep):
        self.count += 1


WIDE = rng.normal(scale=0.5, size=(3, 1000))
wide = [("two calls", jvp, (v,)), ("row by row", by_rows, ())]
for name, function, more in wide:
    with Passes() as passes:
        function(lambda x: F.tanh(F.matmul(x, WIDE)), x, *more)
    print(f"{name}: {passes.count} passes")

# %% [markdown]
# And any `u` is right. $g$ is linear, and the slope of a linear function is the same everywhere:

# %%
y = f(x)
for number in (1.0, 0.0, -1000.0):
    u = tn.asarray(np.full(y.shape, number), requires_grad=True)
    (g,) = tn.grad([y], [x], [u], enable_double_backprop=True)
    (jv,) = tn.grad([g], [u], [v])
    print(f"u = {number:7}: {tn.to_host(jv).round(6)}")

# %% [markdown]
# ## See
# The graph that the second pass goes through. Find `u`. The way from `u` to the result is the
# backward of `f`: first the slope of the `Tanh`, then a `MatMul`. The second pass goes this way
# from the end to `u`: **backward of backward is forward**.

# %%
x.name, y.name, u.name, g.name = "x", "y", "u", "g"
tn.show.graph(y, gradients=[g])

# %% [markdown]
# The package has `tn.jvp(f, (x,), (v,))`, and `tn.linearize`, in
# [linear.py](../source/tinynode/transforms/linear.md). `linearize` records the second pass alone,
# as a net. Everything that does not depend on `v` is a constant: the net has no tanh.

# %%
value, linear = tn.linearize(f, x)
print(linear)
print("the same:", np.allclose(tn.to_host(linear(v)), tn.to_host(jv)))

# %% [markdown]
# The net is what a forward rule would compute, by hand: $v W$, times the slope of the tanh. No one
# wrote a forward rule.
#
# ## Break it
# Two things can go wrong. First, the first call forgets `enable_double_backprop`:

# %%
y = f(x)
u = tn.asarray(np.ones(y.shape), requires_grad=True)
(g,) = tn.grad([y], [x], [u])
print(tn.grad([g], [u], [v]))

# %% [markdown]
# `g` has no graph back to `u`, so there is no derivative. The second mistake gives wrong numbers.
# Somebody clips the gradient inside of a `backward`, to keep training stable:


# %%
class Square(tn.FunctionNode):
    def forward(self, inputs):
        (x,) = inputs
        self.retain_inputs((0,))
        return (x * x,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (F.clip(2.0 * x * grad_outputs[0], -1.0, 1.0),)


def square(x):
    return Square().apply((x,))[0]


ones = tn.asarray(np.ones(3), requires_grad=False)
print("by jvp:        ", tn.to_host(jvp(square, x, ones)[1]).round(6) + 0.0)
step = 1e-6
moved = tn.to_host(square(x + step) - square(x - step))
print("by small steps:", (moved / (2 * step)).round(6))

# %% [markdown]
# The middle number is 0 instead of -2. The gradient of this number is clipped, and a clipped
# gradient does not change with `u`. This `backward` is **not linear** in `grad_outputs`: the vjp
# of no function, so the trick does not hold.
#
# ## Fix it
# `backward` computes the product with $J$, and nothing else. The place for clipping is the
# training step: after `backward`, and before the optimizer's update.


# %%
class TrueSquare(Square):
    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (2.0 * x * grad_outputs[0],)


print("by jvp:", tn.to_host(jvp(lambda x: TrueSquare().apply((x,))[0], x, ones)[1]))

# %% [markdown]
# Forward mode can be combined with reverse mode. A gradient is a function too. Its jvp is the
# Hessian times $v$, without the Hessian: the curvature along one direction of a network with
# millions of parameters. `tn.hvp` does it.

# %%


def loss(x):
    return F.sum(F.exp(f(x)))


_, hv = tn.jvp(tn.gradient(loss), (x,), (v,))
print("by jvp:", tn.to_host(hv).round(6))
print("by hvp:", tn.to_host(tn.hvp(loss, x, v)).round(6))

# %% [markdown]
# **Cost.** A jvp by the trick runs `f`, its backward, and the backward of the backward: about 4
# times the time of `f`. The first pass is a waste, since `u` is a dummy. Compiled, the waste is
# left out: no result reads its values, so `tn.compile` drops the operators. About 2 times `f`
# remain, as with rules of forward mode. And like reverse mode, the trick keeps the graph in
# memory; dual numbers keep nothing.
#
# ## Exercise
# Write `jvp` from memory, so that it can be nested. With it, write the Hessian-vector product, and
# the second derivative along a line.
#
#     python -m tinynode.learn start forward_mode
#     python -m tinynode.learn check forward_mode
