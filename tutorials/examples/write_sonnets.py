"""A GPT of your own engine learns from sonnets for about a minute, and writes.

python tutorials/examples/write_sonnets.py
python tutorials/examples/write_sonnets.py --updates 300 --file my_gpt.npz

The engine is the package `mynode` in the present folder, if there is one, else the reference after
step 20. Tokens, rates and the number of updates were chosen by the validation loss. The sonnets of
the test are read once, at the end. Ctrl-C ends the training, and the text is still written. The
file keeps the training: started again, the program goes on.
"""

import argparse
import os
import re
import signal
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

if Path("mynode", "__init__.py").is_file():
    sys.path.insert(0, os.getcwd())
    print("the engine: mynode of this folder")
else:
    from tinynode_course import use_mynode

    use_mynode("20")
    print("the engine: the reference after step 20")

from mynode import nn, no_backprop_mode, reshape, seed, softmax_cross_entropy, using_config
from mynode.nn.language_model import write
from mynode.tokens import Tokenizer, learn_pairs

from tinynode.nn.datasets import load_sonnets

PAIRS, LENGTH, SIZE, HEADS, BLOCKS, DROPOUT = 300, 48, 64, 4, 2, 0.4
LR, BATCH, EVERY = 0.003, 16, 100

# 1. the texts: training, validation (every seventh sonnet of the rest), and the test
sonnets = load_sonnets()
poems = sonnets.train.strip().split("\n\n")
training = "\n\n".join(poem for number, poem in enumerate(poems) if number % 7 != 6)
validation = "\n\n".join(poems[6::7])
test = sonnets.held_out.strip()


# 2. the losses, per letter
def loss_of(model, tokens):
    """The mean loss of each next token. tokens: (batch, n + 1)"""
    scores = model(tokens[:, :-1])
    rows = reshape(scores, (-1, scores.shape[-1]))
    return softmax_cross_entropy(rows, tokens[:, 1:].reshape(-1))


def loss_per_letter(model, tokenizer, text):
    """The loss of a text, divided by the number of its letters."""
    tokens = np.array(tokenizer.encode(text))
    starts = np.arange(0, len(tokens) - LENGTH, LENGTH)
    with no_backprop_mode(), using_config("train", False):
        loss = loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)])
    letters = len(tokenizer.decode(tokens[1 : starts[-1] + LENGTH + 1]))
    return float(loss.array) * len(starts) * LENGTH / letters


def loss_of_pairs(text):
    """The loss per letter of a table of letter pairs, counted in the training text."""
    letters = sorted(set(sonnets.train + sonnets.held_out))
    pairs = Counter(pairwise(training))
    firsts = Counter(training[:-1])
    losses = [
        -np.log((pairs[first, second] + 1) / (firsts[first] + len(letters)))
        for first, second in pairwise(text)
    ]
    return float(np.mean(losses))


# 3. the file: parameters, moments of the optimizer, and the best parameters so far
def keep(path, model, optimizer, best):
    """Write the state of the training; the old file stays until the new one is complete."""
    state = {"count": optimizer.count, "best_loss": best[0]}
    for i, p in enumerate(model.parameters()):
        state |= {f"p{i}": p.array, f"best{i}": best[1][i]}
        state |= {f"{name}{i}": array for name, array in optimizer.moments[i].items()}
    new = path.with_suffix(".part.npz")
    np.savez(new, **state)
    os.replace(new, path)


def go_on(path, model, optimizer):
    """Read the state of the training, if there is a file; returns the best so far."""
    parameters = model.parameters()
    if not path.is_file():
        return np.inf, [p.array.copy() for p in parameters]
    state = np.load(path)
    optimizer.count = int(state["count"])
    for i, p in enumerate(parameters):
        if state[f"p{i}"].shape != p.shape:
            raise SystemExit(f"{path}: parameter {i} has another shape: remove the file")
        p.array = state[f"p{i}"]
        optimizer.moments[i] = {"m": state[f"m{i}"], "v": state[f"v{i}"]}
    print(f"{path}: the training goes on after update {optimizer.count}")
    return float(state["best_loss"]), [state[f"best{i}"] for i in range(len(parameters))]


# 4. the training
class Stop:
    """Ctrl-C in the training: the present update ends, and the file is written.

    A second Ctrl-C, or one after the training, ends the program at once: see the last lines.
    """

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGINT, self.ask)

    def ask(self, number, frame):
        """Called at Ctrl-C."""
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


def train(model, tokenizer, path, updates):
    """Train until the last update or Ctrl-C, and give the model the best parameters."""
    optimizer = nn.AdamW(model, lr=LR, weight_decay=0.1)
    schedule = nn.schedules.CosineSchedule(optimizer, updates, warmup=updates // 20)
    best = go_on(path, model, optimizer)
    schedule.count = optimizer.count
    optimizer.lr = schedule.lr_at(schedule.count)
    tokens = np.array(tokenizer.encode(training))
    start, stop = time.perf_counter(), Stop()
    while optimizer.count < updates and not stop.asked:
        draw = np.random.default_rng(optimizer.count)
        starts = draw.integers(0, len(tokens) - LENGTH, BATCH)
        loss = loss_of(model, tokens[starts[:, None] + np.arange(LENGTH + 1)])
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        schedule.step()
        if optimizer.count % EVERY == 0 or optimizer.count == updates or stop.asked:
            held = loss_per_letter(model, tokenizer, validation)
            if held < best[0]:
                best = held, [p.array.copy() for p in model.parameters()]
            keep(path, model, optimizer, best)
            print(
                f"update {optimizer.count}/{updates}, {time.perf_counter() - start:.0f} s: loss "
                f"per letter, validation {held:.3f}, best {best[0]:.3f}",
                flush=True,
            )
    if stop.asked:
        print(f"stopped; {path} has the training so far")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the training has ended
    for p, array in zip(model.parameters(), best[1], strict=True):
        p.array = array


# 5. the result: the loss of the test, the words, the text
def words(text):
    """The words of a text, in small letters."""
    return re.findall("[a-z']+", text.lower())


def main():
    """Train, report, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=1200, help="in all; default: 1200")
    parser.add_argument("--file", type=Path, default=Path("write_sonnets.npz"))
    options = parser.parse_args()

    tokenizer = Tokenizer(learn_pairs(training, PAIRS))
    seed(0)
    model = nn.GPT(tokenizer.size, LENGTH, SIZE, HEADS, BLOCKS, dropout=DROPOUT)
    for p in model.parameters():
        p.array = p.array.astype(np.float32)
    print(f"{sum(p.size for p in model.parameters())} parameters, {tokenizer.size} tokens")
    train(model, tokenizer, options.file, options.updates)

    print(f"loss per letter of the test: {loss_per_letter(model, tokenizer, test):.3f}", end="; ")
    print(f"table of letter pairs: {loss_of_pairs(test):.3f}")
    known = set(words(sonnets.train + sonnets.held_out))
    for temperature in (1.0, 0.5):
        seed(0)
        texts = [
            tokenizer.decode(write(model, tokenizer.encode("\n"), 100, temperature))
            for _ in range(5)
        ]
        found = [word for text in texts for word in words(text)]
        share = sum(word in known for word in found) / len(found)
        print(f"temperature {temperature}: {share:.0%} of {len(found)} words stand in the sonnets")
    print(texts[0])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped. Start the program again: it goes on from the file of the training.")
