# %% [markdown]
# # Step 2: backward by hand
#
# **Goal.** Give each operation its derivative, and find the derivative of a chain of three
# operations by going from back to front.

# %% [markdown]
# The **derivative** $\frac{dy}{dx}$ says how fast $y$ changes when $x$ changes. If $x$ moves by a
# tiny $d$, then $y$ moves by $\frac{dy}{dx} \cdot d$. These are the rules of school:
#
# | operation | derivative |
# |---|---|
# | $y = x^2$ | $\frac{dy}{dx} = 2x$ |
# | $y = -x$ | $\frac{dy}{dx} = -1$ |
# | $y = e^x$ | $\frac{dy}{dx} = e^x$ |
# | $y = \sin x$ | $\frac{dy}{dx} = \cos x$ |
#
# Chained operations multiply. If $y$ moves 3 times as fast as $x$, and $z$ moves 2 times as fast
# as $y$, then $z$ moves 6 times as fast as $x$. This is the **chain rule**:
#
# $$\frac{dz}{dx} = \frac{dz}{dy} \cdot \frac{dy}{dx}$$
#
# These two facts are nearly all the calculus of this course. Step 5 adds a rule for a box that is
# used twice.
#
# ## What is new
# A box gets a place for its **gradient**: the derivative of the last result with respect to this
# box.
#
# <!-- mynode: core/variable.py Variable -->
#
# A FunctionNode gets a second method, `backward`. `forward` goes from inputs to outputs.
# `backward` goes the other way: from the gradients of the outputs to the gradients of the inputs.
#
# An operation does not need to know the rest of the program. Let $g_y$, in code `gy`, be the
# gradient of the output. Then the gradient of the input is
#
# $$g_x = g_y \cdot (\text{the derivative of this one operation})$$
#
# Gradients of outputs and of inputs are tuples again. The argument `target_input_indexes` says
# which inputs need a gradient. An operation with a single input may ignore the argument: the value
# is always `(0,)`. And $2x$ needs the array of the input. So `apply` keeps the arrays of the
# inputs from now on, as `self.input_arrays`. For `Square`, with $g_x = g_y \cdot 2x$:
#
# <!-- mynode: functions/exponential.py Square -->

# %% [markdown]
# ## Predict
# The chain below computes $y = e^{-x^2}$, the bell curve of statistics. At $x = 1.5$, to the right
# of the top of the bell: is the derivative positive or negative? Which three numbers are
# multiplied?

# %% [markdown]
# ## Run
# First forward.

# %%
import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("02")

from mynode import Variable, exp, negative, square
from mynode.functions.exponential import Square

x = Variable(np.array(1.5), name="x")
a = square(x)
a.name = "a"
b = negative(a)
b.name = "b"
y = exp(b)
y.name = "y"
print(f"a = {a.array:.4f}, b = {b.array:.4f}, y = {y.array:.4f}")

# %% [markdown]
# Then backward, by hand. The gradient of `y` with respect to itself is 1: if `y` moves by $d$,
# then `y` moves by $d$. From there each operation hands a gradient to the operation before.

# %%
y.grad = np.array(1.0)
(b.grad,) = y.creator_node.backward((0,), (y.grad,))
(a.grad,) = b.creator_node.backward((0,), (b.grad,))
(x.grad,) = a.creator_node.backward((0,), (a.grad,))
print(f"dy/db = {b.grad:.4f}")
print(f"dy/da = {a.grad:.4f}")
print(f"dy/dx = {x.grad:.4f}")

# %% [markdown]
# Negative, as the bell says: to the right of the top, the curve falls. On paper the derivative of
# $e^{-x^2}$ is $-2x\,e^{-x^2}$:

# %%
print(f"by the formula: {-2 * 1.5 * np.exp(-(1.5**2)):.4f}")

# %% [markdown]
# ## See
# Each box has a value, computed from left to right, and a gradient, computed from right to left.

# %%
graph_of(y, title="y = exp(-x * x), with values and gradients")

# %% [markdown]
# Each row of the table multiplies the gradient of the row below by its own **local derivative**.
# Read the table from the bottom to the top, as `backward` did.

# %%
print("operation   local derivative   gradient of its input")
for function in (a.creator_node, b.creator_node, y.creator_node):
    (local,) = function.backward((0,), (np.array(1.0),))
    (result,) = function.backward((0,), (function.outputs[0].grad,))
    print(f"{type(function).__name__:<12}{local:>16.4f}{result:>24.4f}")

# %% [markdown]
# The three numbers of the prediction are the column in the middle: 3, -1 and 0.1054. Their product
# is -0.3162.
#
# Why from back to front? The product has the same value in any order. From the front, a walk
# follows one input through the whole program, and starts again for the next input. From the back,
# one walk follows the single result, and meets the gradients of all inputs. A network has millions
# of parameters and a single loss.

# %% [markdown]
# ## Break it
# Call the operations in another order: `Square` before its own output has a gradient.

# %%
again = Variable(np.array(1.5))
c = square(again)
d = exp(negative(c))
try:
    c.creator_node.backward((0,), (c.grad,))
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# `c.grad` is still `None`. The `backward` of an operation can run only after all operations
# between its output and the result. Steps 4 and 6 are about this order.
#
# A second mistake raises no error, and is worse. This `backward` forgets `gy`:


# %%
class Forgetful(Square):
    """As Square, but its backward ignores gy."""

    def backward(self, target_input_indexes, grad_outputs):
        (x,) = self.input_arrays
        return (2.0 * x,)


x3 = Variable(np.array(3.0))
last = Forgetful().apply((x3,))[0]
print("Forgetful with gy = 1:   ", last.creator_node.backward((0,), (np.array(1.0),))[0])
print("Forgetful with gy = -0.5:", last.creator_node.backward((0,), (np.array(-0.5),))[0])

# %% [markdown]
# At the end of a chain `gy` is 1, and `Forgetful` is right. Everywhere else it is wrong. So test a
# `backward` with a `gy` other than 1.

# %% [markdown]
# ## Fix it
# Multiply by `gy`, as the real `Square` does.

# %%
fixed = square(x3)
print("Square with gy = -0.5:   ", fixed.creator_node.backward((0,), (np.array(-0.5),))[0])

# %% [markdown]
# **Cost.** A gradient has the shape of its box. So backward keeps as many bytes again as forward:

# %%
boxes = (x, a, b, y)
print("bytes of the values:   ", sum(box.array.nbytes for box in boxes))
print("bytes of the gradients:", sum(np.asarray(box.grad).nbytes for box in boxes))

# %% [markdown]
# Source: Griewank and Walther, Evaluating Derivatives, 2008.
#
# ## Exercise
# `python -m tinynode.learn start 02` adds the file `functions/trigonometric.py` to your package.
# The other changes are yours to make, in files that you have:
#
# | file | what to write |
# |---|---|
# | `core/variable.py` | the line for `grad`, as above |
# | `core/function_node.py` | a method `backward` that raises `NotImplementedError`, as `forward` |
# | | in `apply`: `arrays = tuple(x.array for x in inputs)`, and `self.input_arrays = arrays` |
# | `functions/exponential.py` | `Square.backward`, as above; `Exp.backward`, by yourself |
# | `functions/arithmetic.py` | `Negative.backward`, by yourself |
# | `functions/trigonometric.py` | `Sin.backward`, by yourself; `forward` and `sin` are given |
#
# The signature is always `def backward(self, target_input_indexes, grad_outputs):`. Then:
#
# - `python -m tinynode.learn check 02` checks, and `python -m tinynode.learn hint 02` helps;
# - `python -m tinynode.learn run 02 --mine` runs this page with your package.
#
# The same operations in tinynode: [exponential.py](../source/tinynode/functions/exponential.md),
# [trigonometric.py](../source/tinynode/functions/trigonometric.md).
