"""Weights of PyTorch: translated names, clear errors, and PyTorch's outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import StateError
from tinynode.functions import relu


class Net(nn.Module):
    """A convolution in a Sequential, a normalisation and a head."""

    def __init__(self) -> None:
        self.body = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm(4), relu)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 3)


def torch_like() -> dict[str, np.ndarray]:
    """A state of the same network, with PyTorch's names."""
    rng = np.random.default_rng(0)
    shapes = {
        "body.0.weight": (4, 2, 3),
        "body.0.bias": (4,),
        "body.1.weight": (4,),
        "body.1.bias": (4,),
        "body.1.running_mean": (4,),
        "body.1.running_var": (4,),
        "norm.weight": (4,),
        "norm.bias": (4,),
        "head.weight": (3, 4),
        "head.bias": (3,),
    }
    state: dict[str, Any] = {name: rng.random(shape) for name, shape in shapes.items()}
    return {**state, "body.1.num_batches_tracked": np.array(7)}


def test_names_are_translated_and_dtypes_cast(tmp_path: Path) -> None:
    model, state = Net(), torch_like()
    path = tmp_path / "net.npz"
    nn.save(path, state)
    nn.load_torch_weights(model, path)
    own = model.state_dict()
    assert {array.dtype.name for array in own.values()} == {"float32"}
    for ours, theirs in {
        "body.layers.0.weight": "body.0.weight",
        "body.layers.1.gamma": "body.1.weight",
        "body.layers.1.beta": "body.1.bias",
        "body.layers.1.running_mean": "body.1.running_mean",
        "body.layers.1.running_variance": "body.1.running_var",
        "norm.gamma": "norm.weight",
        "head.bias": "head.bias",
    }.items():
        np.testing.assert_allclose(own[ours], state[theirs], rtol=1e-6)
    other = Net()
    nn.load_torch_weights(other, own)  # the model's own names
    assert all((other.state_dict()[name] == own[name]).all() for name in own)


def test_names_that_differ_are_renamed_or_kept() -> None:
    state = {f"net.{name}": array for name, array in torch_like().items()}
    state["net.classifier.weight"] = state.pop("net.head.weight")
    del state["net.head.bias"]
    model = Net()
    before = model.state_dict()
    nn.load_torch_weights(
        model, state, rename={"net.": "", "net.classifier": None}, keep=["head."]
    )
    after = model.state_dict()
    same = {name for name in before if (before[name] == after[name]).all()}
    assert same == {"head.weight", "head.bias"}
    with pytest.raises(StateError, match=r"rename has 'mat.', but no name of the file begins so"):
        nn.load_torch_weights(model, state, rename={"net.": "", "mat.": ""})
    with pytest.raises(StateError, match=r"rename gives two arrays the name norm.weight"):
        nn.load_torch_weights(model, state, rename={"net.": "", "net.norm.bias": "norm.weight"})


def test_missing_and_unexpected_names_are_listed_with_suggestions() -> None:
    state = torch_like()
    state["heads.weight"] = state.pop("head.weight")
    del state["norm.bias"]
    model = Net()
    before = model.state_dict()
    with pytest.raises(StateError) as caught:
        nn.load_torch_weights(model, state)
    message = str(caught.value)
    assert "the file lacks head.weight (close: heads.weight)" in message
    assert "the file lacks norm.bias" in message
    assert "the model lacks heads.weight (close: head.weight)" in message
    assert "rename={" in message and "keep=[" in message and "num_batches" not in message
    state = {**torch_like(), "head.weight": np.ones((4, 3), np.float32)}
    with pytest.raises(
        StateError, match=r"head.weight is float32 of shape \(4, 3\) in the file, and .*\(3, 4\)"
    ):
        nn.load_torch_weights(model, state)
    assert all((model.state_dict()[name] == before[name]).all() for name in before)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"net.pt holds pickled objects.*safetensors.torch.save"):
        nn.load_torch_weights(Net(), tmp_path / "net.pt")


@pytest.mark.slow
def test_the_outputs_are_those_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    tn_, pt = nn, torch.nn
    rows = [
        (tn_.Linear(5, 3), pt.Linear(5, 3), normal(4, 5)),
        (tn_.Linear(5, 3, bias=False), pt.Linear(5, 3, bias=False), normal(4, 5)),
        (tn_.Conv1d(4, 6, 3, padding=1, groups=2), None, normal(2, 4, 7)),
        (
            tn_.Conv2d(3, 4, (3, 2), stride=2),
            pt.Conv2d(3, 4, (3, 2), stride=2),
            normal(2, 3, 6, 6),
        ),
        (tn_.ConvTranspose2d(3, 4, 3, 2), pt.ConvTranspose2d(3, 4, 3, 2), normal(2, 3, 4, 4)),
        (tn_.LayerNorm(5), pt.LayerNorm(5), normal(4, 5)),
        (tn_.LayerNorm((3, 5)), pt.LayerNorm((3, 5)), normal(4, 3, 5)),
        (tn_.RMSNorm(5, 1e-5), pt.RMSNorm(5, 1e-5), normal(4, 5)),
        (tn_.GroupNorm(2, 4), pt.GroupNorm(2, 4), normal(2, 4, 5)),
        (tn_.BatchNorm(4), pt.BatchNorm1d(4), normal(3, 4)),
        (tn_.BatchNorm(4), pt.BatchNorm2d(4), normal(3, 4, 2, 2)),
        (tn_.Embedding(9, 4), pt.Embedding(9, 4), np.array([[0, 8], [3, 3]])),
        (
            tn_.Sequential(tn_.Linear(5, 8), tn_.BatchNorm(8), relu, tn_.Linear(8, 3)),
            pt.Sequential(pt.Linear(5, 8), pt.BatchNorm1d(8), pt.ReLU(), pt.Linear(8, 3)),
            normal(4, 5),
        ),
    ]
    for ours, theirs, x in rows:
        if theirs is None:
            theirs = pt.Conv1d(4, 6, 3, padding=1, groups=2)
        for value in theirs.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.tensor(rng.random(tuple(value.shape)) + 0.5))
        path = tmp_path / "theirs.safetensors"
        safetensors.save_file(theirs.state_dict(), path)
        ours.eval()
        theirs.eval()
        nn.load_torch_weights(ours, path)
        with torch.no_grad():
            expected = theirs(torch.tensor(x)).numpy()
        np.testing.assert_allclose(ours(x).array, expected, rtol=1e-5, atol=1e-5)
        nn.load_torch_weights(ours, theirs.state_dict())  # tensors too
        assert tn.as_array(ours(x)).shape == expected.shape


@pytest.mark.slow
def test_sequence_layers_have_the_outputs_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    rng = np.random.default_rng(0)
    pt = torch.nn
    x = rng.standard_normal((2, 5, 4)).astype(np.float32)
    more = {"num_layers": 2, "bidirectional": True, "batch_first": True}
    block = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
    rows = [
        (nn.RNN(4, 6, **more), pt.RNN(4, 6, **more), 1),
        (nn.LSTM(4, 6, **more), pt.LSTM(4, 6, **more), 1),
        (nn.GRU(4, 6, batch_first=True), pt.GRU(4, 6, batch_first=True), 1),
        (
            nn.MultiHeadAttention(4, 2, batch_first=True),
            pt.MultiheadAttention(4, 2, batch_first=True),
            3,
        ),
        (nn.TransformerBlock(4, 2, 8), pt.TransformerEncoderLayer(4, 2, 8, **block), 1),
    ]
    for ours, theirs, arguments in rows:
        for value in theirs.state_dict().values():
            value.copy_(torch.tensor(rng.standard_normal(tuple(value.shape))))
        path = tmp_path / "theirs.safetensors"
        safetensors.save_file(theirs.state_dict(), path)
        ours.eval()
        theirs.eval()
        nn.load_torch_weights(ours, path)
        with torch.no_grad():
            expected = theirs(*[torch.tensor(x)] * arguments)
        found = ours(*[x] * arguments)
        if isinstance(expected, tuple):
            expected, found = expected[0], found[0]
        np.testing.assert_allclose(found.array, expected.numpy(), rtol=1e-4, atol=1e-5)
