# %% [markdown]
# # Step 10: type and shape checks
#
# **Goal.** A function refuses inputs that it cannot handle, at the call, in words that name what
# was expected and what came.

# %% [markdown]
# ## From your engine to the package
# Your engine of step 9 and the package have the same names: `Variable`, `VariableNode`,
# `FunctionNode`, `apply`, `forward`, `backward`, `retain_inputs`, `creator_node`, `rank`,
# `cleargrad`, `unchain`, `no_backprop_mode`. What you know of them stays true. From now on the
# course uses the package's. This is what it adds:
#
# | | your engine | the package |
# |---|---|---|
# | functions | a handful | more than 100 in `tinynode.functions`, which is called `F` here |
# | arrays | NumPy | any library of the Array API standard: `xp` in place of `np` |
# | shapes | as they come | inputs **broadcast**, gradients have their shapes (step 11) |
# | wrong inputs | an error from somewhere, or none | `check_type_forward`: this step |
# | training | | layers, losses and optimizers in `tinynode.nn` (step 12) |
# | trust | `numerical_grad` | checkers for functions of any shape (step 13) |
#
# Two things differ. So that `forward` runs with any of these libraries, it asks which one its
# arrays belong to: `xp = tn.namespace_of(x)`. And a `backward` of the package gets and returns
# **Variables**, and so do `get_retained_inputs` and `get_retained_outputs`; the formulas look the
# same, so write them as before.

# %%
import inspect
import traceback

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import type_check
from tinynode.type_check import expect, is_floating


class SquaredDistance(tn.FunctionNode):
    """y = sum((a - b)^2).

    a: (s), b: (s) -> y: ().   With g = dL/dy:   dL/da = 2 g (a - b)   dL/db = -2 g (a - b)
    """

    def forward(self, inputs):
        a, b = inputs
        xp = tn.namespace_of(a)
        self.retain_inputs((0, 1))
        return (xp.sum((a - b) ** 2),)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        a, b = self.get_retained_inputs()
        ga = 2 * g * (a - b)
        return ga, -ga


row = tn.Variable(np.array([1.0, 2.0, 3.0]), name="row")
y = SquaredDistance().apply((row, tn.Variable(np.array([1.0, 2.0, 5.0]))))[0]
y.backward()
print(float(y.array), row.grad.tolist())

# %% [markdown]
# ## Predict
# That was the squared distance of two arrays; from an array to itself it is 0. `column` has the
# same three numbers as `row`, but the shape (3, 1). What will the next cell print: 0, an error, or
# something else? And for numbers of 8 bits, where the distance of 0 and 20 should be 400?

# %%
column = tn.Variable(np.array([[1.0], [2.0], [3.0]]), name="column")
y = SquaredDistance().apply((row, column))[0]
print("row and column:", float(y.array))

small, large = (tn.Variable(np.array([n], dtype=np.uint8)) for n in (0, 20))
print("0 and 20 in 8 bits:", int(SquaredDistance().apply((small, large))[0].array))

# %% [markdown]
# Two wrong numbers, and no error. NumPy made a table of 3 x 3 differences of the row and the
# column; and 400 does not fit into 8 bits, so 400 - 256 is left. **A wrong number without an
# error is the worst answer**: you may train for a day before you doubt it.
#
# Does an error help at least, where one comes? Let us look at two. `report` prints the way from
# your line to the place where the error was raised, as in a traceback, and the message.


# %%
def report(error):
    way = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    print("on the way:", " > ".join(way[1:]))
    print(f"{type(error).__name__}: {error}\n")


try:
    y.backward()
except Exception as error:
    report(error)

try:
    SquaredDistance().apply((row,))
except Exception as error:
    report(error)

# %% [markdown]
# Both are bad, each in its way. The first comes from `backward`, at the end of your program; but
# the mistake was made where the function was called. The second is raised in time, but says
# nothing of distances: to understand it you must read the source of `forward`.
#
# ## Run
# `check_type_forward(in_types)` is called by `apply` before `forward`. It gets the input arrays,
# and says with `expect` what must hold.


# %%
class CheckedDistance(SquaredDistance):
    input_names = ("a", "b")
    type_hint = "reshape one of them, or cast integers with astype."

    def check_type_forward(self, in_types):
        expect(in_types.size() == 2)
        a, b = in_types
        expect(is_floating(a), is_floating(b))
        expect(a.shape == b.shape)


try:
    CheckedDistance().apply((row, column))
except tn.TinynodeError as error:
    report(error)

# %% [markdown]
# Read it as somebody who has never seen the source: it names the function, the condition that
# failed, both values, every input, and what to try. (`input_names` and `type_hint` are optional.)
# The way ends in the check: `forward` has not run, so no node was made, and nothing has changed.
#
# ## See
# The graph of the unchecked distance. Two shapes went into one function, and nobody compared them:

# %%
y.name = "y"
tn.show.graph(y)

# %% [markdown]
# All cases side by side: left what happened without the check, right what the check says.


# %%
def first_lines(function, inputs):
    try:
        return f"{float(function.apply(inputs)[0].array):g}"
    except tn.TinynodeError as error:
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
    without = first_lines(SquaredDistance(), inputs)
    print(f"{name:14} | {without:21} | {first_lines(CheckedDistance(), inputs)}")

# %% [markdown]
# **How does the message know the text `in_types[0].shape`?** `in_types` first holds the arrays
# themselves, and `a.shape == b.shape` is plain Python: a check that passes costs next to nothing.
# Only when one fails, it is called once more, with an **expression** in place of each array. An
# expression remembers how it was made:

# %%
e = type_check.Expression("in_types[0]", row.array)
print(e.shape[0].text, "is", e.shape[0].value)
condition = e.shape[0] == 4
print(condition.text, "|", condition.actual, "|", bool(condition))

# %% [markdown]
# And this is what `expect` does with it. It is the package's own source:

# %%
print(inspect.getsource(type_check.expect))

# %% [markdown]
# | you write | it holds if |
# |---|---|
# | `in_types.size() == 2` | there are two inputs |
# | `a.ndim == 2` | `a` has two axes |
# | `a.shape[0] == b.shape[1]` | these axes have one length |
# | `a.dtype == b.dtype` | both have one dtype |
# | `is_floating(a)`, `is_integer(a)` | the dtype is of that kind |
#
# ## Break it
# Two checks that look right. Both get an array with one axis, where they want a matrix with three
# columns.


# %%
class First(SquaredDistance):
    def check_type_forward(self, in_types):
        expect(in_types[0].ndim == 2, in_types[0].shape[1] == 3)


class Second(SquaredDistance):
    def check_type_forward(self, in_types):
        shape = tuple(in_types[0].shape)
        expect(len(shape) == 2)
        expect(shape[1] == 3)


for function in First(), Second():
    try:
        function.apply((row, row))
    except Exception as error:
        report(error)

# %% [markdown]
# `First` fails in its own check: Python computes *all* arguments before it calls `expect`, so it
# asks for `shape[1]` of an array that has no such axis. `Second` refuses the input, but `tuple`
# and `len` gave plain numbers, which remember nothing: "one is False" tells nobody what.
#
# ## Fix it
# Ask for the number of axes in an `expect` of its own, before you look at one; and compare what
# `in_types` gives, without taking it apart first.


# %%
class Third(SquaredDistance):
    def check_type_forward(self, in_types):
        expect(in_types[0].ndim == 2)
        expect(in_types[0].shape[1] == 3)


try:
    Third().apply((row, row))
except tn.TinynodeError as error:
    report(error)

# %% [markdown]
# The package's own functions are checked like this. One that you will meet often is `linear`,
# `y = x W^T + b`. The third input, `b`, may be left out: that is what the `if` asks.

# %%
print(inspect.getsource(F.Linear.check_type_forward))

# %% [markdown]
# ## Exercise
# Write the check for `MatMul`, the product of two matrices. It must refuse a wrong number of
# inputs, inputs that are no matrices, dtypes that are not floating, and lengths that do not fit.
# The messages must name what failed: they are read.
#
#     python -m tinynode.learn start 10
#     python -m tinynode.learn check 10
