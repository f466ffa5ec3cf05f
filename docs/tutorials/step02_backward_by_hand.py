# %% [markdown]
# # Step 2: backward by hand
#
# **Goal.** Give each operation its derivative, and find the derivative of a chain of three
# operations by going through it from back to front.

# %% [markdown]
# The **derivative** of `y` with respect to `x` says how fast `y` changes when `x` changes: move
# `x` by a tiny `d`, and `y` moves by `dy/dx * d`. You know the rules of school:
#
# | operation | derivative |
# |---|---|
# | `y = x * x` | `dy/dx = 2 * x` |
# | `y = -x` | `dy/dx = -1` |
# | `y = e^x` | `dy/dx = e^x` |
#
# Chained operations multiply: if `y` moves 3 times as fast as `x`, and `z` moves 2 times as fast
# as `y`, then `z` moves 6 times as fast as `x`. That is the **chain rule**. These two facts are
# nearly all the calculus of this course. One more, for a box that is used twice, comes in step 5.

# %% tags=["engine"]
import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## The engine so far
# `Variable` and `FunctionNode` of step 1, with two new things. A Variable has a place for its
# **gradient**, which is what we call the derivative of the last result with respect to this box.
# And a FunctionNode has a second method, `backward`.


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None
        self.grad = None  # the derivative of the last result with respect to this box


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

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError


# %% [markdown]
# `forward` goes from inputs to outputs. `backward` goes the other way: it gets the gradients of
# the outputs, and returns the gradients of the inputs. An operation need not know what happens
# elsewhere in the program. If `gy` is the gradient of its output, then the gradient of its input
# is
#
# `gx = gy * (the derivative of this one operation)`.
#
# Both are tuples again. The argument `target_input_indexes` says which inputs want a gradient. An
# operation with one input can leave it aside: there it is always `(0,)`.


# %% tags=["engine"]
class Square(FunctionNode):
    """y = x * x.   gx = gy * 2 x"""

    def forward(self, inputs):
        (x,) = inputs
        return (x * x,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        x = self.inputs[0].array
        return (gy * 2.0 * x,)


def square(x):
    return Square().apply((x,))[0]


class Negative(FunctionNode):
    """y = -x.   gx = -gy"""

    def forward(self, inputs):
        (x,) = inputs
        return (-x,)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        return (-gy,)


def negative(x):
    return Negative().apply((x,))[0]


class Exp(FunctionNode):
    """y = e^x.   gx = gy * e^x"""

    def forward(self, inputs):
        (x,) = inputs
        return (np.exp(x),)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        x = self.inputs[0].array
        return (gy * np.exp(x),)


def exp(x):
    return Exp().apply((x,))[0]


# %% [markdown]
# ## Predict
# The chain below computes `y = e^(-x^2)`: the bell curve of statistics. Look at the bell in your
# mind. At `x = 1.5`, to the right of its top: is the derivative positive or negative? Then use
# the rules: which three numbers are multiplied?

# %% [markdown]
# ## Run
# First forward.

# %%
x = Variable(np.array(1.5), name="x")
a = square(x)
b = negative(a)
y = exp(b)
print(f"a = {a.array:.4f}, b = {b.array:.4f}, y = {y.array:.4f}")

# %% [markdown]
# Then backward, by hand. The gradient of `y` with respect to itself is 1: if `y` moves by `d`,
# then `y` moves by `d`. From there, each operation hands a gradient to the one before.

# %%
y.grad = np.array(1.0)
(b.grad,) = y.creator_node.backward((0,), (y.grad,))
(a.grad,) = b.creator_node.backward((0,), (b.grad,))
(x.grad,) = a.creator_node.backward((0,), (a.grad,))
print(f"dy/db = {b.grad:.4f}")
print(f"dy/da = {a.grad:.4f}")
print(f"dy/dx = {x.grad:.4f}")

# %% [markdown]
# Negative, as the picture of the bell said. On paper the derivative of `e^(-x^2)` is
# `-2 x e^(-x^2)`:

# %%
print(f"by the formula: {-2 * 1.5 * np.exp(-(1.5**2)):.4f}")

# %% [markdown]
# ## See
# Read the table from the bottom to the top, as `backward` did. Each row multiplies the gradient
# of the row below by its own **local derivative**.

# %%
print("operation   local derivative   gradient of its input")
for function in (a.creator_node, b.creator_node, y.creator_node):
    (local,) = function.backward((0,), (np.array(1.0),))
    (result,) = function.backward((0,), (function.outputs[0].grad,))
    print(f"{type(function).__name__:<12}{local:>16.4f}{result:>24.4f}")


# %%
def picture():
    diagram = tn.show.Diagram("y = exp(-x * x), with values and gradients")
    boxes = []
    for name, v in (("x", x), ("a", a), ("b", b), ("y", y)):
        facts = f"value {v.array:.4f}", f"gradient {v.grad:.4f}"
        boxes.append(diagram.variable(name, *facts, marks="leaf" if v is x else ()))
    for i, name in enumerate(("Square", "Negative", "Exp")):
        diagram.function(name, inputs=[boxes[i]], outputs=[boxes[i + 1]])
    return diagram


picture()

# %% [markdown]
# The three numbers of the prediction are the column in the middle: 3, -1 and 0.1054. Their product
# is -0.3162.
#
# Why from back to front? The product has the same value in any order. But from the front you
# follow one input through the whole program, and start again for the next input. From the back
# you follow the one result, and meet the gradients of all inputs on the way. A network has
# millions of numbers to train, which are its inputs here, and one result.

# %% [markdown]
# ## Break it
# Call the three in another order: `Square` before its own output has a gradient.

# %%
again = Variable(np.array(1.5))
c = square(again)
d = exp(negative(c))
try:
    c.creator_node.backward((0,), (c.grad,))
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# `c.grad` is still `None`: nobody has computed it. A `backward` can only run after everything
# **behind** it has run, which means everything between it and the result. Keep that in mind: steps
# 4 and 6 are about nothing else.
#
# A second mistake is worse, since it makes no noise. This `backward` forgets `gy`:


# %%
class Forgetful(Square):
    """As Square, but its backward ignores what comes from behind."""

    def backward(self, target_input_indexes, grad_outputs):
        x = self.inputs[0].array
        return (2.0 * x,)


x3 = Variable(np.array(3.0))
last = Forgetful().apply((x3,))[0]
print("Forgetful at the end of a chain:", last.creator_node.backward((0,), (np.array(1.0),))[0])
print("with gy = -0.5 from behind:    ", last.creator_node.backward((0,), (np.array(-0.5),))[0])

# %% [markdown]
# Alone, or at the end of a chain, it is right, because `gy` is 1 there. Anywhere else it is
# wrong. So test a `backward` with a `gy` other than 1.

# %% [markdown]
# ## Fix it
# Multiply by `gy`, as the real `Square` does.

# %%
fixed = square(x3)
print("with gy = -0.5 from behind:", fixed.creator_node.backward((0,), (np.array(-0.5),))[0])

# %% [markdown]
# ## Exercise
# Write `Sin`, with `forward` and `backward`, and its function `sin(x)`. The derivative of the
# sine is the cosine: `np.cos`. The check compares with `cos`, in the middle of a chain too.
#
# `python -m tinynode.learn start 02`, then `python -m tinynode.learn check 02`.
