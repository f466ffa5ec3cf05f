# %% [markdown]
# # Step 20: tokens by BPE, and a GPT of your own that writes
#
# **Goal.** Your engine turns any text into tokens, trains a GPT on sonnets, and writes. The loss
# is reported on sonnets that nothing was chosen by.

# %%
from tinynode_course import use_mynode

use_mynode("20")

import re
import time
from collections import Counter
from itertools import pairwise

import numpy as np
from mynode import nn, no_backprop_mode, reshape, seed, softmax_cross_entropy
from mynode.nn.language_model import write
from mynode.tokens import Tokenizer, learn_pairs, merge

import tinynode as tn
from tinynode.nn.datasets import load_sonnets

sonnets = load_sonnets()
poems = sonnets.train.strip().split("\n\n")
training = "\n\n".join(poem for number, poem in enumerate(poems) if number % 7 != 6)
validation = "\n\n".join(poems[6::7])
test = sonnets.held_out.strip()
for name, text in (("training", training), ("validation", validation), ("test", test)):
    print(f"{name:10} {len(text):6} letters")
print(training[:75])

# %% [markdown]
# The split in three is that of step 10. Training gives the gradients. Validation chooses sizes and
# the number of updates. The five sonnets of the test are read once, at the end.
#
# ## Predict
# 1. A text is bytes. Take the pair of neighbours that comes most often, and give the pair a number
#    of its own: a **token**. Which two signs are the first pair of these sonnets?
# 2. A table counts which letter follows which letter. Its loss is about 2.5 per letter. A small
#    GPT trains for a second. Is its loss lower? Which share of its words stand in the sonnets?
#
# ## Run
# **Byte pair encoding**, BPE, begins with 256 tokens, the bytes. Then, again and again, the most
# frequent pair becomes a new token:


# %%
def show_pairs(text, count):
    """The first pairs, with their frequency."""
    tokens, pairs = list(text.encode("utf-8")), learn_pairs(text, count)
    pieces = Tokenizer(pairs).pieces
    for new, pair in enumerate(pairs, 256):
        times = Counter(pairwise(tokens))[pair]
        print(f"token {new}: {pieces[new].decode()!r:6} {times} times")
        tokens = merge(tokens, pair, new)


show_pairs(training, 6)

# %% [markdown]
# The pairs are learned on the training text only. Frequent words become one token, and a rare word
# stays several. No text is unknown, since each text is bytes:
#
# <!-- mynode: tokens.py Tokenizer -->

# %%
tokenizer = Tokenizer(learn_pairs(training, 100))
for text in ("the beauty of the world", "naïve 詩 🙂"):
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    print(f"{len(text.encode())} bytes, {len(tokens)} tokens: {tokens[:8]} ...")

# %% [markdown]
# The **GPT** gets the blocks of step 19. In front are two embeddings: a vector for each token, and
# a vector for each place, since attention alone knows no order. Behind the blocks are a norm and a
# linear layer, the **head**: it gives scores for the next token at each place.
#
# ([tinynode's blocks](../source/tinynode/nn/transformer.md)) Training such a model has two habits.
# **Warm-up**: the rate rises from 0, since the first means of AdamW come from a few gradients
# only. **Cosine**: then the rate falls to 0 along half a cosine, so the last updates are small.
# With $w$ updates of warm-up, $n$ updates in all, and $\eta$ the largest rate:
#
# $$\eta_t = \eta \frac{t}{w} \;\text{ for } t < w, \qquad
# \eta_t = \eta\, \frac{1}{2}\left(1 + \cos\left(\pi\, \frac{t - w}{n - w}\right)\right)
# \;\text{ afterwards}$$
#
# ([tinynode's file](../source/tinynode/nn/schedules.md)) Each update reads 16 pieces of 32 tokens.
# The numbers are float32: half the bytes of float64, and three quarters of the time.

# %%
LENGTH = 32


def loss_of(model, tokens):
    """The mean loss of each next token. tokens: (batch, n + 1)"""
    scores = model(tokens[:, :-1])
    return softmax_cross_entropy(
        reshape(scores, (-1, scores.shape[-1])), tokens[:, 1:].reshape(-1)
    )


def loss_per_letter(model, tokenizer, text):
    """The loss of a whole text, divided by the number of its letters."""
    tokens = np.array(tokenizer.encode(text))
    starts = np.arange(0, len(tokens) - LENGTH, LENGTH)
    with no_backprop_mode():
        loss = loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)])
    letters = len(tokenizer.decode(tokens[1 : starts[-1] + LENGTH + 1]))
    return float(loss.array) * len(starts) * LENGTH / letters


def train(tokenizer, updates=120, size=32):
    """A model, and rows: update, loss of training, loss of validation, each per letter."""
    seed(0)
    model = nn.GPT(tokenizer.size, LENGTH, size, heads=2, blocks=1)
    for p in model.parameters():
        p.array = p.array.astype(np.float32)
    optimizer = nn.AdamW(model, lr=0.03, weight_decay=0.1)
    schedule = nn.schedules.CosineSchedule(optimizer, updates, warmup=12)
    tokens, draw, rows = np.array(tokenizer.encode(training)), np.random.default_rng(0), []
    for number in range(1, updates + 1):
        starts = draw.integers(0, len(tokens) - LENGTH, 16)
        loss = loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)])
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        schedule.step()
        if number % 20 == 0:
            texts = (training[:2000], validation)
            rows.append((number, *(loss_per_letter(model, tokenizer, text) for text in texts)))
    return model, rows


# %% [markdown]
# `write` draws a token by its probability, adds the token to the text, and reads the text again:
#
# <!-- mynode: nn/language_model.py write -->
#
# The scores are divided by a **temperature**. Below 1, likely tokens become still more likely.

# %% tags=["varies"]
start = time.perf_counter()
model, rows = train(tokenizer)
count = sum(p.size for p in model.parameters())
print(f"{count} parameters, 120 updates in {time.perf_counter() - start:.1f} s")
seed(1)
print(tokenizer.decode(write(model, tokenizer.encode("My love "), 50, temperature=0.7)))

# %% [markdown]
# ## See
# To know whether a loss is good, compare with something simple. The table of letter pairs counts
# in the training text which letter follows which one. Each count begins at 1, so that no pair has
# the probability 0.


# %%
class PairTable:
    """The probability of each next letter, from the letter before."""

    def __init__(self, text, letters):
        self.letters = letters
        counts = np.ones((len(letters), len(letters)))
        numbers = [letters.index(letter) for letter in text]
        np.add.at(counts, (numbers[:-1], numbers[1:]), 1)
        self.probabilities = counts / counts.sum(axis=1, keepdims=True)

    def loss(self, text):
        """The loss per letter."""
        numbers = [self.letters.index(letter) for letter in text]
        return float(-np.log(self.probabilities[numbers[:-1], numbers[1:]]).mean())

    def write(self, count):
        """A text of the table."""
        draw, text = np.random.default_rng(0), "\n"
        while len(text) < count:
            row = self.probabilities[self.letters.index(text[-1])]
            text += self.letters[draw.choice(len(row), p=row)]
        return text


table = PairTable(training, sorted(set(sonnets.train + sonnets.held_out)))
tn.show.lines(
    [row[0] for row in rows],
    {
        "training": [row[1] for row in rows],
        "validation": [row[2] for row in rows],
        "table of pairs, validation": [table.loss(validation)] * len(rows),
    },
    title="A GPT of your own",
    x_label="update",
    y_label="loss per letter",
)


# %% [markdown]
# Now the test, once, and the words. A word counts if the sonnets have it, in any part.


# %% tags=["varies"]
def words(text):
    """The words of a text, in small letters."""
    return re.findall("[a-z']+", text.lower())


def share_of_words(text):
    """The share of the words that stand in the sonnets."""
    known = set(words(sonnets.train + sonnets.held_out))
    found = words(text)
    return sum(word in known for word in found) / len(found)


seed(2)
written = tokenizer.decode(write(model, tokenizer.encode("\n"), 300))
for name, loss, text in (
    ("table of pairs", table.loss(test), table.write(2000)),
    ("GPT, 120 updates", loss_per_letter(model, tokenizer, test), written),
):
    print(
        f"{name:16}  loss of the test {loss:.2f}, words of the sonnets {share_of_words(text):.0%}"
    )

# %% [markdown]
# A minute is better than a second. This program trains a larger GPT of your engine, with progress.
# A file keeps the training. Ctrl-C ends the training early, and the text is still written. Started
# again, the program goes on where it ended:
#
#     python -m tinynode.learn example write_sonnets
#     python write_sonnets.py
#
# The first command writes the program into your folder.
# With a folder `mynode` in the present folder, the program takes this engine, else the reference.
# Measured on one core, in 21 to 94 seconds, by how busy the machine was:
#
# | | loss of the test | words of the sonnets |
# |---|---|---|
# | table of letter pairs | 2.50 | 8 % |
# | GPT, temperature 1 | 2.17 | 67 % |
# | GPT, temperature 0.5 | 2.17 | 89 % |
#
# The words are mostly right, and the sentences are not. More training would copy the sonnets: the
# loss of validation rises, as in step 10. So the program takes the parameters with the best loss
# of validation.
#
# ## Break it
# Is a tokenizer with 100 pairs better than none? Compare the loss of each **token**:


# %% tags=["varies"]
def loss_per_token(model, tokenizer, text):
    """The loss of a whole text, divided by the number of its tokens."""
    return loss_per_letter(model, tokenizer, text) * len(text) / len(tokenizer.encode(text))


bytes_only = Tokenizer([])
models = {"bytes only": (bytes_only, train(bytes_only)[0]), "100 pairs": (tokenizer, model)}
for name, (one, trained) in models.items():
    print(f"{name:11} loss per token {loss_per_token(trained, one, validation):.2f}")

# %% [markdown]
# The bytes seem to win. But a token of the other model has more letters, so each token is harder
# to guess. The two numbers have different units. A model with one token for a whole sonnet would
# have the worst loss of all.
#
# ## Fix it
# Divide by what both have in common, the letters:

# %% tags=["varies"]
for name, (one, trained) in models.items():
    letters = len(validation) / len(one.encode(validation))
    loss = loss_per_letter(trained, one, validation)
    print(f"{name:11} {letters:.2f} letters per token, loss per letter {loss:.2f}")

# %% [markdown]
# **What it costs.** Fewer tokens make a text shorter, and each token is a row of the embedding and
# of the head. The attention weights grow with the square of the length.

# %%
pairs = learn_pairs(training, 200)
for count in (0, 100, 200):
    one = Tokenizer(pairs[:count])
    seen, unseen = (len(t) / len(one.encode(t)) for t in (training[:2500], validation))
    table_bytes = 2 * one.size * 32 * 4
    print(f"{count:3} pairs: {seen:.2f} letters per token in training,", end=" ")
    print(f"{unseen:.2f} in validation; {table_bytes / 1000:.0f} kB for tokens")

# %% [markdown]
# Source: Gage, A New Algorithm for Data Compression, 1994; Sennrich, Haddow and Birch, Neural
# Machine Translation of Rare Words with Subword Units, 2016; Radford et al., Language Models are
# Unsupervised Multitask Learners, 2019.
#
# ## Exercise
# Give your package a voice. The stubs have `Tokenizer` and `write`. Yours to find:
#
# - `tokens.py`: the loops of `merge` and `learn_pairs`. A merge goes from left to right, so `aaa`
#   with the pair `aa` becomes the new token and an `a`. Of two pairs with the same count, the pair
#   that comes first in the text is taken.
# - `nn/schedules.py`: `CosineSchedule.lr_at`.
# - `nn/language_model.py`: the rest of `GPT.forward` and of `draw_token`.
#
#     python -m tinynode.learn start 20
#     python -m tinynode.learn check 20
#
# `python -m tinynode.learn run 20 --mine` runs this page with your own package.
