# %% [markdown]
# # Step 5: branches
#
# **Goal.** A box may be used more than once. Its gradient is the sum over all uses.

# %% [markdown]
# So far each box was used once. Programs have $x \cdot x$ and $x + x$, and a loss over all data
# uses each parameter once for each point. What is the gradient of a box with two uses?
#
# Move $x$ by a tiny $d$. Through the first use the result moves by $g_1 d$, through the second use
# by $g_2 d$. Both happen, so the result moves by $(g_1 + g_2)\,d$. Therefore **the contributions
# of all uses are added**:
#
# $$g_x = g_1 + g_2 + \dots$$
#
# ## What is new
# The last line of `run_backward` changes: in place of writing a gradient, it adds. The first
# contribution is stored; each further contribution is added. The page does not show this line: you
# write the line yourself.
#
# If gradients are added, then a second `backward` adds to the gradients of the first. So a
# Variable gets a method that forgets the gradient:
#
# <!-- mynode: core/variable.py Variable -->

# %% [markdown]
# ## Predict
# Let $x = 3$. What are the gradients of `x * x` and of `x + x`?

# %% [markdown]
# ## Run

# %%
import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import fit_of, graph_of

use_mynode("05")

from mynode import Variable, sin, square

x = Variable(np.array(3.0))
(x * x).backward()
print("x * x:", x.grad)

x = Variable(np.array(3.0))
(x + x).backward()
print("x + x:", x.grad)

# %% [markdown]
# `x * x` has the gradient $2x = 6$, and no line of `mynode` has this rule for products.
# `Multiply` sent 3 to the first input and 3 to the second input. Both inputs are the box `x`, and
# the two contributions were added.
#
# Now a training with one loss for all points, in place of one loss for each point. The data lie
# near a parabola, and the model is $y = p x^2 + q x + r$. Each of the three parameters is used 21
# times, so 21 contributions are added to each gradient.

# %%
rng = np.random.default_rng(0)
xs = np.linspace(-1.0, 1.0, 21)
ts = 2.0 * xs**2 - xs - 1.0 + rng.normal(scale=0.1, size=21)

p, q, r = (Variable(np.array(0.0), name=name) for name in "pqr")
for epoch in range(61):
    loss = 0.0
    for place, t in zip(xs, ts, strict=True):
        loss = loss + square(p * place * place + q * place + r - t)
    for parameter in (p, q, r):
        parameter.cleargrad()
    loss.backward()
    if epoch % 20 == 0:
        print(f"epoch {epoch:2}   loss {loss.array:7.4f}", end="")
        print(f"   p {p.array:7.4f}   q {q.array:7.4f}   r {r.array:7.4f}")
    for parameter in (p, q, r):
        parameter.array = parameter.array - 0.03 * parameter.grad

# %% [markdown]
# ## See
# The parabola after training:

# %%
fit_of(
    xs,
    ts,
    {"after": lambda s: p.array * s**2 + q.array * s + r.array},
    title="A parabola, fitted by mynode",
)

# %% [markdown]
# A smaller graph shows the addition. Where `x` forks in the forward direction, two contributions
# meet in the backward direction. The notes at `Sin` and `Square` are their contributions.

# %%
x = Variable(np.array(3.0), name="x")
s = sin(x)
s.name = "s"
k = square(x)
k.name = "k"
y = s * k
y.name = "y"
y.backward()
from_sin = np.cos(3.0) * k.array  # the gradient of s is the other factor, k
from_square = 2.0 * 3.0 * s.array
notes = {
    s.creator_node: f"sends {from_sin:.3f} to x",
    k.creator_node: f"sends {from_square:.3f} to x",
}
print(f"{from_sin:.3f} + {from_square:.3f} = {from_sin + from_square:.3f}; x.grad = {x.grad:.3f}")
graph_of(y, title="y = sin(x) * square(x)", notes=notes)

# %% [markdown]
# ## Break it
# The rule of step 4 was `x.grad = gx`. For `x * x` it stores 3, and then 3 again. The last
# contribution wins, and half of the gradient is lost.
#
# A second wrong rule is harder to see: `x.grad += gx`. For NumPy arrays `+=` changes the numbers
# **in the array**. But `Add` returns the same array `gz` twice, so several boxes hold one array.
# Here are both wrong rules for $y = x + (x + w)$. The right gradients are 2 for $x$ and 1 for $w$.


# %%
def overwrite(x, gx):
    x.grad = gx


def add_in_place(x, gx):
    if x.grad is None:
        x.grad = gx
    else:
        x.grad += gx


def gradients_by(rule):
    """The gradients of x and w for y = x + (x + w), where rule(x, gx) stores a gradient."""
    x, w = Variable(np.array([0.0])), Variable(np.array([0.0]))
    inner = x + w
    y = x + inner
    y.grad = np.array([1.0])
    for z, inputs in ((y, (x, inner)), (inner, (x, w))):
        grad_inputs = z.creator_node.backward((0, 1), (z.grad,))
        for v, gv in zip(inputs, grad_inputs, strict=True):
            rule(v, gv)
    return f"x: {x.grad[0]}, w: {w.grad[0]}"


print("overwrite:   ", gradients_by(overwrite))
print("add in place:", gradients_by(add_in_place))

# %% [markdown]
# In place, `w` has 2, although `w` is used once. `y`, `x`, `inner` and `w` all hold one array. An
# addition to the gradient of `x` is an addition to all of them.
#
# A third mistake is in the program, not in `mynode`: a second `backward` without `cleargrad`.

# %%
x = Variable(np.array(3.0))
square(x).backward()
print("first backward: ", x.grad)
square(x).backward()
print("second backward:", x.grad)

# %% [markdown]
# ## Fix it
# The sum must be a new array, and `cleargrad` comes before each `backward`.

# %%
x, w = Variable(np.array([0.0])), Variable(np.array([0.0]))
y = x + (x + w)
y.grad = np.array([1.0])
y.backward()
print(f"x + (x + w): x: {x.grad[0]}, w: {w.grad[0]}")

x = Variable(np.array(3.0))
square(x).backward()
x.cleargrad()
square(x).backward()
print("second backward, after cleargrad:", x.grad)

# %% [markdown]
# ## Not yet right
# The boxes with several uses were leaves in all these programs. With an **inner** box, the order
# of the loop is wrong. For $a = x^2$ and $y = a + a$ the gradient is $2 \cdot 2x = 12$ at $x = 3$.

# %%
x = Variable(np.array(3.0))
a = square(x)
(a + a).backward()
print("a + a:", x.grad, "(12.0 is right)")

# %% [markdown]
# The loop visits `Square` twice, and each visit sends the complete gradient. Step 6 mends the
# order. Until then, use only leaves more than once.
#
# **Cost.** A loss for all points keeps the graph of all points until `backward` has run. A loss
# for one point keeps a small graph.

# %%


def operations_before(y):
    """The number of operations in the graph of y."""
    found, waiting = set(), [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in found:
            found.add(function)
            waiting += [x.creator_node for x in function.inputs]
    return len(found)


one = square(p * 0.5 * 0.5 + q * 0.5 + r - 1.0)
print("operations for one point: ", operations_before(one))
print("operations for 21 points:", operations_before(loss))

# %% [markdown]
# Source: Bauer, Computational Graphs and Rounding Error, 1974. There, a derivative is a sum over
# all paths.
#
# ## Exercise
# `python -m tinynode.learn start 05` begins the exercise. No file is added: you
# change two places in your files.
#
# | file | what to write |
# |---|---|
# | `core/backprop.py` | the last line of `run_backward`, by yourself: store or add |
# | `core/variable.py` | the method `cleargrad`, as above |
#
# - `python -m tinynode.learn check 05` checks with six graphs, and fits a parabola;
# - `python -m tinynode.learn run 05 --mine` runs this page with your package.
#
# The sum in tinynode: [gradient_table.py](../source/tinynode/core/gradient_table.md).
