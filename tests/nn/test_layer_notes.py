"""An error in a model names the layer, in a note; the model works after the error."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn

GOOD = np.zeros((2, 6), np.float32)
BAD = np.zeros((2, 5), np.float32)


class Net(nn.Module):
    """Two levels of layers, and one layer that never fits."""

    def __init__(self) -> None:
        self.encoder = nn.Sequential(nn.Linear(6, 4), fn.relu, nn.Linear(4, 3))
        self.heads = {"a": nn.Linear(3, 2), "b": nn.Linear(7, 2)}

    def forward(self, x: Any, head: str = "a") -> Any:
        return self.heads[head](self.encoder(x))


def notes_of(call: Any, *arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(ValueError) as caught:
        call(*arguments, **options)
    return [str(note) for note in getattr(caught.value, "__notes__", [])]


FIRST = "in model.encoder.layers[0] = Linear(6, 4), where model is a Net"
SECOND = "in model.heads['b'] = Linear(7, 2), where model is a Net"


def test_an_error_names_the_place_of_the_layer() -> None:
    model = Net()
    for _ in range(2):  # the same objects work after an error
        assert notes_of(model, BAD) == [FIRST]
        assert notes_of(model, GOOD, head="b") == [SECOND]
        assert model(GOOD).shape == (2, 2)


def test_a_layer_alone_is_named_with_its_settings() -> None:
    assert notes_of(nn.Linear(6, 4), BAD) == ["in Linear(6, 4)"]
    sequential = nn.Sequential(nn.Linear(6, 4))
    note = "in model.layers[0] = Linear(6, 4), where model is a Sequential"
    assert notes_of(sequential, BAD) == [note]


def test_compiled_and_transformed_models_have_the_note() -> None:
    model = Net()
    calls = {
        "compile": tn.compile(model),
        "inside": tn.compile(lambda x: model(x) * 2),
        "vmap": tn.vmap(model),
        "gradient": tn.compile(tn.value_and_grad(lambda x: fn.sum(model(x)))),
        "checkpoint": lambda x: tn.checkpoint(model, x),
    }
    for name, call in calls.items():
        assert notes_of(call, BAD) == [FIRST], name
        call(GOOD)
        assert notes_of(call, BAD) == [FIRST], name


def test_an_error_of_the_users_forward_names_the_module() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("mine")

    model = nn.Sequential(nn.Identity(), Broken())
    assert notes_of(model, BAD) == ["in model.layers[1] = Broken(), where model is a Sequential"]


def test_a_layer_made_in_the_call_keeps_its_own_note() -> None:
    class Maker(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.Linear(6, 4)(x)

    assert notes_of(Maker(), BAD) == ["in Linear(6, 4)"]


def test_other_notes_stay_and_a_bad_text_does_no_harm() -> None:
    class Silent(nn.Module):
        def forward(self, x: Any) -> Any:
            error = ValueError("mine")
            error.add_note("of the user")
            raise error

        def __repr__(self) -> str:
            raise RuntimeError("no text")

    assert notes_of(nn.Sequential(Silent()), BAD) == ["of the user"]


def test_an_error_that_is_raised_again_in_another_model_keeps_its_note() -> None:
    kept = ValueError("kept")

    class Raises(nn.Module):
        def forward(self, x: Any) -> Any:
            raise kept

    first, second = nn.Sequential(Raises()), nn.Sequential(Raises())
    note = "in model.layers[0] = Raises(), where model is a Sequential"
    assert notes_of(first, BAD) == notes_of(first, BAD) == notes_of(second, BAD) == [note]


def test_the_note_is_pickled_as_a_text() -> None:
    with pytest.raises(ValueError) as caught:
        Net()(BAD)
    error = ValueError("for another process")
    error.__notes__ = caught.value.__notes__
    again = pickle.loads(pickle.dumps(error))
    assert again.__notes__ == [FIRST] and type(again.__notes__[0]) is str
