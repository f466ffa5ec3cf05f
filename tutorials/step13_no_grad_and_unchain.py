# %% [markdown]
# # Step 13: no gradient, unchain, backward again
#
# **Goal.** You say where a graph begins and where a graph ends, and call `backward` again and
# again.

# %%
import numpy as np

import tinynode as tn
from tinynode_course import use_mynode
from tinynode_course.pictures import graph_of

use_mynode("13")
from mynode import Variable, config, no_backprop_mode, square, tanh

# %% [markdown]
# The engine records all operations and differentiates all of them. Often, less is enough:
#
# - data and plain numbers need no gradient;
# - the use of a trained network needs no graph at all;
# - a loop that runs for days must forget its beginning, or the graph fills the memory.
#
# And training calls `backward` thousands of times on the same leaves.
#
# ## What is new
# **`no_backprop_mode()`** is for a `with` block without a graph. The function changes a
# setting, and puts the old value back at the end, also after an error.
#
# <!-- mynode: configuration.py Config no_backprop_mode -->
#
# It does for one setting what `using_config` of step 10 does for any.
#
# **`requires_grad`** of a Variable is true if the Variable wants a gradient. By default arrays of
# floating-point numbers want a gradient. Integers have no derivative, and want none. An
# output of an operation wants a gradient if an input does and a graph is recorded. Without a wish,
# `apply` records no graph:
#
# <!-- mynode: core/function_node.py FunctionNode -->
#
# `backward` asks an operation only for the gradients of inputs with this wish. Their
# positions are `target_input_indexes`. An operation may return `None` for the others:
#
# <!-- mynode: functions/arithmetic.py BroadcastingNode Multiply -->
#
# **`unchain()`** cuts a Variable off from its creator. For `backward` the Variable is a leaf from
# then on. **`unchain_backward()`** does the same for all earlier Variables: a loop goes from the
# result to the leaves, and the whole graph is freed.
#
# **Two errors.** `backward` now says why it cannot start. There must be an operation that computed
# `y`, and `y` must be a single number. Until now `backward` began with ones for an array of many
# numbers: a guess. Put your own choice into `y.grad` first; `backward` uses it up.
#
# In the package: [configuration](../source/tinynode/configuration.md),
# [backprop](../source/tinynode/core/backprop.md).
#
# ## Predict
# `y = x * x` at `x = 3`. You call `y.backward()` three times in a row. What is `x.grad` after each
# call?
#
# ## Run

# %%
x = Variable(np.array(3.0), name="x")
y = x * x
for _ in range(3):
    y.backward()
    print("again, without cleargrad:", x.grad)
x.cleargrad()
y.backward()
print("after cleargrad:         ", x.grad)

# %% [markdown]
# The graph is still there after `backward`, so `backward` can run again. Each run begins with an
# empty table, and *adds* its result to the leaf.
#
# How many operations are behind a Variable? A loop walks back and counts:


# %%
def count_operations(y):
    seen, waiting = {None}, [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            waiting += [node.creator_node for node in function.inputs]
    return len(seen) - 1


data = Variable(np.array(5.0), name="data", requires_grad=False)
print("x * data + x:        ", count_operations(x * data + x), "operations")
print("data * data:         ", count_operations(data * data), "operations")
with no_backprop_mode():
    print("in no_backprop_mode: ", count_operations(x * data + x), "operations")
print("recording again:     ", config.enable_backprop)

x.cleargrad()
(x * data).backward()
print("gradients of x and of data:", x.grad, data.grad)

# %% [markdown]
# ## See
# A loop reads numbers, and keeps a memory `h` of them. Behind the last `h` is the whole loop.
# `unchain()` after step 2 cuts the loop.


# %%
def read(w, numbers, cut_after=None):
    """h = tanh(w * h + x) for each x in numbers; returns all h."""
    h = Variable(np.array(0.0), requires_grad=False)
    memories = []
    for i, number in enumerate(numbers, 1):
        h = tanh(w * h + number)
        h.name = f"h{i}"
        memories.append(h)
        if i == cut_after:
            h.unchain()
    return memories


w = Variable(np.array(0.5), name="w")
numbers = (1.0, -0.5, 0.3, 0.8)
print("step   operations   with a cut after step 2")
whole, cut = read(w, numbers), read(w, numbers, cut_after=2)
for i, (a, b) in enumerate(zip(whole, cut, strict=True), 1):
    print(f"{i:>4}{count_operations(a):>13}{count_operations(b):>26}")

# %%
graph_of(cut[2], title="the graph behind h3: h2 is a leaf")

# %% [markdown]
# The film shows `backward` from the last `h`. It ends at `w`, and at the memory of step 2, now a
# leaf.

# %%
with tn.show.record("a cut after step 2") as film:
    memories = read(w, numbers, cut_after=2)
    memories[-1].backward()
film

# %% [markdown]
# ## Break it
# A training program often prints an average of its losses. Here the average is made of Variables,
# so each round keeps the graphs of all earlier rounds.

# %%
x = Variable(np.array(3.0))
average = Variable(np.array(0.0), requires_grad=False)
for i in range(1, 4):
    loss = square(x - 2.0)
    average = 0.9 * average + 0.1 * loss
    print(f"round {i}: {count_operations(average)} operations are kept")

# %% [markdown]
# No `backward` will start at the average, but its graph grows for ever. The program slows down,
# and ends when the memory is full.
#
# `backward` answers the other mistakes of this step at once:

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
# Compute numbers for people in `no_backprop_mode()`. The loss keeps its graph.

# %%
average = Variable(np.array(0.0), requires_grad=False)
for _ in range(3):
    loss = square(x - 2.0)
    with no_backprop_mode():
        average = 0.9 * average + 0.1 * loss
print("average:", count_operations(average), "operations; loss:", count_operations(loss))

# %% [markdown]
# Training during the loop needs a graph. So the loop cuts the graph from time to time:
# **truncated backpropagation**. The values flow through the cut. The gradients stay in the
# last window.

# %%
h = Variable(np.array(0.0), requires_grad=False)
kept = []
for step in range(9):
    if step % 3 == 0:
        h.unchain_backward()
    h = tanh(w * h + 0.1 * step)
    kept.append(count_operations(h))
print("operations behind h, cut before every third step:", kept)

# %% [markdown]
# **Cost.** A graph costs memory only where a gradient is wanted. A forward pass in
# `no_backprop_mode()` keeps no array for `backward`. `Multiply` saves half of its work in backward
# if a factor wants no gradient.
#
# ## What you have built
# A complete engine, the heart of tinynode, with functions and a network on top.
# `python -m tinynode.learn status` counts your lines. Your engine passes the rows of the package's
# own table of operations. [Read the core](../read-the-core.md) walks through the package
# in the same order. Two things are missing: checks of inputs (step 15), and gradients of gradients
# (step 22).
#
# Source: Werbos, Backpropagation Through Time: What It Does and How to Do It, 1990.
#
# ## Exercise
# 1. `configuration.py`: `Config` gets `enable_backprop = True`; write `no_backprop_mode`. Change
#    `apply` in `core/function_node.py` as shown.
# 2. `core/variable.py` and `core/variable_node.py`: both get `requires_grad`. The parameter of
#    `Variable` is `requires_grad=None`. None means: true for arrays with `dtype.kind == "f"`. Both
#    get a method `unchain()`: the node forgets its creator. `unchain_backward()` of `Variable`
#    calls `unchain_all`, which is given.
# 3. `core/backprop.py`: `backward` calls `check_start` for the two errors, which is given, and
#    sets `y.grad = None`. Only inputs with `requires_grad` are among the targets.
# 4. `functions/arithmetic.py`: a plain number in `as_operands` wants no gradient. Change
#    `BroadcastingNode` and `Multiply` as shown. `functions/network.py`: the images that `Linear`
#    gets want no gradient. Save this product of matrices.
#
# The check counts operations, and reads long texts of numbers in windows.
#
#     python -m tinynode.learn start 13
#     python -m tinynode.learn check 13
#
# `python -m tinynode.learn run 13 --mine` runs this page on your own package.
#
# ## Bug hunt
# A wrong memory seldom shows in numbers. `hunt13.py` gets `mynode` of this step, with 20 bugs
# planted, one at a time: arrays that nobody reads are kept, a mode does not end, a leaf gets a
# gradient that it does not want. Write tests that catch them.
#
#     python -m tinynode.learn hunt 13
