# %% [markdown] tags=["portable"]
# # Step 24: the double check, and linear functions
#
# **Goal.** You know the idea of `check_double_backward`. You can tell when a second-order gradient
# `None` is a zero, and when it is a mistake.

# %%
import inspect

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.gradient_check import check_backward, check_double_backward
from tinynode.transforms import or_zeros

rng = np.random.default_rng(0)


def random(name):
    """Four random numbers as a Variable on the device in use."""
    x = tn.asarray(rng.normal(size=4), device=tn.get_device(), requires_grad=True)
    x.name = name
    return x


# x and gy are the inputs, ggx weights the outputs, dx and dgy are the direction
x, gy, ggx, dx, dgy = (random(name) for name in ("x", "gy", "ggx", "dx", "dgy"))

# %% [markdown]
# The double check is the check of step 14, for another function. Backward computes `gx` from `x`
# and `gy`. **This is a function too, with two inputs.** So move `x` and `gy` along a random
# direction. Then compare two slopes of $L = \sum_i \mathtt{ggx}_i\, \mathtt{gx}_i$: by a backward
# through `gx`, and by a central difference.


# %%
def gradient(function, x, gy, **options):
    """The function that is checked: gx of x and gy."""
    (gx,) = tn.grad([function(x)], [x], [gy], **options)
    return gx


def slopes(function, fill, eps=1e-4):
    """The slope of L by backward, and by a central difference."""
    gx = gradient(function, x, gy, enable_double_backprop=True)
    found = tn.grad([gx], [x, gy], [ggx])
    found = [fill(g, v) for g, v in zip(found, (x, gy), strict=True)]
    by_backward = float(F.sum(found[0] * dx + found[1] * dgy))
    up, down = (
        float(F.sum(ggx * gradient(function, x + step * dx, gy + step * dgy)))
        for step in (eps, -eps)
    )
    return by_backward, (up - down) / (2 * eps)


# %% [markdown]
# `tn.grad` gives `None` where no path leads from `gx` to an input. The argument `fill` decides
# what to do then. The first double checks were strict: an input without a gradient was an error.


# %%
def insist(g, v):
    if g is None:
        raise RuntimeError("gradients of some arguments are not calculated")
    return g


def cube(x):
    return x * x * x


print("cube: {:.6f} by backward, {:.6f} by difference".format(*slopes(cube, insist)))

# %% [markdown]
# ## Predict
# `flip` reverses the order of the numbers. `flip` is a **linear** function: each output is a sum
# of inputs times constants. Its gradient is `gx = flip(gy)`, and the package computes this
# gradient right. Does the strict check pass?
#
# ## Run

# %%
try:
    slopes(F.flip, insist)
except RuntimeError as error:
    print("flip: RuntimeError:", error)

# %% [markdown]
# No. The gradient of a linear function does not depend on `x`. So the second-order gradient of `x`
# is zero, and `tn.grad` gives `None` for this zero, as in step 22.
#
# The old cure was to check the square of `flip(x)`, which is not linear:


# %%
def squared(function):
    def square_of_function(x):
        y = function(x)
        return y * y

    return square_of_function


print("flip, squared: {:.6f} {:.6f}".format(*slopes(squared(F.flip), insist)))

# %% [markdown]
# The other cure is to **put zeros** in place of `None`. The difference then shows whether zero is
# right:


# %%
def zeros(g, v):
    return or_zeros(g, v)


print("flip, zeros:   {:.6f} {:.6f}".format(*slopes(F.flip, zeros)))
print(inspect.getsource(or_zeros))

# %% [markdown]
# The last lines are from the package. `check_double_backward` fills with zeros, so it checks
# linear functions without a square.
#
# ## See
# The picture shows the reason for `None`: no path of arrows leads from `x` to `gx`. The functions
# of backward are dashed.

# %%
x, gy = random("x"), random("gy")  # new ones, which no function has used yet
y = F.flip(x)
y.name = "y"
(gx,) = tn.grad([y], [x], [gy], enable_double_backprop=True)
gx.name = "gx"
tn.show.graph(y, gradients=[gx], title="flip: gx does not depend on x")

# %% [markdown]
# A path from `gy` to `gx` is there. The next section needs this path.
#
# ## Break it
# Does the check overlook mistakes if `None` counts as zero? `None` has a second reason: a **cut**
# graph, as in the `Cube` of step 22 that computed with arrays. Below are this `CutCube`, and a
# `CutFlip`, whose author left the graph out since the second derivative of `flip` is zero.


# %%
class CutCube(tn.FunctionNode):
    """y = x^3."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * (3.0 * x.array * x.array),)


class CutFlip(tn.FunctionNode):
    """y = x in reverse order."""

    def forward(self, inputs):
        return (tn.namespace_of(inputs[0]).flip(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (tn.Variable(gy.xp.flip(gy.array)),)  # gy.xp is namespace_of(gy.array)


def cut_cube(x):
    return CutCube().apply((x,))[0]


def cut_flip(x):
    return CutFlip().apply((x,))[0]


for function in cut_cube, cut_flip:
    check_backward(function, x.array, gy.array)
    print(f"{function.__name__}: right in the first order")

# %% [markdown]
# Now three ways to check are compared, on two right functions and two cut functions:


# %%
def verdict(function, fill):
    try:
        by_backward, by_difference = slopes(function, fill)
    except RuntimeError:
        return "RuntimeError"
    return "passed" if abs(by_backward - by_difference) < 1e-5 else "wrong slope"


print("          strict        y * y, strict  zeros")
for function in cube, F.flip, cut_cube, cut_flip:
    ways = (function, insist), (squared(function), insist), (function, zeros)
    print("{:9} {:13} {:14} {}".format(function.__name__, *(verdict(*way) for way in ways)))

# %% [markdown]
# Read the table by columns. The strict check gives the same error for `flip`, which is right, and
# for both cut functions. The other two checks tell a zero from a cut. **A zero agrees with the
# difference; a cut does not.**
#
# Now the last row. The graph of the gradient is needed for a linear function too: `gx` does not
# depend on `x`, but `gx` depends on `gy`. And `gy` depends on `x` as soon as a function that is
# not linear follows `flip`:


# %%
def second_derivative(flip):
    """Of the sum of the cubes of flip(x), at 1, 2, 3, 4: it should be 6 x."""
    x = tn.asarray(np.arange(1.0, 5.0), device=tn.get_device(), requires_grad=True)
    (gx,) = tn.grad([F.sum(cube(flip(x)))], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([gx], [x])
    return ggx if ggx is None else [round(float(n), 6) for n in ggx]


print("flip:    ", second_derivative(F.flip))
print("cut flip:", second_derivative(cut_flip))

# %% [markdown]
# ## Fix it
# Compute with Variables in place of their arrays:


# %%
class Flip(CutFlip):
    def backward(self, target_input_indexes, grad_outputs):
        return (F.flip(grad_outputs[0]),)


class Cube(CutCube):
    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * (3.0 * x * x),)


def fixed_flip(x):
    return Flip().apply((x,))[0]


def fixed_cube(x):
    return Cube().apply((x,))[0]


for function in cut_flip, cut_cube, fixed_flip, fixed_cube:
    try:
        check_double_backward(function, x.array, gy.array, ggx.array)
        print(f"{function.__name__}: no complaint")
    except AssertionError as error:
        print(str(error).splitlines()[0])

# %% [markdown]
# Check each function that you write with both `check_backward` and `check_double_backward`. The
# second does not check the first order.
#
# **Cost.** The double check runs forward and backward three times, and a backward of the gradient
# once. The direction is random, so the number of runs does not depend on the number of inputs.
#
# Source: Maclaurin, Duvenaud and Adams, Autograd: Effortless Gradients in NumPy, 2015, whose
# checker checks the gradient of the gradient.
#
# ## Exercise
# Write `check_double_backward` of `mynode`, in `gradient_check.py`, with `grad` of step 22 and
# `numerical_grad` and `compare` of step 3. The checked function maps `x` and `gy` to `gx`. A
# gradient `None` is a zero. The check gives you right functions, linear functions, and cubes with
# four planted mistakes.
#
#     python -m tinynode.learn start 24
#     python -m tinynode.learn check 24
#
# ## Bug hunt
# Now you write the tests. `hunt24.py` gets an engine of six functions, which can be differentiated
# as often as one likes. The course plants 20 bugs in it, one at a time. Most of them cut a graph,
# so the first order stays right. How many do your tests catch?
#
#     python -m tinynode.learn hunt 24
