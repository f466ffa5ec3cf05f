# %% [markdown] tags=["portable"]
# # Step 22: gradients are Variables
#
# **Goal.** You differentiate a gradient, as often as you like, with the `backward` that you know.

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
# returns Variables. So each product and each sum in a `backward` is a function, and can have a
# node in a graph. By default it has none. `y.backward(enable_double_backprop=True)` records the
# graph of backward.
#
# ## Predict
# Let $y = x^4$, made of two squares. At $x = 2$ the derivative $4x^3$ is 32, and the second
# derivative $12x^2$ is 48. Does the gradient of `x` have a creator after `y.backward()`? And after
# `y.backward(enable_double_backprop=True)`?


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
# `x.grad` is the array, and `x.grad_var` the Variable around the array. In the first round
# `x.grad_var` is a leaf. In the second round it is the result of a graph.
#
# ## Run
# So `x.grad_var` has a `backward`, as every result of a graph:

# %%
gx = x.grad_var
x.cleargrad()
gx.backward()
print("the derivative of dy/dx:", float(x.grad))

# %% [markdown]
# The result is 48, the **second derivative**. This computation is called **double backprop**. For
# several orders, `tn.grad` is handier: it *returns* gradients, and writes to no `grad`. It takes
# lists, and gives a list.

# %%
g = fourth_power(x)
for order in range(1, 6):
    (g,) = tn.grad([g], [x], enable_double_backprop=True)
    print(f"derivative {order}: {g if g is None else float(g)}")

# %% [markdown]
# $4x^3$, $12x^2$, $24x$, $24$: each backward passed through the graph that the backward before had
# recorded. There is no rule for second derivatives. The fifth derivative is 0, and `tn.grad` gives
# `None`: in the graph, **no path leads from the fourth derivative to `x`**.
#
# ## See
# The picture has the graph of `y` and, dashed, the graph that backward recorded. `#2` is the 1
# from which backward starts. Find the arrows from the first graph into the second. By these arrows
# `gx` depends on `x`: the backward of $x \cdot x$ multiplies by $x$.

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
# For an array, `tn.grad` starts from ones. Here each element of `y` depends on one element of `x`.
# So `tn.grad` gives the derivative at all places at once:

# %%
places = on_device(np.linspace(-1.2, 1.2, 49))
y = fourth_power(places)
(first,) = tn.grad([y], [places], enable_double_backprop=True)
(second,) = tn.grad([first], [places])
curves = {"y": y, "first derivative": first, "second derivative": second}
tn.show.lines(places, curves, title="x^4 and its derivatives")

# %% [markdown]
# One use of second derivatives is the fast search for a minimum, where the first derivative $g$ is
# 0. Gradient descent (step 9) makes a step of $\eta\, g$ against the slope, and the learning rate
# $\eta$ is a guess. **Newton's method** divides by the second derivative $h$ in place of the
# guess:
#
# $$x_{\text{descent}} = x - \eta\, g \qquad x_{\text{Newton}} = x - \frac{g}{h}$$
#
# The minimum of $e^x - 3x$ is at $\log 3$:


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
# Newton's first step is too long, since `h` was measured far from the minimum. Near the minimum
# the number of right digits about doubles with each step. `tn.Variable(....array)` makes a new
# leaf, so a step does not keep the graphs of all steps before.
#
# ## Break it
# Three mistakes. The first raises an error. Backward recorded no graph:

# %%
x.cleargrad()
fourth_power(x).backward()
try:
    x.grad_var.backward()
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# The second is a forgotten `cleargrad`. The second derivative is added to the first, 32 + 48:

# %%
x.cleargrad()
fourth_power(x).backward(enable_double_backprop=True)
x.grad_var.backward()
print("without cleargrad:", float(x.grad))

# %% [markdown]
# The third raises no error. The `backward` below computes with `x.array`. The gradient of first
# order is right. But an array has no node, so **in the graph of the gradient, no path leads to
# `x`**.


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
# The second derivative is 24 in place of 48, without an error. One half arrived by the paths that
# are left.
#
# ## Fix it
# Compute with Variables in all of `backward`. The formula is the same, without `.array`.


# %%
class BetterCube(Cube):
    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (g * (3.0 * x * x),)


print("with BetterCube:", first_and_second(BetterCube()))

# %% [markdown]
# **Cost.** The graph of a gradient keeps arrays, as every graph does. Here are the bytes for 1,000
# numbers of 8 bytes, after backward:

# %%
for double in False, True:
    with tn.hooks.MemoryHook() as memory:
        many = on_device(np.linspace(0.0, 1.0, 1000))
        y = fourth_power(many)
        kept = tn.grad([y], [many], enable_double_backprop=double)
    print(f"enable_double_backprop={double!s:5}  {memory.current_bytes() / 1000:.0f} kB kept")

# %% [markdown]
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# Your own engine learns to differentiate its gradients. Most of your `backward` methods are
# formulas of `*`, `+`, `@`, `.reshape` and `.sum`. With Variables in place of arrays, the same
# lines record a graph. So an operation gets a switch, `gives_variables`. With it, the retained
# inputs and outputs come as Variables of the graph:
#
# <!-- mynode: core/function_node.py FunctionNode -->
#
# 1. `core/backprop.py`: `sweep` is given, the loop of `backward` with the switch: `backward` calls
#    it. Write `grad`, which returns gradients. `check_path` is given: it refuses an array where a
#    graph is wanted, so no graph is cut in silence as by `Cube`. `run_backward` calls it, and
#    returns at once if no gradient has come. `write_to_leaves` sets `x.grad_var` too.
# 2. `core/variable.py`: `class Variable(ArrayMethods)`. The new base class is given, with what
#    NumPy's arrays have: `reshape`, `sum`, `transpose`, `T`, `mT` and `>`. Then `grad_var`, and
#    `backward(self, *, enable_double_backprop=False)`.
# 3. `functions/`: `Sum` and `SumTo` call `repeat`. `Sin` needs a cosine that has a gradient: `cos`
#    is given. Operations with other NumPy functions, such as the cross entropy, can be
#    differentiated once; `check_path` or NumPy says so.
#
# The check computes derivatives up to the fourth, and lets Newton's method run on your engine.
#
#     python -m tinynode.learn start 22
#     python -m tinynode.learn check 22
