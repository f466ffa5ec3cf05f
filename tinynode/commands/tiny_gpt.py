"""The job ``train tiny-gpt``: a small transformer that writes sonnets, character by character.

The text has 18,000 characters to train on, so a larger model would learn it by heart. The sizes,
the dropout ratio and the number of epochs were chosen for the held-out loss.

Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from tinynode import functions, nn, random
from tinynode.commands.job import Job, Loaders
from tinynode.configuration import using_config
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.devices import Array, to_host

LENGTH = 64
"""The number of characters that the model reads."""
STRIDE = 8
"""The distance between the starts of two training examples, in characters."""
SIZE = 64
"""The length of the vector of a character."""
BLOCKS = 2
HEADS = 4
DROPOUT = 0.1
WRITTEN = 240
"""The number of characters of the sample."""


def small_normal(shape: tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """Draws from N(0, 0.1^2)."""
    return random.normal(shape, 0.0, 0.1, dtype=dtype, device=device)


class TinyGPT(nn.Module):
    """Characters to scores of the next character: (n, length) -> (n, length, characters)."""

    def __init__(self) -> None:
        count = len(nn.datasets.load_sonnets().characters)
        self.characters = nn.Embedding(count, SIZE, initializer=small_normal)
        self.positions = nn.Embedding(LENGTH, SIZE, initializer=small_normal)
        blocks = [
            nn.TransformerBlock(SIZE, HEADS, dropout=DROPOUT, causal=True) for _ in range(BLOCKS)
        ]
        self.blocks = nn.Sequential(*blocks)
        self.to_scores = nn.Sequential(nn.LayerNorm(SIZE), nn.Linear(SIZE, count))

    def forward(self, numbers: Variable) -> Variable:
        """The scores."""
        x = self.characters(numbers) + self.positions.weight[: numbers.shape[1]]
        scores: Variable = self.to_scores(self.blocks(x))
        return scores


def next_character_loss(model: nn.Module, numbers: Variable, following: Variable) -> Variable:
    """The mean cross entropy of a character: (n, length), (n, length) -> ()."""
    scores = model(numbers)
    return functions.softmax_cross_entropy(
        functions.reshape(scores, (-1, scores.shape[-1])), functions.reshape(following, (-1,))
    )


def load_data(batch_size: int) -> Loaders:
    """Pieces of the sonnets, each beside the piece that starts a character later."""
    text = nn.datasets.load_sonnets()
    train, held_out = text.encode(text.train), text.encode(text.held_out)
    rest = pieces(held_out, LENGTH)
    return (
        nn.DataLoader(pieces(train, STRIDE), batch_size, shuffle=True),
        nn.DataLoader(rest, len(rest), seed=0),
    )


def pieces(numbers: Any, stride: int) -> nn.ArrayDataset:
    """Pieces of LENGTH characters from every ``stride``-th start, and the following characters."""
    windows = numpy.lib.stride_tricks.sliding_window_view(numbers, LENGTH + 1)[::stride]
    return nn.ArrayDataset(windows[:, :-1], windows[:, 1:])


def sample(model: nn.Module, count: int, seed: int = 0) -> str:
    """A text that the model writes: each character is drawn by its probability, then read."""
    text = nn.datasets.load_sonnets()
    generator = numpy.random.default_rng(seed)
    numbers = [int(text.encode("\n")[0])]
    with using_config(enable_backprop=False, train=False):
        while len(numbers) <= count:
            seen = asarray(numpy.asarray([numbers[-LENGTH:]]))
            scores = to_host(model(seen).array)[0, -1].astype(numpy.float64) / 0.8
            p = numpy.exp(scores - scores.max())
            numbers.append(int(generator.choice(len(p), p=p / p.sum())))
    return text.decode(numbers[1:])


def result(model: nn.Module, measured: Mapping[str, float]) -> str:
    """A sample, and the held-out loss."""
    written = "".join(f"    {line}\n" for line in sample(model, WRITTEN).strip("\n").splitlines())
    return f"a sample:\n{written}held-out loss: {measured['loss']:.2f} for each character"


JOB = Job(
    name="tiny-gpt",
    summary="a small transformer that writes sonnets of Shakespeare, character by character",
    load_data=load_data,
    make_model=TinyGPT,
    loss=next_character_loss,
    metrics={},
    result=result,
    epochs=8,
    batch_size=16,
    lr=0.004,
)
