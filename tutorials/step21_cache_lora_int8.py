# %% [markdown]
# # Step 21: the cache of keys and values; low-rank adaptation; int8 weights
#
# **Goal.** A trained model becomes cheap to use: writing takes less time, learning something new
# takes fewer numbers, and the weights take fewer bytes. Each saving has a check beside it.

# %%
from tinynode_course import use_mynode

use_mynode("21")

import time

import numpy as np
from mynode import nn, no_backprop_mode, reshape, seed, softmax_cross_entropy
from mynode.nn.cache import KeyValueCache, read, write_cached
from mynode.nn.int8 import Int8Linear, quantize_rows, use_int8
from mynode.nn.language_model import write
from mynode.nn.lora import add_lora, merge_lora
from mynode.tokens import Tokenizer, learn_pairs

import tinynode as tn
from tinynode.nn.datasets import load_sonnets

sonnets = load_sonnets()
tokenizer = Tokenizer(learn_pairs(sonnets.train, 100))
LENGTH = 32


def loss_of(model, tokens):
    """The mean loss of each next token. tokens: (batch, n + 1)"""
    scores = model(tokens[:, :-1])
    rows = reshape(scores, (-1, scores.shape[-1]))
    return softmax_cross_entropy(rows, tokens[:, 1:].reshape(-1))


def held_out_loss(model, text):
    """The loss per token of a text that the model was not trained with."""
    tokens = np.array(tokenizer.encode(text))
    starts = np.arange(0, len(tokens) - LENGTH, LENGTH)
    with no_backprop_mode():
        return float(loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)]).array)


def train(model, text, parameters, lr, updates):
    """AdamW with warm-up and cosine, as in step 20."""
    optimizer = nn.AdamW(parameters, lr=lr)
    schedule = nn.schedules.CosineSchedule(optimizer, updates, warmup=updates // 10)
    tokens, draw = np.array(tokenizer.encode(text)), np.random.default_rng(0)
    for _ in range(updates):
        starts = draw.integers(0, len(tokens) - LENGTH, 16)
        loss = loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)])
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        schedule.step()


def new_model(arrays=None, length=LENGTH, size=32, dtype=np.float32):
    """A GPT; with arrays, a copy of another one."""
    seed(0)
    model = nn.GPT(tokenizer.size, length, size, heads=2, blocks=2)
    for number, p in enumerate(model.parameters()):
        p.array = (p.array if arrays is None else arrays[number]).astype(dtype)
    return model


base = new_model()
train(base, sonnets.train, base.parameters(), lr=0.02, updates=100)
arrays = [p.array for p in base.parameters()]

# %% [markdown]
# ## Predict
# 1. Step 20 writes a token, then reads the whole text again for the next one. Which arrays of the
#    old places are the same as before: queries, keys, values?
# 2. To teach this model another kind of text, all its numbers stay, and an eighth as many new ones
#    are trained beside them. How near is the result to that of training all numbers?
# 3. A weight of four bytes is rounded to one byte, so 255 values are left. How much does the loss
#    of the held-out sonnets change: 10 %, 1 %, or less?
#
# ## Run
# Attention is causal: a place reads the places before, and no later token changes them. So the
# queries, keys and values of old places all stay. The old queries have had their answers. A new
# token needs its own query only, and the keys and values of all places. The **KV cache** keeps
# these two:
#
# <!-- mynode: nn/cache.py KeyValueCache -->
#
# ([tinynode's file](../source/tinynode/nn/attention.md)) You will write `attend`: the queries are
# of the new places, the keys and values of all. With $m$ new places among $n$ places in all, the
# new place $i$, counted from 0, looks at the places 0 to $n - m + i$. And `read`, which is
# `GPT.forward` with caches: the first new token stands at the place behind the cache, not at
# place 0.
#
# A saving needs a check: the scores with and without the cache.

# %% tags=["varies"]
tokens = np.array([tokenizer.encode(sonnets.held_out)[:LENGTH]])
for dtype in (np.float64, np.float32):
    model = new_model(arrays, dtype=dtype)
    with no_backprop_mode():
        whole = model(tokens).array
        caches = [KeyValueCache() for _ in model.blocks]
        parts = [read(model, tokens[:, i : i + 1], caches).array for i in range(LENGTH)]
    difference = np.abs(np.concatenate(parts, axis=1) - whole).max()
    units = difference / (np.finfo(dtype).eps * np.abs(whole).max())
    print(
        f"{np.dtype(dtype).name}: difference {difference:.0e}, {units:.1f} units of the last place"
    )

# %% [markdown]
# The numbers are not equal to the last bit. A product of matrices adds up in another order when it
# has 1 row instead of 32. What you may promise is a few units of the last place of the largest
# score. The drawn texts are equal, unless two tokens are that close:

# %%
texts = []
for function in (write, write_cached):
    seed(3)
    texts.append(tokenizer.decode(function(base, tokenizer.encode("\nMy "), 24, temperature=0.5)))
print(f"equal: {texts[0] == texts[1]}")

# %% [markdown]
# ## See
# The time of each token, for a model with 256 places. Times vary, so each is the best of three.


# %% tags=["varies"]
def time_of(model, row, place, cached):
    """Milliseconds to read the token of a place, with the tokens before it."""
    caches = [KeyValueCache() for _ in model.blocks]
    with no_backprop_mode():
        if cached:
            read(model, row[:, : place - 1], caches)
        start = time.perf_counter()
        if cached:
            read(model, row[:, place - 1 : place], caches)
        else:
            model(row[:, :place])
        return 1000 * (time.perf_counter() - start)


long = new_model(length=256, size=64)
row, places = np.zeros((1, 256), int), range(16, 257, 16)
curves = {
    name: [min(time_of(long, row, place, cached) for _ in range(3)) for place in places]
    for name, cached in (("read all again", False), ("with a cache", True))
}
for name, taken in curves.items():
    print(f"{name:15} place 16: {taken[0]:.2f} ms, place 256: {taken[-1]:.2f} ms")
tn.show.lines(places, curves, title="Time of a token", x_label="place", y_label="milliseconds")

# %% [markdown]
# The cache costs bytes: keys and values, for each block, place and number of the size.

# %%
print(f"{2 * 2 * 256 * 64 * 4 / 1000:.0f} kB for 2 blocks, 256 places, size 64, float32")

# %% [markdown]
# ## Low-rank adaptation
# The model knows sonnets. Now it should learn another kind of text: lines about animals.

# %%
draw = np.random.default_rng(0)


def animals():
    """A line by a rule: `one` has a noun without s, `two` a noun with s."""
    number, noun = draw.choice(["one", "two"]), draw.choice(["cat", "dog", "hen", "duck"])
    return f"{number} {draw.choice(['old', 'red', 'shy', 'big'])} {noun}" + "s" * (number == "two")


lines = sorted({f"{animals()} and {animals()}.\n" for _ in range(300)})
draw.shuffle(lines)
known, unseen = "".join(lines[:-40]), "".join(lines[-40:])
print(unseen[:60])

# %% [markdown]
# **LoRA** freezes each matrix $W$, and adds a product of two small ones, with rank $r$:
#
# $$y = x W^T + s\, (x A^T) B^T \qquad A: (r, \text{in}) \quad B: (\text{out}, r)$$
#
# $B$ begins as zeros, so the first outputs are the old ones. Only $A$ and $B$ are trained. A
# frozen parameter wants no gradient, and neither does its node in the graph:
#
# <!-- mynode: nn/lora.py freeze -->
#
# `add_lora` puts a `LoRALinear` in place of each layer `Linear` of the blocks and of the head.


# %% tags=["varies"]
everything = new_model(arrays)
train(everything, known, everything.parameters(), lr=0.01, updates=60)
adapted = new_model(arrays)
pairs = add_lora(adapted, rank=4)
train(adapted, known, pairs, lr=0.03, updates=60)
for name, model, count in (
    ("before", base, 0),
    ("all parameters", everything, sum(p.size for p in everything.parameters())),
    ("LoRA, rank 4", adapted, sum(p.size for p in pairs)),
):
    animals_loss, sonnets_loss = (
        held_out_loss(model, unseen),
        held_out_loss(model, sonnets.held_out),
    )
    print(f"{name:15} {count:6} trained numbers, {8 * count / 1000:5.1f} kB of moments;", end=" ")
    print(f"loss of unseen animals {animals_loss:.2f}, of held-out sonnets {sonnets_loss:.2f}")

# %% [markdown]
# Both models forget the sonnets. But the sonnets of the adapted model are not lost: without $A$
# and $B$ it is the old model, to the last bit. Many small pairs can share a large model. For use,
# the pair is **merged** into $W$, and costs no time any more:

# %% tags=["varies"]
with no_backprop_mode():
    unmerged = adapted(tokens).array
    merge_lora(adapted)
    difference = np.abs(adapted(tokens).array - unmerged).max()
print(
    f"merged and unmerged differ by {difference:.0e}, scores go up to {np.abs(unmerged).max():.0f}"
)

# %% [markdown]
# ## Weights of a byte
# Each row of a weight gets a **scale**: its largest number, divided by 127. The row is divided by
# the scale, and rounded to integers. The error is at most half a scale. You will write
# `quantize_rows` and `Int8Linear`.

# %% tags=["varies"]
w = base.head.weight.array
q, scale = quantize_rows(w)
error = np.abs(w - q * scale)
print(f"largest error {error.max():.4f}, half of the largest scale {scale.max() / 2:.4f}")
small = new_model(arrays)
use_int8(small)
print(f"weight of the head: {w.nbytes} bytes, as int8 {small.head.nbytes} bytes")
for name, model in (("float32", base), ("int8", small)):
    print(f"{name:8} loss of held-out sonnets {held_out_loss(model, sonnets.held_out):.4f}")

# %% [markdown]
# The scales are four bytes a row. The embeddings stay float32: a row of them is read, not
# multiplied.
#
# ## Break it
# Why a scale for each row? Take one scale for the whole matrix. With this model little happens, so
# change its numbers, and not its function: in each block, the first row of `up` times 1000, and
# the first column of `down` divided by 1000. For $c > 0$, $\mathrm{relu}(c x) = c\,
# \mathrm{relu}(x)$.


# %% tags=["varies"]
def with_large_row(model):
    """The same function, with a large row in each block."""
    for block in model.blocks:
        up, bias, down = (
            p.array.copy() for p in (block.up.weight, block.up.bias, block.down.weight)
        )
        up[0], bias[0], down[:, 0] = 1000 * up[0], 1000 * bias[0], down[:, 0] / 1000
        block.up.weight.array, block.up.bias.array, block.down.weight.array = up, bias, down
    return model


def one_scale(layer):
    """int8 with one scale for the whole matrix."""
    w = layer.weight.array
    found = Int8Linear(layer)
    found.scale = np.full((len(w), 1), np.abs(w).max() / 127, w.dtype)
    found.q = np.rint(w / found.scale).astype(np.int8)
    return found


model = with_large_row(new_model(arrays))
print(f"a large row, float32:       {held_out_loss(model, sonnets.held_out):.4f}")
for block in model.blocks:
    block.up = one_scale(block.up)
print(f"a large row, one scale:     {held_out_loss(model, sonnets.held_out):.4f}")

# %% [markdown]
# No error is raised. The large row takes all 255 values for itself, and all other rows
# become zeros.
#
# ## Fix it
# A scale for each row: no row pays for another one.

# %% tags=["varies"]
model = with_large_row(new_model(arrays))
for block in model.blocks:
    block.up = Int8Linear(block.up)
print(f"a large row, scales by row: {held_out_loss(model, sonnets.held_out):.4f}")

# %% [markdown]
# **What it costs.** The cache pays bytes for time. LoRA saves the moments of AdamW, two numbers
# for each trained number, and the gradients of frozen weights. Int8 takes a fourth of the bytes,
# and our layer makes floats of the integers for each product: less memory at rest, and no time
# saved.
#
# Source: Shazeer, Fast Transformer Decoding, 2019; Hu et al., LoRA, 2021; Dettmers et al.,
# LLM.int8(), 2022.
#
# ## Exercise
# Make your model cheap to use. The stubs have what this page shows, and `add_lora`, `merge_lora`,
# `use_int8` and `write_cached`. Yours to find:
#
# - `nn/cache.py`: the rest of `attend` and `read`. `np.tri(m, n, k)` is True up to the diagonal
#   that is $k$ places to the right.
# - `nn/lora.py`: the parameters `a` and `b` of `LoRALinear`, drawn by `lecun_normal` and zeros;
#   `forward`, and the end of `merged`. `linear` takes an array as weight, but not as bias: add
#   the bias with `+`.
# - `nn/int8.py`: `quantize_rows` and `Int8Linear.forward`. A row of zeros has the scale 1.
#
#     python -m tinynode.learn start 21
#     python -m tinynode.learn check 21
#
# `python -m tinynode.learn run 21 --mine` runs this page with your own package.
