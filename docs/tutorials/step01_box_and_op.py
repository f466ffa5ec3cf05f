# %% [markdown]
# # Step 1: a box and an operation
#
# **Goal.** Put numbers into boxes that remember which operation computed them.

# %% [markdown]
# Suppose that a program computes `-(x * x)` and prints `-9.0`. The number alone does not say
# where it came from: not that a square was taken, and not that `x` was 3. A library that finds
# derivatives for you has to know both. So the first thing to build is memory.
#
# Two classes are enough for it:
#
# - a **Variable** is a box around an array;
# - a **FunctionNode** is one use of an operation. It knows the boxes that went in and the boxes
#   that came out.
#
# All numbers in this course are NumPy arrays. `np.array(3.0)` is an array without axes: a single
# number.

# %% [markdown]
# ## Predict
# Read the cells from here down to **Run** before you run them. Then answer: after `y = square(x)`
# and `z = negative(y)`, how do you get from `z` back to `x`? Write down the attributes, in order.

# %% tags=["engine"]
import numpy as np

# %%
import tinynode as tn


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None  # the FunctionNode that computed it


# %% [markdown]
# The method `apply` does the work that all operations share. It opens the boxes, calls `forward`
# on the arrays, puts the results into new boxes, and ties everything together. `forward` takes a
# tuple of arrays and returns a tuple of arrays, even where there is only one: an operation may
# have two inputs, or two outputs. (`np.asarray` is there because NumPy's `x * x` of an array
# without axes is a plain number, and a box wants an array.)


# %% tags=["engine"]
class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    def apply(self, inputs):
        results = self.forward(tuple(x.array for x in inputs))
        if not isinstance(results, tuple):
            name = type(self).__name__
            raise TypeError(
                f"forward output must be a tuple ({name})\nActual: {type(results).__name__}"
            )
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        for y in outputs:
            y.creator_node = self
        self.inputs = tuple(inputs)
        self.outputs = outputs
        return outputs

    def forward(self, inputs):
        raise NotImplementedError


# %% [markdown]
# An operation is now a class with a `forward`. Beside it stands a short function, so that nobody
# has to write `Square().apply((x,))[0]`. Each call makes a **new** object of the class: one
# object is one use.


# %% tags=["engine"]
class Square(FunctionNode):
    """y = x * x"""

    def forward(self, inputs):
        (x,) = inputs
        return (x * x,)


def square(x):
    return Square().apply((x,))[0]


class Negative(FunctionNode):
    """y = -x"""

    def forward(self, inputs):
        (x,) = inputs
        return (-x,)


def negative(x):
    return Negative().apply((x,))[0]


# %% [markdown]
# ## Run

# %%
x = Variable(np.array(3.0), name="x")
y = square(x)
y.name = "y"
z = negative(y)
z.name = "z"
print("y is", y.array)
print("z is", z.array)

# %% [markdown]
# The numbers are right, but they are not the point. Now walk back. From a box to the operation
# that made it: `creator_node`. From an operation to the box that went in: `inputs`.

# %%
print("z was made by", type(z.creator_node).__name__)
print("which was given y:", z.creator_node.inputs[0] is y)
print("y was made by", type(y.creator_node).__name__)
print("which was given x:", y.creator_node.inputs[0] is x)
print("x was made by", x.creator_node)

# %% [markdown]
# That is the answer to the question: `z.creator_node.inputs[0].creator_node.inputs[0]` is `x`.
# `x` itself was made by no operation. Such a box is called a **leaf**.

# %% [markdown]
# ## See
# All boxes and operations together are the **graph**. A short loop walks from the result back to
# the leaf, and prints what it meets. Read the line from its right end: `z` came from Negative,
# which was given `y`, and so on. Each arrow `<-` is one attribute in memory.


# %%
def path(variable):
    """The chain that leads to a variable, as text: leaf on the left."""
    parts = [variable.name]
    while variable.creator_node is not None:
        function = variable.creator_node
        variable = function.inputs[0]
        parts = [variable.name, type(function).__name__, *parts]
    return " <- ".join(parts)


print(path(z))

# %% [markdown]
# The same as a picture. Here the arrows follow the numbers, from `x` to `z`; the attributes that
# you walked along point the other way.


# %%
def picture():
    diagram = tn.show.Diagram("z = -(x * x)", direction="right")
    box_x = diagram.variable("x", "3.0", marks="leaf")
    box_y = diagram.variable("y", "9.0")
    box_z = diagram.variable("z", "-9.0")
    diagram.function("Square", inputs=[box_x], outputs=[box_y])
    diagram.function("Negative", inputs=[box_y], outputs=[box_z])
    return diagram


picture()

# %% [markdown]
# Nobody declared this graph. You called two functions, and it grew while they ran. A loop that
# runs three times makes three operations; an `if` makes the one that was taken. This is called
# **define-by-run**.

# %%
v = x
for _ in range(3):
    v = square(v)
    v.name = "v"
print(path(v))
print("3 squared three times:", v.array)

# %% [markdown]
# ## Break it
# A `forward` that forgets the comma returns an array, where a tuple was asked for.


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
# Why does `apply` look so closely? An array of three numbers can be looped over, just as a tuple
# of three results can. Without the test, `apply` would have made three boxes out of one array,
# and nobody would have been told.

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
# ## Exercise
# Add an operation: `Exp`, with `y = e^x` (NumPy has `np.exp`), and its short function `exp(x)`.
# The check looks at the numbers, and at the edges of the graph.
#
# `python -m tinynode.learn start 01`, then `python -m tinynode.learn check 01`.
