# %% [markdown] tags=["portable"]
# # Step 13: gradient checks
#
# **Goal.** You find out whether a `backward` is right, for a function of any size, by running the
# function two more times.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.gradient_check import check_backward

rng = np.random.default_rng(0)


def on_device(data):
    """NumPy data as a Variable on the device in use."""
    return tn.asarray(data, device=tn.get_device())


# %% [markdown]
# `numerical_grad` of step 3 moves each element up and down: for a million elements, two million
# runs. There is a cheaper question. Choose a **direction** `d`, an array of the shape of `x`, and
# walk from `x` a little along it. How fast does the result change? Backward has an answer, and so
# has a central difference; no more than two numbers are compared:
#
#     by backward        sum(gradient * d)
#     by difference      (L(x + eps d) - L(x - eps d)) / (2 eps)      with L = sum(g * f(x))
#
# `g` is the gradient of the output, where backward starts. Here are three functions, each with a
# bug in its `backward`.


# %%
class Abs(tn.FunctionNode):
    """y = |x|."""

    def forward(self, inputs):
        return (abs(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0],)  # wrong where x is negative: the sign is missing


class Softmax(tn.FunctionNode):
    """y = exp(x) / sum(exp(x))."""

    def forward(self, inputs):
        xp = tn.namespace_of(inputs[0])
        e = xp.exp(inputs[0])
        self.retain_outputs((0,))
        return (e / xp.sum(e),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (y,) = self.get_retained_outputs()
        return (y * (g - F.mean(g)),)  # wrong: it is sum(g * y) that is to be subtracted


class Flip(tn.FunctionNode):
    """y = x in reverse order."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).flip(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0],)  # wrong: the order must be reversed again


# %% [markdown]
# ## Predict
# Four checks, from careless to careful. Each chooses an input `x`, a gradient `g` and a direction
# `d`, with five numbers each. Which check catches which bug? Guess before you run it.
#
# | check | x | g | d |
# |---|---|---|---|
# | 1 | ones | ones | ones |
# | 2 | random | ones | ones |
# | 3 | random | random | ones |
# | 4 | random | random | random |
#
# ## Run


# %%
def slopes(function, x, g, d, eps=1e-5):
    """The slope of L = sum(g * function(x)) along d: by backward, and by a central difference."""
    x.cleargrad()
    y = function(x)
    y.grad = g.array
    y.backward()
    by_backward = float(F.sum(x.grad_var * d))  # grad_var: x.grad as a Variable
    with tn.no_backprop_mode():
        up, down = (float(F.sum(g * function(x + step * d))) for step in (eps, -eps))
    return by_backward, (up - down) / (2 * eps)


def wrong_abs(x):
    return Abs().apply((x,))[0]


def wrong_softmax(x):
    return Softmax().apply((x,))[0]


def wrong_flip(x):
    return Flip().apply((x,))[0]


ones = on_device(np.ones(5))
x, g, d = (on_device(rng.normal(size=5)) for _ in range(3))
checks = {"1": (ones, ones, ones), "2": (x, ones, ones), "3": (x, g, ones), "4": (x, g, d)}
for function in (wrong_abs, wrong_softmax, wrong_flip):
    print(f"{function.__name__:13} |", end="")
    for name, arguments in checks.items():
        backward_says, difference_says = slopes(function, *arguments)
        caught = abs(backward_says - difference_says) > 1e-6
        print(f" check {name}: {'CAUGHT' if caught else 'passed'}", end="")
    print()

# %% [markdown]
# Only the last check catches all three. `Abs` is right where x is positive. With `g` all ones,
# softmax has the gradient 0, for its outputs sum to 1 whatever x is, and the wrong formula gives 0
# too. Along a direction of ones only the *sum* of the gradient counts, which `Flip` gets right.
# **What is special hides mistakes. So everything is drawn at random.** A wrong gradient can only
# pass if its error is at a right angle to `d`, and a random direction hardly ever is.
#
# ## See
# A walk from `x` along `d`, for softmax. At 0 the straight line with the slope that backward says
# must touch the curve, as a tangent does.

# %%
walk = [n / 10 for n in range(-20, 21)]
with tn.no_backprop_mode():
    heights = [float(F.sum(g * F.softmax(x + n * d))) for n in walk]
start = heights[20]
right, _ = slopes(F.softmax, x, g, d)
wrong, _ = slopes(wrong_softmax, x, g, d)
print(f"slope by the right backward {right:.4f}, by the wrong one {wrong:.4f}")
curves = {
    "L along d": heights,
    "right": [start + right * n for n in walk],
    "wrong": [start + wrong * n for n in walk],
}
tn.show.lines(walk, curves, title="Is it a tangent?", x_label="how far along d", y_label="L")

# %% [markdown]
# The package's `check_backward(function, x, g)` draws the direction itself, and checks as many
# inputs as a function has, all at once. It is silent if the slopes agree, and else says so:

# %%
for function in F.abs, F.softmax, F.flip, wrong_abs, wrong_softmax, wrong_flip:
    try:
        check_backward(function, x.array, g.array)
        print(f"{function.__name__}: no complaint")
    except AssertionError as error:
        print(str(error).splitlines()[0])

# %% [markdown]
# ## Break it
# A right function can be blamed too. `relu(x)` is x where x is positive, else 0; at 0 it has a
# **kink**. The slope is 0 on the left and 1 on the right, the difference takes the mean of both,
# and backward says 0. None of them is wrong: there is no derivative to compare with.

# %%
at_zero = on_device(np.array([0.0]))
one = on_device(np.array([1.0]))
by_backward, by_difference = slopes(F.relu, at_zero, one, one)
print(f"relu at 0: by backward {by_backward:.4f}, by difference {by_difference:.4f}")
try:
    check_backward(F.relu, at_zero.array, one.array)
except AssertionError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# The second false alarm you know from step 3: numbers of 32 bits are too coarse for a small `eps`.

# %%
single = on_device(rng.normal(size=5).astype("float32"))
g_single = on_device(rng.normal(size=5).astype("float32"))
try:
    check_backward(F.exp, single.array, g_single.array, eps=1e-5)
except AssertionError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# ## Fix it
# `detect_nondifferentiable=True` looks at more points along the direction, and tells a kink from a
# mistake; then take inputs that are not near one. And `dtype="float64"` takes the differences in
# 64 bits, while backward still runs in 32.

# %%
try:
    check_backward(F.relu, at_zero.array, one.array, detect_nondifferentiable=True)
except tn.TinynodeError as error:
    print(f"{type(error).__name__}: {error}")

away = rng.normal(size=5)
away = on_device(np.copysign(0.1 + abs(away), away))  # not nearer to 0 than 0.1
check_backward(F.relu, away.array, g.array, detect_nondifferentiable=True)
check_backward(F.exp, single.array, g_single.array, eps=1e-5, dtype="float64")
print("both pass now")

# %% [markdown]
# A recipe: 64 bits, random `x` away from kinks, random `g`, several shapes. Then a bug in
# `backward` has nowhere to hide.
#
# ## Exercise
# Your file has six functions. Three have a bug in `backward`, three are right. Find the three,
# write their names into `FOUND`, and repair them. Beware of blaming a function that is right.
#
#     python -m tinynode.learn start 13
#     python -m tinynode.learn check 13
#
# ## Bug hunt
# Now you write the checks. `hunt13.py` gets eight functions, with 20 bugs planted, one at a time.
# Some gradients are wrong for special shapes only, some for all inputs but special ones. How many
# bugs do your tests catch?
#
#     python -m tinynode.learn hunt 13
