# %% [markdown]
# # Step 5: branches
#
# **Goal.** A box may be used more than once. Then several gradients arrive at it, and they have
# to be added.

# %% [markdown]
# So far every operation had one input, and every box was used once: the graph was a chain. Real
# programs have `x * y` and `x + x`. Two things are missing for them:
#
# - operations with two inputs, such as `Add` and `Multiply`;
# - an answer to the question what the gradient of `x` is when `x` goes into two places.
#
# The answer to the second: move `x` by a tiny `d`. Through the first place the result moves by
# `g1 * d`, through the second by `g2 * d`. Both happen. Together it moves by `(g1 + g2) * d`. So
# **the contributions of all uses are added**.

# %% tags=["engine"]
import numpy as np

# %%
import tinynode as tn

# %% [markdown]
# ## What is new
# The loop in `backward` can no longer walk along one line. It keeps a list of operations that
# wait for their turn: it takes one out, and puts in those that lead further back. And in place
# of `x.grad = gx` it now says: the first contribution is stored, each further one is added.
#
# The four methods at the end let you write `x * y + 2.0`. Python calls `x.__mul__(y)` for `x * y`,
# and `x.__radd__(2.0)` for `2.0 + x`.


# %% tags=["engine"]
class Variable:
    """A box around an array. It remembers what computed it."""

    __array_ufunc__ = None  # NumPy must not take x apart: array * x asks x.__rmul__

    def __init__(self, array, *, name=None):
        self.array = array
        self.name = name
        self.creator_node = None
        self.grad = None

    def backward(self):
        """Find the gradient of every box that this one was computed from."""
        if self.grad is None:
            self.grad = np.ones_like(self.array)
        waiting = [self.creator_node]
        while waiting:
            function = waiting.pop()
            if function is None:  # the creator of a leaf
                continue
            targets = tuple(range(len(function.inputs)))
            grad_outputs = tuple(y.grad for y in function.outputs)
            grad_inputs = function.backward(targets, grad_outputs)
            for x, gx in zip(function.inputs, grad_inputs, strict=True):
                x.grad = gx if x.grad is None else x.grad + gx
                waiting.append(x.creator_node)

    def __add__(self, other):
        return add(self, other)

    def __radd__(self, other):
        return add(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __rmul__(self, other):
        return multiply(other, self)


# %% [markdown]
# ## The engine so far
# As in step 4.


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


class Sin(FunctionNode):
    """y = sin(x).   gx = gy * cos(x)"""

    def forward(self, inputs):
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * np.cos(self.inputs[0].array),)


def sin(x):
    return Sin().apply((x,))[0]


# %% [markdown]
# ## Two inputs
# `backward` returns one gradient for each input. For `z = x + y` both are `gz`. For `z = x * y`
# think of `y` as a fixed number: `z` moves `y` times as fast as `x`. So `gx = gz * y`, and the
# other way round.
#
# A plain number beside a box becomes a box of the same shape.


# %% tags=["engine"]
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
        x, y = inputs
        return (x + y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        return gz, gz


def add(x, y):
    return Add().apply(_as_operands(x, y))[0]


class Multiply(FunctionNode):
    """z = x * y.   gx = gz * y, gy = gz * x"""

    def forward(self, inputs):
        x, y = inputs
        return (x * y,)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = (v.array for v in self.inputs)
        return gz * y, gz * x


def multiply(x, y):
    return Multiply().apply(_as_operands(x, y))[0]


# %% [markdown]
# ## Predict
# Let `x = 3`. What is the gradient of `x * x`, and of `x + x`? And which two contributions meet at
# `x` in `y = sin(x) * square(x)`?

# %% [markdown]
# ## Run

# %%
x = Variable(np.array(3.0))
(x * x).backward()
print("x * x:", x.grad)

x = Variable(np.array(3.0))
(x + x).backward()
print("x + x:", x.grad)

x = Variable(np.array(3.0))
s = sin(x)
q = square(x)
y = s * q
y.backward()
print(f"sin(x) * square(x): {x.grad:.4f}")
print(f"by the rules:       {np.cos(3.0) * 9.0 + np.sin(3.0) * 6.0:.4f}")

# %% [markdown]
# `x * x` has the gradient `2 * x = 6`, and no line of the engine knows this rule. `Multiply` sent
# 3 to its first input and 3 to its second, both were the box `x`, and the two were added.

# %% [markdown]
# ## See
# Where `x` forks in the forward direction, two contributions meet in the backward direction.

# %%
(from_sin,) = s.creator_node.backward((0,), (s.grad,))
(from_square,) = q.creator_node.backward((0,), (q.grad,))
print(f"Sin hands    {from_sin:8.4f} to x")
print(f"Square hands {from_square:8.4f} to x")
print(f"together     {from_sin + from_square:8.4f}")


# %%
def picture():
    diagram = tn.show.Diagram("y = sin(x) * square(x), with gradients")
    box = {
        name: diagram.variable(name, f"gradient {v.grad:.4f}", marks="leaf" if v is x else ())
        for name, v in (("x", x), ("s", s), ("q", q), ("y", y))
    }
    for function, given, name in (("Sin", from_sin, "s"), ("Square", from_square, "q")):
        fact = f"hands {given:.4f} to x"
        diagram.function(function, fact, inputs=[box["x"]], outputs=[box[name]])
    diagram.function("Multiply", inputs=[box["s"], box["q"]], outputs=[box["y"]])
    return diagram


picture()

# %% [markdown]
# ## Break it
# The rule of step 4 was `x.grad = gx`. For `x * x` it stores 3, and then 3 again: the last
# contribution wins, and half of the gradient is lost.
#
# A second wrong rule is harder to see. `x.grad += gx` looks like a shorter `x.grad = x.grad + gx`.
# For NumPy arrays it is not: it changes the numbers **in the array that is there**. And `Add`
# returns the same array `gz` twice, so several boxes may hold that array. Here are the three
# rules, and `y = x + (x + w)`, where `x` should get 2 and `w` should get 1.


# %%
def overwrite(x, gx):
    x.grad = gx


def add_in_place(x, gx):
    if x.grad is None:
        x.grad = gx
    else:
        x.grad += gx


def add_up(x, gx):
    x.grad = gx if x.grad is None else x.grad + gx


def gradients_by(rule):
    """The gradients of x and w for y = x + (x + w), where rule(x, gx) stores a gradient."""
    x, w = Variable(np.array([0.0])), Variable(np.array([0.0]))
    inner = x + w
    y = x + inner
    y.grad = np.array([1.0])
    for z in (y, inner):
        grad_inputs = z.creator_node.backward((0, 1), (z.grad,))
        for v, gv in zip(z.creator_node.inputs, grad_inputs, strict=True):
            rule(v, gv)
    return f"x: {x.grad[0]}, w: {w.grad[0]}"


print("overwrite:   ", gradients_by(overwrite))
print("add in place:", gradients_by(add_in_place))

# %% [markdown]
# In place, `w` got 2 although it is used once. `y`, `x`, `inner` and `w` all held one and the same
# array, and adding to the gradient of `x` added to all of them.

# %% [markdown]
# ## Fix it
# `x.grad + gx` makes a new array, and nobody else's gradient changes. That is the line in
# `Variable.backward`.

# %%
print("add up:      ", gradients_by(add_up))

# %% [markdown]
# Since gradients are added now, a box that has one already would keep the old one in the sum. So
# for now, build new boxes for each `backward`, as the cells above do.

# %% [markdown]
# ## Exercise
# The stub has a `backward(y)` which walks over the graph, but stores gradients in a wrong way.
# Repair it. The check tries four graphs: `x * x`, `x + x`, a diamond, and `x + (x + w)`.
#
# `python -m tinynode.learn start 05`, then `python -m tinynode.learn check 05`.
