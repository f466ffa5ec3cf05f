# %% [markdown]
# # Step 6: rank and order
#
# **Goal.** In any graph, visit each operation when the gradient of its output is complete.

# %% [markdown]
# In step 5 the boxes with several uses were leaves. A leaf has no creator, so the time of its
# contributions did not matter. An *inner* box is different, because its gradient is passed on. If
# the gradient is passed on before the last contribution has arrived, the result is wrong.
#
# So an operation must wait until all users of its output have run. Each operation gets a number
# for the distance from the leaves, the **rank**:
#
# - the rank of a leaf is 0;
# - the rank of an operation is the largest rank of its inputs;
# - the rank of an output is the rank of its operation plus 1.
#
# Each user of a box $a$ has a higher rank than the creator of $a$. Go by **falling rank**, and
# each user of a box runs before the creator of the box.
#
# ## What is new
# A **heap** is a list with quick access to the smallest entry; Python has the module `heapq`.
# The entries are `(-rank, number, function)`. The smallest entry has the highest rank. Entries
# are compared from left to right, and the number is different for each entry. So Python never
# compares two operations, which have no order.
#
# `seen` is the set of operations that were put on the heap. An operation is put there once.
#
# <!-- mynode: core/backprop.py backward push -->
#
# The page does not show how the ranks are set. You add this to `Variable` and to
# `FunctionNode.apply`, by the three rules above.

# %% [markdown]
# ## Predict
# Let $a = x^2$. In algebra `a + square(a)` and `square(a) + a` are equal, with the gradient
# $(1 + 2a) \cdot 2x$, which is 114 at $x = 3$. A list in place of the heap hands out its last
# entry first. Will a loop with a list, which visits each operation once, find 114 for both?

# %% [markdown]
# ## Run
# First by rank.

# %%
import numpy as np

from tinynode_course import use_mynode
from tinynode_course.pictures import backward_film, graph_of

use_mynode("06")

from mynode import Variable, square
from mynode.core.backprop import run_backward


def first(x):
    a = square(x)
    return a + square(a)


def second(x):
    a = square(x)
    return square(a) + a


for program in (first, second):
    x = Variable(np.array(3.0))
    program(x).backward()
    print(f"{program.__name__:<7} by rank: {x.grad}")

x = Variable(np.array(3.0))
a = square(x)
(a + a).backward()
print("a + a of step 5:", x.grad)

# %% [markdown]
# All three are right. The last program was wrong in step 5, and is 12 now.

# %% [markdown]
# ## See
# Here is the loop with a list. The loop visits each operation once, and returns the order.


# %%
def naive_backward(y):
    """Backward in the order in which operations come out of a list."""
    y.grad = np.ones_like(y.array)
    waiting, seen, order = [y.creator_node], {None, y.creator_node}, []
    while waiting:
        function = waiting.pop()
        order.append(function)
        run_backward(function)
        for x in function.inputs:
            if x.creator_node not in seen:
                seen.add(x.creator_node)
                waiting.append(x.creator_node)
    return order


x = Variable(np.array(3.0), name="x")
a = square(x)
a.name = "a"
b = square(a)
b.name = "b"
y = b + a
y.name = "y"
naive = naive_backward(y)
by_rank = sorted(naive, key=lambda function: -function.rank)
notes = {
    function: f"rank {function.rank}, visit {place}, naive: {naive.index(function) + 1}"
    for place, function in enumerate(by_rank, 1)
}
for box in (x, a, b, y):
    box.cleargrad()
y.backward()
graph_of(y, title="y = square(a) + a, with a = square(x)", notes=notes)

# %% [markdown]
# By rank, the creator of `a` comes last. In the naive order this creator comes second, before the
# contribution of the other `Square` has arrived.

# %% [markdown]
# A film of `backward` by rank, one picture for each visit. Press Next: the gradient of `a` becomes
# 1 and then 19, before the creator of `a` is visited.

# %%
x = Variable(np.array(3.0), name="x")
a = square(x)
a.name = "a"
b = square(a)
b.name = "b"
y = b + a
y.name = "y"
backward_film(y, title="backward of y = square(a) + a, by rank")

# %% [markdown]
# ## Break it
# Both programs in the naive order:

# %%
for program in (first, second):
    x = Variable(np.array(3.0))
    naive_backward(program(x))
    print(f"{program.__name__:<7} naive: {x.grad}")

# %% [markdown]
# The formula is the same, but only `first` is right. In `second` the creator of `a` passed on the
# 1 that had arrived. The contribution 18 came later. It made the gradient of `a` right, and never
# reached `x`.
#
# Could an operation run again, whenever a contribution arrives? The loop of step 5 does so: an
# operation goes into the list once for each use.


# %%
def backward_of_step_5(y):
    """Returns the number of visits."""
    y.grad = np.ones_like(y.array)
    waiting, visits = [y.creator_node], 0
    while waiting:
        function = waiting.pop()
        if function is not None:
            run_backward(function)
            visits += 1
            waiting += [x.creator_node for x in function.inputs]
    return visits


for program in (first, second):
    x = Variable(np.array(3.0))
    visits = backward_of_step_5(program(x))
    print(f"{program.__name__:<7} by step 5: {x.grad}, {visits} visits")

# %% [markdown]
# The creator of `a` ran twice. Each run passed on all contributions so far. So a contribution was
# counted twice.

# %% [markdown]
# ## Fix it
# Each operation once, by falling rank: `backward` of this step.

# %%
x = Variable(np.array(3.0))
second(x).backward()
print("second, by rank:", x.grad)

# %% [markdown]
# **Cost.** Let $a \leftarrow a + a$, several times. The loop of step 5 visits each `Add` twice as
# often as the next `Add`. By rank, the number of visits is the number of operations.

# %%
for doublings in (1, 5, 10, 15):
    a = Variable(np.array(1.0))
    for _ in range(doublings):
        a = a + a
    print(f"{doublings:2} operations: {backward_of_step_5(a):6} visits by step 5", end="")
    print(f", {doublings:2} by rank")

# %% [markdown]
# A heap needs about $\log_2 n$ comparisons for each visit, with $n$ entries. This is the price of
# the right order.

# %% [markdown]
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# `python -m tinynode.learn start 06` adds the stub of `push`.
#
# | file | what to write |
# |---|---|
# | `core/backprop.py` | `push`, and the new `backward`, as above |
# | `core/variable.py` | the rank of a new Variable, by yourself |
# | `core/function_node.py` | the ranks in `FunctionNode.apply`, by yourself |
#
# - `python -m tinynode.learn check 06` checks ranks, and 20 random programs;
# - `python -m tinynode.learn run 06 --mine` runs this page with your package.
#
# With pencil and paper: write two programs with four operations each. Each program uses an inner
# box twice. `naive_backward` must be wrong on the first program, and right on the second.
#
# The walk in tinynode: [backprop.py](../source/tinynode/core/backprop.md).
#
# ## Bug hunt
# Tests of a chain see no wrong order. `hunt06.py` gets `mynode` of this step, with 20 bugs, one at
# a time: in ranks, in the order, in sums of gradients, in single formulas. Which graphs let your
# tests catch the bugs?
#
#     python -m tinynode.learn hunt 06
