# %% [markdown]
# # Elective: the bytes of a training step
#
# **Goal.** You count all bytes of a training step. Then you halve the largest part, by computing
# some arrays twice.

# %%
import tracemalloc

import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("bytes")
from mynode import Variable, dropout, linear, mean_squared_error, nn, random, seed, square, tanh
from mynode.functions.checkpoint import Checkpoint, checkpoint
from mynode.memory import bytes_of, kept_arrays, step_bytes

# %% [markdown]
# A training step needs four kinds of arrays:
#
# | kind | how many numbers | lives |
# |---|---|---|
# | **weights** | the parameters | always |
# | **gradients** | one for each parameter | from backward to the update |
# | **moments** | 0, 1 or 2 for each parameter: SGD, momentum, Adam | always |
# | **activations** | what the operations keep for backward (step 12) | from forward to backward |
#
# The first three depend on the network alone. The activations grow with the batch.
#
# ## Predict
# A network has 16 layers $\tanh(x W^T)$, all of width 64. A batch has 512 rows, and the optimizer
# is Adam. All numbers have 8 bytes.
#
# 1. Which kind needs the most bytes? Count the numbers of one layer: $W$ has 64 · 64.
# 2. How many arrays does a layer keep for backward, beside its weight? `Linear` keeps its input,
#    and `Tanh` keeps its output.
#
# ## Run

# %%
LAYERS, WIDTH, ROWS = 16, 64, 512
seed(0)
weights = [nn.Parameter(random.normal((WIDTH, WIDTH)) / 8.0) for _ in range(LAYERS)]
x = Variable(random.normal((ROWS, WIDTH)), requires_grad=False)
target = Variable(random.normal((ROWS, WIDTH)), requires_grad=False)


def chain(x, *weights):
    """tanh(x W^T), once for each weight."""
    for w in weights:
        x = tanh(linear(x, w))
    return x


optimizer = nn.Adam(weights)
for _ in range(2):
    optimizer.cleargrads()
    loss = mean_squared_error(chain(x, *weights), target)
    loss.backward()
    counted = step_bytes(loss, optimizer)
    optimizer.update()
print({kind: size // 1000 for kind, size in counted.items()}, "kB")

# %% [markdown]
# ## See

# %%
tn.show.bars({kind: size // 1000 for kind, size in counted.items()}, x_label="kilobytes")

# %% [markdown]
# A layer keeps **one** array: the output of `Tanh` is the input of the next `Linear`, the same
# array. With `x` these are 17 arrays of 512 · 64 numbers. The loss keeps one more, the difference.
#
# Is the count right? `tracemalloc` is a part of Python. It measures the most bytes at any time:


# %%
def peak(program):
    """The most bytes at one time while the program runs, beside those before."""
    tracemalloc.start()
    program()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def training(forward):
    def program():
        mean_squared_error(forward(x, *weights), target).backward()

    return program


# %% tags=["varies"]
print(f"measured {peak(training(chain)) / 1e6:.1f} MB, counted", end=" ")
print(f"{(counted['activations'] + counted['gradients']) / 1e6:.1f} MB and short-lived arrays")

# %% [markdown]
# ## A checkpoint
# Forward could forget the activations. Backward could compute them again, from the input of the
# layer. A **checkpoint** does so for a function of several layers. A checkpoint is a FunctionNode,
# and you will write this FunctionNode:
#
# - `forward` runs the function *without* a graph. It keeps the inputs of the function alone.
# - `backward` runs the function again, *with* a graph, and differentiates.
#
# The same operations run on the same numbers, so the gradients are the same to the last bit. The
# cost is a second forward. Backward takes about twice the time of forward, so a step takes about
# a third more time.
#
# The film shows both runs of a small function. In the sweep, the backward of `Checkpoint` runs the
# three operations once more, and makes a sweep of its own:

# %%
with tn.show.record("a checkpoint") as film:
    a, w = Variable(np.array(0.5), name="a"), Variable(np.array(2.0), name="w")
    checkpoint(lambda a, w: tanh(square(a) * w), a, w).backward()
film

# %% [markdown]
# How long should a part be? With $n$ layers in parts of $k$ layers, forward keeps $n / k$ inputs.
# Backward needs the $k$ arrays of one part at a time. The sum is smallest for $k = \sqrt n$.


# %%
def in_parts(k):
    """The chain, with a checkpoint for each k layers."""

    def forward(x, *weights):
        for start in range(0, LAYERS, k):
            x = checkpoint(chain, x, *weights[start : start + k])
        return x

    return forward


def gradients(forward):
    for w in weights:
        w.cleargrad()
    training(forward)()
    return [w.grad for w in weights]


plain = gradients(chain)
for k in (1, 4, 16):
    again = gradients(in_parts(k))
    same = all(np.array_equal(a, b) for a, b in zip(plain, again, strict=True))
    kept = bytes_of(kept_arrays(mean_squared_error(in_parts(k)(x, *weights), target)))
    kept -= bytes_of([w.array for w in weights])
    print(f"parts of {k:2}: forward keeps {kept / 1e6:.1f} MB, the same bits: {same}")

# %% tags=["varies"]
lengths = (1, 2, 4, 8, 16)
tn.show.lines(
    lengths,
    {
        "checkpoints": [peak(training(in_parts(k))) / 1e6 for k in lengths],
        "no checkpoint": [peak(training(chain)) / 1e6] * len(lengths),
    },
    title="Measured",
    x_label="layers in a part",
    y_label="megabytes",
)

# %% [markdown]
# Parts of 4 layers need the least: $\sqrt{16}$. A single part of 16 layers saves nothing: backward
# computes all arrays of the chain at once.
#
# ## Break it
# Now with dropout. The function draws random numbers, and it runs twice. This checkpoint forgets
# the generator:


# %%
def noisy(x, *weights):
    for w in weights:
        x = dropout(tanh(linear(x, w)), 0.5)
    return x


class Forgetful(Checkpoint):
    """The second run goes on with the generator where the first run stopped."""

    def backward(self, target_input_indexes, grad_outputs):
        self.state = random.get_generator().bit_generator.state
        return super().backward(target_input_indexes, grad_outputs)


def gradients_with_seed(forward):
    seed(5)
    return gradients(forward)


def forgetful(x, *weights):
    return Forgetful(noisy).apply((x, *weights))[0]


right = gradients_with_seed(noisy)
wrong = gradients_with_seed(forgetful)
print("without a checkpoint:", right[0][0, :3].round(5))
print("with Forgetful:      ", wrong[0][0, :3].round(5))

# %% [markdown]
# No error, and another gradient: the gradient of *another* function, with another mask.
#
# ## Fix it
# Keep the state of the generator in `forward`, and set it in `backward` before the second run.
# Afterwards, set it back: else the next step would draw numbers that were drawn before.

# %%
kept = gradients_with_seed(lambda x, *weights: checkpoint(noisy, x, *weights))
print("with the state kept: ", kept[0][0, :3].round(5))
print("the same bits:", all(np.array_equal(a, b) for a, b in zip(right, kept, strict=True)))

# %% [markdown]
# ## float16
# Numbers of 2 bytes halve the activations again. But the smallest positive number is
# $6 \cdot 10^{-8}$, and small gradients become 0. So one multiplies the loss by a **scale**, and
# divides the gradients by it, in float32:

# %%
small = np.float32(2e-8)
print("in float16:", np.float16(small), " scaled:", np.float32(np.float16(small * 1024)) / 1024)

# %% [markdown]
# The weights gain nothing. In float16, 1 + 0.0001 is 1, so Adam updates a copy in float32. The
# bytes for each parameter: 2 for the weight, 2 for the gradient, 4 for the copy, and 4 for each of
# two moments. The sum is 16. In float32 the sum is 4 + 4 + 4 + 4, also 16.
#
# In the package: [checkpoint](../source/tinynode/transforms/checkpoint.md), which can be
# differentiated twice.
#
# **Cost.** Checkpoints of $\sqrt n$ layers keep about $2 \sqrt n$ arrays in place of $n$, for one
# more forward.
#
# Source: Griewank and Walther, Algorithm 799: Revolve, 2000; Chen, Xu, Zhang and Guestrin,
# Training Deep Nets with Sublinear Memory Cost, 2016. For float16: Micikevicius et al., Mixed
# Precision Training, 2018.
#
# ## Exercise
# The exercise adds two files to your package. It needs steps 1 to 13.
#
# 1. `memory.py`: `bytes_of` counts each memory once. A view has no memory of its own: `array.base`
#    is the array with the memory. `step_bytes` counts the four kinds.
# 2. `functions/checkpoint.py`: `forward` and `backward` of `Checkpoint`.
#
#     python -m tinynode.learn start bytes
#     python -m tinynode.learn check bytes
