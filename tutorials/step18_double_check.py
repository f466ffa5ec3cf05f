# %% [markdown] tags=["portable"]
# # Step 18: the double check, and linear functions
#
# **Goal.** You know what `check_double_backward` does, and when a second-order gradient that is
# `None` is a zero and when it is a mistake.

# %%
import inspect

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.derivatives import or_zeros
from tinynode.gradient_check import check_backward, check_double_backward

rng = np.random.default_rng(0)


def random(name):
    """Four random numbers as a Variable on the device in use."""
    x = tn.asarray(rng.normal(size=4), device=tn.get_device(), requires_grad=True)
    x.name = name
    return x


# x and gy are the inputs, ggx weights the outputs, dx and dgy are the direction
x, gy, ggx, dx, dgy = (random(name) for name in ("x", "gy", "ggx", "dx", "dgy"))

# %% [markdown]
# There is nothing in the double check that you have not seen in step 13. Backward turns `x` and
# `gy` into `gx`. **That is a function too, with two inputs.** So walk with `x` and `gy` along a
# random direction, and compare the slopes of `L = sum(ggx * gx)`: one by a backward through `gx`,
# one by a central difference.


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
# `tn.grad` gives `None` where no way leads from `gx` to an input. What should `fill` put there?
# The first double checks were strict: each input must get a gradient, or something is wrong.


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
# `flip` reverses the order of the numbers. It is a **linear** function: each output is a sum of
# inputs, each of them times a constant. Its gradient is `gx = flip(gy)`, and the package computes
# it right. Will the strict check be content?
#
# ## Run

# %%
try:
    slopes(F.flip, insist)
except RuntimeError as error:
    print("flip: RuntimeError:", error)

# %% [markdown]
# No. The gradient of a linear function does not depend on `x`: its slope is the same everywhere.
# So the second-order gradient of `x` is zero, and as in step 16, `None` is how `tn.grad` says so.
#
# The old cure was a trick: do not check `y = flip(x)`, check `y * y`. That is not linear any more:


# %%
def squared(function):
    def square_of_function(x):
        y = function(x)
        return y * y

    return square_of_function


print("flip, squared: {:.6f} {:.6f}".format(*slopes(squared(F.flip), insist)))

# %% [markdown]
# The other cure is to take `None` at its word: **put zeros there**, and let the difference say
# whether zero is right. It needs no trick:


# %%
def zeros(g, v):
    return or_zeros(g, v)


print("flip, zeros:   {:.6f} {:.6f}".format(*slopes(F.flip, zeros)))
print(inspect.getsource(or_zeros))

# %% [markdown]
# The last lines are the package's. `check_double_backward` fills with zeros, so it takes linear
# functions as they are.
#
# ## See
# `None` can be seen in a picture: no arrow leads from `x` to `gx`. Dashed is what backward
# recorded.

# %%
x, gy = random("x"), random("gy")  # new ones, which no function has used yet
y = F.flip(x)
y.name = "y"
(gx,) = tn.grad([y], [x], [gy], enable_double_backprop=True)
gx.name = "gx"
tn.show.graph(y, gradients=[gx], title="flip: gx does not depend on x")

# %% [markdown]
# But one arrow is there, from `gy` to `gx`. It will matter in a moment.
#
# ## Break it
# If `None` counts as zero, do we overlook mistakes now? There is another reason for a `None`: the
# way was **cut**, as by the `Cube` of step 16 that computed with arrays. Here are that one, and a
# `Flip` whose author thought: it is linear, the second derivative is zero, so why have a graph?


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
# Two functions are right, two are cut, and there are three ways to check:


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
# Read it by columns. The strict check says the same of `flip`, which is right, as of the two that
# are wrong: it cannot tell a zero from a cut. The other two can. **A zero agrees with the
# difference; a cut does not.**
#
# Now the last row. `flip` is linear, and still the graph of its gradient is needed: `gx` does not
# depend on `x`, but it depends on `gy`. And `gy` depends on `x` as soon as something that is not
# linear comes after:


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
# Flip the Variable in place of its array, and multiply with the Variable:


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
# For every function that you write, call both: `check_backward` and `check_double_backward`. The
# second takes the first order for granted, so it does not replace the first.
#
# ## Exercise
# Three functions whose first order is right, and whose second is cut: one is linear, one is not,
# and one has two inputs. Repair them, so that `check_double_backward` passes.
#
#     python -m tinynode.learn start 18
#     python -m tinynode.learn check 18
#
# ## Bug hunt
# Now you write the tests. `hunt18.py` gets an engine of six functions, which can be differentiated
# as often as one likes. The course plants 20 bugs in it, one at a time. Most of them cut a graph,
# so the first order stays right. How many do your tests catch?
#
#     python -m tinynode.learn hunt 18
