# %% [markdown]
# # Step 4: automatic backward
#
# **Goal.** One call, `y.backward()`, finds the gradients of a chain of operations, however long
# the chain is.

# %% [markdown]
# In step 2 you called three `backward` methods yourself, in the right order, and carried each
# gradient to the next. That is work for a loop. And all that the loop needs to know is in the
# boxes since step 1: `y.creator_node` is the operation to ask, and its `inputs` say where to go
# next.

# %% tags=["engine"]
import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## What is new
# The method `backward` of a Variable.


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None
        self.grad = None

    def backward(self):
        """Find the gradient of every box that this one was computed from."""
        if self.grad is None:
            self.grad = np.ones_like(self.array)
        y = self
        while y.creator_node is not None:
            function = y.creator_node
            (x,) = function.inputs
            (x.grad,) = function.backward((0,), (y.grad,))
            y = x


# %% [markdown]
# It begins with the 1 of step 2: the gradient of the result with respect to itself. Then it
# walks from box to box. At a leaf there is no operation to ask, and the loop ends.

# %% [markdown]
# ## The engine so far
# The rest is as it was in steps 2 and 3.


# %% tags=["engine"]
class FunctionNode:
    """One use of an operation. It knows its inputs and its outputs."""

    def apply(self, inputs):
        results = self.forward(tuple(x.array for x in inputs))
        if not isinstance(results, tuple):
            raise TypeError(f"forward output must be a tuple ({type(self).__name__})")
        outputs = tuple(Variable(np.asarray(result)) for result in results)
        for y in outputs:
            y.creator_node = self
        self.inputs = tuple(inputs)
        self.outputs = outputs
        return outputs


class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        return (inputs[0] * inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * 2.0 * self.inputs[0].array,)


def square(x):
    return Square().apply((x,))[0]


class Negative(FunctionNode):
    """y = -x.   gx = -gy"""

    def forward(self, inputs):
        return (-inputs[0],)

    def backward(self, target_input_indexes, grad_outputs):
        return (-grad_outputs[0],)


def negative(x):
    return Negative().apply((x,))[0]


class Exp(FunctionNode):
    """y = e^x.   gx = gy * e^x"""

    def forward(self, inputs):
        return (np.exp(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * np.exp(self.inputs[0].array),)


def exp(x):
    return Exp().apply((x,))[0]


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * np.cos(self.inputs[0].array),)


def sin(x):
    return Sin().apply((x,))[0]


# %% [markdown]
# ## Predict
# The chain below is `y = sin(e^(-x^2))`. In which order will the loop visit `Square`, `Negative`,
# `Exp` and `Sin`? How often will it run if the chain has 100,000 operations?

# %% [markdown]
# ## Run

# %%
x = Variable(np.array(0.8), name="x")
a = square(x)
b = negative(a)
c = exp(b)
y = sin(c)
y.backward()
print(f"dy/dx by backward: {x.grad:.6f}")

bell = np.exp(-(0.8**2))
print(f"dy/dx by hand:     {np.cos(bell) * bell * -2 * 0.8:.6f}")

# %% [markdown]
# ## See
# The order of the visits is in the boxes of the operations: it is the order of the program, read
# backward. The answer to the second question: once for each operation, 100,000 times.


# %%
def picture():
    diagram = tn.show.Diagram("y = sin(exp(-x * x)), with the visits of backward")
    boxes = []
    for name, v in (("x", x), ("a", a), ("b", b), ("c", c), ("y", y)):
        marks = "leaf" if v is x else ()
        boxes.append(diagram.variable(name, f"gradient {v.grad:.4f}", marks=marks))
    for i, name in enumerate(("Square", "Negative", "Exp", "Sin")):
        diagram.function(name, f"visit {4 - i}", inputs=[boxes[i]], outputs=[boxes[i + 1]])
    return diagram


picture()

# %% [markdown]
# ## Break it
# The same walk can be written as a function that calls itself: do one operation, then do the
# rest. It looks elegant, and it is right for short chains.


# %%
def backward_by_recursion(y):
    if y.grad is None:
        y.grad = np.ones_like(y.array)
    if y.creator_node is None:
        return
    (x,) = y.creator_node.inputs
    (x.grad,) = y.creator_node.backward((0,), (y.grad,))
    backward_by_recursion(x)


def long_chain(x, length):
    """-(-(-( ... x))), as many minus signs as length says."""
    for _ in range(length):
        x = negative(x)
    return x


x = Variable(np.array(1.0))
backward_by_recursion(long_chain(x, 101))
print("101 operations:    ", x.grad)

x = Variable(np.array(1.0))
try:
    backward_by_recursion(long_chain(x, 10_001))
except RecursionError as error:
    print("10,001 operations: ", type(error).__name__)

# %% [markdown]
# Each call that waits for another one occupies a place on Python's **call stack**, and Python
# allows about a thousand of them. A chain of that length is nothing special: a loop over the
# letters of one page of text makes a longer one. (`sys.setrecursionlimit` allows more, until a
# still longer chain meets the new limit, or Python itself crashes.)

# %% [markdown]
# ## Fix it
# The loop in `Variable.backward` holds one box at a time and calls nothing that waits. Memory and
# time are its only limits.

# %%
x = Variable(np.array(1.0))
long_chain(x, 100_001).backward()
print("100,001 operations:", x.grad)

# %% [markdown]
# An odd number of minus signs: the gradient is -1, as it should be. This is a rule for the rest
# of the course: **walk a graph with a loop, never with a function that calls itself**.

# %% [markdown]
# ## Exercise
# `y.backward()` writes a gradient into every box that it passes. Sometimes you want one gradient
# and nothing else. Write `grad_of(y, x)`: it *returns* the gradient of `y` with respect to `x`,
# and writes to no box. The stub does so by recursion. Make it work for 100,000 operations.
#
# `python -m tinynode.learn start 04`, then `python -m tinynode.learn check 04`.
