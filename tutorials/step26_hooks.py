# %% [markdown] tags=["portable"]
# # Step 26: hooks
#
# **Goal.** You watch every function that runs, forward and backward: its name, its time, and the
# memory that it keeps.

# %%
import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import hooks, nn

tn.seed(0)


def on_device(data, **options):
    """Data as a Variable on the device in use."""
    return tn.asarray(np.array(data), device=tn.get_device(), **options)


x = on_device([0.5, -1.0], requires_grad=True)

# %% [markdown]
# `apply` calls `forward`, and the backward pass calls each function's `backward`. A **hook** is an
# object whose methods are called just before and just after. Its class derives from
# `tn.FunctionHook`. Six of the methods are:
#
# | method | is called |
# |---|---|
# | `forward_preprocess(function, in_data)` | before a `forward` |
# | `forward_postprocess(function, in_data)` | after a `forward` |
# | `backward_preprocess(function, in_data, out_grad)` | before a `backward` |
# | `backward_postprocess(function, in_data, out_grad)` | after a `backward` |
# | `added(function)` | when the hook is registered |
# | `deleted(function)` | when the hook is removed |
#
# `function` is the FunctionNode, `in_data` and `out_grad` are tuples of arrays. In backward,
# `in_data` has `None` for each input that was not retained.


# %%
class Names(tn.FunctionHook):
    name = "names"

    def forward_preprocess(self, function, in_data):
        print("forward ", function.label)

    def backward_preprocess(self, function, in_data, out_grad):
        print("backward", function.label)


# %% [markdown]
# ## Predict
# The next cell computes $\sum_i \tanh x_i$ and its gradient. In a `with` block, a hook watches all
# functions of this thread. How many lines does `Names` print: four, or more?
#
# ## Run

# %%
with Names():
    y = F.sum(F.tanh(x))
    y.backward()

# %% [markdown]
# Two forward, two backward, and five more. A `backward` is made of functions (step 22), and
# **hooks see these functions too**. They run between `backward_preprocess` and
# `backward_postprocess` of the outer function.
#
# A hook can watch a single function: `function.add_hook(hook)`, and `delete_hook(name)` at the
# end. `added` and `deleted` get this function. In a `with` block they get `None`.


# %%
class Announced(Names):
    name = "announced"

    def added(self, function):
        print("added to", "the thread" if function is None else function.label)

    def deleted(self, function):
        print("deleted from", "the thread" if function is None else function.label)


with Announced():
    h = F.tanh(x)
y = F.sum(h)
h.creator_node.add_hook(Announced())
y.backward()
h.creator_node.delete_hook("announced")

# %% [markdown]
# This time the hook does not see the backward of `Sum`, nor the functions inside of both
# backwards.
#
# The package has hooks as well. `PrintHook` shows the inputs:

# %%
with hooks.PrintHook(sep="  "):
    h = F.tanh(x)

# %% [markdown]
# `TimerHook` measures times, here for one forward and one backward of a network as in step 9.
# `own time` is without the functions inside. Your times will differ.

# %%
model = nn.Sequential(nn.Linear(20, 50), F.tanh, nn.Linear(50, 3)).to_device(tn.get_device())
rng = np.random.default_rng(0)
batch = on_device(rng.normal(size=(64, 20)).astype("float32"))
classes = on_device(rng.integers(0, 3, size=64))

# %% tags=["varies"]
with hooks.TimerHook() as timer:
    loss = F.softmax_cross_entropy(model(batch), classes)
    loss.backward()
timer.print_report()

# %% [markdown]
# ## See
# `MemoryHook` counts the bytes that functions retain for backward (step 12). Each layer adds bytes
# when it runs. When are they freed?

# %%
live = {}
with hooks.MemoryHook() as memory:
    h = batch
    for layer in model:
        h = layer(h)
        name = getattr(layer, "__name__", type(layer).__name__)
        live[f"{len(live) + 1}: {name}"] = memory.current_bytes() / 1024
    loss = F.softmax_cross_entropy(h, classes)
    live["4: loss"] = memory.current_bytes() / 1024
    loss.backward()
    live["5: backward"] = memory.current_bytes() / 1024
    del h, loss
    live["6: del h, loss"] = memory.current_bytes() / 1024
tn.show.bars(live, title="Retained at that time", x_label="KiB")

# %% [markdown]
# Backward frees nothing, since the graph could be used once more. The graph is freed with its last
# Variable, as in step 11. These functions retained the bytes:

# %%
for label, row in memory.summary().items():
    if row["bytes"]:
        print(f"{label:20} {row['bytes']:6} bytes")

# %% [markdown]
# ## Break it
# Two traps. The first hook counts how often each function runs:


# %%
class Count(tn.FunctionHook):
    name = "count"

    def __init__(self):
        self.counts = {}

    def forward_preprocess(self, function, in_data):
        self.counts[function.label] = self.counts.get(function.label, 0) + 1


with Count() as count:
    y = F.sum(x * x * x)
    y.backward()
print(count.counts)

# %% [markdown]
# The program has two products, and the hook counts six: four ran inside of a backward. The second
# trap is two hooks with the same name:

# %%
try:
    with Count() as whole, Count() as part:
        y = F.sum(x * x * x)
except tn.TinynodeError as error:
    print(error)

# %% [markdown]
# ## Fix it
# Count the depth: plus 1 before a backward, minus 1 after a backward. At depth 0, the program
# itself calls the function. And each hook gets a name of its own.


# %%
class CountMine(Count):
    def __init__(self, name):
        super().__init__()
        self.name = name
        self.depth = 0

    def forward_preprocess(self, function, in_data):
        if self.depth == 0:
            super().forward_preprocess(function, in_data)

    def backward_preprocess(self, function, in_data, out_grad):
        self.depth += 1

    def backward_postprocess(self, function, in_data, out_grad):
        self.depth -= 1


with CountMine("whole") as whole:
    y = x * x
    with CountMine("part") as part:
        y = F.sum(y * x)
    y.backward()
print("whole:", whole.counts)
print("part: ", part.counts)

# %% [markdown]
# `forward_postprocess` gets the *inputs*, not the results. Two more methods get the results, as
# Variables. The entries of `grad_inputs` belong to `indexes`, the indexes of the inputs that need
# a gradient.
#
# | method | is called |
# |---|---|
# | `applied(function, inputs, outputs)` | after a function was applied |
# | `after_backward(function, indexes, grad_outputs, grad_inputs)` | after a `backward` |


# %%
class Shapes(tn.FunctionHook):
    name = "shapes"

    def applied(self, function, inputs, outputs):
        print(f"{function.label:12} gave", *(y.shape for y in outputs))


with Shapes():
    y = F.sum(F.broadcast_to(x, (3, 2)), axis=0)

# %% [markdown]
# The package's `NaNHook` is such a hook. A **NaN**, "not a number", is the result of $\sqrt{-1}$,
# and every sum or product with a NaN is a NaN. At the end the loss is NaN, and its origin is
# unknown. The hook stops at the first function with a NaN, and names this function:

# %%
try:
    with hooks.NaNHook(), np.errstate(invalid="ignore"):
        loss = F.sum(F.exp(F.sqrt(x)) + 1.0)
except tn.TinynodeError as error:
    print(str(error).partition(", output")[0])

# %% [markdown]
# **Cost.** A loop over no hooks at each function. With a hook, the hook's own work counts: a
# search for NaN reads each array once more.
#
# Source: Tokui et al., Chainer: A Deep Learning Framework for Accelerating the Research Cycle,
# 2019.
#
# ## Exercise
# Give `mynode` hooks. `hooks.py` has the base class `FunctionHook`, the list `active` of the open
# hooks, and `has_nan`.
#
# 1. `core/function_node.py`: `apply` calls `hook.applied(self, inputs, outputs)` for each hook in
#    `hooks.active`. `core/backprop.py`: `run_backward` calls `backward_preprocess` before, and
#    `after_backward` after the backward of an operation.
# 2. `hooks.py`: `NaNHook` does not stop, but remembers the first operation with a NaN, and the
#    word `"forward"` or `"backward"`. Write its method `judge`. An operation with a NaN among its
#    inputs does not count, nor does an operation inside of a backward: a recorded backward (step
#    22) has some.
#
#     python -m tinynode.learn start 26
#     python -m tinynode.learn check 26
