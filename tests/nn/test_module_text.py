"""The printed text of modules: layers, nested, by the names of the attributes."""

from __future__ import annotations

import time
from typing import Any

import numpy
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn


class Net(nn.Module):
    """A module with a part of every kind."""

    def __init__(self, size: int, depth: int = 3) -> None:
        self.size = size
        self.sizes = [size, (8, 8)]
        self.encoder = nn.Sequential(nn.Linear(size, 8), fn.relu, nn.Linear(8, 8, bias=False))
        self.blocks = [nn.Linear(8, 8) for _ in range(depth)]
        self.heads = {"a": nn.Linear(8, 1), "b": self.encoder}
        self.activations = [fn.relu, fn.tanh]
        self.scale = nn.Parameter(numpy.ones(3, numpy.float32))
        self.tied = self.encoder[0].weight
        self.mean = nn.Buffer(numpy.zeros(3, numpy.float32))
        self.fast = tn.compile(nn.Linear(2, 2))

    def forward(self, x: Any) -> Any:
        return self.encoder(x)


def test_a_module_shows_its_layers_by_the_names_of_the_attributes() -> None:
    expected = """\
Net(
    (encoder): Sequential(
        (0): Linear(4, 8)
        (1): relu
        (2): Linear(8, 8, bias=False)
    )
    (blocks): list(
        (0-2): 3 x Linear(8, 8)
    )
    (heads): dict(
        (a): Linear(8, 1)
        (b): the same as encoder
    )
    (scale): Parameter (3,), float32, numpy
    (tied): the same as encoder[0].weight
    (mean): Buffer (3,), float32, numpy
    (fast): Linear(2, 2)
)  # 338 parameters"""
    model = Net(4)
    assert repr(model) == str(model) == expected
    assert sum(p.size for p in model.parameters()) == 338


def test_containers_show_their_layers() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1), fn.relu])
    assert repr(layers) == "ModuleList(\n    (0): Linear(1, 1)\n    (1): relu\n)  # 2 parameters"
    named = nn.ModuleDict({"a": nn.Identity()})
    assert repr(named) == "ModuleDict(\n    (a): Identity()\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"
    assert repr(nn.Sequential()) == "Sequential()"

    def halve(x: Any) -> Any:
        return x / 2

    assert repr(nn.Sequential(halve)) == "Sequential(\n    (0): halve\n)"


def test_a_module_that_holds_itself_is_shown_once() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    model.parents = [model]
    model.parents.append(model.parents)
    assert "(parents): list(\n        (0): the same as the whole\n    )" in repr(model)


def test_a_subclass_shows_its_own_name_settings_and_layers() -> None:
    class Head(nn.Linear):
        def __init__(self, size: int, ratio: float) -> None:
            super().__init__(size, 2)
            self.drop = nn.Dropout(ratio)

    class Scaled(nn.Module):
        def __init__(self, factor: int) -> None:
            self.factor = factor
            self.head = Head(3, 0.5)

        def extra_repr(self) -> str:
            return f"factor={self.factor}"

    class Silent(Head):
        def __repr__(self) -> str:
            return "own text"

    assert repr(Head(3, 0.5)) == "Head(\n    3, 2\n    (drop): Dropout(0.5)\n)  # 8 parameters"
    lines = repr(Scaled(7)).splitlines()
    assert lines[:4] == ["Scaled(", "    factor=7", "    (head): Head(", "        3, 2"]
    assert "(0): own text" in repr(nn.Sequential(Silent(1, 0.5)))


class HalfMade(nn.Module):
    """Prints itself before, amid and after the constructor."""

    def __init__(self) -> None:
        self.texts = [repr(self)]
        self.first = nn.Linear(2, 3)
        self.texts.append(repr(self))


def test_a_half_made_module_has_a_text() -> None:
    assert HalfMade().texts == [
        "HalfMade()",
        "HalfMade(\n    (first): Linear(2, 3)\n)  # 9 parameters",
    ]


LAYERS = [
    kind
    for name in nn.__all__
    if isinstance(kind := getattr(nn, name), type) and issubclass(kind, nn.Module)
]


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_every_layer_has_a_text_before_its_constructor_runs(kind: type[nn.Module]) -> None:
    assert repr(kind.__new__(kind)).startswith(f"{kind.__name__}(")


def test_composite_layers_have_one_line() -> None:
    assert repr(nn.MultiHeadAttention(8, 2)) == "MultiHeadAttention(8, 2)"
    assert repr(nn.TransformerBlock(8, 2)).startswith("TransformerBlock(8, 2, 32, dropout=0.0,")
    assert repr(nn.WeightNorm(nn.Linear(3, 2))) == "WeightNorm(Linear(3, 2))"


def test_large_and_deep_models_have_a_text_soon() -> None:
    wide = nn.Sequential(*[nn.Sequential(nn.Identity(), fn.relu) for _ in range(2000)])
    deep: Any = nn.Linear(2, 2)
    for _ in range(3000):
        deep = nn.Sequential(deep)
    start = time.perf_counter()
    assert repr(wide).splitlines()[1] == "    (0-1999): 2000 x Sequential("
    assert repr(deep).count("Sequential(") == 31 and "Sequential(...)" in repr(deep)
    assert time.perf_counter() - start < 5.0
