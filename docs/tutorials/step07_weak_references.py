# %% [markdown]
# # Step 7: weak references and memory
#
# **Goal.** The memory of a graph is given back at the moment when nobody needs the graph any more.

# %% [markdown]
# Python (the usual one, CPython) counts, for each object, how many references to it there are.
# When the count falls to zero, the object goes, at once, and its memory is free. Since step 1 our
# objects refer to each other in a circle: `y.creator_node` is an operation, and its `outputs` hold
# `y`. In a circle each object is referred to by another one, so **no count ever falls to zero**,
# even when you dropped `y` long ago. Python has a second helper for this, the garbage collector,
# which looks for circles now and then. Until it comes, the arrays stay. For arrays of megabytes
# that is too late.

# %% tags=["engine"]
import gc
import heapq
import weakref

import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## What is new
# A **weak reference** refers to an object without being counted. `w = weakref.ref(y)` makes one;
# `w()` gives `y` while `y` exists, and `None` afterwards. Two changes use it:
#
# 1. An operation holds its outputs weakly. The way back, from a result to the leaves, stays
#    strong: that is the way that `backward` goes.
# 2. The box is split in two. The **Variable** is yours: it has the array. Its **VariableNode** is
#    what the graph holds. So the graph can stay while your Variable, with its array, goes.
#
# ```text
# x                   y               the Variables: yours
# |                   |
# x.node <- Square <- y.node          the graph: each arrow is a strong reference
# ```


# %% tags=["engine"]
class VariableNode:
    """What the graph holds of a Variable: no array."""

    def __init__(self, variable, creator_node=None, rank=0):
        self.name = variable.name
        self.creator_node = creator_node
        self.rank = rank
        self._variable = weakref.ref(variable)

    def get_variable_or_none(self):
        """The Variable, while somebody holds it."""
        return self._variable()


# %% [markdown]
# Where can `backward` put the gradient of an inner Variable that is gone? Nowhere. So gradients
# now travel in a table, from node to gradient, which lives as long as one `backward`. An operation
# takes the gradients of its outputs out of the table. What is left at the end belongs to leaves,
# and is handed to their Variables. Inner Variables have no `grad` any more.


# %% tags=["engine"]
class Variable:
    """A box around an array. Its node remembers what computed it."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.grad = None
        self.node = VariableNode(self)

    @property
    def creator_node(self):
        return self.node.creator_node

    @property
    def rank(self):
        return self.node.rank

    def backward(self):
        """Find the gradient of every leaf that this Variable was computed from."""
        gradients = {self.node: np.ones_like(self.array) if self.grad is None else self.grad}
        heap, seen = [], set()

        def push(function):
            if function is not None and function not in seen:
                seen.add(function)
                heapq.heappush(heap, (-function.rank, len(seen), function))

        push(self.creator_node)
        while heap:
            function = heapq.heappop(heap)[2]
            targets = tuple(range(len(function.inputs)))
            grad_outputs = tuple(gradients.pop(output(), None) for output in function.outputs)
            grad_inputs = function.backward(targets, grad_outputs)
            for node, gx in zip(function.inputs, grad_inputs, strict=True):
                gradients[node] = gx if node not in gradients else gradients[node] + gx
                push(node.creator_node)
        for node, gx in gradients.items():
            x = node.get_variable_or_none()
            if x is not None:
                x.grad = gx if x.grad is None else x.grad + gx

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)


# %% [markdown]
# `apply` stores nodes in place of boxes. The nodes have no arrays, and `backward` needs some, so
# for now each operation keeps the arrays of all its inputs.


# %% tags=["engine"]
class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    def apply(self, inputs):
        arrays = tuple(x.array for x in inputs)
        results = self.forward(arrays)
        if not isinstance(results, tuple):
            raise TypeError(f"forward output must be a tuple ({type(self).__name__})")
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        self.rank = max(x.rank for x in inputs)
        for y in outputs:
            y.node.creator_node = self
            y.node.rank = self.rank + 1
        self.inputs = tuple(x.node for x in inputs)
        self.outputs = tuple(weakref.ref(y.node) for y in outputs)
        self._input_data = arrays
        return outputs


# %% [markdown]
# ## The engine so far
# The operations are those of step 6, with one change: they read `self._input_data`.


# %% tags=["engine"]
class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        return (inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * 2.0 * self._input_data[0],)


def square(x):
    return Square().apply((x,))[0]


def _as_operands(x, y):
    """Both as Variables: a number takes the shape of the other."""
    if not isinstance(y, Variable):
        y = Variable(np.full(x.array.shape, y, np.result_type(x.array, y)))
    if not isinstance(x, Variable):
        x = Variable(np.full(y.array.shape, x, np.result_type(y.array, x)))
    return x, y


class Add(FunctionNode):
    """z = x + y.   gx = gz, gy = gz"""

    def forward(self, inputs):
        return (inputs[0] + inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0], grad_outputs[0]


def add(x, y):
    return Add().apply(_as_operands(x, y))[0]


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        x, y = self._input_data
        return grad_outputs[0] * y, grad_outputs[0] * x


def multiply(x, y):
    return Multiply().apply(_as_operands(x, y))[0]


# %% [markdown]
# ## Predict
# `StrongSquare` is `Square` as it was in steps 1 to 6: it holds its outputs. A loop computes a new
# `y` from a new `x`, 50 times, while the garbage collector is switched off. How many of the 50
# results are in memory at the end: with `StrongSquare`, and with `Square`?


# %%
class StrongSquare(Square):
    """As in steps 1 to 6: the operation holds its outputs."""

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
# With the circle all 50 are there, and their inputs too: 100 arrays. Without it only those of the
# last round are.

# %% [markdown]
# ## See


# %%
def picture():
    rounds = list(range(1, 51))
    curves = {"StrongSquare": strong, "Square": weak}
    return tn.show.lines(
        rounds, curves, title="Arrays in memory", x_label="round", y_label="megabytes"
    )


picture()

# %% [markdown]
# The other result of the split: an inner Variable goes as soon as you drop it, and the graph
# stays. `y` is dropped here before `backward`, and the gradient is right.

# %%
x = Variable(np.array(3.0))
y = x + x
z = square(y)
gone = weakref.ref(y)
del y
print("y is gone:", gone() is None)
z.backward()
print("the gradient of (x + x)^2 at 3:", x.grad)

# %% [markdown]
# ## Break it
# If weak is good, is weaker better? This operation holds its *inputs* weakly.


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
# Nobody held `y.node` any more, so it went, and the way back to `x` went with it. `backward` would
# end there.

# %% [markdown]
# ## Fix it
# References along the way of `backward` are strong: `y.node` to its creator, and an operation to
# the nodes of its inputs. The others are weak: an operation to the nodes of its outputs, a node to
# its Variable. Nothing leads in a circle.

# %%
gc.disable()
y = square(x + x)
gone = weakref.ref(y.creator_node)
del y
print("the graph went together with y, without the collector:", gone() is None)
gc.enable()

# %% [markdown]
# ## Exercise
# `Watched` is a `Square` that can be asked for its last output. The stub keeps the output, and so
# makes a circle. Break it: `last_output()` gives the Variable while somebody else holds it, and
# `None` afterwards. The check switches the collector off.
#
# `python -m tinynode.learn start 07`, then `python -m tinynode.learn check 07`.
