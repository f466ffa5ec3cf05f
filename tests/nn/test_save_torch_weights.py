"""Weights under PyTorch's names: a strict load in PyTorch, and the same outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import StateError
from tinynode.interop.torch_names import IN_BOTH

F = tn.functions
RNG = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


TWO = {"num_layers": 2, "bidirectional": True, "batch_first": True}
BLOCK = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}

ROWS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], list[Any]]] = {
    "Linear": (lambda: nn.Linear(5, 3), lambda pt: pt.Linear(5, 3), [normal(4, 5)]),
    "Linear without bias": (
        lambda: nn.Linear(5, 3, bias=False),
        lambda pt: pt.Linear(5, 3, bias=False),
        [normal(4, 5)],
    ),
    "Bilinear": (
        lambda: nn.Bilinear(5, 3, 2),
        lambda pt: pt.Bilinear(5, 3, 2),
        [normal(4, 5), normal(4, 3)],
    ),
    "Embedding": (
        lambda: nn.Embedding(9, 4),
        lambda pt: pt.Embedding(9, 4),
        [np.array([[0, 8], [3, 3]])],
    ),
    "PReLU": (lambda: nn.PReLU(4), lambda pt: pt.PReLU(4), [normal(3, 4, 2)]),
    "Conv1d": (
        lambda: nn.Conv1d(4, 6, 3, groups=2),
        lambda pt: pt.Conv1d(4, 6, 3, groups=2),
        [normal(2, 4, 7)],
    ),
    "Conv2d": (
        lambda: nn.Conv2d(3, 4, (3, 2)),
        lambda pt: pt.Conv2d(3, 4, (3, 2)),
        [normal(2, 3, 6, 6)],
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2), lambda pt: pt.Conv3d(2, 3, 2), [normal(1, 2, 3, 3, 3)]),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(3, 4, 3),
        lambda pt: pt.ConvTranspose1d(3, 4, 3),
        [normal(2, 3, 5)],
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(3, 4, 3, 2),
        lambda pt: pt.ConvTranspose2d(3, 4, 3, 2),
        [normal(2, 3, 4, 4)],
    ),
    "ConvTranspose3d": (
        lambda: nn.ConvTranspose3d(2, 3, 2),
        lambda pt: pt.ConvTranspose3d(2, 3, 2),
        [normal(1, 2, 3, 3, 3)],
    ),
    "BatchNorm": (lambda: nn.BatchNorm(4), lambda pt: pt.BatchNorm2d(4), [normal(3, 4, 2, 2)]),
    "InstanceNorm": (
        lambda: nn.InstanceNorm(4, affine=True),
        lambda pt: pt.InstanceNorm2d(4, affine=True),
        [normal(3, 4, 2, 2)],
    ),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda pt: pt.GroupNorm(2, 4), [normal(2, 4, 5)]),
    "LayerNorm": (
        lambda: nn.LayerNorm((3, 5)),
        lambda pt: pt.LayerNorm((3, 5)),
        [normal(4, 3, 5)],
    ),
    "RMSNorm": (lambda: nn.RMSNorm(5, 1e-5), lambda pt: pt.RMSNorm(5, 1e-5), [normal(4, 5)]),
    "RNN": (lambda: nn.RNN(4, 6, **TWO), lambda pt: pt.RNN(4, 6, **TWO), [normal(2, 5, 4)]),
    "LSTM": (lambda: nn.LSTM(4, 6, **TWO), lambda pt: pt.LSTM(4, 6, **TWO), [normal(2, 5, 4)]),
    "GRU": (
        lambda: nn.GRU(4, 6, bias=False, batch_first=True),
        lambda pt: pt.GRU(4, 6, bias=False, batch_first=True),
        [normal(2, 5, 4)],
    ),
    "RNNCell": (lambda: nn.RNNCell(4, 6), lambda pt: pt.RNNCell(4, 6), [normal(2, 4)]),
    "LSTMCell": (lambda: nn.LSTMCell(4, 6), lambda pt: pt.LSTMCell(4, 6), [normal(2, 4)]),
    "GRUCell": (lambda: nn.GRUCell(4, 6), lambda pt: pt.GRUCell(4, 6), [normal(2, 4)]),
    "MultiHeadAttention": (
        lambda: nn.MultiHeadAttention(4, 2, batch_first=True),
        lambda pt: pt.MultiheadAttention(4, 2, batch_first=True),
        [normal(2, 5, 4)] * 3,
    ),
    "TransformerBlock": (
        lambda: nn.TransformerBlock(4, 2, 8),
        lambda pt: pt.TransformerEncoderLayer(4, 2, 8, **BLOCK),
        [normal(2, 5, 4)],
    ),
    "WeightNorm": (
        lambda: nn.WeightNorm(nn.Linear(5, 3)),
        lambda pt: pt.utils.parametrizations.weight_norm(pt.Linear(5, 3)),
        [normal(4, 5)],
    ),
    "WeightNorm of a convolution": (
        lambda: nn.Sequential(nn.WeightNorm(nn.ConvTranspose1d(3, 4, 3), axis=1)),
        lambda pt: pt.Sequential(
            pt.utils.parametrizations.weight_norm(pt.ConvTranspose1d(3, 4, 3), dim=1)
        ),
        [normal(2, 3, 5)],
    ),
    "SpectralNorm": (
        lambda: nn.SpectralNorm(nn.Linear(5, 3)),
        lambda pt: pt.utils.parametrizations.spectral_norm(pt.Linear(5, 3)),
        [normal(4, 5)],
    ),
    "Sequential": (
        lambda: nn.Sequential(
            nn.Linear(5, 8), F.relu, nn.Sequential(tn.compile(nn.BatchNorm(8)), nn.Linear(8, 3))
        ),
        lambda pt: pt.Sequential(
            pt.Linear(5, 8), pt.ReLU(), pt.Sequential(pt.BatchNorm1d(8), pt.Linear(8, 3))
        ),
        [normal(4, 5)],
    ),
}


def first(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple) else outputs


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_pytorch_loads_each_layer_strictly_and_gives_its_outputs(
    name: str, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    make, make_torch, inputs = ROWS[name]
    tn.seed(0)
    ours, theirs = make(), make_torch(torch.nn)
    for parameter in ours.parameters():
        parameter.array = (0.5 + RNG.random(parameter.shape)).astype(np.float32)
    ours(*inputs)  # running statistics and power iterations move
    path = tmp_path / "net.safetensors"
    nn.save_torch_weights(path, ours)
    state = safetensors.load_file(path)
    theirs.load_state_dict(state, strict=True)
    ours.eval()
    theirs.eval()
    with torch.no_grad():
        expected = first(theirs(*map(torch.tensor, inputs))).numpy()
    np.testing.assert_allclose(first(ours(*inputs)).array, expected, rtol=1e-4, atol=1e-5)
    again = make()
    nn.load_torch_weights(again, path)
    nn.load_torch_weights(again, theirs.state_dict())
    for key, array in ours.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key], array)


def test_the_rows_have_every_layer_of_both() -> None:
    made = [make() for make, *_ in ROWS.values()]
    kinds = {type(module) for model in made for module in model.modules()}
    missing = [cls.__name__ for cls in IN_BOTH if not any(issubclass(k, cls) for k in kinds)]
    assert missing == []
    layers = [getattr(nn, name) for name in nn.__all__ if isinstance(getattr(nn, name), type)]
    own = [cls for cls in layers if issubclass(cls, IN_BOTH) and "Pool" not in cls.__name__]
    assert [cls for cls in own if cls not in kinds] == []


class Tied(nn.Module):
    """An embedding and a projection with one weight, and a layer in two places."""

    def __init__(self) -> None:
        self.embedding = nn.Embedding(7, 4)
        self.hidden = nn.Linear(4, 4)
        self.blocks = [self.hidden, nn.LayerNorm(4)]
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x: Any) -> Any:
        h = self.hidden(self.embedding(x))
        return self.out(self.blocks[1](self.blocks[0](h)))


def test_a_shared_parameter_has_each_of_its_names(tmp_path: Path) -> None:
    model = Tied()
    path = tmp_path / "net.safetensors"
    nn.save_torch_weights(path, model)
    state = nn.load(path)
    assert sorted(state) == [
        *("blocks.0.bias", "blocks.0.weight", "blocks.1.bias", "blocks.1.weight"),
        *("embedding.weight", "hidden.bias", "hidden.weight", "out.weight"),
    ]
    other = Tied()
    nn.load_torch_weights(other, path)
    for key, array in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[key], array)
    # PyTorch's safetensors.torch.save_model leaves all names but one out
    for name in ("embedding.weight", "blocks.0.weight", "hidden.bias"):
        del state[name]
    nn.load_torch_weights(Tied(), state)
    state["embedding.weight"] = state["out.weight"] + 1
    before = other.state_dict()
    with pytest.raises(StateError, match=r"embedding.weight and out.weight differ in the file"):
        nn.load_torch_weights(other, state)
    assert all((array == before[key]).all() for key, array in other.state_dict().items())


@pytest.mark.slow
def test_pytorch_loads_a_model_with_shared_parameters(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

    class Theirs(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(7, 4)
            self.hidden = torch.nn.Linear(4, 4)
            self.blocks = torch.nn.ModuleList([self.hidden, torch.nn.LayerNorm(4)])
            self.out = torch.nn.Linear(4, 7, bias=False)
            self.out.weight = self.embedding.weight

        forward = Tied.forward

    ours, theirs = Tied(), Theirs()
    nn.save_torch_weights(tmp_path / "net.safetensors", ours)
    theirs.load_state_dict(safetensors.load_file(tmp_path / "net.safetensors"), strict=True)
    x = np.array([[0, 6, 3]])
    with torch.no_grad():
        expected = theirs(torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours(x).array, expected, rtol=1e-4, atol=1e-5)


class Scaled(nn.Module):
    """A layer of the user with a parameter of its own."""

    def __init__(self) -> None:
        self.gamma = nn.Parameter(normal(4), name="gamma")
        self.inner = nn.BatchNorm(4)

    def forward(self, x: Any) -> Any:
        return self.inner(x * self.gamma)


def test_a_layer_without_a_counterpart_is_refused_or_named(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), Scaled())
    path = tmp_path / "net.safetensors"
    with pytest.raises(StateError) as caught:
        nn.save_torch_weights(path, model)
    assert "layers.1.gamma belongs to layers.1 (Scaled), a layer without a" in str(caught.value)
    assert "give rename={'1.gamma': '1.gamma'}" in str(caught.value) and not path.exists()
    with pytest.raises(StateError, match=r"gamma belongs to the model \(Scaled\)"):
        nn.save_torch_weights(path, Scaled())
    nn.save_torch_weights(path, model, rename={"1.gamma": "1.scale", "1.inner.": "1.norm."})
    state = nn.load(path)
    np.testing.assert_array_equal(state["1.scale"], model[1].gamma.array)
    assert state["1.norm.num_batches_tracked"].shape == () and "1.norm.running_var" in state
    nn.save_torch_weights(path, model, rename={"1.gamma": None})
    assert "1.gamma" not in nn.load(path) and "1.inner.weight" in nn.load(path)
    with pytest.raises(StateError, match=r"save_torch_weights: rename has 'body.'"):
        nn.save_torch_weights(path, model, rename={"1.gamma": None, "body.": ""})


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    for name in ("net.pt", "net.npz", "net"):
        with pytest.raises(StateError, match=r"must end in .safetensors, got .*load_file"):
            nn.save_torch_weights(tmp_path / name, nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"model must be a Module, got .*The path comes first"):
        nn.save_torch_weights(nn.Linear(2, 2), "net.safetensors")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rename must be a dict of beginnings of names, got list"):
        nn.save_torch_weights(tmp_path / "a.safetensors", nn.Linear(2, 2), rename=["weight"])  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_frozen_parameters_and_other_devices(tmp_path: Path) -> None:
    with tn.using_device("strict"):
        model = nn.Linear(3, 2).freeze()
    nn.save_torch_weights(tmp_path / "net.safetensors", model)
    state = nn.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(state["weight"], tn.to_host(model.weight))


def test_a_module_that_holds_itself(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.me = [model]  # type: ignore[attr-defined]
    model.me.append(model.me)  # type: ignore[attr-defined]
    nn.save_torch_weights(tmp_path / "net.safetensors", model)
    assert sorted(nn.load(tmp_path / "net.safetensors")) == ["0.bias", "0.weight"]
