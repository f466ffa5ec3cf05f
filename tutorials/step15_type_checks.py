# %% [markdown]
# # Step 15: messages that help
#
# **Goal.** An operation refuses inputs of a wrong type or shape. The error comes at the call, and
# names the expected and the actual values.

# %%
import timeit
import traceback

import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("15")
from mynode import FunctionNode, InvalidType, Variable
from mynode.type_check import Expression, expect, is_floating

# %% [markdown]
# An operation without a check: the squared distance of two arrays,
# $y = \sum_i (a_i - b_i)^2$, with the gradients $g_a = 2 g_y (a - b)$ and $g_b = -g_a$.


# %%
class SquaredDistance(FunctionNode):
    """y = sum((a - b)^2)."""

    def forward(self, inputs):
        a, b = inputs
        self.retain_inputs((0, 1))
        return (np.sum((a - b) ** 2),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        a, b = self.get_retained_inputs()
        ga = 2.0 * gy * (a - b)
        return ga, -ga


row = Variable(np.array([1.0, 2.0, 3.0]), name="row")
y = SquaredDistance().apply((row, Variable(np.array([1.0, 2.0, 5.0]))))[0]
y.backward()
print(y.array, row.grad)

# %% [markdown]
# ## Predict
# The distance from an array to itself is 0. `column` has the same three numbers as `row`, but the
# shape (3, 1). What does the next cell print for `row` and `column`: 0, an error, or
# a wrong number? And for
# numbers of 8 bits, where the distance of 0 and 20 should be 400?
#
# ## Run

# %%
column = Variable(np.array([[1.0], [2.0], [3.0]]), name="column")
y = SquaredDistance().apply((row, column))[0]
print("row and column:", y.array)

small, large = (Variable(np.array([n], dtype=np.uint8)) for n in (0, 20))
print("0 and 20 in 8 bits:", SquaredDistance().apply((small, large))[0].array)

# %% [markdown]
# Two wrong numbers, and no error. NumPy made a table of 3 x 3 differences of the row and the
# column. And 20 does not fit into a difference of 8 bits without a sign: 0 - 20 became 236, and
# its square was cut as well. **A wrong number without an error is the worst answer**: you may
# train for a day before the first doubt.
#
# Where an error comes, does the error help? `report` prints the functions from your line to the
# error.


# %%
def report(error):
    way = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    print("on the way:", " > ".join(way[1:]))
    print(f"{type(error).__name__}: {error}\n")


try:
    SquaredDistance().apply((row,))
except Exception as error:
    report(error)

# %% [markdown]
# The error comes from inside of `forward`, and says nothing about distances. To understand it, you
# must read the source of `forward`.
#
# ## What is new
# `apply` calls `check_type_forward(in_types)` before `forward`. An operation overrides the
# method, and gives the conditions to `expect`.


# %%
class CheckedDistance(SquaredDistance):
    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        a, b = in_types
        expect(is_floating(a), is_floating(b))
        expect(a.shape == b.shape)


try:
    CheckedDistance().apply((row, column))
except InvalidType as error:
    report(error)

# %% [markdown]
# Read the message like a user without the source. The message names the operation, the failed
# condition, both values, and every input. The way ends in the check: `forward` has not run, and
# the graph has not changed.
#
# **How does the message know the text `in_types[0].shape`?** The inputs of the check are no
# arrays, but **expressions**. An expression is a value with the text of the operations that gave
# the value. A comparison of expressions gives a **condition**, with a text too.
#
# <!-- mynode: type_check.py Expression text_and_value Condition -->
#
# `__eq__` is called for `==`, `__ge__` for `>=`, and `__bool__` if Python asks for true or false.

# %%
e = Expression("in_types[0].shape", row.array.shape)
print(e[0].text, "is", e[0].value)
condition = e[0] == 4
print(condition.text, "|", condition.actual, "|", bool(condition))

# %% [markdown]
# The check gets a `TypeInfo` for each input. `run_check` adds the name of the operation and all
# inputs to the message.
#
# <!-- mynode: type_check.py TypeInfo TypeInfoTuple -->
#
# | you write | it holds if |
# |---|---|
# | `in_types.size() == 2` | there are two inputs |
# | `a.ndim == 2` | `a` has two axes |
# | `a.shape[0] == b.shape[1]` | both axes have the same length |
# | `a.dtype == b.dtype` | both have the same dtype |
# | `is_floating(a)` | the dtype of `a` is floating |
#
# In the package: [type_check](../source/tinynode/type_check.md). The package has more: `!=`, `<`,
# sums and products of expressions, and hints such as "Try: reshape x".
#
# ## See
# The graph of the unchecked distance. Two shapes went into an operation without a comparison:

# %%
graph_of(y, title="a wrong number, and no error")

# %% [markdown]
# All cases side by side: left the operation without the check, right with the check.


# %%
def first_line(function, inputs):
    try:
        return f"{float(function.apply(inputs)[0].array):g}"
    except InvalidType as error:
        return f"{error.expect}, but {error.actual}"
    except Exception as error:
        return f"{type(error).__name__} in forward"


cases = {
    "row and row": (row, row),
    "row and column": (row, column),
    "8 bits": (small, large),
    "one input": (row,),
}
for name, inputs in cases.items():
    without = first_line(SquaredDistance(), inputs)
    print(f"{name:14} | {without:21} | {first_line(CheckedDistance(), inputs)}")

# %% [markdown]
# ## Break it
# Two checks, right at first sight. Both want a matrix with three columns, and get an array with a
# single axis.


# %%
class First(SquaredDistance):
    def check_type_forward(self, in_types):
        expect(in_types[0].ndim == 2, in_types[0].shape[1] == 3)


class Second(SquaredDistance):
    def check_type_forward(self, in_types):
        shape = in_types[0].shape.value
        expect(len(shape) == 2)
        expect(shape[1] == 3)


for function in First(), Second():
    try:
        function.apply((row, row))
    except Exception as error:
        report(error)

# %% [markdown]
# `First` fails in its own check. Python computes *all* arguments before the call of `expect`, so
# Python asks for `shape[1]` of an array without such an axis. `Second` refuses the input, but
# compares plain numbers without a text: "one is False" is no help.
#
# ## Fix it
# Ask for the number of axes in an `expect` of its own, before you look at a length. And compare
# the expressions themselves, not the values inside.


# %%
class Third(SquaredDistance):
    def check_type_forward(self, in_types):
        expect(in_types[0].ndim == 2)
        expect(in_types[0].shape[1] == 3)


try:
    Third().apply((row, row))
except InvalidType as error:
    report(error)

# %% [markdown]
# **Cost.** A check makes a few small objects in each call, also where all is well. For arrays of
# 1,000,000 elements the time is hard to notice, for small arrays easy:

# %% tags=["varies"]
large = Variable(np.ones(1_000_000))
for name, x in (("three numbers", row), ("1,000,000 numbers", large)):
    times = []
    for kind in (SquaredDistance, CheckedDistance):
        runs = timeit.repeat(lambda kind=kind, x=x: kind().apply((x, x)), number=10, repeat=3)
        times.append(min(runs) / 10 * 1e6)
    print(f"{name}: {times[0]:.0f} µs without a check, {times[1]:.0f} µs with a check")

# %% [markdown]
# The package saves this time. `check_type_forward` first gets the plain arrays. Only after a
# failed condition comes a second call, with expressions.
#
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019: its `type_check` has the same words.
#
# ## Exercise
# 1. `type_check.py`: write `is_floating`, and the ends of `expect` and of `run_check`; the rest is
#    given. For a condition that does not hold, `expect` raises
#    `InvalidType(condition.text, condition.actual)`. `run_check` calls the check. For an
#    `InvalidType` it raises another one, with the `full_message`.
# 2. `core/function_node.py`: a method `check_type_forward(self, in_types)` that does nothing, and
#    `run_check(self, arrays)` in `apply`, before `forward`.
# 3. `functions/arithmetic.py`: `BroadcastingNode` wants two inputs whose shapes broadcast.
#    `functions/network.py` and `functions/cross_entropy.py`: `Linear` and `SoftmaxCrossEntropy`
#    say what they want, in a `check_type_forward` of three to seven lines.
# 4. `functions/products.py`: the check and the backward of `MatMul`, the product of two matrices,
#    $z = x y$. The gradients are $g_x = g_z \, y^T$ and $g_y = x^T g_z$. Refuse a wrong number of
#    inputs, inputs that are no matrices, dtypes that are not floating or not equal, and lengths
#    that do not fit.
# 5. `core/operators.py`: `x @ y` calls `__matmul__`.
#
# The check reads your messages.
#
#     python -m tinynode.learn start 15
#     python -m tinynode.learn check 15
#
# `python -m tinynode.learn run 15 --mine` runs this page on your own package.
