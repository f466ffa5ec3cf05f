# %% [markdown]
# # Step 7: arrays and broadcasting
#
# **Goal.** You can say the shape of a result and of each gradient, and how the gradient of a
# repeated input is made.

# %%
import numpy as np

import tinynode as tn
from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("07")
import mynode
from mynode import Variable

# %% [markdown]
# ## Predict
# `a` has the shape (3, 1), `b` the shape (4,). What is the shape of `a + b`? If `loss` is the sum
# of all elements of `a + b`: what are the values and the shapes of the gradients of `loss` for `a`
# and for `b`? Write your answers down, then run the cell.
#
# ## Run

# %%
a = Variable(np.array([[1.0], [2.0], [3.0]]), name="a")
b = Variable(np.array([10.0, 20.0, 30.0, 40.0]), name="b")
y = a + b
loss = mynode.sum(y)
loss.backward()
print("a + b has the shape", y.shape)
print(y.array)
print("gradient of a:", a.grad.tolist(), "shape", a.grad.shape)
print("gradient of b:", b.grad.tolist(), "shape", b.grad.shape)

# %% [markdown]
# The shapes differ, and still each element of `a` met each element of `b`: the arrays were
# **broadcast**. The rule: write the shapes in two lines with a common end. The lengths
# in a column must be equal, or a length is 1 or missing. Then this array is repeated along the
# axis.


# %%
def lined_up(*shapes):
    """The shapes, with the last axes in the same column, and the resulting shape."""
    result = np.broadcast_shapes(*shapes)
    for shape in shapes:
        print("  ".join(["."] * (len(result) - len(shape)) + [str(n) for n in shape]))
    print("  ".join(str(n) for n in result), " <- the result")
    print()


lined_up((3, 1), (4,))
lined_up((2, 1, 4), (3, 1))
lined_up((), (2, 2))
try:
    Variable(np.ones(3)) + Variable(np.ones((4, 2)))
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# **Why is the gradient of `a` 4, and the gradient of `b` 3?** Each element of `a` was used four
# times, once for each element of `b`. A value with several uses gets several contributions, and
# they are added, as in step 5. So
#
# > a repetition in forward is a sum in backward.
#
# For $z = x + y$ with broadcasting, the gradient $g_z$ has the shape of $z$. The gradient of $x$
# is the sum of $g_z$ over all axes along which $x$ was repeated.
#
# ## What is new
# `broadcast_to` is the repetition as an operation. `sum_to` is its counterpart: a sum over the
# axes of a repetition. Each is the backward of the other. The function `unbroadcast(g, shape)`
# does the sum for arrays; its code is your exercise.
#
# <!-- mynode: functions/shapes.py BroadcastTo broadcast_to -->
#
# The copy is needed: `np.broadcast_to` alone gives a view for reading only.
#
# The operations on two arrays share a base class, which sums both gradients to the right shapes:
#
# <!-- mynode: functions/arithmetic.py BroadcastingNode Multiply -->
#
# In the package: [shapes](../source/tinynode/functions/shapes.md),
# [arithmetic](../source/tinynode/functions/arithmetic.md),
# [statistical](../source/tinynode/functions/statistical.md).
#
# ## See
# With the repetitions as operations, `Add` gets two inputs of the same shape. Each gradient has
# the shape of its array.

# %%
for x in a, b:
    x.cleargrad()
wide_a, wide_b = mynode.broadcast_to(a, (3, 4)), mynode.broadcast_to(b, (3, 4))
y = wide_a + wide_b
mynode.sum(y).backward()
graph_of(y, title="a + b, with the repetitions drawn")

# %%
with tn.show.record("shapes of gradients") as film:
    mynode.sum(a * b).backward()
film

# %% [markdown]
# ## Break it
# An addition without a sum over repetitions. Its backward hands on the gradient unchanged.


# %%
class NaiveAdd(mynode.FunctionNode):
    def forward(self, inputs):
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return gz, gz


try:
    mynode.sum(NaiveAdd().apply((a, b))[0]).backward()
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# From this step on, `backward` checks the shape of each gradient. Without this check, no error
# would come: a sum of a wrong and a right gradient is broadcast, too.

# %%
print("(3,) and (4, 3) became", (np.zeros(3) + np.ones((4, 3))).shape)

# %% [markdown]
# And a shape can be right by accident. Here a square matrix and a row of three: the sum over the
# wrong axis has three numbers, too.


# %%
class WrongAxis(NaiveAdd):
    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return gz, gz.sum(axis=1)


square = Variable(np.zeros((3, 3)))
weights = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
for add in (WrongAxis(), mynode.functions.arithmetic.Add()):
    row = Variable(np.array([1.0, 2.0, 3.0]))
    (z,) = add.apply((square, row))
    mynode.sum(z * weights).backward()
    print(f"{type(add).__name__:9}", row.grad)

# %% [markdown]
# A check of shapes is worth a lot, but is no check of numbers. Step 14 checks the numbers.
#
# ## Fix it
# `unbroadcast` brings each gradient to the shape of its input. Without a repetition, the
# gradient stays the same. Each element of `z` counts once in the sum of each gradient:

# %%
rng = np.random.default_rng(0)
print("shapes              gradients           each element of z counts once")
for left, right in [((3, 1), (4,)), ((2, 3), (3,)), ((), (2, 2)), ((2, 1, 4), (3, 1))]:
    x, y = (Variable(rng.normal(size=shape)) for shape in (left, right))
    z = x + y
    mynode.sum(z).backward()
    shapes = [str(v.shape) for v in (x, y)] + [str(v.grad.shape) for v in (x, y)]
    whole = all(v.grad.sum() == z.size for v in (x, y))
    print("{:9} {:9} {:9} {:9}".format(*shapes), whole)

# %% [markdown]
# **Cost.** `a + b` of shapes (1000, 1) and (1000,) makes a million elements from two thousand.
# `Add` keeps no input, and NumPy repeats without a copy. `broadcast_to` as an operation of its own
# keeps the repeated array in memory: 8 MB here. So use the operators, and `broadcast_to` rarely.
#
# Source: Harris et al., Array Programming with NumPy, 2020.
#
# ## Exercise
# 1. `core/variable.py`: `class Variable(ArrayOperators)`. The new base class is given, with the
#    operator `/` and what arrays have: `shape`, `ndim`, `size` and `dtype`.
# 2. `functions/shapes.py`: `unbroadcast(g, shape)` and the operation `SumTo`; `Reshape` and
#    `BroadcastTo` are given. For `unbroadcast`, draw the two shapes in two lines as above: which
#    columns are summed?
# 3. `functions/arithmetic.py`: write `BroadcastingNode` and `Divide`. `Add`, `Subtract` and
#    `Multiply` inherit from `BroadcastingNode`, and their `backward` ends with `unbroadcast`. In
#    `as_operands`, a number needs no shape any more: `np.asarray(y, np.result_type(x.array, y))`
#    keeps float32 beside float32. The same line makes a Variable of an array.
# 4. `functions/statistical.py`: the backward of `Sum`, and `mean`. The gradient of a sum is a
#    repetition: give `gy` the shape with 1 in place of the summed axes, then repeat it.
# 5. `core/backprop.py`: call `check_shape(function, i, gx)` in `run_backward`. It is given, and
#    raises `ValueError` if the gradient of input `i` has another shape than the input.
#
# The check asks for the gradients of (3, 1) + (4,) first, then tries hundreds of pairs of shapes.
#
#     python -m tinynode.learn start 07
#     python -m tinynode.learn check 07
#
# `python -m tinynode.learn run 07 --mine` runs this page on your own package.
