# %% [markdown]
# # Step 19: attention with heads and a batch
#
# **Goal.** A network looks back at two places of a text, in 32 texts at once. You see where it
# looks.

# %%
from tinynode_course import use_mynode

use_mynode("19")

import numpy as np
from mynode import (
    Variable,
    nn,
    no_backprop_mode,
    permute_dims,
    reshape,
    seed,
    softmax_cross_entropy,
)
from mynode.functions.network import attention_weights

import tinynode as tn

LETTERS, LENGTH, SIZE = 5, 12, 32
NAMES = "-abcd"


def pairs(x):
    """For each place a number for two letters: one place before, and three places before.

    The letter 0, "-", stands for a place before the beginning.
    """
    padded = np.pad(x, ((0, 0), (3, 0)))
    return LETTERS * padded[:, 2:-1] + padded[:, :-3]


text = np.array([[NAMES.index(letter) for letter in "abdcbadacdba"]])
print("letters:         ", " ".join(NAMES[k] for k in text[0]))
print("one before:      ", " ".join(NAMES[k // LETTERS] for k in pairs(text)[0]))
print("three before:    ", " ".join(NAMES[k % LETTERS] for k in pairs(text)[0]))

# %% [markdown]
# ## Predict
# In step 17 a place looks back by **attention**: the softmax of its scores gives each place before
# a weight, with the sum 1. The values of these places are added with these weights.
#
# The task above asks each place for **two** letters, from two places. How does a place share its
# weights? With one attention, a **head**? With two heads side by side?
#
# ## Run
# The numbers of all places and all texts have the shape (batch, length, size). Each head takes a
# part of the last axis. The axis of the heads then moves in front of the axis of the places:

# %%
x = Variable(np.random.default_rng(0).normal(size=(32, LENGTH, SIZE)))
parts = reshape(x, (32, LENGTH, 2, SIZE // 2))
heads = permute_dims(parts, (0, 2, 1, 3))
weights = attention_weights(heads, heads, causal=True)
print("x                   ", x.shape, "  batch, length, size")
print("reshape             ", parts.shape, "batch, length, heads, size / heads")
print("permute_dims        ", heads.shape, "batch, heads, length, size / heads")
print("weights             ", weights.shape, "batch, heads, length, length")
print("weights @ values    ", (weights @ heads).shape, "batch, heads, length, size / heads")

# %% [markdown]
# No loop goes over texts or heads. A **stack** of matrices is multiplied in one call: the last two
# axes are the matrix, the axes in front count the matrices. For each pair of matrices, the
# gradients of $z = x y$ are those that you know:
#
# $$g_x = g_z\, y^T \qquad g_y = x^T g_z$$
#
# The axes in front are broadcast, as in step 7. So the gradient of a matrix that was used many
# times is a sum. `unbroadcast` adds it up.
#
# A reader has a row of numbers for each letter, and a row for each place. Without the place, all
# places with the same letter would have the same key.


# %%
class Reader(nn.Module):
    """Scores for each place, from the letters up to this place."""

    def __init__(self, middle, answers):
        self.letters = nn.Embedding(LETTERS, SIZE)
        self.places = nn.Embedding(LENGTH, SIZE)
        self.middle = middle
        self.output = nn.Linear(SIZE, answers)

    def embed(self, x):
        """(batch, length), integers -> (batch, length, size)."""
        return self.letters(x) + self.places(np.arange(x.shape[1]))

    def forward(self, x):
        return self.output(self.middle(self.embed(x)))


def train(model, task, updates):
    """The loss of each update, on 32 new texts each; and the share of right answers at the end."""
    optimizer, draw, losses = nn.Adam(model, lr=0.01), np.random.default_rng(0), []
    for _ in range(updates):
        x, answers = task(draw, 32)
        scores = model(x)
        rows = reshape(scores, (-1, scores.shape[-1]))
        loss = softmax_cross_entropy(rows, answers.reshape(-1))
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    x, answers = task(draw, 200)
    with no_backprop_mode():
        right = float((model(x).array.argmax(axis=-1) == answers).mean())
    return losses, right


def two_letters(draw, count):
    """Texts without any rule, and the pairs."""
    x = draw.integers(1, LETTERS, (count, LENGTH))
    return x, pairs(x)


readers, curves = {}, {}
for heads in (1, 2):
    seed(0)
    name = f"{heads} head" + "s" * (heads > 1)
    readers[name] = Reader(nn.MultiHeadAttention(SIZE, heads), LETTERS * LETTERS)
    curves[name], right = train(readers[name], two_letters, 40)
    print(f"{name}: loss {curves[name][-1]:.2f}, {right:.0%} right in 200 new texts")
tn.show.lines(range(1, 41), curves, title="Two letters", x_label="update", y_label="loss")

# %% [markdown]
# ## See
# The weights for the text above. Each row is a place that looks, each column a place that is seen.
# First the single head:


# %%
def look(reader):
    """The weights of each head for the text: (heads, length, length)."""
    attention, x = reader.middle, reader.embed(text)
    query = attention.split(attention.query(x))
    key = attention.split(attention.key(x))
    return attention_weights(query, key, causal=True).array[0]


def picture(weights, title):
    """A matrix of weights, with the letters of the text."""
    names = [NAMES[k] for k in text[0]]
    return tn.show.matrix(
        weights.round(2), rows=names, columns=names, title=title, y_label="query", x_label="place"
    )


(single,) = look(readers["1 head"])
print("the last place gives its largest weights:", np.sort(single[-1].round(2))[-2:])
picture(single, "One head shares its weights")

# %% [markdown]
# One head has to look at both places with one row of weights, which has the sum 1. A mixture says
# little about which letter stood where. So the head learns two different weights, and slowly. Now
# the two heads:

# %%
first, second = look(readers["2 heads"])
for number, one in enumerate((first, second), 1):
    print(f"head {number}: the last place gives its largest weight: {one[-1].max():.2f}")
picture(first, "Head 1")

# %%
picture(second, "Head 2")

# %% [markdown]
# Each head has found one of the two places. Nobody has told a head where to look: the gradients of
# the scores did.
#
# ## What is new
# Attention brings numbers from place to place, and adds values. A perceptron computes new numbers
# at each place alone. So a network lets the two take turns. With the norms and residual
# connections of step 18 this pair is the **block** of which transformers are made:
#
# $$u = x + \text{attention}(\text{norm}_1(x)) \qquad
# y = u + W_2\, \text{relu}(W_1\, \text{norm}_2(u) + b_1) + b_2$$
#
# $W_1$ (`up`) makes four times as many numbers, $W_2$ (`down`) brings the size back. In your
# package the block is `nn.Block(size, heads)`.
#
# **What it costs.** The weights of a text are a square: twice the length, four times the bytes.

# %%
for length in (64, 128, 256):
    x = Variable(np.zeros((4, length, SIZE)))
    query = nn.MultiHeadAttention(SIZE, 2).split(x)
    weights = attention_weights(query, query, causal=True)
    print(f"length {length:3}: x has {x.array.nbytes / 1e6:.2f} MB,", end=" ")
    print(f"the weights have {weights.array.nbytes / 1e6:.2f} MB")

# %% [markdown]
# ## Break it
# Now each place says the **next** letter. The letters are drawn without any rule, so nobody can
# know the next one: the best loss is $\log 4 = 1.39$, the best share 25 %. A block gets attention
# without the causal mask:


# %%
def next_letter(draw, count):
    """Texts without any rule, and the next letter of each place."""
    x = draw.integers(1, LETTERS, (count, LENGTH + 1))
    return x[:, :-1], x[:, 1:]


def guess(causal):
    """Train a block on the next letter."""
    seed(0)
    block = nn.Block(SIZE, 2)
    block.attention.causal = causal
    losses, right = train(Reader(block, LETTERS), next_letter, 60)
    print(f"causal={causal!s:5}  loss {losses[-1]:.2f}, {right:.0%} right")


guess(causal=False)

# %% [markdown]
# The loss is too good. Each place has looked at the next place, and has read the answer there. No
# error is raised, and such a network can't write a text: the next letter isn't there yet.
#
# ## Fix it
# The **causal mask** gives the places behind a score of minus infinity, so their weight is 0:

# %%
guess(causal=True)
print(attention_weights(Variable(np.zeros((4, 2))), Variable(np.zeros((4, 2))), causal=True).array)

# %% [markdown]
# Source: Vaswani et al., Attention Is All You Need, 2017. The norms stand in front of attention
# and perceptron, as in Xiong et al., On Layer Normalization in the Transformer Architecture, 2020.
#
# ## Exercise
# Your attention gets a batch and heads. The stubs have `permute_dims`, `matrix_transpose`, the
# layers of `MultiHeadAttention` and of `Block`, and `split`. Yours to find:
#
# - `functions/shapes.py`: `PermuteDims`. Its backward puts the axes back in their order.
#   ([tinynode's file](../source/tinynode/functions/shapes.md))
# - `functions/products.py`: `MatMul` for stacks. The check of the types allows two axes or more,
#   and compares `x.shape[-1]` with `y.shape[-2]`. For an array, `y.mT` swaps the last two axes.
#   ([tinynode's file](../source/tinynode/functions/products.md))
# - `functions/network.py`: `attention_weights`, which has the scores, `masked` and softmax of your
#   attention of step 17, now by `matmul`. `scaled_dot_product_attention` calls it.
# - `nn/attention.py`: `join` and `forward` of `MultiHeadAttention`. `join` is `split`, backwards.
#   ([tinynode's file](../source/tinynode/nn/attention.md))
# - `nn/transformer.py`: `Block.forward`, by the formula above.
#   ([tinynode's file](../source/tinynode/nn/transformer.md))
#
#     python -m tinynode.learn start 19
#     python -m tinynode.learn check 19
#
# `python -m tinynode.learn run 19 --mine` runs this page with your own package.
