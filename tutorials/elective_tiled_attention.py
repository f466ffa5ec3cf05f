# %% [markdown]
# # Elective: attention in tiles
#
# **Goal.** Attention keeps a weight for each pair of places. You compute the same numbers in
# tiles, with a running maximum, and keep no weight at all.

# %%
import math
import time
import tracemalloc

import numpy as np

import tinynode as tn
from tinynode_course import use_mynode

use_mynode("tiled_attention")
from mynode import Variable, scaled_dot_product_attention
from mynode.functions.tiled_attention import tile_scores, tiled_attention

# %% [markdown]
# Step 19 computes the weights of all $n$ queries and $n$ keys, and keeps them for backward. Twice
# the length takes four times the bytes. At 1,024 places, a head has a million weights.
#
# ## Predict
# A head has $n = 1024$ places and vectors of 64 numbers of 8 bytes.
#
# 1. How many bytes have the weights? How many have $q$, $k$, $v$ and the result $y$ together?
# 2. Softmax divides by the sum over **all** keys, and subtracts the largest score of **all** keys.
#    Can a softmax be computed when you see 64 keys at a time, and each key once?
#
# ## Run
# First, the bytes that the graph keeps, with each array counted once:


# %%
def kept_bytes(y):
    """The bytes of the arrays that the operations behind y keep for backward."""
    arrays, seen, waiting = {}, set(), [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        for array in function.get_retained_inputs() + function.get_retained_outputs():
            whole = array if array.base is None else array.base
            arrays[id(whole)] = whole.nbytes
        waiting += [node.creator_node for node in function.inputs]
    return sum(arrays.values())


def head(length, size=64, seed=0):
    """Queries, keys and values of a head, as Variables."""
    rng = np.random.default_rng(seed)
    return [Variable(rng.normal(size=(length, size))) for _ in range(3)]


plain = scaled_dot_product_attention(*head(1024))
print(f"{kept_bytes(plain) / 1e6:.1f} MB kept for 1024 places, {1024 * 64 * 8 / 1e6:.1f} MB for q")

# %% [markdown]
# The weights have 8.4 MB. Our engine keeps as many again: the scores before the division by
# $\sqrt d$.
#
# ## The running maximum
# For a query, let $a$ be the largest score so far, $t$ the sum of $e^{s - a}$ so far, and $y$ the
# sum of $e^{s - a} v$ so far. A new tile of keys has a larger maximum $a'$. The old sums were made
# with $a$, and must be made with $a'$. One factor mends both:
#
# $$e^{s - a'} = e^{a - a'}\, e^{s - a} \qquad t \leftarrow e^{a - a'}\, t + \sum p \qquad
# y \leftarrow e^{a - a'}\, y + p\, v \qquad p = e^{s - a'}$$
#
# At the end the result is $y / t$. Here for a query, with numbers:

# %%
scores = np.array([1.0, 3.0, 2.0, 9.0, 4.0, 0.0])
values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
largest, total, y = -math.inf, 0.0, 0.0
for start in (0, 2, 4):
    s, v = scores[start : start + 2], values[start : start + 2]
    new = max(largest, s.max())
    p = np.exp(s - new)
    shrink = math.exp(largest - new)
    total, y, largest = shrink * total + p.sum(), shrink * y + p @ v, new
    print(f"keys {start} and {start + 1}: maximum {largest:.0f}, the old sums times {shrink:.4f}")
weights = np.exp(scores - scores.max())
print(f"in tiles {y / total:.12f}, at once {weights @ values / weights.sum():.12f}")

# %% [markdown]
# **Backward** needs the weights again. It computes them from the scores, tile by tile. For this,
# forward keeps a number for each query, $\text{log} = a + \log t$: the weight is $e^{s -
# \text{log}}$. With $D$ the sum of $g_y \odot y$ over the last axis, the gradient of the scores is
# that of softmax, step 17:
#
# $$g_s = p \odot (g_y v^T - D)$$
#
# The scores of a tile:
#
# <!-- mynode: functions/tiled_attention.py tile_scores -->
#
# You will write `TiledAttention`. Both functions compare to the last places, with gradients:

# %% tags=["varies"]
results = []
for function in (scaled_dot_product_attention, tiled_attention):
    xs = head(300)
    y = function(*xs, causal=True)
    y.grad = np.random.default_rng(1).normal(size=y.shape)
    y.backward()
    results.append([y.array, *(x.grad for x in xs)])
differences = [np.abs(a - b).max() for a, b in zip(*results, strict=True)]
print("largest differences of y, gq, gk, gv:", " ".join(f"{one:.0e}" for one in differences))

# %% [markdown]
# ## See
# Bytes kept, against the length. Both axes are logarithmic: a slope of 2 is a square.

# %%
lengths = [64, 128, 256, 512, 1024, 2048]
kept = {
    name: [kept_bytes(function(*head(length, 32))) / 1e6 for length in lengths]
    for name, function in (
        ("all weights", scaled_dot_product_attention),
        ("in tiles", tiled_attention),
    )
}
for name, sizes in kept.items():
    print(f"{name:11}", " ".join(f"{size:8.2f}" for size in sizes), "MB")
tn.show.lines(
    lengths,
    kept,
    log_x=True,
    log_y=True,
    title="Bytes kept for backward",
    x_label="length",
    y_label="megabytes",
)

# %% [markdown]
# In tiles, the bytes grow with the length, not with the square of the length. The most bytes at
# any time of a forward and a backward, and the time:


# %% tags=["varies"]
def measure(function, length):
    """The most megabytes at one time, and milliseconds, of forward and backward."""
    xs = head(length, 32)

    def program():
        y = function(*xs, causal=True)
        y.grad = np.ones(y.shape)
        y.backward()

    start = time.perf_counter()
    program()
    taken = 1000 * (time.perf_counter() - start)
    tracemalloc.start()
    program()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6, taken


for name, function in (
    ("all weights", scaled_dot_product_attention),
    ("in tiles", tiled_attention),
):
    for length in (512, 1024):
        most, taken = measure(function, length)
        print(f"{name:11} {length:5} places: {most:6.1f} MB at most, {taken:5.0f} ms")

# %% [markdown]
# ## Break it
# Leave the factor $e^{a - a'}$ out. Two orders of the same keys:


# %%
def one_query(query, key, value, tile=2, mend=True):
    """Attention of a query over tiles, with or without the factor for the old sums."""
    largest, total, y = -math.inf, 0.0, np.zeros(value.shape[1])
    for start in range(0, len(key), tile):
        scores = tile_scores(query[None], key[start : start + tile], start, False)[0]
        new = max(largest, scores.max())
        p = np.exp(scores - new)
        shrink = math.exp(largest - new) if mend else 1.0
        total, y, largest = (
            shrink * total + p.sum(),
            shrink * y + p @ value[start : start + tile],
            new,
        )
    return y / total


rng = np.random.default_rng(2)
query, key, value = rng.normal(size=4), rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
right = one_query(query, key, value)
order = np.argsort(-(key @ query))
for name, places in (("as they come", np.arange(8)), ("the best key first", order)):
    wrong = one_query(query, key[places], value[places], mend=False)
    print(f"{name:18}  error {np.abs(wrong - right).max():.1e}")

# %% [markdown]
# With the best key in the first tile, the maximum never changes, and the factor is 1. So a test
# with such keys finds nothing. With other keys the result is wrong, and no error is raised.
#
# ## Fix it
# A test of tiles needs several orders, and several sizes of tiles, with one that does not divide
# the length. The result may depend on neither:

# %%
for tile in (1, 3, 8, 100):
    errors = []
    for places in (np.arange(8), order, order[::-1]):
        got = one_query(query, key[places], value[places], tile)
        errors.append(np.abs(got - right).max())
    print(f"tiles of {tile:3}: largest error below 1e-14: {max(errors) < 1e-14}")

# %% [markdown]
# **What it costs.** Backward computes the scores again, a further product of matrices. The time
# fell all the same: the arrays of a tile stay in the fast memory of the processor. A row of
# weights goes to the main memory and back.
#
# Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Rabe and Staats,
# Self-attention Does Not Need O(n^2) Memory, 2021; Dao et al., FlashAttention, 2022.
#
# ## Exercise
# The stub has `TiledAttention` with its formulas. Write `forward` and `backward`; this page shows
# `tile_scores`. Forward has two outputs, $y$ and log, and keeps both by `retain_outputs`.
#
#     python -m tinynode.learn start tiled_attention
#     python -m tinynode.learn check tiled_attention
