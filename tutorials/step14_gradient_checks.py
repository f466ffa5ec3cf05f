# %% [markdown] tags=["portable"]
# # Step 14: gradient checks
#
# **Goal.** You find out whether a `backward` is right, for a function of any size, by two more
# runs of the function.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.gradient_check import check_backward
from tinynode_course import use_mynode

rng = np.random.default_rng(0)


def on_device(data):
    """NumPy data as a Variable on the device in use."""
    return tn.asarray(data, device=tn.get_device())


# %% [markdown]
# `numerical_grad` of step 3 moves each element up and down. For a million elements, these are two
# million runs. A cheaper question: choose a **direction** $d$, an array of the shape of $x$, and
# walk from $x$ a little along $d$. How fast does the result change? Backward has an answer, and a
# central difference has an answer. Only two numbers are compared:
#
# $$\sum_i \frac{\partial L}{\partial x_i} \, d_i \qquad \text{and} \qquad
# \frac{L(x + \varepsilon d) - L(x - \varepsilon d)}{2 \varepsilon}, \qquad
# L(x) = \sum_j g_j \, f(x)_j$$
#
# $g$ is the gradient of the output, where backward starts. The functions of this page belong to
# the package: their `backward` gets and returns Variables. Here are three functions, each with a
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
        return (y * (g - F.mean(g)),)  # wrong: sum(g * y) is to be subtracted


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
# Only the last check catches all three. `Abs` is right where $x$ is positive. With `g` all ones,
# the gradient of softmax is 0, since the outputs sum to 1 for every $x$. The wrong formula gives
# 0, too. Along a direction of ones only the *sum* of the gradient counts, and the sum of `Flip` is
# right. **Special inputs hide mistakes. So draw everything at random.** A wrong gradient passes
# only if its error is at a right angle to $d$, and a random direction is hardly ever.
#
# ## See
# A walk from $x$ along $d$, for softmax. At 0 the straight line with the slope of backward must
# touch the curve, as a tangent does.

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
# `check_backward(function, x, g)` of the package draws the direction itself, and checks all inputs
# of a function at once. If the slopes agree, it is silent. In the package:
# [gradient_check](../source/tinynode/gradient_check.md).

# %%
for function in F.abs, F.softmax, F.flip, wrong_abs, wrong_softmax, wrong_flip:
    try:
        check_backward(function, x.array, g.array)
        print(f"{function.__name__}: no complaint")
    except AssertionError as error:
        print(str(error).splitlines()[0])

# %% [markdown]
# The same check for your own framework: `check_gradients` of `mynode`, which you will write. With
# `--mine`, it is your package. Each row is an operation with two inputs of different shapes.

# %%
use_mynode("14")
import mynode
from mynode.gradient_check import check_gradients

shapes = {"add": ((3, 1), (4,)), "multiply": ((2, 3), (3,)), "linear": ((2, 3), (4, 3))}
shapes |= {"subtract": ((), (2, 2)), "divide": ((2, 1, 4), (3, 1))}
for name, pair in shapes.items():
    arrays = [rng.uniform(0.5, 2.0, size=shape) for shape in pair]
    check_gradients(getattr(mynode, name), arrays)
    print(f"mynode.{name:9} no complaint")

# %% [markdown]
# ## Break it
# A right function can be blamed, too. `relu(x)` is $x$ where $x$ is positive, else 0. At 0 the
# function has a **kink**: the slope is 0 on the left and 1 on the right. The difference takes the
# mean of both, and backward says 0. Neither is wrong: at 0 there is no derivative to compare with.

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
# You know the second false alarm from step 3: numbers of 32 bits are too coarse for a small `eps`.

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
# mistake. Then take inputs away from the kink. And `dtype="float64"` takes the differences in 64
# bits, while backward still runs in 32.

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
# A recipe: 64 bits, random `x` away from kinks, random `g`, several shapes.
#
# **Cost.** A check by directions is two more runs of the function, for any number of elements. The
# check of step 3 needs two runs for each element: 2,000,000 for a million elements.
#
# Source: Maclaurin, Duvenaud and Adams, Autograd: Effortless Gradients in NumPy, 2015.
#
# ## Exercise
# Your package gets a check for functions of any number of inputs. `check_backward` of step 3 takes
# a single input, and looks at the last operation only. The stub of `check_gradients`, in
# `gradient_check.py`, draws `g` and the directions, and calls `backward`. Yours to find:
#
# 1. The slope by backward: the sum of gradient times direction, over all inputs.
# 2. The slope by a central difference. **All** inputs walk at once, along their directions.
# 3. `compare` of step 3 judges the two numbers.
#
# The check gives you six functions with wrong gradients, and others that are right. Your
# `check_gradients` must find the wrong ones, and blame no right one.
#
#     python -m tinynode.learn start 14
#     python -m tinynode.learn check 14
#
# `python -m tinynode.learn run 14 --mine` checks the operations of your own package.
#
# ## Bug hunt
# Now you write the checks. `hunt14.py` gets eight functions, with 20 bugs planted, one at a time.
# Some gradients are wrong for special shapes only, some for all inputs but special ones. How many
# bugs do your tests catch?
#
#     python -m tinynode.learn hunt 14
