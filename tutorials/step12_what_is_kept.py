# %% [markdown]
# # Step 12: what is kept
#
# **Goal.** Each operation names the arrays that its `backward` will need. All others are freed.

# %%
import weakref

import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("12")
from mynode import FunctionNode, Variable, square, tanh

# %% [markdown]
# Since step 2 each operation keeps the arrays of all its inputs. The formulas use fewer arrays:
#
# | operation | formula | arrays in the formula |
# |---|---|---|
# | $z = x + y$ | $g_x = g_z, \quad g_y = g_z$ | none |
# | $z = x \, y$ | $g_x = g_z \, y, \quad g_y = g_z \, x$ | both inputs |
# | $y = x^2$ | $g_x = g_y \cdot 2 x$ | the input |
# | $y = \tanh x$ | $g_x = g_y \, (1 - y^2)$ | the output |
#
# `Add` keeps two arrays without a use. And `Tanh` would have to compute its output once more, from
# an input without another use. In the training of a network, the arrays for `backward` are often
# most of the memory. So an operation should name the needed arrays.
#
# ## What is new
# While `forward` runs, call `self.retain_inputs((0,))` to keep the first input, or
# `self.retain_outputs((0,))` to keep the first output. The tuple has the positions, so a single
# position is `(0,)`, with a comma. **Retained** arrays are there for `backward`, by
# `get_retained_inputs()` and `get_retained_outputs()`. Both return tuples. All other arrays belong
# to the Variables alone.
#
# <!-- mynode: core/function_node.py FunctionNode pick -->
#
# The operation keeps the *array* of an output, and neither its Variable nor its node. Otherwise
# there would be a circle again: the node of the output holds the operation.
#
# In the package: [FunctionNode](../source/tinynode/core/function_node.md). There,
# `get_retained_inputs` returns Variables, for gradients of gradients (step 22).
#
# ## Predict
# Let `x` and `w` have 1,000 elements of 8 bytes. How many kilobytes does each operation keep in
# `tanh(square(x * w + x))`?
#
# ## Run


# %%
def retained(function):
    """The arrays that an operation keeps."""
    return function.get_retained_inputs() + function.get_retained_outputs()


rng = np.random.default_rng(0)
x, w = Variable(rng.normal(size=1000), name="x"), Variable(rng.normal(size=1000), name="w")
product = x * w
total = product + x
squared = square(total)
y = tanh(squared)

kept = {}
for v in (product, total, squared, y):
    kept[type(v.creator_node).__name__] = sum(a.nbytes for a in retained(v.creator_node)) / 1000
print(", ".join(f"{name}: {size:g} kB" for name, size in kept.items()))

# %% [markdown]
# ## See

# %%
tn.show.bars(kept, title="Kept for backward", x_label="kilobytes")

# %% [markdown]
# The film shows the same graph for single numbers. In backward, compare each formula with the
# bars:
# the arrays in the formula are the retained arrays.

# %%
with tn.show.record("formulas and retained arrays") as film:
    a, b = Variable(np.array(0.5), name="a"), Variable(np.array(2.0), name="b")
    tanh(square(a * b + a)).backward()
film

# %% [markdown]
# Do two operations sometimes keep the same array? In `square(tanh(x))` the output of `Tanh` is the
# input of `Square`. Both operations refer to the same array, so the array is in memory once.

# %%
inner = tanh(x)
outer = square(inner)
first, second = retained(inner.creator_node)[0], retained(outer.creator_node)[0]
print("the same array:", first is second)

# %% [markdown]
# An array that no operation keeps goes with its Variable. `Add` keeps no inputs, so the array of
# `product` is freed as soon as you drop `product`. The gradients are right all the same.

# %%
gone = weakref.ref(product.array)
del product
print("the array of x * w is gone:", gone() is None)
y.grad = np.ones(1000)
y.backward()
t = x.array * w.array + x.array
expected = (1 - np.tanh(t * t) ** 2) * 2 * t * (w.array + 1)
print("the gradient of x is right:", np.allclose(x.grad, expected))

# %% [markdown]
# ## Break it
# Two mistakes. The first: forget to retain. Then `get_retained_inputs()` is an empty tuple.


# %%
class Cube(FunctionNode):
    """y = x * x * x, with a mistake."""

    def forward(self, inputs):
        (x,) = inputs
        return (x**3,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (gy * 3.0 * x * x,)


try:
    Cube().apply((Variable(np.array(2.0)),))[0].backward()
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# The second mistake makes no noise. A retained array is the array itself, and no copy. Change its
# numbers between forward and backward, and `backward` computes with the new numbers.

# %%
x = Variable(np.array(3.0))
y = square(x)
x.array += 100.0  # in place: the same array with other numbers
y.backward()
print("the gradient of x * x at 3:", x.grad)

# %% [markdown]
# ## Fix it
# The first mistake needs a line in `forward`: `self.retain_inputs((0,))`. For the second: give the
# Variable a new array, and leave the numbers of the old array alone.

# %%
x = Variable(np.array(3.0))
y = square(x)
x.array = x.array + 100.0  # a new array
y.backward()
print("the gradient of x * x at 3:", x.grad)

# %% [markdown]
# **Cost.** In step 11 the four operations of `tanh(square(x * w + x))` would keep five arrays,
# 40 kB. Now they keep four, 32 kB. Ten additions in a row would keep ten arrays, 80 kB. Now:

# %%
y = x = Variable(np.ones(1000))
for _ in range(10):
    y = y + x
kept, function = 0, y.creator_node
while function is not None:
    kept += sum(array.nbytes for array in retained(function))
    function = function.inputs[0].creator_node
print("ten additions keep", kept, "bytes")

# %% [markdown]
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# 1. `core/function_node.py`: change `FunctionNode` as shown, and write `pick`.
# 2. `functions/`: each operation names the arrays to keep, in two lines. The table above has three
#    of them. Of the others think yourself. `Exp`: the derivative of $e^x$ is $e^x$, and forward
#    has computed $e^x$. `ReLU`: the output is positive where the input is. `Linear`: two inputs;
#    the bias is not in the formula.
# 3. `functions/trigonometric.py`: write `Tanh`.
#
# `input_arrays` is then no longer needed: remove it. The check looks at the gradients, and at the
# arrays that stay in memory.
#
#     python -m tinynode.learn start 12
#     python -m tinynode.learn check 12
#
# `python -m tinynode.learn run 12 --mine` runs this page on your own package.
