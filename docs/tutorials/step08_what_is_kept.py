# %% [markdown]
# # Step 8: what is kept
#
# **Goal.** Each operation says which arrays its `backward` will need. All others are let go.

# %% [markdown]
# In step 7 each operation kept the arrays of all its inputs. Look at what the formulas really use:
#
# | operation | formula | arrays that it uses |
# |---|---|---|
# | `z = x + y` | `gx = gz`, `gy = gz` | none |
# | `z = x * y` | `gx = gz * y`, `gy = gz * x` | both inputs |
# | `y = x * x` | `gx = gy * 2 * x` | the input |
# | `y = tanh(x)` | `gx = gy * (1 - y * y)` | the output |
#
# `Add` kept two arrays for nothing. And `Tanh` would have to compute its output once more, from
# an input that nobody else may need. In the training of a network the arrays that are kept for
# `backward` are often most of the memory. So an operation should say what it needs.

# %% tags=["engine"]
import heapq
import weakref

import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## The engine so far
# `VariableNode` and `Variable` are those of step 7.


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
# ## What is new
# While `forward` runs, it calls `self.retain_inputs((0,))` to keep its first input, or
# `self.retain_outputs((0,))` to keep its first output; the tuple has the positions, so one
# position is `(0,)`, with a comma. **Retained** arrays are there for `backward`, by
# `get_retained_inputs()` and `get_retained_outputs()`, which return tuples too. The others belong
# to the Variables alone.


# %% tags=["engine"]
def _pick(arrays, indexes):
    """The arrays, with None in place of those whose positions are not in indexes."""
    return tuple(array if i in indexes else None for i, array in enumerate(arrays))


class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    _retained_input_indexes = ()
    _retained_output_indexes = ()

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
        self._input_data = _pick(arrays, self._retained_input_indexes)
        self._output_data = _pick([y.array for y in outputs], self._retained_output_indexes)
        return outputs

    def retain_inputs(self, indexes):
        """Keep these inputs for backward. To be called in forward."""
        self._retained_input_indexes = indexes

    def retain_outputs(self, indexes):
        """Keep these outputs for backward. To be called in forward."""
        self._retained_output_indexes = indexes

    def get_retained_inputs(self):
        return tuple(self._input_data[i] for i in self._retained_input_indexes)

    def get_retained_outputs(self):
        return tuple(self._output_data[i] for i in self._retained_output_indexes)


# %% [markdown]
# The operation keeps the *array* of an output, and not its Variable or its node. Otherwise there
# would be a circle again: the node of the output holds the operation.


# %% tags=["engine"]
class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * 2.0 * x,)


def square(x):
    return Square().apply((x,))[0]


class Tanh(FunctionNode):
    """y = tanh(x).   gx = gy * (1 - y * y)"""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (np.tanh(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (y,) = self.get_retained_outputs()
        return (grad_outputs[0] * (1.0 - y * y),)


def tanh(x):
    return Tanh().apply((x,))[0]


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
        self.retain_inputs((0, 1))
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        x, y = self.get_retained_inputs()
        return grad_outputs[0] * y, grad_outputs[0] * x


def multiply(x, y):
    return Multiply().apply(_as_operands(x, y))[0]


# %% [markdown]
# ## Predict
# Let `x` and `w` have 1,000 elements of 8 bytes. How many kilobytes does each operation keep in
# `tanh(square(x * w + x))`? And if two operations keep the same array, is it in memory twice?

# %% [markdown]
# ## Run


# %%
def retained(function):
    """The arrays that an operation keeps."""
    arrays = function._input_data + function._output_data
    return [array for array in arrays if array is not None]


rng = np.random.default_rng(0)
x, w = Variable(rng.normal(size=1000)), Variable(rng.normal(size=1000))
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
def picture():
    return tn.show.bars(kept, title="Kept for backward", x_label="kilobytes")


picture()

# %% [markdown]
# No array is kept twice here. In `square(tanh(x))` one would be: the output of `Tanh` is the input
# of `Square`. Both refer to the same array, so it needs its memory once.

# %%
inner = tanh(x)
outer = square(inner)
first, second = retained(inner.creator_node)[0], retained(outer.creator_node)[0]
print("the same array:", first is second)

# %% [markdown]
# And what nobody keeps goes with its Variable. `Add` does not keep its inputs, so the array of
# `product` is gone as soon as you drop `product`; the gradients are right all the same.

# %%
gone = weakref.ref(product.array)
del product
print("the array of x * w is gone:", gone() is None)
y.backward()
t = x.array * w.array + x.array
expected = (1 - np.tanh(t * t) ** 2) * 2 * t * (w.array + 1)
print("the gradient of x is right:", np.allclose(x.grad, expected))

# %% [markdown]
# ## Break it
# Two mistakes. The first: forget to retain. `get_retained_inputs()` is an empty tuple then.


# %%
class Cube(FunctionNode):
    """y = x * x * x, with a mistake."""

    def forward(self, inputs):
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * 3.0 * x * x,)


try:
    Cube().apply((Variable(np.array(2.0)),))[0].backward()
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# The second makes no noise. What is retained is the array itself and not a copy of it. Change it
# between forward and backward, and `backward` computes with numbers that `forward` never saw.

# %%
x = Variable(np.array([3.0]))
y = square(x)
x.array += 100.0  # in place: the same array with other numbers
y.backward()
print("the gradient of x * x at 3:", x.grad)

# %% [markdown]
# ## Fix it
# The first mistake needs one line in `forward`: `self.retain_inputs((0,))`. For the second: give
# the Variable a new array, and leave the old one as it was.

# %%
x = Variable(np.array([3.0]))
y = square(x)
x.array = x.array + 100.0  # a new array
y.backward()
print("the gradient of x * x at 3:", x.grad)

# %% [markdown]
# ## Exercise
# Write `Exp` and `Sin`. Each keeps one array: `Exp` its output, since the derivative of `e^x` is
# `e^x` and has been computed already; `Sin` its input. The check looks at the gradients, and at
# what stays in memory.
#
# `python -m tinynode.learn start 08`, then `python -m tinynode.learn check 08`.
