# %% [markdown] tags=["portable"]
# # Step 16: gradients are Variables
#
# **Goal.** You differentiate a gradient: once more, as often as you like, with the `backward` that
# you know.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F


def on_device(data, name=None):
    """Data as a Variable on the device in use; it requires a gradient."""
    x = tn.asarray(np.array(data), device=tn.get_device(), requires_grad=True)
    x.name = name
    return x


# %% [markdown]
# In your engine, a gradient was an array. In the package, every `backward` gets **Variables** and
# returns Variables. So each product and each sum in a `backward` is a function like all others,
# and can have a node like all others. Whether it gets one is for you to say:
# `y.backward(enable_double_backprop=True)` records what backward does.
#
# ## Predict
# `y` is `x` to the power 4, made of two squares. At `x = 2` the derivative `4 x^3` is 32, and the
# derivative of that, `12 x^2`, is 48. After `y.backward()`, does the gradient of `x` know which
# function made it? And after `y.backward(enable_double_backprop=True)`?


# %%
def fourth_power(x):
    square = x * x
    return square * square


x = on_device(2.0, "x")
for double in False, True:
    x.cleargrad()
    y = fourth_power(x)
    y.backward(enable_double_backprop=double)
    creator = x.grad_var.creator_node
    made_by = "nobody" if creator is None else creator.label
    print(f"enable_double_backprop={double!s:5}  dy/dx = {float(x.grad)}, made by {made_by}")

# %% [markdown]
# `x.grad` is the array, `x.grad_var` the Variable around it. In the first round it is a leaf; in
# the second it has a graph behind it.
#
# ## Run
# A Variable with a graph behind it has a `backward`. Nothing about it is new:

# %%
gx = x.grad_var
x.cleargrad()
gx.backward()
print("the derivative of dy/dx:", float(x.grad))

# %% [markdown]
# That is 48, the **second derivative**. To compute it is called **double backprop**. For more than
# two of them, `tn.grad` is handier: it *returns* gradients and writes to no `grad`, as your
# `grad_of` of step 4 did. It takes lists, and gives a list.

# %%
g = fourth_power(x)
for order in range(1, 6):
    (g,) = tn.grad([g], [x], enable_double_backprop=True)
    print(f"derivative {order}: {g if g is None else float(g)}")

# %% [markdown]
# `4 x^3`, `12 x^2`, `24 x`, `24`: each backward passed through the graph that the one before had
# recorded. No rule for second derivatives was needed anywhere. The fifth is 0, and `tn.grad` says
# `None`: the fourth is a sum of constants, so **no way leads from it to `x`**.
#
# ## See
# The graph of `y` and, dashed and in the other colour, the graph that its backward recorded; `#2`
# is the 1 that backward starts from. Find the arrows that lead from the first graph into the
# second. They are why `gx` depends on `x`: the backward of a square multiplies by what was
# squared.

# %%
y = fourth_power(x)
y.name = "y"
(gx,) = tn.grad([y], [x], enable_double_backprop=True)
gx.name = "gx"
picture = tn.show.graph(y, gradients=[gx])
functions = [node for node in picture.nodes if node.kind == "function"]
backward = [node for node in functions if node.phase == "backward"]
print(f"{len(functions) - len(backward)} functions forward, {len(backward)} backward")
picture

# %% [markdown]
# For an array, `tn.grad` starts from ones. If each element of `y` depends on its own element of
# `x` only, it gives the derivative at all of them at once:

# %%
places = on_device(np.linspace(-1.2, 1.2, 49))
y = fourth_power(places)
(first,) = tn.grad([y], [places], enable_double_backprop=True)
(second,) = tn.grad([first], [places])
curves = {"y": y, "first derivative": first, "second derivative": second}
tn.show.lines(places, curves, title="x^4 and its derivatives")

# %% [markdown]
# What are second derivatives good for? One use: to find a minimum quickly. There the first
# derivative is 0. Gradient descent, as in step 12, walks against the derivative; how far is a
# guess, the learning rate. **Newton's method** takes the second derivative `h` for it: where `h`
# says that the slope changes fast, a short step will do.
#
#     gradient descent     x - lr * g
#     Newton's method      x - g / h
#
# The minimum of `e^x - 3 x` is at log 3:


# %%
def valley(x):
    return F.exp(x) - 3.0 * x


def slopes(x):
    """The first and the second derivative of the valley."""
    (g,) = tn.grad([valley(x)], [x], enable_double_backprop=True)
    (h,) = tn.grad([g], [x])
    return g, h


descent, newton = on_device(0.0), on_device(0.0)
print("        lr = 0.1   Newton")
for step in range(1, 8):
    g, _ = slopes(descent)
    descent = tn.Variable((descent - 0.1 * g).array)
    g, h = slopes(newton)
    newton = tn.Variable((newton - g / h).array)
    print(f"step {step}  {float(descent):.6f}   {float(newton):.6f}")
print(f"log 3   {float(F.log(on_device(3.0))):.6f}")

# %% [markdown]
# Newton's first step is too long, since `h` was measured far away. Near the minimum the number of
# right digits about doubles with each step. (`tn.Variable(....array)` makes a new leaf around the
# array: without it, each step would hold on to the graph of all steps before.)
#
# ## Break it
# Three mistakes. The first is harmless, for it raises an error:

# %%
x.cleargrad()
fourth_power(x).backward()
try:
    x.grad_var.backward()
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# The second is an old friend: `cleargrad` was forgotten. The second derivative is added to the
# first, 32 + 48:

# %%
x.cleargrad()
fourth_power(x).backward(enable_double_backprop=True)
x.grad_var.backward()
print("without cleargrad:", float(x.grad))

# %% [markdown]
# The third is the bad one. This `backward` takes `x.array`, the array out of its Variable. That
# was right in your engine, and the gradient is right here too. But an array has no node: **in the
# graph of the gradient, nothing says that the gradient depends on `x`**.


# %%
class Cube(tn.FunctionNode):
    """y = x^3."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g * (3.0 * x.array * x.array),)  # an array: the graph ends here


def first_and_second(cube):
    """The derivatives of x * x^3."""
    y = x * cube.apply((x,))[0]
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    (ggx,) = tn.grad([gx], [x])
    return float(gx), float(ggx)


print("expected:  (32.0, 48.0)")
print("with Cube:", first_and_second(Cube()))

# %% [markdown]
# The second derivative is 24 in place of 48, without a word. One half of it came through, along
# the ways that were still there.
#
# ## Fix it
# Compute with Variables from end to end. The formula is the same; only `.array` goes.


# %%
class BetterCube(Cube):
    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g * (3.0 * x * x),)


print("with BetterCube:", first_and_second(BetterCube()))

# %% [markdown]
# ## Exercise
# Write `derivatives(f, x, n)`, which gives a function and its first n derivatives, and
# `newton(f, x, steps)`, which finds a minimum. Mind that `tn.grad` gives `None` where no way leads
# from the output to the input: that derivative is zero.
#
#     python -m tinynode.learn start 16
#     python -m tinynode.learn check 16
