"""The text and the generators of data: seeds, shapes, formulas, and that models learn on them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.functions import relu, reshape, softmax_cross_entropy
from tinynode.nn import datasets

FOLDER = Path(datasets.__file__).parent
GENERATORS = [
    datasets.make_circles,
    datasets.make_moons,
    datasets.make_regression,
    datasets.make_sines,
    datasets.make_spirals,
]


@pytest.mark.parametrize("make", GENERATORS)
def test_a_generator_is_seeded_and_split(make: Any) -> None:
    first, again, other = make(50), make(50), make(50, seed=1)
    for a, b in zip(first, again, strict=True):
        assert (a == b).all() and a.dtype in (np.float32, np.int64)
    assert (first.train_inputs != other.train_inputs).any()
    assert [len(part) for part in first] == [40, 40, 10, 10]
    assert [len(part) for part in make(7, held_out=0.0)] == [7, 7, 0, 0]
    with tn.using_config(dtype="float64"):
        assert make(5).train_inputs.dtype == np.float64
    for wrong in ({"count": 0}, {"held_out": 1.0}, {"noise": -1.0}, {"seed": -1}):
        with pytest.raises(ValueError, match=rf"^{make.__name__}: {next(iter(wrong))} must be"):
            make(**wrong)


def test_the_points_lie_where_the_formulas_say() -> None:
    points, labels, *_ = datasets.make_moons(200, noise=0.0)
    x, y = points.T
    x, y = np.where(labels == 1, 1 - x, x), np.where(labels == 1, 0.5 - y, y)
    np.testing.assert_allclose(x**2 + y**2, 1, rtol=1e-5)
    assert y.min() >= -1e-6
    points, labels, *_ = datasets.make_circles(90, classes=3, noise=0.0)
    np.testing.assert_allclose(np.hypot(*points.T), (labels + 1) / 3, rtol=1e-5)
    points, labels, *_ = datasets.make_spirals(90, classes=3, noise=0.0)
    radius, angle = np.hypot(*points.T), np.arctan2(points[:, 1], points[:, 0]) / (2 * math.pi)
    off = (angle - radius - labels / 3) % 1
    assert np.minimum(off, 1 - off).max() < 1e-5 and set(labels) == {0, 1, 2}
    waves, later, *_ = datasets.make_sines(9, 20)
    assert waves.shape == (7, 20) and (waves[:, 1:] == later[:, :-1]).all()
    x, y, *_ = datasets.make_regression(50, 3, noise=0.0)
    residual = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y)[1]
    assert residual.item() < 1e-8 and x.shape == (40, 3)


def test_the_sonnets_are_whole() -> None:
    text = datasets.load_sonnets()
    for part, count in ((text.train, 30), (text.held_out, 5)):
        sonnets = part.strip().split("\n\n")
        assert [len(sonnet.split("\n")) for sonnet in sonnets] == [14] * count
        lines = [line for sonnet in sonnets for line in sonnet.split("\n")]
        assert all(line and line == line.strip() for line in lines)
    assert "Shall I compare thee to a summer's day?\n" in text.train
    assert text.held_out.startswith("Devouring Time,") and len(text.characters) == 59
    numbers = text.encode("love\n")
    assert numbers.dtype == np.int64 and text.decode(numbers) == "love\n"
    with pytest.raises(ValueError, match="'é' is none of the 59 characters"):
        text.encode("né")


def test_the_page_of_the_sonnets_names_source_and_numbers() -> None:
    page = (FOLDER / "sonnets.md").read_text(encoding="utf-8")
    assert "public domain" in page and "1609" in page
    listed = page.partition("**Numbers**:")[2].partition(".")[0].split(",")
    held_out = (
        page.partition("**Held out**: every seventh sonnet:")[2].partition(".")[0].split(",")
    )
    assert len(listed) == 35 and listed[6::7] == held_out


def test_a_small_model_learns_the_characters() -> None:
    tn.seed(0)
    text = datasets.load_sonnets()
    context, size = 4, len(text.characters)

    def windows(part: str) -> nn.ArrayDataset:
        view = np.lib.stride_tricks.sliding_window_view(text.encode(part), context + 1)
        return nn.ArrayDataset(view[:, :context], view[:, context])

    class Characters(nn.Module):
        def __init__(self) -> None:
            self.vectors = nn.Embedding(size, 12)
            self.hidden = nn.Linear(12 * context, 64)
            self.output = nn.Linear(64, size)

        def forward(self, x: Any) -> Any:
            return self.output(relu(self.hidden(reshape(self.vectors(x), (-1, 12 * context)))))

    model = Characters()
    optimizer = nn.Adam(model, lr=0.01)
    for x, labels in nn.DataLoader(windows(text.train), 128, shuffle=True, seed=0):
        optimizer.cleargrads()
        softmax_cross_entropy(model(x), labels).backward()
        optimizer.update()
    perplexity = nn.metrics.Perplexity()
    counts = np.bincount(text.encode(text.train), minlength=size) + 1
    guess = nn.metrics.Perplexity()
    with tn.no_backprop_mode():
        for x, labels in nn.DataLoader(windows(text.held_out), 1024):
            perplexity.update(model(x), labels)
            guess.update(np.tile(np.log(counts), (len(labels), 1)), labels)
    assert guess.value() > 20 and perplexity.value() < 13
