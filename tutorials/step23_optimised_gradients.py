# %% [markdown] tags=["portable"]
# # Step 23: optimised gradient functions
#
# **Goal.** A gradient made of many small functions becomes a single function, which can still be
# differentiated.

# %%
import inspect
import re

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode.gradient_check import check_backward, check_double_backward

rng = np.random.default_rng(0)


def random(name):
    """Four random numbers as a Variable on the device in use."""
    x = tn.asarray(rng.normal(size=4), device=tn.get_device(), requires_grad=True)
    x.name = name
    return x


x, gy, ggx = random("x"), random("gy"), random("ggx")

# %% [markdown]
# The function of this step is called swish: $y = x\, s$ with the sigmoid $s = 1 / (1 + e^{-x})$.
# Its derivative is $s\,(1 + x\,(1 - s))$. The class below follows step 22: `backward` is
# **composed** of differentiable functions, so double backprop works without further code.


# %%
class Swish(tn.FunctionNode):
    """y = x s, with s = 1 / (1 + e^-x).   x: (n) -> y: (n)."""

    def forward(self, inputs):
        (x,) = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0,))
        return (x / (1.0 + xp.exp(-x)),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        s = F.sigmoid(x)
        return (gy * s * (1.0 + x * (1.0 - s)),)


def swish(x):
    return Swish().apply((x,))[0]


# %% [markdown]
# ## Predict
# How many functions does this `backward` run? Each makes an array of the size of `x`, and a
# recorded backward keeps many of these arrays. Count before you run the cell.


# %%
def functions_behind(*roots):
    """Every function that these Variables were computed by."""
    found, waiting = [], [root.creator_node for root in roots]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.append(function)
            waiting.extend(node.creator_node for node in function.inputs)
    return found


def gradient(function):
    """y, and the gradient of x with a graph, for a gradient gy of the output."""
    y = function(x)
    y.name = "y"
    (gx,) = tn.grad([y], [x], [gy], enable_double_backprop=True)
    gx.name = "gx"
    return y, gx


def print_backward(function):
    y, gx = gradient(function)
    forward = functions_behind(y)
    labels = [f.label for f in functions_behind(gx) if f not in forward]
    print(f"{function.__name__}: {len(labels)} in backward:", *sorted(labels))


print_backward(swish)

# %% [markdown]
# ## Run
# A formula on arrays needs less memory: an operation such as `*=` may write into an array that was
# just made. Such code belongs into a `forward`. So the gradient becomes a **FunctionNode of its
# own**, and the backward of swish applies this function.


# %%
class FastSwish(Swish):
    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return SwishGrad().apply((x, gy))


class SwishGrad(tn.FunctionNode):
    """gx = gy d(x), with d(x) = s (1 + x (1 - s)): the gradient of swish.

    x: (n), gy: (n) -> gx: (n).   With h = dL/dgx:
    dL/dx = h gy s (1 - s) (2 + x (1 - 2 s))   dL/dgy = h d(x)
    """

    def forward(self, inputs):
        x, gy = inputs
        xp = tn.namespace_of(x)
        self.retain_inputs((0, 1))
        s = 1.0 / (1.0 + xp.exp(-x))
        gx = 1.0 - s
        gx *= x
        gx += 1.0
        gx *= s
        gx *= gy
        return (gx,)

    def backward(self, target_input_indexes, grad_outputs):
        (h,) = grad_outputs
        x, gy = self.get_retained_inputs()
        grad_x = grad_gy = None
        if 0 in target_input_indexes:
            s = F.sigmoid(x)
            grad_x = h * gy * s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s))
        if 1 in target_input_indexes:
            grad_gy = SwishGrad().apply((x, h))[0]
        return grad_x, grad_gy


def fast_swish(x):
    return FastSwish().apply((x,))[0]


print_backward(fast_swish)

# %% [markdown]
# One function in place of six. `SwishGrad` has **two** inputs, `x` and `gy`, and double backprop
# may ask for the gradients of both. Its `backward` is the second order. The gradient of `gy` is
# easy: since $g_x = g_y\, d(x)$, the gradient of `gy` is $h\, d(x)$, which is `SwishGrad` again.
#
# **`target_input_indexes`** says which gradients are wanted: 0 stands for `x`, 1 for `gy`, as for
# `Multiply` in step 13. A gradient that is not wanted need not be computed:


# %%
class Talking(SwishGrad):
    def backward(self, target_input_indexes, grad_outputs):
        print("target_input_indexes is", target_input_indexes)
        return super().backward(target_input_indexes, grad_outputs)


(gx,) = Talking().apply((x, gy))
for wanted in [x], [gy], [x, gy]:
    tn.grad([gx], wanted)

# %% [markdown]
# `backward` may return an entry for each *input*, with `None` for unwanted gradients. Or it
# returns an entry for each *wanted* input.
#
# `check_backward` of step 14 checks the first order. **`check_double_backward`** checks the second
# order: the gradients of the function from `x` and `gy` to `gx`. It takes one more array,
# `x_grad_grad`: the gradient of `gx` from which it starts, called `h` above.

# %%
for function in swish, fast_swish:
    check_backward(function, x.array, gy.array)
    check_double_backward(function, x.array, gy.array, ggx.array)
    print(f"{function.__name__}: no complaint, neither in the first order nor in the second")

# %% [markdown]
# ## See
# First the composed gradient, then the optimised gradient. The blue squares are arrays that the
# graph keeps for the next backward.

# %%
y, gx = gradient(swish)
composed = tn.show.graph(y, gradients=[gx], title="composed")
composed

# %%
y, gx = gradient(fast_swish)
optimised = tn.show.graph(y, gradients=[gx], title="optimised")
for picture in composed, optimised:
    retained = [node for node in picture.nodes if "retained" in node.marks]
    print(f"{picture.title}: {len(retained)} Variables with an array retained")
optimised

# %% [markdown]
# The package has such gradient functions where a gradient runs often and has many pieces. The
# package's swish is `F.silu`. This is the backward of its gradient function:

# %%
_, gx = gradient(F.silu)
print(inspect.getsource(type(gx.creator_node).backward))

# %% [markdown]
# ## Break it
# Here `gy` is no input of the gradient function, but an attribute of `self`.


# %%
class GyOnSelf(tn.FunctionNode):
    def __init__(self, gy):
        self.gy = gy

    def forward(self, inputs):
        self.retain_inputs((0,))
        return SwishGrad().forward((inputs[0], self.gy.array))

    def backward(self, target_input_indexes, grad_outputs):
        (h,) = grad_outputs
        (x,) = self.get_retained_inputs()
        s = F.sigmoid(x)
        return (h * self.gy * s * (1.0 - s) * (2.0 + x * (1.0 - 2.0 * s)),)


class SwishWithGyOnSelf(Swish):
    def backward(self, target_input_indexes, grad_outputs):
        return GyOnSelf(grad_outputs[0]).apply(self.get_retained_inputs())


def gy_on_self(x):
    return SwishWithGyOnSelf().apply((x,))[0]


check_backward(gy_on_self, x.array, gy.array)
print("check_backward has no complaint")
try:
    check_double_backward(gy_on_self, x.array, gy.array, ggx.array)
except AssertionError as error:
    for line in str(error).splitlines():
        if line.startswith("  "):  # the part of each input; we round the numbers
            print(re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.4f}", line))

# %% [markdown]
# `check_backward` sees the first order only, which is right. `check_double_backward` shows the
# missing path: the gradient of `x` is right, and the gradient of `gy` (`y_grad` in the message) is
# missing. This matters as soon as a function follows swish, since then `gy` depends on `x` too:


# %%
def second_derivative(function):
    """Of the square of the function."""
    y = function(x)
    (first,) = tn.grad([y * y], [x], enable_double_backprop=True)
    (second,) = tn.grad([first], [x])
    return [f"{float(n):.6f}" for n in second]


print("gy on self", second_derivative(gy_on_self))

# %% [markdown]
# ## Fix it
# **All arrays of a gradient function are its inputs**: the retained inputs and outputs, and the
# incoming gradient. Attributes of `self` are plain constants only. `SwishGrad` follows this rule:

# %%
print("composed  ", second_derivative(swish))
print("optimised ", second_derivative(fast_swish))

# %% [markdown]
# **Cost.** The optimised gradient runs one function in place of six and keeps fewer arrays. But a
# composed gradient is shorter, and harder to get wrong. Write the composed gradient first, and
# keep it for comparison.
#
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# In `functions/trigonometric.py` of `mynode`, `Tanh` retains its *output* $y$, since its
# derivative is $1 - y^2$. Write `TanhGrad`, the gradient as a function of `y` and `gy`. Its
# `backward` computes the wanted gradients only. `gradient_by` is given: it applies a gradient
# function to Variables, and only runs its forward on arrays.
#
# <!-- mynode: core/function_node.py gradient_by -->
#
#     python -m tinynode.learn start 23
#     python -m tinynode.learn check 23
