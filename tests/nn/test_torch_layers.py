"""Layers agree with PyTorch's: values, first and second gradients, with PyTorch's own weights.

The state of PyTorch's layer is loaded by name. Runs where PyTorch is installed
(``pip install '.[peers]'``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn

pytestmark = pytest.mark.slow

torch: Any = None
F = tn.functions


@pytest.fixture(autouse=True, scope="module")
def pytorch() -> None:
    """Import PyTorch when a test of this file runs: the import takes seconds."""
    global torch
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[peers]'")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def load(ours: nn.Module, theirs: Any, rename: dict[str, str] | None = None) -> None:
    """Draw PyTorch's parameters anew, and copy all of the state by name."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    state = {name: value.numpy(force=True) for name, value in theirs.state_dict().items()}
    for old, new in (rename or {}).items():
        state = {name.replace(old, new): value for name, value in state.items()}
    ours.load_state_dict(state)


def flat_names(theirs: Any, rename: dict[str, str] | None = None) -> dict[str, Any]:
    named = dict(theirs.named_parameters())
    for old, new in (rename or {}).items():
        named = {name.replace(old, new): value for name, value in named.items()}
    return named


def agree(
    ours: nn.Module,
    theirs: Any,
    our_call: Callable[..., Any],
    their_call: Callable[..., Any],
    arrays: list[np.ndarray],
    rename: dict[str, str] | None = None,
) -> None:
    """Outputs, gradients for inputs and parameters, and gradients of these gradients."""
    parameters = dict(ours.named_parameters())
    theirs_by_name = flat_names(theirs, rename)
    assert parameters.keys() == theirs_by_name.keys()
    xs = [tn.Variable(x) for x in arrays]
    ts = [torch.tensor(x, requires_grad=True) for x in arrays]
    ys = [y for y in our_call(*xs) if y is not None]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # is twice right
        zs = [z for z in their_call(*ts) if z is not None]
    for y, z in zip(ys, zs, strict=True):
        np.testing.assert_allclose(y.array, z.numpy(force=True), rtol=1e-9, atol=1e-12)
    seeds = [normal(*y.shape, seed=i) for i, y in enumerate(ys)]
    xs += list(parameters.values())
    ts += [theirs_by_name[name] for name in parameters]
    gxs = tn.grad(ys, xs, [tn.Variable(g) for g in seeds], enable_double_backprop=True)
    gts = torch.autograd.grad(zs, ts, [torch.tensor(g) for g in seeds], create_graph=True)
    total = tn.asarray(0.0, dtype="float64")
    their_total = torch.tensor(0.0, dtype=torch.float64)
    for i, (gx, gt) in enumerate(zip(gxs, gts, strict=True)):
        np.testing.assert_allclose(gx.array, gt.numpy(force=True), rtol=1e-9, atol=1e-11)
        v = normal(*gx.shape, seed=i + 7)
        total = total + F.sum(gx * v)
        their_total = their_total + (gt * torch.tensor(v)).sum()
    second = tn.grad([total], xs)
    expected = torch.autograd.grad(their_total, ts, allow_unused=True)
    for ggx, ggt in zip(second, expected, strict=True):
        one = np.zeros(()) if ggx is None else ggx.array
        other = np.zeros(()) if ggt is None else ggt.numpy(force=True)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"batch_first": True, "bias": False, "num_layers": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(kind: str, options: dict[str, Any]) -> None:
    theirs = getattr(torch.nn, kind)(3, 4, **options, dtype=torch.float64)
    ours = getattr(nn, kind)(3, 4, **options, dtype="float64")
    load(ours, theirs)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [normal(count, 2, 4, seed=s) for s in range(2 if kind == "LSTM" else 1)]
    x = normal(2, 5, 3) if options.get("batch_first") else normal(5, 2, 3)

    def call(layer: Any) -> Callable[..., Any]:
        def run(x: Any, *states: Any) -> list[Any]:
            y, last = layer(x, tuple(states) if kind == "LSTM" else states[0])
            return [y, *(last if kind == "LSTM" else [last])]

        return run

    agree(ours, theirs, call(ours), call(theirs), [x, *states])


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_lengths_are_packed_sequences(kind: str, both: bool) -> None:
    theirs = getattr(torch.nn, kind)(3, 4, 2, bidirectional=both, dtype=torch.float64)
    ours = getattr(nn, kind)(3, 4, 2, bidirectional=both, dtype="float64")
    load(ours, theirs)
    lengths = np.array([3, 5, 1])
    rnn = torch.nn.utils.rnn

    def packed(x: Any) -> list[Any]:
        packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
        y, last = theirs(packed)
        return [rnn.pad_packed_sequence(y)[0], *(last if kind == "LSTM" else [last])]

    def masked(x: Any) -> list[Any]:
        y, last = ours(x, lengths=lengths)
        return [y, *(last if kind == "LSTM" else [last])]

    agree(ours, theirs, masked, packed, [normal(5, 3, 3)])


def test_relu_and_cells_and_a_single_sequence() -> None:
    theirs = torch.nn.RNN(3, 4, nonlinearity="relu", dtype=torch.float64)
    ours = nn.RNN(3, 4, nonlinearity="relu", dtype="float64")
    load(ours, theirs)
    agree(ours, theirs, ours, theirs, [normal(5, 3), normal(1, 4)])
    for kind, shape in itertools.product(("RNNCell", "GRUCell", "LSTMCell"), ((2,), ())):
        theirs = getattr(torch.nn, kind)(3, 4, dtype=torch.float64)
        ours = getattr(nn, kind)(3, 4, dtype="float64")
        load(ours, theirs)
        inputs = [normal(*shape, 3), normal(*shape, 4), normal(*shape, 4, seed=1)]
        if kind == "LSTMCell":
            agree(ours, theirs, lambda x, h, c, o=ours: o(x, (h, c)),
                  lambda x, h, c, t=theirs: t(x, (h, c)), inputs)  # fmt: skip
        else:
            agree(ours, theirs, lambda x, h, o=ours: [o(x, h)],
                  lambda x, h, t=theirs: [t(x, h)], inputs[:2])  # fmt: skip


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("form", ["self", "cross", "own sizes", "plain"])
@pytest.mark.parametrize("mask", ["none", "padding", "bool", "added", "heads", "causal"])
def test_attention(form: str, mask: str, batch_first: bool) -> None:
    sizes = {"kdim": 5, "vdim": 3} if form == "own sizes" else {}
    options: dict[str, Any] = {"bias": form != "plain", "batch_first": batch_first, **sizes}
    theirs = torch.nn.MultiheadAttention(4, 2, **options, dtype=torch.float64)
    ours = nn.MultiHeadAttention(4, 2, **options, dtype="float64")
    load(ours, theirs)
    n, m = 3, 3 if form == "self" else 5
    hidden = np.triu(np.ones((n, m), bool), 1)
    masks: dict[str, Any] = {
        "padding": {"key_padding_mask": np.array([[False] * m, [False] * (m - 1) + [True]])},
        "bool": {"attn_mask": hidden},
        "added": {"attn_mask": normal(n, m)},
        "heads": {
            "attn_mask": np.stack([hidden, hidden & False, hidden[:, ::-1] & hidden, hidden])
        },
        "causal": {"attn_mask": hidden},
    }
    given = masks.get(mask, {})
    average = mask != "none"
    their_options = {name: torch.tensor(np.array(value)) for name, value in given.items()}
    our_options = {"is_causal": True} if mask == "causal" else given

    def shaped(length: int, size: int, seed: int) -> np.ndarray:
        x = normal(2, length, size, seed=seed)
        return x if batch_first else np.ascontiguousarray(np.swapaxes(x, 0, 1))

    arrays = [shaped(n, 4, 0)]
    if form != "self":
        arrays += [shaped(m, sizes.get("kdim", 4), 1), shaped(m, sizes.get("vdim", 4), 2)]

    def run(layer: Any, options: dict[str, Any]) -> Callable[..., Any]:
        def call(x: Any, *more: Any) -> Any:
            inputs = (x, *more) if more else (x, x, x)
            return layer(*inputs, average_attn_weights=average, **options)

        return call

    agree(ours, theirs, run(ours, our_options), run(theirs, their_options), arrays)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_block_is_an_encoder_layer(norm_first: bool, masked: bool) -> None:
    theirs = torch.nn.TransformerEncoderLayer(
        4, 2, 6, 0.0, "relu", batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    ours = nn.TransformerBlock(
        4, 2, 6, activation=F.relu, norm_first=norm_first, causal=masked, dtype="float64"
    )
    rename = {
        "norm1.weight": "norm1.gamma",
        "norm1.bias": "norm1.beta",
        "norm2.weight": "norm2.gamma",
        "norm2.bias": "norm2.beta",
    }
    load(ours, theirs, rename)
    padding = np.array([[False, False, True], [False, False, False]]) if masked else None

    def their_call(x: Any) -> list[Any]:
        if not masked:
            return [theirs(x)]
        hidden = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
        return [theirs(x, src_mask=hidden, src_key_padding_mask=torch.tensor(padding))]

    agree(ours, theirs, lambda x: [ours(x, key_padding_mask=padding)], their_call,
          [normal(2, 3, 4)], rename)  # fmt: skip


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "memory", "added"])
def test_the_decoder_block_is_a_decoder_layer(norm_first: bool, mask: str) -> None:
    theirs = torch.nn.TransformerDecoderLayer(
        4, 2, 6, 0.0, "relu", batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    ours = nn.TransformerDecoderBlock(
        4, 2, 6, activation=F.relu, norm_first=norm_first, causal=mask == "causal", dtype="float64"
    )
    rename = {f"norm{i}.{name}": f"norm{i}.{own}" for i in (1, 2, 3)
              for name, own in (("weight", "gamma"), ("bias", "beta"))}  # fmt: skip
    load(ours, theirs, rename)
    hidden = np.array([[False, False, True], [False, False, False]])
    memory_hidden = np.array([[False] * 5, [False] * 4 + [True]])
    given: dict[str, Any] = {
        "padding": {"tgt_key_padding_mask": hidden, "memory_key_padding_mask": memory_hidden},
        "memory": {"memory_mask": np.triu(np.ones((3, 5), bool), 2)},
        "added": {"tgt_mask": normal(3, 3), "memory_mask": normal(3, 5)},
        "causal": {"tgt_mask": np.triu(np.ones((3, 3), bool), 1)},
    }.get(mask, {})
    names = {"tgt_mask": "attn_mask", "tgt_key_padding_mask": "key_padding_mask"}
    their_masks = {name: torch.tensor(value) for name, value in given.items()}
    our_masks = {names.get(name, name): value for name, value in given.items()}
    if mask == "causal":
        our_masks = {}
    agree(ours, theirs, lambda x, y: [ours(x, y, **our_masks)],
          lambda x, y: [theirs(x, y, **their_masks)],
          [normal(2, 3, 4), normal(2, 5, 4)], rename)  # fmt: skip


def test_bilinear() -> None:
    theirs = torch.nn.Bilinear(3, 2, 4, dtype=torch.float64)
    ours = nn.Bilinear(3, 2, 4, dtype="float64")
    load(ours, theirs)
    agree(ours, theirs, lambda x, y: [ours(x, y)], lambda x, y: [theirs(x, y)],
          [normal(5, 2, 3), normal(5, 2, 2)])  # fmt: skip


@pytest.mark.parametrize("kind", ["linear", "conv", "transposed"])
@pytest.mark.parametrize("norm", ["weight", "spectral"])
def test_weight_and_spectral_norm(kind: str, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def weight_norm(v: Any, g: Any, axis: int) -> Any:
        return v * (g / torch.norm_except_dim(v, 2, axis))

    # PyTorch's own kernel for axis 0 fails its torch.autograd.gradgradcheck
    monkeypatch.setattr(torch, "_weight_norm", weight_norm)
    axis = 1 if kind == "transposed" else 0
    parametrizations = torch.nn.utils.parametrizations
    if kind == "linear":
        plain, layer = torch.nn.Linear(3, 4, dtype=torch.float64), nn.Linear(3, 4, dtype="float64")
        x = normal(5, 3)
    else:
        name = "Conv2d" if kind == "conv" else "ConvTranspose2d"
        plain = getattr(torch.nn, name)(3, 4, 2, dtype=torch.float64)
        layer = getattr(nn, name)(3, 4, 2, dtype="float64")
        x = normal(2, 3, 4, 4)
    if norm == "weight":
        theirs = parametrizations.weight_norm(plain, dim=axis)
        ours: nn.Module = nn.WeightNorm(layer, axis=axis)
        rename = {
            "parametrizations.weight.original0": "weight_g",
            "parametrizations.weight.original1": "weight_v",
            "bias": "layer.bias",
        }
    else:
        theirs = parametrizations.spectral_norm(plain)
        ours = nn.SpectralNorm(layer, axis=axis)
        rename = {
            "parametrizations.weight.original": "weight_original",
            "parametrizations.weight.0._": "weight_",
            "bias": "layer.bias",
        }
    load(ours, theirs, rename)
    agree(ours, theirs, lambda x: [ours(x)], lambda x: [theirs(x)], [x], rename)
    ours.eval(), theirs.eval()
    agree(ours, theirs, lambda x: [ours(x)], lambda x: [theirs(x)], [x], rename)


@pytest.mark.parametrize("affine", [False, True])
def test_instance_norm(affine: bool) -> None:
    theirs = torch.nn.InstanceNorm2d(3, affine=affine, dtype=torch.float64)
    ours = nn.InstanceNorm(3, affine=affine, dtype="float64")
    rename = {"weight": "gamma", "bias": "beta"}
    load(ours, theirs, rename)
    agree(ours, theirs, lambda x: [ours(x)], lambda x: [theirs(x)], [normal(2, 3, 4, 2)], rename)


def test_gains_and_orthogonal_rows() -> None:
    for name in ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert nn.initializers.gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert nn.initializers.gain("leaky_relu", 0.3) == pytest.approx(
        torch.nn.init.calculate_gain("leaky_relu", 0.3)
    )
