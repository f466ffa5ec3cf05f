# %% [markdown]
# # Step 4: automatic backward
#
# **Goal.** One call, `y.backward()`, computes the gradients of a program. Then your own package
# fits a line.

# %% [markdown]
# In step 2 you called three `backward` methods by hand, in the right order. A loop can do this
# work, because the boxes know the way since step 1: `y.creator_node` is the operation to run, and
# `inputs` lead to the operations before.
#
# ## What is new
# The loop lives in a new file. A list keeps the waiting operations. Each round takes an operation
# out of the list, runs `backward`, and writes a gradient into each input box. Then the creators of
# the inputs go into the list. At a leaf there is no creator, and the walk ends.
#
# <!-- mynode: core/backprop.py backward run_backward -->
#
# `y.grad` is 1 at the start: the gradient of the result with respect to itself.
#
# So far each operation has one input. A line $y = w x + b$ needs two: for a product and for a sum.
# `backward` of such an operation returns two gradients. For $z = x y$, think of $y$ as a fixed
# number: then $z$ moves $y$ times as fast as $x$. So $g_x = g_z \cdot y$, and $g_y = g_z \cdot x$.
# For $z = x + y$ both gradients are $g_z$.
#
# <!-- mynode: functions/arithmetic.py as_operands Multiply multiply -->
#
# `as_operands` puts a plain number into a box, so that `2.0 * x` works. `np.full(shape, y, dtype)`
# is an array full of the number `y`. `np.result_type` is the dtype that NumPy gives to a result.
#
# Python calls `x.__mul__(y)` for `x * y`, and `x.__rmul__(2.0)` for `2.0 * x`. So the box gets
# methods for operators, in a base class, and the method `backward`. The file `core/operators.py`
# imports `mynode` as a whole. An import of single functions would be a circle, since the files of
# functions import the file of the box.
#
# <!-- mynode: core/operators.py Operators -->
#
# <!-- mynode: core/variable.py Variable -->

# %% [markdown]
# ## Predict
# The chain below is $y = \sin(e^{-x^2})$. In which order will the loop visit `Square`, `Negative`,
# `Exp` and `Sin`? How often will the loop run for a chain of 100,000 operations?

# %% [markdown]
# ## Run

# %%
import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import backward_film, fit_of

use_mynode("04")

from mynode import Variable, exp, negative, sin, square

x = Variable(np.array(0.8), name="x")
y = sin(exp(negative(square(x))))
y.backward()
print(f"dy/dx by backward: {x.grad:.6f}")

bell = np.exp(-(0.8**2))
print(f"dy/dx by hand:     {np.cos(bell) * bell * -2 * 0.8:.6f}")

# %% [markdown]
# The order of the visits is the order of the program, read backward: `Sin`, `Exp`, `Negative`,
# `Square`. Each operation is visited once, so a chain of 100,000 takes 100,000 rounds.
#
# Now the first training. The data are 11 points near the line $t = 2x - 1$. The program does not
# know the numbers 2 and -1. Training begins with $w = 0$ and $b = 0$, and takes the points in
# turn. The **loss** of a point is the square of the error.
#
# $$\mathrm{loss} = (w x + b - t)^2$$
#
# The gradient of $w$ says how fast the loss grows if $w$ grows. So $w$ moves a little the other
# way. `rate` is the **learning rate**: how far. This is **gradient descent**.

# %%
rng = np.random.default_rng(0)
xs = np.linspace(-1.0, 1.0, 11)
ts = 2.0 * xs - 1.0 + rng.normal(scale=0.1, size=11)

rate = 0.1
w = Variable(np.array(0.0), name="w")
b = Variable(np.array(0.0), name="b")
for epoch in range(11):
    if epoch % 2 == 0:
        total = sum(float((w.array * p + b.array - t) ** 2) for p, t in zip(xs, ts, strict=True))
        print(f"epoch {epoch:2}   loss {total:7.4f}   w {w.array:7.4f}   b {b.array:7.4f}")
    for p, t in zip(xs, ts, strict=True):
        loss = square(w * p + b - t)
        loss.backward()
        w = Variable(w.array - rate * w.grad, name="w")
        b = Variable(b.array - rate * b.grad, name="b")

# %% [markdown]
# An **epoch** is one round through all points. `w` and `b` have come near 2 and -1.
# `mynode` has no code about lines, only gradients.

# %% [markdown]
# ## See
# The line before and after training:

# %%
fit_of(
    xs,
    ts,
    {"before": lambda s: 0.0 * s, "after": lambda s: w.array * s + b.array},
    title="A line, fitted by mynode",
)

# %% [markdown]
# A film of `backward`, for one point's loss at $w = 0$, $b = 0$, with $x = 1$ and $t = 1$. Press
# Next for each visit. At the end the gradients of `w` and `b` are -2: the loss falls if `w` or `b`
# grows. So both must grow.

# %%
w0, b0 = Variable(np.array(0.0), name="w"), Variable(np.array(0.0), name="b")
x1, t1 = Variable(np.array(1.0), name="x"), Variable(np.array(1.0), name="t")
loss = square(w0 * x1 + b0 - t1)
backward_film(loss, title="loss = square(w * x + b - t)")

# %% [markdown]
# ## Break it
# Recursion can do the same walk: a function runs an operation, and calls itself for the rest. The
# function is short, and right for short chains.


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
    """-(-(-( ... x))), with a number of minus signs."""
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
# Each call that waits for another call needs a place on Python's **call stack**, and Python allows
# about a thousand places. Longer chains are common, such as a loop over the letters of a page.

# %% [markdown]
# ## Fix it
# The loop in `core/backprop.py` has no call that waits. Memory and time are its only limits.

# %%
x = Variable(np.array(1.0))
long_chain(x, 100_001).backward()
print("100,001 operations:", x.grad)

# %% [markdown]
# An odd number of minus signs has the gradient -1. A rule for the rest of the course:
# **walk a graph with a loop, never by recursion**.
#
# **Cost.** Backward visits each operation once. So its time is a small multiple of the time of
# forward, whatever the number of inputs. The times below were measured when this page was made.

# %% tags=["varies"]
import time

start = time.perf_counter()
y = long_chain(Variable(np.array(1.0)), 10_000)
middle = time.perf_counter()
y.backward()
end = time.perf_counter()
print(f"forward:  {(middle - start) * 100:.1f} microseconds for each operation")
print(f"backward: {(end - middle) * 100:.1f} microseconds for each operation")

# %% [markdown]
# Source: Linnainmaa, Taylor Expansion of the Accumulated Rounding Error, 1976.
#
# ## Exercise
# `python -m tinynode.learn start 04` adds `core/backprop.py` and `core/operators.py`, and stubs to
# `functions/arithmetic.py`. Given are `as_operands`, `Multiply`, `add`, `subtract`, `multiply`,
# and all operators but the minus.
#
# | file | what to write |
# |---|---|
# | `core/backprop.py` | `backward` and `run_backward` |
# | `functions/arithmetic.py` | `Add` and `Subtract` |
# | `core/operators.py` | `__sub__` and `__rsub__` |
# | `core/variable.py` | `class Variable(Operators):`, and the method `backward` |
#
# The last check fits a line with your package. Then:
#
# - `python -m tinynode.learn check 04` checks, and `python -m tinynode.learn hint 04` helps;
# - `python -m tinynode.learn run 04 --mine` runs this page with your package: your own line.
#
# The same files in tinynode: [backprop.py](../source/tinynode/core/backprop.md),
# [arithmetic.py](../source/tinynode/functions/arithmetic.md).
