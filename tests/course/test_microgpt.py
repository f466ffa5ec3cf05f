"""The three programs of microgpt: the same model on arrays, on scalars and compiled."""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tinynode as tn
from tinynode.core.variable import Variable

EXAMPLES = Path(__file__).resolve().parents[2] / "tutorials" / "examples"
NAMES = ("microgpt", "microgpt_scalars", "microgpt_compiled")


@pytest.fixture(scope="module")
def programs() -> Iterator[list[ModuleType]]:
    """The three programs, imported as they import each other."""
    sys.path.insert(0, str(EXAMPLES))
    yield [importlib.import_module(name) for name in NAMES]
    sys.path.remove(str(EXAMPLES))
    for name in NAMES:
        sys.modules.pop(name, None)


def gradients_of(weights: dict[str, Variable]) -> dict[str, np.ndarray]:
    return {name: np.asarray(matrix.grad) for name, matrix in weights.items()}


def test_the_programs_run_a_few_steps(
    programs: list[ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    arrays, scalars, compiled = programs
    arrays.main(steps=4, every=4)
    printed = capsys.readouterr().out
    losses = [float(found) for found in re.findall(r"\d+  (\d\.\d\d) #+ ", printed)]
    assert len(losses) == 2 and abs(losses[0] - np.log(len(arrays.letters))) < 0.2
    scalars.main(steps=1)
    assert re.search(r"loss 3\.\d\d, \d+\.\d s", capsys.readouterr().out)
    compiled.main(steps=4)
    last = re.findall(r"last loss (\S+)", capsys.readouterr().out)
    assert len(last) == 2 and last[0] == last[1]


def test_held_out_names_are_not_trained_on(programs: list[ModuleType]) -> None:
    arrays = programs[0]
    assert len(set(arrays.names)) == len(arrays.names) == 740
    assert not set(arrays.train) & set(arrays.held_out)
    numbers, answers = arrays.encode("elmham")
    assert "".join(arrays.letters[i] for i in numbers) == ".elmham"
    assert "".join(arrays.letters[i] for i in answers) == "elmham."


def test_arrays_and_scalars_have_one_loss_and_equal_gradients(
    programs: list[ModuleType],
) -> None:
    arrays, scalars, _ = programs
    weights = arrays.new_weights()
    loss = arrays.loss_of(weights, "elmham")
    loss.backward()
    numbers = scalars.as_scalars(weights)
    loss_of_scalars = scalars.loss_of(numbers, "elmham")
    loss_of_scalars.backward()
    assert abs(loss.item() - loss_of_scalars.item()) < 1e-10
    for name, gradient in gradients_of(weights).items():
        found = [[0.0 if x.grad is None else float(x.grad) for x in row] for row in numbers[name]]
        assert np.abs(gradient).max() > 1e-4, f"{name} has a gradient to compare"
        np.testing.assert_allclose(found, gradient, rtol=0, atol=1e-10)


def test_the_compiled_training_equals_the_eager_training(programs: list[ModuleType]) -> None:
    arrays, _, compiled = programs
    eager, planned = arrays.new_weights(), arrays.new_weights()
    losses = [loss for _, loss in arrays.training(eager, 20)]
    same = [loss for _, loss in arrays.training(planned, 20, compiled.loss_of)]
    np.testing.assert_allclose(same, losses, rtol=0, atol=1e-10)
    for name in eager:
        np.testing.assert_allclose(planned[name].data, eager[name].data, rtol=0, atol=1e-10)


def test_no_place_reads_a_later_letter(programs: list[ModuleType]) -> None:
    arrays = programs[0]
    weights = arrays.new_weights()
    one, other = arrays.encode("elmham")[0], arrays.encode("elmhaw")[0]
    with tn.no_grad():
        scores = [np.asarray(arrays.gpt(weights, numbers).data) for numbers in (one, other)]
    np.testing.assert_array_equal(scores[0][:-1], scores[1][:-1])
    assert (scores[0][-1] != scores[1][-1]).all()


def surprise(names: list[str], table: Counter[str], context: Counter[str], letters: int) -> float:
    """The mean loss of a model that counts: of pairs of letters, or of single letters."""
    size = len(next(iter(table)))
    losses = []
    for name in names:
        text = f".{name}."
        for i in range(1, len(text)):
            seen = text[i + 1 - size : i]
            chance = (table[seen + text[i]] + 0.1) / (context[seen] + 0.1 * letters)
            losses.append(-np.log(chance))
    return float(np.mean(losses))


@pytest.mark.slow
def test_microgpt_learns_more_than_the_frequencies_of_letters_and_of_pairs(
    programs: list[ModuleType],
) -> None:
    """Held-out loss falls below that of counted pairs: the model reads more than a letter.

    It stays above the loss of a model that knows all names, and nothing about the choice.
    """
    arrays = programs[0]
    text = [f".{name}." for name in arrays.train]
    single = Counter(letter for name in text for letter in name[1:])
    pairs = Counter(name[i : i + 2] for name in text for i in range(len(name) - 1))
    before = Counter(letter for name in text for letter in name[:-1])
    count = len(arrays.letters)
    of_letters = surprise(arrays.held_out, single, Counter({"": single.total()}), count)
    of_pairs = surprise(arrays.held_out, pairs, before, count)
    least = np.log(len(arrays.names)) / np.mean([len(name) + 1 for name in arrays.names])
    weights = arrays.new_weights()
    for _ in arrays.training(weights, 3000):
        pass
    held_out = arrays.mean_loss(weights, arrays.held_out)
    assert least < held_out < 0.8 * of_pairs < of_pairs < of_letters
    rng = np.random.default_rng(3)
    inventions = [arrays.invent(weights, rng) for _ in range(100)]
    new = [name for name in inventions if name not in arrays.train]
    assert len(new) >= 10 and set(new) & set(arrays.held_out)
