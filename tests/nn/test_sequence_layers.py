"""Recurrent layers, attention, positions, bilinear layers, weight and spectral norm.

``tests/nn/test_torch_layers.py`` compares the same layers with PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import OperandError, StateError
from tinynode.gradient_check import check_double_backward

F = tn.functions

DEVICES = ["numpy", "fast", "strict:device1"]


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def first(result: Any) -> tn.Variable:
    while isinstance(result, tuple):
        result = result[0]
    assert isinstance(result, tn.Variable)
    return result


def block(norm_first: bool) -> Callable[..., nn.Module]:
    def make(**where: Any) -> nn.Module:
        return nn.TransformerBlock(4, 2, 5, norm_first=norm_first, causal=norm_first, **where)

    return make


def decoder_block(norm_first: bool) -> Callable[..., nn.Module]:
    def make(**where: Any) -> nn.Module:
        return nn.TransformerDecoderBlock(4, 2, 5, norm_first=norm_first, **where)

    return make


def recurrent(kind: str, **options: Any) -> Callable[..., nn.Module]:
    def make(**where: Any) -> nn.Module:
        layer: nn.Module = getattr(nn, kind)(2, 3, **options, **where)
        return layer

    return make


def with_lengths(layer: Any, x: Any) -> Any:
    return layer(x, lengths=[3, 1])


def plain(layer: Any, *xs: Any) -> Any:
    return layer(*xs)


def padded(layer: Any, x: Any) -> Any:
    hidden = [[False, False, True], [True, False, False]]
    device = layer.out_proj.weight.device
    return layer(x, key_padding_mask=tn.asarray(hidden, device=device))


LAYERS: dict[str, tuple[Callable[..., nn.Module], Callable[..., Any], list[tuple[int, ...]]]] = {
    "RNN": (recurrent("RNN"), plain, [(3, 2, 2)]),
    "LSTM": (recurrent("LSTM", bidirectional=True), with_lengths, [(3, 2, 2)]),
    "GRU": (recurrent("GRU", num_layers=2), plain, [(3, 2, 2)]),
    "RNNCell": (recurrent("RNNCell"), plain, [(2, 2), (2, 3)]),
    "LSTMCell": (recurrent("LSTMCell"), plain, [(2, 2)]),
    "GRUCell": (recurrent("GRUCell"), plain, [(2, 2), (2, 3)]),
    "MultiHeadAttention": (
        lambda **where: nn.MultiHeadAttention(4, 2, batch_first=True, **where),
        padded,
        [(2, 3, 4)],
    ),
    "cross": (
        lambda **where: nn.MultiHeadAttention(4, 2, kdim=3, vdim=2, **where),
        plain,
        [(2, 2, 4), (3, 2, 3), (3, 2, 2)],
    ),
    "TransformerBlock": (block(True), plain, [(2, 3, 4)]),
    "TransformerBlock last": (block(False), plain, [(2, 3, 4)]),
    "TransformerDecoderBlock": (decoder_block(True), plain, [(2, 3, 4), (2, 2, 4)]),
    "TransformerDecoderBlock last": (decoder_block(False), plain, [(2, 3, 4), (2, 2, 4)]),
    "PositionalEncoding": (lambda **where: nn.PositionalEncoding(3), plain, [(2, 3, 3)]),
    "RotaryEncoding": (lambda **where: nn.RotaryEncoding(4), plain, [(2, 3, 4)]),
    "Bilinear": (lambda **where: nn.Bilinear(2, 3, 2, **where), plain, [(2, 2, 2), (2, 2, 3)]),
    "InstanceNorm": (
        lambda **where: nn.InstanceNorm(2, affine=True, **where),
        plain,
        [(2, 2, 4)],
    ),
    "WeightNorm": (lambda **where: nn.WeightNorm(nn.Linear(3, 2, **where)), plain, [(2, 3)]),
    "SpectralNorm": (
        lambda **where: nn.SpectralNorm(nn.Conv1d(2, 3, 2, **where)).eval(),
        plain,
        [(1, 2, 4)],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_both_orders_agree_with_differences(name: str) -> None:
    tn.seed(3)
    make, call, shapes = LAYERS[name]
    layer = make(dtype="float64")
    y = first(call(layer, *(normal(*s) for s in shapes)))
    arrays = [normal(*s) for s in shapes]
    parameters = layer.parameters()

    def run(*xs: Any) -> Any:
        return first(call(layer, *xs[: len(shapes)]))

    check_double_backward(
        run,
        arrays,
        normal(*y.shape, seed=2),
        [normal(*s, seed=3) for s in shapes],
        parameters,
        [normal(*p.shape, seed=4) for p in parameters],
        eps=1e-5,
        atol=1e-6,
        rtol=1e-5,
    )


@pytest.mark.parametrize("name", LAYERS)
def test_a_state_goes_round_and_the_repr_names_the_layer(name: str) -> None:
    make, call, shapes = LAYERS[name]
    layer, other = make(), make()
    other.load_state_dict(layer.state_dict())
    xs = [normal(*s).astype(np.float32) for s in shapes]
    y = first(call(layer, *map(tn.asarray, xs)))
    np.testing.assert_array_equal(first(call(other, *map(tn.asarray, xs))).array, y.array)
    assert y.dtype == np.float32
    assert repr(layer).startswith(type(layer).__name__ + "(")
    assert y.requires_grad


@pytest.mark.parametrize("name", LAYERS)
def test_every_device_and_a_compiled_step_give_the_same(name: str) -> None:
    make, call, shapes = LAYERS[name]
    start = make(dtype="float64").state_dict()
    xs = [normal(*s) for s in shapes]
    results: list[list[np.ndarray]] = []

    def step(layer: nn.Module, *xs: Any) -> Any:
        layer.cleargrads()
        loss = F.sum(first(call(layer, *xs)) ** 2)
        loss.backward()
        return loss

    for device in DEVICES:
        with tn.using_device(device):
            layer = make(dtype="float64")
            layer.load_state_dict(start)
            inputs = [tn.asarray(x, dtype="float64", device=device).detach() for x in xs]
            runs = [step] if device != "fast" else [step, tn.compile(step)]
            if not layer.parameters():
                runs = [lambda layer, *xs: first(call(layer, *xs))]
            for run in runs:
                for _ in range(2):
                    loss = run(layer, *inputs)
                arrays = [loss.array, *(p.grad for p in layer.parameters())]
                results.append([tn.to_host(array) for array in arrays])
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_padding_has_no_effect_and_no_gradient() -> None:
    x = normal(4, 2, 2)
    x[2:, 1] = np.nan
    for kind in ("RNN", "LSTM", "GRU"):
        layer = getattr(nn, kind)(2, 3, 2, bidirectional=True, dtype="float64")
        given = tn.Variable(x)
        y, last = layer(given, lengths=np.array([4, 2]))
        alone, alone_last = layer(x[:2, 1:])
        np.testing.assert_allclose(y.array[:2, 1:], alone.array, rtol=1e-12)
        np.testing.assert_array_equal(y.array[2:, 1], 0.0)
        both = zip(last, alone_last, strict=True) if kind == "LSTM" else [(last, alone_last)]
        for one, other in both:
            np.testing.assert_allclose(one.array[:, 1:], other.array, rtol=1e-12)
        F.sum(y * y).backward()
        assert np.isfinite(given.grad).all()
        np.testing.assert_array_equal(given.grad[2:, 1], 0.0)


def test_lengths_are_read_and_checked_at_each_call_of_a_compiled_layer() -> None:
    layer = nn.GRU(2, 3, batch_first=True)
    run = tn.compile(lambda x, lengths: layer(x, lengths=lengths)[1])
    x = tn.asarray(normal(2, 4, 2), dtype="float32")
    for lengths in ([4, 1], [2, 3], [0, 4]):
        given = np.array(lengths)
        expected = layer(x, lengths=lengths)[1].array
        np.testing.assert_allclose(run(x, given).array, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"GRU: lengths run from 1 to 5; x has 4 steps"):
        run(x, np.array([5, 1]))


def test_shapes_and_orders_are_those_of_pytorch() -> None:
    layer = nn.LSTM(2, 3, 2, bidirectional=True, batch_first=True)
    y, (h, c) = layer(normal(4, 5, 2))
    assert (y.shape, h.shape, c.shape) == ((4, 5, 6), (4, 4, 3), (4, 4, 3))
    y, (h, c) = layer(normal(5, 2))
    assert (y.shape, h.shape, c.shape) == ((5, 6), (4, 3), (4, 3))
    names = [name for name, _ in layer.named_parameters()]
    assert names[4:9] == [
        *(f"{name}_l0_reverse" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
        "weight_ih_l1",
    ]
    assert layer.weight_ih_l1.shape == (12, 6)
    assert repr(layer) == "LSTM(2, 3, num_layers=2, batch_first=True, bidirectional=True)"
    assert nn.GRU(2, 3, bias=False).bias_ih_l0 is None


def test_a_cell_is_a_step_of_the_layer() -> None:
    layer, cell = nn.LSTM(2, 3), nn.LSTMCell(2, 3)
    state = layer.state_dict()
    cell.load_state_dict({name.removesuffix("_l0"): array for name, array in state.items()})
    x = normal(4, 2, 2).astype(np.float32)
    y, (h, c) = layer(x)
    states = None
    for step in x:
        states = cell(step, states)
    np.testing.assert_allclose(states[0].array, h.array[0], rtol=1e-5)
    np.testing.assert_allclose(states[1].array, c.array[0], rtol=1e-5)
    np.testing.assert_allclose(states[0].array, y.array[-1], rtol=1e-5)


def test_dropout_stands_between_two_layers_in_training_only() -> None:
    tn.seed(0)
    layer = nn.GRU(2, 3, 2, dropout=0.5)
    x = normal(3, 2, 2).astype(np.float32)
    assert not np.array_equal(layer(x)[0].array, layer(x)[0].array)
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].array, layer(x)[0].array)
    attention = nn.MultiHeadAttention(4, 2, dropout=0.5)
    q = normal(3, 2, 4).astype(np.float32)
    assert not np.array_equal(attention(q)[0].array, attention(q)[0].array)


def test_attention_weights_masks_and_a_query_without_keys() -> None:
    layer = nn.MultiHeadAttention(4, 2, batch_first=True)
    x = normal(2, 3, 4).astype(np.float32)
    _, weights = layer(x)
    assert weights.shape == (2, 3, 3)
    np.testing.assert_allclose(np.sum(weights.array, axis=-1), 1.0, rtol=1e-6)
    assert layer(x, average_attn_weights=False)[1].shape == (2, 2, 3, 3)
    assert layer(x, need_weights=False)[1] is None
    causal = layer(x, is_causal=True)[0].array
    hidden = np.triu(np.ones((3, 3), bool), 1)
    np.testing.assert_allclose(layer(x, attn_mask=hidden)[0].array, causal, rtol=1e-6)
    nothing = layer(x, attn_mask=np.ones((3, 3), bool))
    np.testing.assert_array_equal(nothing[1].array, 0.0)
    assert layer(x[0])[0].shape == (3, 4)
    half = nn.MultiHeadAttention(4, 2, dtype="float16")
    assert half(x.astype(np.float16))[0].dtype == np.float16


def test_sinusoids_and_rotations() -> None:
    p = nn.sinusoidal_positions(5, 3, dtype="float64")
    t = np.arange(5)
    expected = [np.sin(t), np.cos(t), np.sin(t / 10000 ** (2 / 3))]
    np.testing.assert_allclose(p, np.stack(expected, axis=1), rtol=1e-12)
    encode = nn.PositionalEncoding(3)
    np.testing.assert_allclose(encode(np.zeros((2, 5, 3))).array, [p, p], rtol=1e-12)
    turn = nn.RotaryEncoding(4)
    q, k = normal(1, 4), normal(1, 4, seed=2)
    near = [float(F.sum(turn(q, s) * turn(k, s + 3))) for s in (0, 5)]
    assert near[0] == pytest.approx(near[1])  # the distance alone counts
    ones = turn(np.ones((4, 4))).array
    np.testing.assert_allclose(np.sum(ones**2, axis=-1), 4.0)
    np.testing.assert_allclose(turn(np.ones((1, 4)), start=3).array[0], ones[3])


def test_weight_norm_keeps_the_weight_and_parts_its_length() -> None:
    linear = nn.Linear(3, 2)
    x = normal(4, 3).astype(np.float32)
    before = linear(x).array
    layer = nn.WeightNorm(linear)
    assert [name for name, _ in layer.named_parameters()] == ["weight_v", "weight_g", "layer.bias"]
    np.testing.assert_allclose(layer(x).array, before, rtol=1e-5)
    layer.weight_g.array = np.ones((2, 1), np.float32)
    rows = layer.computed_weight().array
    np.testing.assert_allclose(np.sum(rows**2, axis=1), 1.0, rtol=1e-5)
    assert repr(layer) == "WeightNorm(Linear(3, 2))"


@pytest.mark.parametrize("compiled", [False, True])
def test_spectral_norm_finds_the_largest_singular_value(compiled: bool) -> None:
    tn.seed(1)
    layer = nn.SpectralNorm(nn.Linear(3, 4, dtype="float64"))
    x = tn.asarray(normal(2, 3), dtype="float64")
    run = tn.compile(layer) if compiled else layer
    start = layer.weight_u.array.copy()
    for _ in range(60):
        run(x)
    assert not np.array_equal(layer.weight_u.array, start)
    sigma = np.linalg.svd(layer.weight_original.array)[1][0]
    expected = x.array @ (layer.weight_original.array / sigma).T + layer.layer.bias.array
    layer.eval()
    u = layer.weight_u.array
    np.testing.assert_allclose(layer(x).array, expected, rtol=1e-8)
    assert layer.weight_u.array is u


def test_identity_gives_its_input() -> None:
    layer = nn.Identity(3, bias=False)
    x = tn.asarray(X)
    assert layer(x) is x
    assert repr(layer) == "Identity()"


def test_lists_and_dicts_of_layers() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([nn.Linear(2, 2), F.relu])
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 1)})
            self.layers.append(nn.Linear(2, 2, bias=False))

    names = [name for name, _ in Model().named_parameters()]
    assert names == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.2.weight",
        "heads.a.weight",
        "heads.a.bias",
    ]
    with pytest.raises(TypeError, match=r"ModuleList: layer 0 must be a Module or a function"):
        nn.ModuleList([3])
    with pytest.raises(TypeError, match=r"ModuleDict: layer 'a' must be a Module"):
        nn.ModuleDict({"a": nn.Linear})


def test_initializers_of_papers() -> None:
    tn.seed(0)
    ini = nn.initializers
    for shape in ((3, 5), (5, 3), (4, 2, 2)):
        w = ini.orthogonal(shape, 2.0, dtype="float64").reshape(shape[0], -1)
        product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)
    cut = ini.truncated_normal((2000,), 0.5, 1.0, 0.0, 1.5, dtype="float64")
    assert cut.min() >= 0.0
    assert cut.max() <= 1.5
    assert cut.mean() == pytest.approx(0.707, abs=0.03)  # 0.5 + 0.110 / 0.533
    few = ini.sparse((10, 4), 0.75, 1.0)
    assert few.dtype == np.float32
    np.testing.assert_array_equal(np.sum(few == 0, axis=0), 8)
    wide = ini.glorot_uniform((40, 60), ini.gain("tanh"), dtype="float64")
    assert abs(wide).max() <= 5 / 3 * math.sqrt(6 / 100)
    assert wide.std() == pytest.approx(5 / 3 * math.sqrt(2 / 100), rel=0.05)
    normal_draws = ini.glorot_normal((40, 60), 2.0, dtype="float64")
    assert normal_draws.std() == pytest.approx(2 * math.sqrt(2 / 100), rel=0.05)
    for call, message in (
        (lambda: ini.gain("swish"), "gain: activation must be in"),
        (lambda: ini.truncated_normal((2,), low=5.0, high=6.0), "truncated_normal: low=5"),
        (lambda: ini.sparse((2, 2, 2)), "sparse: shape must be"),
        (lambda: ini.orthogonal((3,)), "orthogonal: a weight has the shape"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_vmap_over_the_weights_is_the_layer_with_each_of_them(layer: Callable[..., Any]) -> None:
    """The initial state is beside x, which vmap does not divide."""
    model = layer(2, 3)
    names = [name for name, _ in model.named_parameters()]
    x = normal(4, 2).astype("float32")

    def run(*weights: tn.Variable) -> tn.Variable:
        return first(nn.functional_call(model, dict(zip(names, weights, strict=True)), x))

    many = [normal(5, *p.shape).astype("float32") for p in model.parameters()]
    found = tn.vmap(run)(*[tn.asarray(w) for w in many])
    for i in range(5):
        expected = run(*[tn.asarray(w[i]) for w in many])
        np.testing.assert_allclose(found.array[i], expected.array, rtol=1e-5, atol=1e-6)


X = normal(3, 2, 2).astype(np.float32)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.LSTM(2.5, 3), TypeError, "LSTM: input_size must be an integer"),
    (lambda: nn.LSTM(2, 0), ValueError, "LSTM: hidden_size must be at least 1"),
    (lambda: nn.GRU(2, 3, 0), ValueError, "GRU: num_layers must be at least 1"),
    (lambda: nn.GRU(2, 3, dropout=1.0), ValueError, "GRU: dropout must be at least 0"),
    (lambda: nn.RNN(2, 3, nonlinearity="elu"), ValueError, "RNN: nonlinearity must be 'tanh' or"),
    (lambda: nn.RNN(2, 3)(X[..., :1]), ValueError, r"RNN: x must be \(steps, batch, features\)"),
    (lambda: nn.RNN(2, 3)(X[:0]), ValueError, r"RNN: x of shape \(0, 2, 2\) has no steps"),
    (lambda: nn.RNN(2, 3)(X, np.zeros((1, 3, 3))), ValueError, r"initial state must have shape"),
    (lambda: nn.LSTM(2, 3)(X, np.zeros((1, 2, 3))), TypeError, r"state must be a pair \(h, c\)"),
    (lambda: nn.GRU(2, 3)(X, (X, X)), TypeError, "GRU: state must be one Variable or array h"),
    (lambda: nn.GRU(2, 3)(X, lengths=[1, 4]), ValueError, "GRU: lengths run from 1 to 4"),
    (lambda: nn.GRU(2, 3)(X, lengths=[1]), ValueError, r"GRU: lengths must have shape \(2,\)"),
    (lambda: nn.GRU(2, 3)(X, lengths=np.ones(2)), OperandError, "lengths must be integers"),
    (lambda: nn.GRU(2, 3)(X[0], lengths=[1]), ValueError, "GRU: lengths need a batch"),
    (lambda: nn.GRUCell(2, 3)(X), ValueError, r"GRUCell: x must be \(batch, features\)"),
    (lambda: nn.MultiHeadAttention(4, 3), ValueError, "num_heads=3 must divide embed_dim=4"),
    (lambda: nn.MultiHeadAttention(2, 1)(X, X[:, :1]), ValueError, "must have one batch"),
    (lambda: nn.MultiHeadAttention(4, 1)(X), ValueError, "query must be .*size=4, got shape"),
    (
        lambda: nn.MultiHeadAttention(2, 1)(X, attn_mask=np.ones((2, 2), bool)),
        ValueError,
        r"attn_mask must have shape \(3, 3\) or \(2, 3, 3\)",
    ),
    (
        lambda: nn.MultiHeadAttention(2, 1)(X, key_padding_mask=np.zeros((2, 3))),
        OperandError,
        "key_padding_mask must be bool, True where",
    ),
    (lambda: nn.TransformerBlock(4, 2)(normal(3, 4)), ValueError, r"Add the batch: x\[None\]"),
    (lambda: nn.TransformerBlock(4, 2, activation="relu"), TypeError, "must be a function"),
    (lambda: nn.PositionalEncoding(4)(X), ValueError, "PositionalEncoding: x must be"),
    (lambda: nn.RotaryEncoding(3), ValueError, "RotaryEncoding: size must be even"),
    (lambda: nn.Bilinear(2, 2, 1)(X, X[:1]), ValueError, r"Bilinear: x1 must be \(..., 2\)"),
    (lambda: nn.InstanceNorm(3)(X), ValueError, "InstanceNorm: x must be .*channels=3"),
    (lambda: nn.WeightNorm(F.relu), TypeError, "WeightNorm: layer must be a Module with a Param"),
    (lambda: nn.SpectralNorm(nn.Linear(2, 2), axis=2), ValueError, "axis=2 must be an axis"),
    (lambda: nn.LSTM(2, 3).load_state_dict({}), StateError, "lacks weight_ih_l0"),
]


@pytest.mark.parametrize(("make", "error", "message"), REFUSED)
def test_what_cannot_work_is_refused_by_name(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
