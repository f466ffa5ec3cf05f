# %% [markdown]
# # Step 11: weak references and memory
#
# **Goal.** The memory of a graph is freed at the moment when the last user of the graph is gone.

# %%
import gc
import weakref

import numpy as np

import tinynode as tn
from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("11")
from mynode import Variable, square
from mynode.functions.exponential import Square

# %% [markdown]
# CPython counts the references to each object. At zero references the object is freed, at once.
# Since step 1 our objects refer to each other in a circle: `y.creator_node` is an operation, and
# the `outputs` of the operation hold `y`. In a circle **no count ever falls to zero**, even long
# after you dropped `y`. A second helper, the garbage collector, looks for circles now and then.
# Until the collector runs, the arrays stay in memory. For arrays of megabytes, this is too late.
#
# ## What is new
# A **weak reference** refers to an object without being counted. `w = weakref.ref(y)` makes a weak
# reference. `w()` gives `y` while `y` exists, and `None` afterwards. Two changes use it:
#
# 1. An operation holds its outputs weakly. The way from a result back to the leaves stays strong,
#    since `backward` goes this way.
# 2. The box is split in two. The **Variable** is yours, and has the array. The **VariableNode** is
#    the part that the graph holds. So a graph can stay while a Variable and its array go.
#
# ```text
# x                   y               the Variables: yours
# |                   |
# x.node <- Square <- y.node          the graph: each arrow is a strong reference
# ```
#
# <!-- mynode: core/variable_node.py VariableNode -->
#
# `apply` stores nodes in place of boxes. A node has a shape, and no array. The arrays for
# `backward` are in `input_arrays`, as since step 2, so no operation changes.
#
# <!-- mynode: core/function_node.py FunctionNode -->
#
# Where does `backward` put the gradient of an inner Variable that is gone? From now on gradients
# travel in a **table**, a dictionary from node to gradient. The table lives as long as a single
# `backward`. The backward of an operation takes the gradients of the outputs *out* of the table.
# So the table has only the gradients of the leaves at the end. Inner Variables have no `grad`.
#
# <!-- mynode: core/backprop.py backward -->
#
# In the package: [VariableNode](../source/tinynode/core/variable_node.md),
# [FunctionNode](../source/tinynode/core/function_node.md).
#
# ## Predict
# `StrongSquare` is `Square` as in steps 1 to 10: it holds its outputs. A loop computes a new `y`
# from a new `x`, 50 times, while the garbage collector is switched off. How many of the 50 results
# are in memory at the end: with `StrongSquare`, and with `Square`?


# %%
class StrongSquare(Square):
    """As in steps 1 to 10: the operation holds its outputs."""

    def apply(self, inputs):
        self.kept = super().apply(inputs)
        return self.kept


# %% [markdown]
# ## Run


# %%
def megabytes_over_time(kind, rounds=50):
    """The size of all arrays that are still in memory, after each round."""
    arrays, sizes = [], []
    gc.disable()
    for _ in range(rounds):
        x = Variable(np.ones(25_000))
        (y,) = kind().apply((x,))
        arrays += [weakref.ref(x.array), weakref.ref(y.array)]
        sizes.append(sum(ref().nbytes for ref in arrays if ref() is not None) / 1e6)
    gc.enable()
    gc.collect()  # look for circles now
    return sizes


strong, weak = megabytes_over_time(StrongSquare), megabytes_over_time(Square)
print(f"StrongSquare: {strong[-1]:.1f} MB after 50 rounds")
print(f"Square:       {weak[-1]:.1f} MB after 50 rounds")

# %% [markdown]
# With the circle, all 50 results are in memory, and the inputs too: 100 arrays. Without the circle
# only the two arrays of the last round are.
#
# ## See

# %%
tn.show.lines(
    list(range(1, 51)),
    {"StrongSquare": strong, "Square": weak},
    title="Arrays in memory",
    x_label="round",
    y_label="megabytes",
)

# %% [markdown]
# The split has a second result. An inner Variable goes as soon as you drop it, and the graph
# stays. Here `y` is dropped before `backward`, and the gradient is right.

# %%
x = Variable(np.array(3.0), name="x")
y = x + x
z = square(y)
gone = weakref.ref(y)
del y
print("y is gone:", gone() is None)
z.backward()
print("the gradient of (x + x)^2 at 3:", x.grad)
graph_of(z, title="z = (x + x)^2, after `del y`")

# %% [markdown]
# The film shows the table. Each operation takes an entry out of the table, and puts the gradients
# of its inputs in. Only `x` has a gradient at the end.

# %%
with tn.show.record("gradients travel in a table") as film:
    x = Variable(np.array(3.0), name="x")
    z = square(x + x)
    z.backward()
film

# %% [markdown]
# ## Break it
# If weak is good, is weaker better? The next operation holds its *inputs* weakly.


# %%
class WeakInputs(Square):
    """Square, with weak references in the wrong direction."""

    def apply(self, inputs):
        outputs = super().apply(inputs)
        self.weak_inputs = tuple(weakref.ref(node) for node in self.inputs)
        self.inputs = ()
        return outputs


x = Variable(np.array(3.0))
y = x + x
(z,) = WeakInputs().apply((y,))
del y
print("the node of y:", z.creator_node.weak_inputs[0]())

# %% [markdown]
# The node of `y` had no strong reference any more, so the node was freed. The way back to `x` is
# lost, and `backward` would end there.
#
# ## Fix it
# References along the way of `backward` are strong: from a node to its creator, and from an
# operation to the nodes of its inputs. The others are weak: from an operation to the nodes of its
# outputs, and from a node to its Variable. No references lead in a circle.

# %%
gc.disable()
y = square(x + x)
gone = weakref.ref(y.creator_node)
del y
print("the graph went together with y, without the collector:", gone() is None)
gc.enable()

# %% [markdown]
# **Cost.** A Variable now consists of two objects. Each step of a chain costs a node and a weak
# reference more, a few hundred bytes. In return the arrays of a dropped graph cost nothing.
#
# Source: Collins, A Method for Overlapping and Erasure of Lists, 1960, which counts references.
#
# ## Exercise
# Make the split in your package. The stubs of `VariableNode` and of `write_to_leaves` are added by
# `start`; the rest is a change of your own code.
#
# 1. `core/variable_node.py`: write `VariableNode`.
# 2. `core/variable.py`: a Variable gets a `node`. `creator_node` and `rank` become properties
#    that ask the node.
# 3. `core/function_node.py`: `apply` stores nodes, and weak references to the nodes of the
#    outputs.
# 4. `core/backprop.py`: `backward` makes the table. Write `run_backward(function, gradients)`
#    and `write_to_leaves(gradients)` yourself. `gradients.pop(node, None)` takes a gradient out.
#    A node that is in the table already gets a sum. A leaf with a `grad` gets a sum, too.
#
# The check switches the collector off, and looks for arrays that stay.
#
#     python -m tinynode.learn start 11
#     python -m tinynode.learn check 11
#
# `python -m tinynode.learn run 11 --mine` runs this page on your own package.
