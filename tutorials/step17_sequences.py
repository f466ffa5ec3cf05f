# %% [markdown]
# # Step 17: sequences
#
# **Goal.** A network reads a text character by character, remembers, and says what comes next.

# %%
from tinynode_course import use_mynode

use_mynode("17")

import numpy as np
from mynode import (
    Variable,
    nn,
    no_backprop_mode,
    scaled_dot_product_attention,
    seed,
    softmax,
    softmax_cross_entropy,
    tanh,
)

import tinynode as tn

TEXT = (
    "a graph is made of nodes and edges. a node keeps an edge to each node before. "
    "the forward pass goes from the leaves to the loss. "
    "the backward pass goes from the loss to the leaves. "
    "each edge brings a gradient back, and a node adds the gradients of all edges. "
    "a leaf keeps the sum, and the optimizer moves the leaf. then a new graph is made. "
)
letters = sorted(set(TEXT))
codes = np.array([letters.index(letter) for letter in TEXT])
print(f"{len(TEXT)} characters, {len(letters)} different ones")

# %% [markdown]
# ## Predict
# You know this text by heart, and hear the single letter `a`. Which letters may come next? Then
# you hear `the forward pa`. Which letter comes next now?


# %%
def followers(heard):
    """The letters that follow a string in the text."""
    places = [k for k in range(len(TEXT)) if TEXT.startswith(heard, k)]
    return "".join(sorted({TEXT[(k + len(heard)) % len(TEXT)] for k in places}))


print(f"after 'a': {followers('a')!r}")
print(f"after 'the forward pa': {followers('the forward pa')!r}")

# %% [markdown]
# One letter says little. A reader needs **memory**: a **state** $h$, an array that each letter
# changes. The network computes the next state from the letter and from the state before.
#
# ## Run
# First, a letter must become numbers. An **embedding** has a trained row for each letter:
#
# <!-- mynode: functions/network.py embedding -->
#
# `TakeRows` takes the rows of the table. Its gradient goes to these rows. A letter that comes
# twice in a batch gets two gradients, and they are added, as in step 5.
#
# <!-- mynode: nn/layers.py Embedding -->
#
# ([tinynode's file](../source/tinynode/functions/indexing.md)) Second, the memory. A **gate** is a
# number between 0 and 1 for each number of the state. It comes from the **sigmoid**
# $\sigma(a) = 1 / (1 + e^{-a})$. The **GRU**, gated recurrent unit, has two gates. For letter
# $x$ and state $h$, with matrices $A$ to $F$:
#
# $$z = \sigma(A x + B h) \qquad r = \sigma(C x + D h)$$
# $$n = \tanh(E x + F (r \odot h)) \qquad h' = (1 - z) \odot h + z \odot n$$
#
# Here $\odot$ multiplies element by element. Where $z$ is near 0 the state stays as it is. Where
# $z$ is near 1 the state is replaced by the new $n$. The gate $r$ says how much of the old state
# $n$ may see. You will write these formulas in `GRUCell`.
#
# PyTorch and tinynode have another form: $n = \tanh(E x + r \odot (F h + b))$, with the gate after
# the product, and $z$ keeps the state in place of replacing it. Weights of the one form are wrong
# in the other.
#
# The reader is a letter's embedding, the cell, and scores for the next letter:


# %%
class Reader(nn.Module):
    """A letter and a state give scores for the next letter, and the next state."""

    def __init__(self, size=48):
        self.size = size
        self.embedding = nn.Embedding(len(letters), 16)
        self.cell = nn.GRUCell(16, size)
        self.output = nn.Linear(size, len(letters))

    def forward(self, letter, h):
        h = self.cell(self.embedding(letter), h)
        return self.output(h), h


# %% [markdown]
# The text is read by 32 readers at once, each at another place: a batch. After each window of 10
# letters comes an update. The state goes on into the next window, but its past is cut off by
# `unchain()` of step 13. This is **truncated backpropagation through time**.


# %%
def read_window(model, places, h, length=10):
    """The mean loss of a window, and the state after it."""
    loss = 0.0
    for k in range(length):
        scores, h = model(codes[(places + k) % len(codes)], h)
        loss = softmax_cross_entropy(scores, codes[(places + k + 1) % len(codes)]) + loss
    return loss / length, h


def train(model, windows=50):
    """The loss of each window."""
    optimizer, losses = nn.Adam(model, lr=0.02), []
    places = np.arange(32) * len(codes) // 32
    h = Variable(np.zeros((32, model.size)))
    for _ in range(windows):
        h.unchain()
        loss, h = read_window(model, places, h)
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        places = places + 10
        losses.append(float(loss.array))
    return losses


def write(model, start="a", length=100):
    """A text by the model: each letter is drawn by its probability, and read again."""
    draw = np.random.default_rng(0)
    h, text = Variable(np.zeros((1, model.size))), start
    with no_backprop_mode():
        while len(text) < length:
            scores, h = model(np.array([letters.index(text[-1])]), h)
            text += letters[draw.choice(len(letters), p=softmax(scores).array[0])]
    return text


seed(0)
reader = Reader()
print("before:", write(reader))
losses = train(reader)
print("after: ", write(reader))

# %%
print(f"a guess among {len(letters)} letters costs {np.log(len(letters)):.2f}")
tn.show.training_curves(losses, title="Reading", x_label="window")

# %% [markdown]
# ## See
# The state while the network reads. Each column is a letter, each row a number of the state.

# %%
heard = "the forward pass goes from the leaves"
states, h = [], Variable(np.zeros((1, reader.size)))
with no_backprop_mode():
    for letter in heard:
        _, h = reader(np.array([letters.index(letter)]), h)
        states.append(h.array[0, :16])
tn.show.matrix(
    np.stack(states, axis=1),
    rows=[f"h[{k}]" for k in range(16)],
    columns=list(heard),
    title="The state after each letter",
)

# %% [markdown]
# Some numbers change with each letter. Others stay for a word or longer: they remember.
#
# **What it costs.** The graph of a window holds all operations of its 10 letters. Without
# `unchain()`, the graph would hold all letters since the beginning:


# %%
def operations(y):
    """The number of operations behind y."""
    seen, waiting = set(), [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is not None and function not in seen:
            seen.add(function)
            waiting += [node.creator_node for node in function.inputs]
    return len(seen)


h = Variable(np.zeros((32, reader.size)))
for number in range(3):
    loss, h = read_window(reader, np.arange(32), h)
    print(f"after window {number + 1}: {operations(loss)} operations", end="; ")
    h_cut = Variable(h.array)
    print(f"with unchain() {operations(read_window(reader, np.arange(32), h_cut)[0])}")

# %% [markdown]
# ## Break it
# Leave the gates out: $h' = \tanh(E x + F h)$. To learn from a letter 30 steps ago, the gradient
# has to come back through 30 steps. How large is it then? A trick measures it. Add a leaf of zeros
# to the state at each step: the leaf's gradient is the gradient of the state there.


# %%
class Plain(nn.Module):
    """A cell without gates."""

    def __init__(self, in_size, size):
        self.x, self.h = nn.Linear(in_size, size), nn.Linear(size, size, bias=False)

    def forward(self, x, h):
        return tanh(self.x(x) + self.h(h))


def gradients(cell, steps=31):
    """The length of the gradient of the last state, by distance."""
    draw, zeros = np.random.default_rng(0), []
    h = Variable(np.zeros((1, 48)))
    for _ in range(steps):
        zeros.append(Variable(np.zeros((1, 48))))
        h = cell(Variable(draw.normal(size=(1, 16))), h + zeros[-1])
    h.grad = np.ones((1, 48))
    h.backward()
    return [float(np.linalg.norm(zero.grad)) for zero in reversed(zeros)]


seed(0)
curves = {"no gates": gradients(Plain(16, 48))}
for distance in (0, 10, 20, 30):
    print(f"{distance:2} steps back: {curves['no gates'][distance]:.1e}")

# %% [markdown]
# The gradient **vanishes**. Each step multiplies it by the matrix $F$ and by the slope of tanh.
# No error is raised: the network learns from the last few letters only.
#
# ## Fix it
# In a GRU, $h' = (1 - z) \odot h + \dots$ passes the gradient on, times $1 - z$. At the start the
# gates are near 0.5, and that is too open: $0.5^{30}$ is nothing. With a bias of -3 the gates
# start nearly closed, and the memory is long:

# %%
half_open = nn.GRUCell(16, 48)
closed = nn.GRUCell(16, 48)
closed.update_x.bias.array -= 3.0
curves |= {"gates near 0.5": gradients(half_open), "gates near 0.05": gradients(closed)}
for name, lengths in curves.items():
    print(f"{name:15}  30 steps back: {lengths[30]:.1e}")
tn.show.lines(
    range(31),
    curves,
    log_y=True,
    title="The gradient vanishes, or not",
    x_label="steps back",
    y_label="length",
)

# %% [markdown]
# ## Attention: look back instead of remembering
# A state has to carry everything. **Attention** keeps all former states, and looks back at those
# that fit. Each place has a **key**: what it offers. The **query** says what is sought. The keys
# that fit best get the largest **weights**, and the result is the weighted mean of the **values**:
#
# $$\text{attention} = \text{softmax}\left(\frac{Q K^T}{\sqrt{d}}\right) V$$
#
# With `causal=True` a place sees only itself and the places before. Here is a rule by hand,
# without any training. The query is the letter just heard. The key of a place is the letter
# **before** it, the value its own letter. So attention finds the places where the same letter was
# heard before, and reads what came next.

# %%
heard = "edges and ed"
known = sorted(set(heard))
one_hot = np.eye(len(known))[[known.index(letter) for letter in heard]]
before = np.vstack([np.zeros(len(known)), one_hot[:-1]])
query, key = Variable(20 * one_hot), Variable(before)
answer = scaled_dot_product_attention(query, key, Variable(one_hot), causal=True).array
weights = scaled_dot_product_attention(query, key, Variable(np.eye(len(heard))), causal=True).array
likely = ", ".join(f"{known[k]!r} {answer[-1, k]:.0%}" for k in np.argsort(-answer[-1])[:2])
print(f"after {heard!r}: {likely}")
tn.show.matrix(
    np.round(weights, 2),
    rows=list(heard),
    columns=list(heard),
    title="Where each letter looks",
    y_label="query",
    x_label="place",
)

# %% [markdown]
# The last `d` looks at two places: `g` came after the first `d`, a space after the second. A
# letter that was not heard before looks everywhere alike.
#
# Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014; Vaswani et
# al., Attention Is All You Need, 2017.
#
# ## Exercise
# Give your package a memory. The stubs have what this page shows, and the forward of `Softmax`.
# Yours to find:
#
# - `functions/exponential.py`: `Sigmoid`. The sigmoid of -1000 is 0, without a warning. The
#   equation $\sigma(a) = \frac{1}{2} \tanh \frac{a}{2} + \frac{1}{2}$ helps.
# - `nn/recurrent_layers.py`: `gates` and `forward` of `GRUCell`. The stub has the six matrices.
# - `functions/activation.py`: the backward of `Softmax`. With $y$ the softmax of $x$, the gradient
#   is $g_x = y \odot (g_y - s)$, with $s$ the sum of $g_y \odot y$ over the last axis.
# - `functions/indexing.py`: the backward of `TakeRows`. `np.add.at` adds at an index that comes
#   twice, too.
# - `functions/network.py`: the causal mask in `masked`, which hides keys from queries by a score
#   of $-\infty$. Then `scaled_dot_product_attention`, from operations that you have. Remember that
#   `linear(x, w)` is $x W^T$.
#
#     python -m tinynode.learn start 17
#     python -m tinynode.learn check 17
#
# `python -m tinynode.learn run 17 --mine` runs this page with your own package.
