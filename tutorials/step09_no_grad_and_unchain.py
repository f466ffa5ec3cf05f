# %% [markdown]
# # Step 9: no gradient, unchain, backward again
#
# **Goal.** Say where a graph begins and where it ends, and call `backward` as often as you like.

# %% [markdown]
# The engine records everything and differentiates everything. Often that is too much:
#
# - data and plain numbers need no gradient;
# - using a network that is trained already needs no graph at all;
# - a loop that runs for days must forget its beginning, or the graph fills the memory.
#
# And training calls `backward` thousands of times on the same leaves. This step gives you the
# switches for all that. With them your engine is complete.

# %% tags=["engine"]
import contextlib
import heapq
import types
import weakref

import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## What is new
# **`no_backprop_mode()`** is for a `with` block in which no graph is recorded. It changes a
# setting, and puts the old one back at the end, also after an error.


# %% tags=["engine"]
config = types.SimpleNamespace(enable_backprop=True)


@contextlib.contextmanager
def no_backprop_mode():
    """In this block, operations record no graph."""
    before = config.enable_backprop
    config.enable_backprop = False
    try:
        yield
    finally:
        config.enable_backprop = before


# %% [markdown]
# **`requires_grad`** says whether a Variable wants a gradient. An operation's output wants one if
# one of its inputs does. `backward` asks each operation only for the gradients that are wanted:
# their positions are `target_input_indexes`. Integers have no derivative, so they want none.
#
# **`unchain()`** cuts a Variable off from its creator. To `backward` it is a leaf from then on.
#
# **`cleargrad()`** throws the gradient away. `backward` *adds* to the gradient of a leaf, so call
# it before each one.
#
# And `backward` now says clearly when it cannot start: there must be an operation that computed
# `y`, and `y` must be a single number. Until now an array of many numbers began with ones, and
# nobody had asked for that. Put your own choice into `y.grad` first; `backward` uses it up.


# %% tags=["engine"]
class VariableNode:
    """What the graph holds of a Variable: no array."""

    def __init__(self, variable, creator_node=None, rank=0):
        self.name = variable.name
        self.requires_grad = variable.requires_grad
        self.creator_node = creator_node
        self.rank = rank
        self._variable = weakref.ref(variable)

    def get_variable_or_none(self):
        """The Variable, while somebody holds it."""
        return self._variable()

    def unchain(self):
        self.creator_node = None


class Variable:
    """A box around an array. Its node remembers what computed it."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

    def __init__(self, array, *, name=None, requires_grad=None):
        self.array = array
        self.name = name
        self.requires_grad = array.dtype.kind == "f" if requires_grad is None else requires_grad
        self.grad = None
        self.node = VariableNode(self)

    @property
    def creator_node(self):
        return self.node.creator_node

    @property
    def rank(self):
        return self.node.rank

    def cleargrad(self):
        """Throw the gradient away. To be called before each backward."""
        self.grad = None

    def unchain(self):
        """Forget the creator: backward stops here."""
        self.node.unchain()

    def backward(self):
        """Add to the grad of every leaf that this Variable was computed from."""
        if self.creator_node is None:
            raise ValueError("y.backward(): no recorded operation has computed y")
        if self.grad is None and self.array.size != 1:
            raise ValueError(f"y.backward(): y has shape {self.array.shape}; set y.grad first")
        gradients = {self.node: np.ones_like(self.array) if self.grad is None else self.grad}
        self.grad = None  # it is used up
        heap, seen = [], set()

        def push(function):
            if function is not None and function not in seen:
                seen.add(function)
                heapq.heappush(heap, (-function.rank, len(seen), function))

        push(self.creator_node)
        while heap:
            function = heapq.heappop(heap)[2]
            targets = tuple(i for i, node in enumerate(function.inputs) if node.requires_grad)
            grad_outputs = tuple(gradients.pop(output(), None) for output in function.outputs)
            grad_inputs = function.backward(targets, grad_outputs)
            for i in targets:
                node, gx = function.inputs[i], grad_inputs[i]
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

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)

    def __neg__(self):
        return negative(self)


# %% [markdown]
# In `apply`, the part that ties the graph together now comes after an `if`.


# %% tags=["engine"]
def _pick(arrays, indexes):
    """The arrays, with None in place of those whose positions are not in indexes."""
    return tuple(array if i in indexes else None for i, array in enumerate(arrays))


class FunctionNode:
    """One use of an operation, between the nodes of its inputs and of its outputs."""

    inputs = None
    outputs = None
    rank = 0
    _retained_input_indexes = ()
    _retained_output_indexes = ()

    def apply(self, inputs):
        arrays = tuple(x.array for x in inputs)
        results = self.forward(arrays)
        if not isinstance(results, tuple):
            raise TypeError(f"forward output must be a tuple ({type(self).__name__})")
        wanted = any(x.requires_grad for x in inputs)
        results = tuple(np.asarray(result) for result in results)
        outputs = tuple(Variable(y, requires_grad=wanted and y.dtype.kind == "f") for y in results)
        if wanted and config.enable_backprop:
            self.rank = max(x.rank for x in inputs)
            for y in outputs:
                y.node.creator_node = self
                y.node.rank = self.rank + 1
            self.inputs = tuple(x.node for x in inputs)
            self.outputs = tuple(weakref.ref(y.node) for y in outputs)
            self._input_data = _pick(arrays, self._retained_input_indexes)
            self._output_data = _pick(results, self._retained_output_indexes)
        return outputs

    def forward(self, inputs):
        raise NotImplementedError

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError

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
# ## The engine so far
# All operations of the course up to here. `Multiply` now makes use of `target_input_indexes`: it
# leaves out the product that nobody wants.


# %% tags=["engine"]
def _as_operands(x, y):
    """Both as Variables: a number takes the shape of the other, and wants no gradient."""
    if not isinstance(y, Variable):
        y = np.full(x.array.shape, y, np.result_type(x.array, y))
        y = Variable(y, requires_grad=False)
    if not isinstance(x, Variable):
        x = np.full(y.array.shape, x, np.result_type(y.array, x))
        x = Variable(x, requires_grad=False)
    return x, y


class Add(FunctionNode):
    """z = x + y.   gx = gz, gy = gz"""

    def forward(self, inputs):
        return (inputs[0] + inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0], grad_outputs[0]


def add(x, y):
    return Add().apply(_as_operands(x, y))[0]


class Subtract(FunctionNode):
    """z = x - y.   gx = gz, gy = -gz"""

    def forward(self, inputs):
        return (inputs[0] - inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        return grad_outputs[0], -grad_outputs[0]


def subtract(x, y):
    return Subtract().apply(_as_operands(x, y))[0]


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        return (inputs[0] * inputs[1],)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        gx = gz * y if 0 in target_input_indexes else None
        gy = gz * x if 1 in target_input_indexes else None
        return gx, gy


def multiply(x, y):
    return Multiply().apply(_as_operands(x, y))[0]


class Negative(FunctionNode):
    """y = -x.   gx = -gy"""

    def forward(self, inputs):
        return (-inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        return (-grad_outputs[0],)


def negative(x):
    return Negative().apply((x,))[0]


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


class Exp(FunctionNode):
    """y = e^x.   gx = gy * y"""

    def forward(self, inputs):
        self.retain_outputs((0,))
        return (np.exp(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (y,) = self.get_retained_outputs()
        return (grad_outputs[0] * y,)


def exp(x):
    return Exp().apply((x,))[0]


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * np.cos(x),)


def sin(x):
    return Sin().apply((x,))[0]


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


# %% [markdown]
# ## Predict
# `y = x * x` at `x = 3`. You call `y.backward()` three times in a row. What is `x.grad` after each
# call? And how many operations are behind a result that was computed in `no_backprop_mode()`?

# %% [markdown]
# ## Run

# %%
x = Variable(np.array(3.0))
y = x * x
for _ in range(3):
    y.backward()
    print("again, without cleargrad:", x.grad)
x.cleargrad()
y.backward()
print("after cleargrad:         ", x.grad)

# %% [markdown]
# The graph is still there after `backward`, so it can run again. Each run begins with an empty
# table, and adds its result to the leaf.
#
# To count the operations behind a Variable, walk back with a loop:


# %%
def count_operations(y):
    seen, waiting = {None}, [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += [node.creator_node for node in function.inputs]
    return len(seen) - 1


data = Variable(np.array(5.0), requires_grad=False)
print("x * data + x:             ", count_operations(x * data + x), "operations")
print("data * data:              ", count_operations(data * data), "operations")
with no_backprop_mode():
    print("in no_backprop_mode:      ", count_operations(x * data + x), "operations")

x.cleargrad()
(x * data).backward()
print("gradients of x and of data:", x.grad, data.grad)

# %% [markdown]
# ## See
# A loop reads one number after the other, and keeps a memory `h` of what it has read. Behind the
# last `h` is the whole loop. `unchain()` cuts it: in the picture, no arrow leads from step 2 to
# `h2` any more. `backward` from `h4` passes step 4 and step 3, and ends at `w` and at `h2`.


# %%
def read(w, numbers, cut_after=None):
    """h = tanh(w * h + x) for each x in numbers; returns all h."""
    h = Variable(np.array(0.0), requires_grad=False)
    memories = []
    for i, number in enumerate(numbers):
        h = tanh(w * h + number)
        memories.append(h)
        if i == cut_after:
            h.unchain()
    return memories


w = Variable(np.array(0.5))
numbers = (1.0, -0.5, 0.3, 0.8)
print("step   operations   with a cut after step 2")
whole, cut = read(w, numbers), read(w, numbers, cut_after=1)
for i, (a, b) in enumerate(zip(whole, cut, strict=True), 1):
    print(f"{i:>4}{count_operations(a):>13}{count_operations(b):>26}")


# %%
def picture():
    diagram = tn.show.Diagram("h = tanh(w * h + x), cut after step 2")
    weight = diagram.variable("w", marks="leaf")
    memory = diagram.variable("h0", "wants no gradient", marks="no gradient")
    for i in range(1, 5):
        after = diagram.variable(f"h{i}", *(("cut: a leaf now",) if i == 2 else ()))
        label = f"step {i}"
        outputs = [] if i == 2 else [after]
        diagram.function(label, "Multiply, Add, Tanh", inputs=[weight, memory], outputs=outputs)
        memory = after
    return diagram


picture()

# %% [markdown]
# ## Break it
# A program that trains prints an average of its losses now and then. Here the average is made of
# Variables, and so each round hangs all earlier rounds behind it.

# %%
x = Variable(np.array(3.0))
average = Variable(np.array(0.0), requires_grad=False)
for i in range(1, 4):
    loss = square(x - 2.0)
    average = 0.9 * average + 0.1 * loss
    print(f"round {i}: {count_operations(average)} operations are kept")

# %% [markdown]
# Nobody will differentiate the average, and its graph grows for ever. The program slows down, and
# ends when the memory is full.
#
# The other mistakes of this step are answered by `backward` at once:

# %%
with no_backprop_mode():
    y = square(x)
three = square(Variable(np.array([1.0, 2.0, 3.0])))
for result in (y, three):
    try:
        result.backward()
    except ValueError as error:
        print("ValueError:", error)

# %% [markdown]
# ## Fix it
# Numbers for people are computed in `no_backprop_mode()`. What is trained keeps its graph.

# %%
average = Variable(np.array(0.0), requires_grad=False)
for _ in range(3):
    loss = square(x - 2.0)
    with no_backprop_mode():
        average = 0.9 * average + 0.1 * loss
print("average:", count_operations(average), "operations; loss:", count_operations(loss))

# %% [markdown]
# ## What you have built
# About 220 lines of code, without the empty lines: the heart of tinynode. Classes and methods of
# the package have the same names. [Read the core](../read-the-core.md) walks through the package
# in the same order. What your engine cannot do: it does not check what it is given, it wants all
# arrays of an operation in one shape, and the gradients that it finds cannot be differentiated
# again. The next steps use the package, where all this works.

# %% [markdown]
# ## Exercise
# `backward` through a long loop is slow, and needs the memory of all its steps. **Truncated
# backpropagation** cuts the loop into windows: the numbers flow through, the gradients stay in the
# last window. Write `read_in_windows(w, numbers, window)`. The check counts operations, and
# compares gradients.
#
# `python -m tinynode.learn start 09`, then `python -m tinynode.learn check 09`.
