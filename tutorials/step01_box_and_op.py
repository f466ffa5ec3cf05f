# %% [markdown]
# # Step 1: a box and an operation
#
# **Goal.** Put numbers into boxes, and let each box remember the operation before.

# %% [markdown]
# In step 0 the package tinynode trained a network. From here on you write a package of your own,
# `mynode`. At the end of the course `mynode` trains networks too, and you wrote each line.
#
# A program computes $z = -(x \cdot x)$ and prints `-9.0`. The number alone does not tell the
# origin: the square, and the 3. A library for derivatives needs both.
# So the first thing to build is memory. Two classes are enough:
#
# - a **Variable** is a box around an array;
# - a **FunctionNode** is one use of an operation, with the boxes of inputs and outputs.
#
# All numbers in this course are NumPy arrays. `np.array(3.0)` is an array without axes: a single
# number.
#
# ## The box
# A Variable keeps three attributes. `creator_node` is the operation that computed the box.
#
# <!-- mynode: core/variable.py Variable -->
#
# ## The operation
# The method `apply` does the work that all operations share. It has four parts:
#
# 1. take the arrays out of the boxes, and call `forward` on the arrays;
# 2. check that `forward` returned a tuple;
# 3. put each result into a new box;
# 4. connect: each output box gets its creator, and the operation keeps inputs and outputs.
#
# `forward` takes a tuple of arrays and returns a tuple of arrays, even for a single array. An
# operation may have two inputs, or two outputs. `np.asarray` is needed because NumPy's `x * x` of
# an array without axes is a plain number, and a box holds an array. The line `(x,) = inputs` takes
# the only array out of a tuple.
#
# <!-- mynode: core/function_node.py FunctionNode -->
#
# Each operation is a class with its own `forward`. A short function beside the class saves
# writing `Square().apply((x,))[0]`. Each call makes a **new** object of the class, because an
# object stands for a single use.
#
# <!-- mynode: functions/exponential.py Square square -->
#
# `Negative` and `negative`, in `functions/arithmetic.py`, look alike, with `-x` in place of
# `x * x`.

# %% [markdown]
# ## Predict
# After `y = square(x)` and `z = negative(y)`: which attributes lead from `z` back to `x`? Write
# one line of Python that begins with `z.` and gives `x`.

# %% [markdown]
# ## Run

# %%
import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("01")

from mynode import FunctionNode, Variable, negative, square

x = Variable(np.array(3.0), name="x")
y = square(x)
y.name = "y"
z = negative(y)
z.name = "z"
print("y is", y.array)
print("z is", z.array)

# %% [markdown]
# Now walk back. The attribute `creator_node` leads from a box to its operation. The attribute
# `inputs` leads from an operation to its input boxes.

# %%
print("z was made by", type(z.creator_node).__name__)
print("the input of Negative is y:", z.creator_node.inputs[0] is y)
print("y was made by", type(y.creator_node).__name__)
print("the input of Square is x:  ", y.creator_node.inputs[0] is x)
print("x was made by", x.creator_node)

# %% [markdown]
# So the line is `z.creator_node.inputs[0].creator_node.inputs[0]`. No operation made `x`. Such a
# box is called a **leaf**.

# %% [markdown]
# ## See
# All boxes and operations together are the **graph**. The picture is drawn from the boxes in
# memory: it walks along the same attributes. In a drawn picture the arrows point in the direction
# of the numbers, from `x` to `z`. In a terminal `x <- Square <- y` shows the attributes: the
# arrows point from `y` back to `x`. The rank of a box counts the operations on the longest
# way from a leaf to the box. Step 6 uses the rank.

# %%
graph_of(z, title="z = -(x * x)")

# %% [markdown]
# The program has no declaration of this graph. Two functions were called, and the graph grew while
# the functions ran. A loop that runs three times makes three operations. An `if` makes the
# operations of one branch only. The term is **define-by-run**.

# %%
v = x
for _ in range(3):
    v = square(v)
print("3 squared three times:", v.array)
graph_of(v, title="square, in a loop")

# %% [markdown]
# ## Break it
# This `forward` forgets the comma. It returns an array in place of a tuple.


# %%
class Double(FunctionNode):
    """y = 2 * x, with a mistake."""

    def forward(self, inputs):
        (x,) = inputs
        return 2 * x  # no comma: not a tuple


three = Variable(np.array([1.0, 2.0, 3.0]))
try:
    Double().apply((three,))
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# Why does `apply` check the type? An array of three numbers can be looped over, as a tuple of
# three arrays can. Without the check, `apply` would silently make three boxes out of one array.

# %% [markdown]
# ## Fix it
# One comma.


# %%
class Double(FunctionNode):
    """y = 2 * x"""

    def forward(self, inputs):
        (x,) = inputs
        return (2 * x,)


outputs = Double().apply((three,))
print(len(outputs), "output:", outputs[0].array)

# %% [markdown]
# **Cost.** Memory of origins is memory: `z` keeps `y`, and `y` keeps `x`. Here each of the three
# arrays has a million numbers of 8 bytes.

# %%
big = Variable(np.zeros(1_000_000))
result = negative(square(big))
kept = 0
box = result
while box.creator_node is not None:
    kept += box.array.nbytes
    box = box.creator_node.inputs[0]
kept += box.array.nbytes
print(f"{kept / 1e6:.0f} MB are kept by the last box")

# %% [markdown]
# Source: Wengert, A Simple Automatic Derivative Evaluation Program, 1964.
#
# ## Exercise
# Begin your package: `python -m tinynode.learn start 01` writes the folder `mynode`. Open the
# folder in your editor. Each place to fill has a line `raise NotImplementedError("step 1: ...")`.
#
# | file | what to write |
# |---|---|
# | `core/variable.py` | nothing: `Variable` is given |
# | `core/function_node.py` | the end of `FunctionNode.apply`: part 4 of the list above |
# | `functions/exponential.py` | `Exp.forward`, with $y = e^x$: NumPy has `np.exp` |
# | `functions/arithmetic.py` | `Negative` and `negative`, by yourself |
#
# Type the lines; do not copy them. Then check your package:
#
# - `python -m tinynode.learn check 01` checks, and `python -m tinynode.learn hint 01` helps;
# - `python -m tinynode.learn run 01 --mine` runs this page with your package.
#
# The same classes in tinynode: [variable.py](../source/tinynode/core/variable.md),
# [function_node.py](../source/tinynode/core/function_node.md).
