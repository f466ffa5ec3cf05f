"""``tn.summary``: the figures of a real run, found on arrays without data; and nothing changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.core.hooks import thread_state
from tinynode.errors import DeviceMixError, NoValuesError
from tinynode.hooks import MemoryHook
from tinynode.hooks.memory import number_of_bytes
from tinynode.nn.multiply_adds import COUNTS

F = tn.functions


def array(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def indices(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 5, size=shape)


IMAGES, SIGNALS, VOLUMES, ROWS = (2, 4, 8, 8), (2, 4, 9), (2, 4, 5, 6, 7), (3, 5)
SEQUENCES = (3, 6, 5)  # steps, examples, features
POOLS = {
    f"{kind}Pool{n}d": (lambda kind=kind, n=n: getattr(nn, f"{kind}Pool{n}d")(2), shape)
    for kind in ("Avg", "Max")
    for n, shape in ((1, SIGNALS), (2, IMAGES), (3, VOLUMES))
}
ADAPTIVE = {
    f"Adaptive{kind}Pool{n}d": (lambda k=kind, n=n: getattr(nn, f"Adaptive{k}Pool{n}d")(2), shape)
    for kind in ("Avg", "Max")
    for n, shape in ((1, SIGNALS), (2, IMAGES), (3, VOLUMES))
}
LAYERS: dict[str, tuple[Callable[[], Any], Any]] = {
    **POOLS,
    **ADAPTIVE,
    "BatchNorm": (lambda: nn.BatchNorm(4), IMAGES),
    "Bilinear": (lambda: nn.Bilinear(5, 4, 3), [ROWS, (3, 4)]),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1), SIGNALS),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), IMAGES),
    "Conv3d": (lambda: nn.Conv3d(4, 6, (3, 2, 3), padding=1), VOLUMES),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3), SIGNALS),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), IMAGES),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 6, 2), VOLUMES),
    "Dropout": (lambda: nn.Dropout(0.5), ROWS),
    "Embedding": (lambda: nn.Embedding(7, 3), indices(2, 3)),
    "Flatten": (nn.Flatten, IMAGES),
    "GRU": (lambda: nn.GRU(5, 4), SEQUENCES),
    "GRUCell": (lambda: nn.GRUCell(5, 4), ROWS),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGES),
    "Identity": (nn.Identity, ROWS),
    "InstanceNorm": (lambda: nn.InstanceNorm(4), IMAGES),
    "LSTM": (lambda: nn.LSTM(5, 4, num_layers=2, bidirectional=True), SEQUENCES),
    "LSTMCell": (lambda: nn.LSTMCell(5, 4), ROWS),
    "LayerNorm": (lambda: nn.LayerNorm(5), ROWS),
    "Linear": (lambda: nn.Linear(5, 4), ROWS),
    "WithDict": (lambda: WithDict(), ROWS),
    "WithList": (lambda: WithList(), ROWS),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2), [(2, 3, 8)] * 3),
    "PReLU": (lambda: nn.PReLU(), ROWS),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(8), (2, 3, 8)),
    "RMSNorm": (lambda: nn.RMSNorm(5), ROWS),
    "RNN": (lambda: nn.RNN(5, 4), SEQUENCES),
    "RNNCell": (lambda: nn.RNNCell(5, 4), ROWS),
    "RotaryEncoding": (lambda: nn.RotaryEncoding(8), (2, 3, 8)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(5, 4), F.relu, nn.Linear(4, 2)), ROWS),
    "SpectralNorm": (lambda: nn.SpectralNorm(nn.Linear(5, 4)), ROWS),
    "TransformerBlock": (lambda: nn.TransformerBlock(8, 2), (2, 3, 8)),
    "TransformerDecoderBlock": (
        lambda: nn.TransformerDecoderBlock(8, 2),
        [(2, 3, 8), (2, 5, 8)],
    ),
    "Upsample": (lambda: nn.Upsample(scale=2), IMAGES),
    "WeightNorm": (lambda: nn.WeightNorm(nn.Conv2d(4, 6, 3)), IMAGES),
}
"""A layer of each kind, and its input: a shape, an array, or several."""


class WithList(nn.Module):
    def __init__(self) -> None:
        self.parts = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)])

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = F.tanh(part(x))
        return x


class WithDict(nn.Module):
    def __init__(self) -> None:
        self.parts = nn.ModuleDict({"a": nn.Linear(5, 5), "b": nn.Linear(5, 5)})

    def forward(self, x: Any) -> Any:
        return self.parts["a"](x) * self.parts["b"](x)


def example(x: Any) -> list[Any]:
    """Real arguments for the input of a row."""
    if isinstance(x, list):
        return [one for part in x for one in example(part)]
    return [tn.asarray(array(*x) if isinstance(x, tuple) else x, requires_grad=False)]


def retained_by_graph(ys: list[Any], own: list[Any]) -> int:
    """The bytes of the distinct retained arrays of a graph, without those of ``own``."""
    found, waiting, seen = {}, [y.creator_node for y in ys], set()
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        for x in (*function.retained_input_data, *function.retained_output_data):
            if x is not None:
                found[id(x)] = x
        waiting += [node.creator_node for node in function.inputs]
    return sum(number_of_bytes(x) for i, x in found.items() if i not in {id(a) for a in own})


def results(y: Any) -> list[Any]:
    if isinstance(y, tuple | list):
        return [one for part in y for one in results(part)]
    return [y]


def test_every_layer_has_a_row() -> None:
    kinds = {n for n in nn.__all__ if isinstance(getattr(nn, n), type)}
    layers = {n for n in kinds if issubclass(getattr(nn, n), nn.Module)} - {"Module"}
    assert set(LAYERS) - {"WithDict", "WithList"} == layers


@pytest.mark.parametrize("mode", ["training", "evaluation"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_figures_are_those_of_a_real_run(name: str, mode: str) -> None:
    make, x = LAYERS[name]
    tn.seed(0)
    model = make().train(mode == "training")
    found = tn.summary(model, x)
    own = [v.raw for _, v in model._state()]
    ys = results(model(*example(x)))
    assert found.rows[0].kind == name and found.rows[0].calls == 1
    assert list(found.rows[0].outputs) == [tuple(y.shape) for y in ys]
    assert found.parameters == sum(p.size for p in model.parameters())
    assert found.kept_bytes == retained_by_graph(ys, own)


def state_of(model: Any) -> Any:
    """Everything that a summary must leave alone, compared by identity."""
    variables = [(v, v.raw, v.grad_var, v.device, v.node_or_none) for _, v in model._state()]
    return variables, [(m, dict(vars(m))) for m in model.modules()]


def assert_same_state(now: Any, before: Any) -> None:
    for a, b in zip(now[0], before[0], strict=True):
        assert all(x is y for x, y in zip(a, b, strict=True))
    for (_, a), (_, b) in zip(now[1], before[1], strict=True):
        assert list(a) == list(b) and all(a[key] is b[key] for key in a)


class Stateful(nn.Module):
    """Has everything that a forward may change."""

    def __init__(self, needs_values: bool) -> None:
        self.norm = nn.BatchNorm(4)
        self.spectral = nn.SpectralNorm(nn.Linear(4, 4))
        self.dropout = nn.Dropout(0.5)
        self.count, self.seen, self.last = 0, [1, 2], None
        self.needs_values = needs_values

    def forward(self, x: Any) -> Any:
        self.count += 1
        self.last = self.dropout(self.spectral(self.norm(x)))
        self.seen.append(self.last)
        self.training = False
        tn.random.normal((3,))
        if self.needs_values and float(F.sum(self.last)) > 0:
            return x
        return self.last


@pytest.mark.parametrize("needs_values", [False, True])
def test_nothing_changes_also_after_an_error(needs_values: bool) -> None:
    model = Stateful(needs_values)
    F.sum(model.norm(array(3, 4))).backward()  # with gradients
    loss = F.sum(model.norm(array(3, 4)))  # and a living graph
    [v.node for _, v in model._state()]
    before, draws = state_of(model), tn.random.get_generator().bit_generator.state
    with MemoryHook() as hook:
        if needs_values:
            with pytest.raises(NoValuesError, match=r"the layer \(model\) \(Stateful\).*float"):
                tn.summary(model, (3, 4))
        else:
            tn.summary(model, (3, 4))
        assert thread_state.hooks == {hook.name: hook} and hook.calls == []
    assert_same_state(state_of(model), before)
    assert model.seen == [1, 2] and model.training
    assert tn.random.get_generator().bit_generator.state == draws
    assert str(tn.config.device) == "numpy" or tn.config.device is None
    loss.backward()


# --- multiply-adds -------------------------------------------------------------------------------


def total(model: Any, x: Any) -> int:
    return tn.summary(model, x).multiply_adds


def naive_conv(w: Any, y: tuple[int, ...]) -> int:
    return math.prod(y) * math.prod(w.shape[1:])


def test_multiply_adds_of_products() -> None:
    a, b = (7, 3, 5), (5, 4)
    assert total(F.matmul, [a, b]) == 7 * 3 * 5 * 4
    assert total(F.matmul, [(5,), (5,)]) == 5
    assert total(lambda x, y: F.tensordot(x, y, axes=1), [a, b]) == 7 * 3 * 5 * 4
    assert total(F.vecdot, [(7, 3, 5), (3, 5)]) == 7 * 3 * 5
    assert total(lambda x, y: F.einsum("bij,jk->bik", x, y), [a, b]) == 7 * 3 * 5 * 4
    assert total(lambda x: F.einsum("bij->b", x), a) == 0
    assert total(lambda x, y, z: F.einsum("ij,jk,kl->il", x, y, z), [(2, 3), (3, 4), (4, 5)]) == (
        2 * 2 * 3 * 4 * 5
    )
    assert total(nn.Linear(5, 4), a) == 7 * 3 * 5 * 4
    assert total(nn.Bilinear(5, 4, 3), [(2, 5), (2, 4)]) == 2 * 3 * (5 * 4 + 4)


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d"])
def test_multiply_adds_of_convolutions(name: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    found = tn.summary(layer, shape)
    assert found.multiply_adds == naive_conv(layer.weight, found.rows[0].outputs[0])


@pytest.mark.parametrize("name", ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
def test_multiply_adds_of_transposed_convolutions(name: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    assert total(layer, shape) == naive_conv(layer.weight, shape)


def test_multiply_adds_of_attention() -> None:
    steps, n, size = 2, 3, 8
    projections = 4 * n * steps * size * size
    scores_and_values = 2 * n * steps * steps * size
    layer = nn.MultiHeadAttention(size, 2)
    assert total(layer, [(steps, n, size)] * 3) == projections + scores_and_values


def test_multiply_adds_of_gradients_are_those_of_the_products() -> None:
    """The gradients of a product are products of the same size: one for each operand."""
    layer = nn.Conv2d(4, 6, 3)

    def both(x: Any) -> Any:
        return tn.grad([F.sum(layer(x))], [x, layer.weight], enable_double_backprop=True)

    x = tn.asarray(array(*IMAGES))
    assert total(both, x) == 3 * total(layer, x)
    assert all(callable(count) for count in COUNTS.values())


# --- what may be summarised ----------------------------------------------------------------------


def test_the_input_is_a_shape_or_an_example() -> None:
    model = nn.Linear(5, 4)
    expected = str(tn.summary(model, (3, 5)))
    for x in ([3, 5], array(3, 5), tn.asarray(array(3, 5), requires_grad=False), ((3, 5),)):
        assert str(tn.summary(model, x)) == expected
    assert str(tn.summary(model, {"x": (3, 5)})) == expected
    assert tn.summary(model, (3, 5)).inputs == ["(3, 5) float32"]
    wide = nn.Linear(5, 4, dtype="float64")
    assert tn.summary(wide, (3, 5)).inputs == ["(3, 5) float64"]
    assert tn.summary(F.relu, (3, 5), dtype=np.float16).inputs == ["(3, 5) float16"]
    assert tn.summary(nn.Embedding(7, 3), (2,), dtype="int64").rows[0].outputs == ((2, 3),)
    with pytest.raises(tn.TinynodeError, match="indices must be integers") as caught:
        tn.summary(nn.Embedding(7, 3), (2,))
    assert "in the layer (model) (Embedding)" in caught.value.__notes__[0]


def test_nested_arguments_and_results() -> None:
    layer = nn.LSTM(5, 4)
    state = (1, 6, 4), (1, 6, 4)
    found = tn.summary(
        lambda x, s, flag: {"y": layer(x, s), "flag": flag}, [SEQUENCES, state, True]
    )
    assert found.rows[0].outputs[0] == (3, 6, 4)
    assert len(found.inputs) == 3


weights = {"w": tn.asarray(array(5, 4)), "b": tn.asarray(array(4))}


def test_functions_with_captured_variables_and_layers() -> None:
    layer = nn.Linear(4, 2)
    compiled = tn.compile(nn.Linear(4, 2))

    def hidden(x: Any) -> Any:
        return F.tanh(x @ weights["w"] + weights["b"])

    def model(x: Any) -> Any:
        return layer(hidden(x)) + compiled(hidden(x))

    found = tn.summary(model, (3, 5))
    assert {row.name: row.kind for row in found.rows} == {
        "": "function",
        "compiled": "Linear",
        "layer": "Linear",
    }
    assert found.parameters == 24 + 10 + 10
    assert found.parameter_bytes == 4 * found.parameters
    assert found.multiply_adds == 2 * (3 * 5 * 4 + 3 * 4 * 2)
    assert tn.summary(tn.compile(model), (3, 5)).multiply_adds == found.multiply_adds
    assert [row.name for row in tn.summary(tn.compile(layer), (3, 4)).rows] == [""]


class Plain:
    """A model without a base class."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(5, 4), nn.Linear(4, 2)]

    def __call__(self, x: Any) -> Any:
        return self.run(x)

    def run(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class WithoutCall:
    def __init__(self) -> None:
        self.layer = nn.Linear(5, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class ReadsGlobals(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.tanh(x @ weights["w"])


def test_methods_partials_objects_and_unset_closures() -> None:
    assert tn.summary(Plain(), (3, 5)).multiply_adds == 3 * (20 + 8)
    assert tn.summary(Plain().run, (3, 5)).parameters == 24 + 10
    assert tn.summary(WithoutCall().forward, (3, 5)).rows[1].name == "layer"
    plain = Plain()
    assert tn.summary(lambda x: plain(x) + plain.run(x), (3, 5)).parameters == 24 + 10
    assert tn.summary(ReadsGlobals(), (3, 5)).rows[0].outputs == ((3, 4),)
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2))
    assert tn.summary(model.forward, (3, 5)).multiply_adds == 3 * (20 + 8)
    assert tn.summary(partial(F.linear, w=model.layers[0].weight), (3, 5)).parameters == 20

    def early(x: Any) -> Any:
        return x if x.ndim else later

    assert tn.summary(early, (3, 5)).rows[0].outputs == ((3, 5),)
    later = 1
    assert later


@pytest.mark.parametrize("device", ["fast", "strict:device1", "strict:device2"])
def test_models_on_any_device(device: str) -> None:
    model = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm(6), nn.Flatten(), nn.Linear(216, 3))
    expected = str(tn.summary(model, IMAGES))
    model.to_device(device)
    model.mask = tn.asarray(array(3), device=device).array
    assert str(tn.summary(model, IMAGES)) == expected
    assert str(model.layers[0].weight.device) == device


class WithConstants(nn.Module):
    """Uses arrays of NumPy, which belong to no device."""

    def __init__(self) -> None:
        self.scale = array(5)

    def forward(self, x: Any) -> Any:
        mask = tn.asarray(np.arange(5) > 2)
        return F.where(mask, x * self.scale, np.float32(2) * x) @ array(5, 2)


def test_arrays_of_numpy_beside_variables() -> None:
    model = WithConstants()
    found = tn.summary(model, (3, 5))
    assert found.rows[0].outputs == ((3, 2),) and found.multiply_adds == 30
    x = tn.asarray(array(3, 5))
    y = model(x)
    assert tn.summary(model, x).kept_bytes == retained_by_graph([y], [])


def test_transforms_checkpoints_and_gradients_inside() -> None:
    layer = nn.Linear(5, 5)
    plain = tn.summary(layer, (3, 5))
    for mapped in (tn.vmap(layer), lambda x: tn.vmap(layer)(x)):
        assert tn.summary(mapped, (3, 5)).rows[0].outputs == ((3, 5),)
    kept = tn.summary(lambda x: tn.checkpoint(layer, x), tn.asarray(array(3, 5)))
    assert kept.multiply_adds == plain.multiply_adds

    def penalty(x: Any) -> Any:
        (gx,) = tn.grad([F.sum(layer(x) ** 2)], [x], enable_double_backprop=True)
        return F.sum(gx * gx)

    found = tn.summary(penalty, tn.asarray(array(3, 5)))
    assert found.rows[0].outputs == ((),) and found.multiply_adds > plain.multiply_adds


def test_shared_unused_and_frozen_layers() -> None:
    shared = nn.Linear(5, 5)
    model = nn.Sequential(shared, F.relu, shared)
    model.spare = nn.Linear(2, 2)
    model.spare.bias = nn.Parameter(array(2), requires_grad=False)
    found = tn.summary(model, (3, 5))
    assert found.parameters == 30 + 6 and found.trainable == 30 + 4
    assert [row.calls for row in found.rows] == [1, 2, 0]
    assert "Linear, 2 calls" in str(found) and "not called" in str(found)


def test_a_model_too_large_for_any_memory() -> None:
    layer = nn.Linear(4, 4)
    found = tn.summary(lambda x: F.softmax(layer(x) @ layer(x).T), (1_000_000, 4))
    assert found.kept_bytes > 4 * 10**12


# --- errors, and how it looks --------------------------------------------------------------------


class Choosing(nn.Module):
    def __init__(self) -> None:
        self.linear = nn.Linear(5, 5)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return y[y > 0]


def test_a_layer_that_needs_values_is_named() -> None:
    model = nn.Sequential(nn.Linear(5, 5), Choosing())
    with pytest.raises(NoValuesError, match=r"layer layers\.1 \(Choosing\): GetItem: x\[mask\]"):
        tn.summary(model, (3, 5))
    with pytest.raises(ValueError, match="x") as caught:
        tn.summary(model, (3, 4))
    assert caught.value.__notes__ == [
        "summary: in the layer layers.0 (Linear), on arrays without data"
    ]


def test_a_variable_that_was_not_found_is_an_error_of_devices() -> None:
    class Hidden:
        w = tn.asarray(array(5))

    with pytest.raises(DeviceMixError, match="numpy"):
        tn.summary(lambda x: x * Hidden.w, (3, 5))


def test_text_and_html() -> None:
    model = nn.Sequential(nn.Linear(64, 128), F.relu, nn.Linear(128, 10))
    found = tn.summary(model, (32, 64))
    assert str(found) == repr(found)
    assert str(found).splitlines() == [
        "layer     class       output     parameters  trainable       kept  multiply-adds",
        "--------  ----------  ---------  ----------  ---------  ---------  -------------",
        "(model)   Sequential  (32, 10)            0          0  16.00 KiB              0",
        "layers.0  Linear      (32, 128)       8,320      8,320   8.00 KiB        262,144",
        "layers.2  Linear      (32, 10)        1,290      1,290   0.00 KiB         40,960",
        "total                                 9,610      9,610  24.00 KiB        303,104",
        "input: (32, 64) float32",
        "memory of parameters: 37.54 KiB",
    ]
    text = found._repr_html_()
    assert text.count("<tr>") == 5 and "262,144" in text
    model.__dict__["<b>\n"] = nn.Identity()
    assert "&lt;b&gt;\\n" in tn.summary(model, (32, 64))._repr_html_()
