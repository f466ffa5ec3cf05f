"""Layers for networks, optimizers beyond the first two, and initializers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.commands import digits_cnn, gradient_penalty
from tinynode.functions import normalization
from tinynode.gradient_check import check_backward

F = tn.functions


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng([1, *shape]).standard_normal(shape).astype(np.float32)


def data(*shape: int) -> tn.Variable:
    return tn.Variable(normal(*shape), requires_grad=False)


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1), (2, 3, 9), (2, 4, 5)),
    "Conv2d": (lambda: nn.Conv2d(2, 4, (3, 2), groups=2), (2, 2, 6, 5), (2, 4, 4, 4)),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1),
        (1, 4, 3, 3),
        (1, 2, 6, 6),
    ),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (1, 2, 4, 6), (1, 2, 2, 3)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 1, 1), (1, 2, 4, 6), (1, 2, 4, 6)),
    "Flatten": (lambda: nn.Flatten(), (2, 3, 4), (2, 12)),
    "BatchNorm": (lambda: nn.BatchNorm(3), (4, 3, 5), (4, 3, 5)),
    "LayerNorm": (lambda: nn.LayerNorm((3, 5)), (4, 3, 5), (4, 3, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5), (4, 3, 5), (4, 3, 5)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5), (3, 4, 5)),
    "Dropout": (lambda: nn.Dropout(0.5), (3, 4), (3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_its_shape_and_a_gradient_for_each_parameter(name: str) -> None:
    make, before, after = LAYERS[name]
    layer = make()
    y = layer(tn.Variable(normal(*before)))
    assert y.shape == after
    (y * y).sum().backward()
    for parameter_name, parameter in layer.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.shape == parameter.shape
    assert type(layer).__name__ in repr(layer)


def test_layers_call_their_functions_with_their_parameters() -> None:
    conv = nn.Conv2d(2, 3, 3, stride=2, padding=1, dilation=1)
    x = data(1, 2, 5, 5)
    expected = F.conv2d(x, conv.weight, conv.bias, stride=2, padding=1)
    np.testing.assert_array_equal(conv(x).array, expected.array)
    assert nn.Conv2d(2, 3, 3, bias=False).bias is None
    norm = nn.LayerNorm(5)
    norm.gamma.array = normal(5)
    norm.beta.array = normal(5) * 2
    expected = F.layer_norm(x, norm.gamma, norm.beta, 1e-5)
    np.testing.assert_array_equal(norm(x).array, expected.array)


def test_embedding_gives_rows_and_adds_up_their_gradients() -> None:
    layer = nn.Embedding(4, 3)
    y = layer(np.array([[0, 2], [2, 2]]))
    assert y.shape == (2, 2, 3)
    np.testing.assert_array_equal(y.array[0, 1], layer.weight.array[2])
    F.sum(y).backward()
    np.testing.assert_array_equal(layer.weight.grad[:, 0], [1, 0, 3, 0])


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Conv2d: groups=3 must divide in_channels=4"):
        nn.Conv2d(4, 6, 3, groups=3)
    with pytest.raises(ValueError, match=r"GroupNorm: groups=3"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ValueError, match=r"Dropout: ratio must be at least 0 and less than 1"):
        nn.Dropout(1.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Linear(2.0, 3), TypeError, "Linear: in_size must be an integer, got float"),
        (lambda: nn.Linear(2, 0), ValueError, "Linear: out_size must be at least 1, got 0"),
        (lambda: nn.Embedding(0, 3), ValueError, "Embedding: rows must be at least 1"),
        (lambda: nn.Embedding(3, 2.5), TypeError, "Embedding: size must be an integer"),
        (lambda: nn.Dropout("a"), TypeError, "Dropout: ratio must be a number, got str 'a'"),
        (lambda: nn.Conv1d(1, 1, 0), ValueError, "Conv1d: kernel_size must be at least 1"),
        (lambda: nn.Conv1d(3, 8, (3,)), TypeError, r"Conv1d: kernel_size must be an integer, got"),
        (lambda: nn.Conv1d(3, 8, 3, padding=-1), ValueError, "Conv1d: padding must be at least 0"),
        (lambda: nn.Conv2d(3, 8, 3.0), ValueError, "Conv2d: kernel_size must be an integer or"),
        (lambda: nn.Conv2d(3, 8, (3, 3, 3)), ValueError, "Conv2d: kernel_size must be an integer"),
        (lambda: nn.Conv2d(3, 8.0, 3), TypeError, "Conv2d: out_channels must be an integer"),
        (lambda: nn.Conv2d(0, 8, 3), ValueError, "Conv2d: in_channels must be at least 1"),
        (lambda: nn.Conv2d(2, 2, 3, groups=1.0), TypeError, "Conv2d: groups must be an integer"),
        (lambda: nn.Conv2d(3, 8, 3, stride=0), ValueError, "Conv2d: stride must be .* below 1"),
        (lambda: nn.Conv2d(3, 8, 3, padding=-1), ValueError, "Conv2d: padding must be .*below 0"),
        (lambda: nn.Conv2d(3, 8, 3, dilation=0), ValueError, "Conv2d: dilation must be"),
        (
            lambda: nn.ConvTranspose2d(3, 8, 3, output_padding=(0, -1)),
            ValueError,
            "ConvTranspose2d: output_padding must be",
        ),
        (lambda: nn.MaxPool2d(0), ValueError, "MaxPool2d: kernel_size must be"),
        (lambda: nn.MaxPool2d(2, 0), ValueError, "MaxPool2d: stride must be"),
        (lambda: nn.AvgPool2d(2, padding=-1), ValueError, "AvgPool2d: padding must be"),
        (lambda: nn.BatchNorm(0), ValueError, "BatchNorm: channels must be at least 1"),
        (lambda: nn.BatchNorm(3, eps=-1), ValueError, "BatchNorm: eps must be at least 0"),
        (lambda: nn.BatchNorm(3, momentum=None), TypeError, "BatchNorm: momentum must be a numb"),
        (lambda: nn.BatchNorm(3, momentum=1.5), ValueError, "momentum must be .* at most 1, got"),
        (lambda: nn.LayerNorm(0), ValueError, "LayerNorm: shape must be at least 1, got 0"),
        (lambda: nn.LayerNorm(()), ValueError, "LayerNorm: shape must name one axis or more"),
        (lambda: nn.LayerNorm((3, 2.0)), TypeError, "LayerNorm: shape must be an integer"),
        (lambda: nn.RMSNorm(3, eps=-1), ValueError, "RMSNorm: eps must be at least 0"),
        (lambda: nn.GroupNorm(2.0, 4), TypeError, "GroupNorm: groups must be an integer"),
        (lambda: nn.GroupNorm(2, 0), ValueError, "GroupNorm: channels must be at least 1"),
        (lambda: nn.GroupNorm(2, 4, eps="a"), TypeError, "GroupNorm: eps must be a number"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_the_constructor(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


def test_sizes_may_be_numpy_integers() -> None:
    three, two = np.int64(3), np.int64(2)
    assert nn.Linear(three, two).weight.shape == (2, 3)
    assert nn.Conv1d(three, two, three).weight.shape == (2, 3, 3)
    assert nn.Conv2d(three, two, three, stride=two).weight.shape == (2, 3, 3, 3)
    assert nn.Conv2d(three, two, [three, 1]).weight.shape == (2, 3, 3, 1)
    assert nn.ConvTranspose2d(three, two, three).weight.shape == (3, 2, 3, 3)
    assert nn.LayerNorm(three).gamma.shape == (3,)
    assert nn.RMSNorm((two, three)).gamma.shape == (2, 3)
    assert nn.GroupNorm(two, np.int64(4))(data(1, 4, 3)).shape == (1, 4, 3)
    assert nn.BatchNorm(three, momentum=1.0)(data(2, 3)).shape == (2, 3)
    assert nn.MaxPool2d(two)(data(1, 1, 4, 4)).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (4, 2), (2, (2, 1)), (1, 2)])
def test_a_transposed_convolution_keeps_the_variance(
    kernel: int, stride: Any, groups: int
) -> None:
    tn.seed(0)
    layer = nn.ConvTranspose2d(64, 48, kernel, stride, groups=groups, dtype="float64")
    y = layer(np.random.default_rng(0).standard_normal((2, 64, 12, 12))).array
    inside = y[:, :, kernel:-kernel, kernel:-kernel]
    assert inside[inside != 0].var() == pytest.approx(1.0, abs=0.1)


def test_a_dilated_transposed_convolution_keeps_the_variance_where_it_meets_inputs() -> None:
    layer = nn.ConvTranspose2d(64, 48, 3, stride=2, dilation=2, dtype="float64")
    y = layer(np.random.default_rng(0).standard_normal((2, 64, 12, 12))).array
    inside = y[:, :, 6:-6, 6:-6]
    assert inside[inside != 0].var() == pytest.approx(1.0, abs=0.1)


def test_an_initializer_of_a_transposed_convolution_gets_outputs_and_inputs() -> None:
    shapes = []

    def count(shape: tuple[int, ...], *, dtype: Any, device: Any) -> Any:
        shapes.append(shape)
        return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)

    layer = nn.ConvTranspose2d(4, 6, (3, 2), groups=2, initializer=count)
    assert shapes == [(6, 2, 3, 2)]
    drawn = count((6, 2, 3, 2), dtype=None, device=None)
    assert layer.weight.shape == (4, 3, 3, 2)
    for i in range(4):
        for o in range(3):
            expected = drawn[i // 2 * 3 + o, i % 2]
            np.testing.assert_array_equal(layer.weight.array[i, o], expected)
    moved = nn.ConvTranspose2d(2, 3, 2, initializer=nn.initializers.ones, device="strict:device1")
    assert str(moved.weight.device) == "strict:device1"


def test_batch_norm_normalises_by_the_batch_in_training_and_by_running_statistics_else() -> None:
    layer = nn.BatchNorm(3, momentum=0.25)
    x = data(6, 3, 2)
    y = layer(x)
    flat = np.moveaxis(x.array, 1, 0).reshape(3, -1).astype(np.float64)
    np.testing.assert_allclose(np.moveaxis(y.array, 1, 0).reshape(3, -1).mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(layer.running_mean.array, 0.25 * flat.mean(1), rtol=1e-5)
    expected = 0.75 + 0.25 * flat.var(1, ddof=1)
    np.testing.assert_allclose(layer.running_variance.array, expected, rtol=1e-5)
    layer.eval()
    before = layer.running_mean.array.copy()
    y = layer(x)
    mean, variance = layer.running_mean.array, layer.running_variance.array
    expected_y = (x.array - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    np.testing.assert_allclose(y.array, expected_y, rtol=1e-5)
    np.testing.assert_array_equal(layer.running_mean.array, before)
    layer.train()
    with tn.using_config(train=False):
        np.testing.assert_allclose(layer(x).array, expected_y, rtol=1e-5)


def test_batch_norm_inside_forget_follows_the_batch_once() -> None:
    layer, twin = nn.BatchNorm(3), nn.BatchNorm(3)
    x = tn.Variable(normal(5, 3))
    F.sum(tn.forget(layer, x) ** 2).backward()
    twin(tn.Variable(normal(5, 3)))
    np.testing.assert_array_equal(layer.running_mean.array, twin.running_mean.array)


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1, 1), (0, 3)])
def test_batch_norm_does_not_train_on_one_value_for_each_channel(shape: tuple[int, ...]) -> None:
    layer = nn.BatchNorm(3)
    with pytest.raises(ValueError, match=r"batch_norm: .*(one value|no elements)"):
        layer(data(*shape))
    np.testing.assert_array_equal(layer.running_mean.array, np.zeros(3))
    assert layer.eval()(data(*shape)).shape == shape
    with pytest.raises(ValueError, match=r"one value .*shape \(1, 3\).* eval\(\)"):
        layer.train()(data(1, 3))


def test_the_running_variance_is_never_negative() -> None:
    layer = nn.BatchNorm(1, momentum=1.0, dtype="float16")
    draws = np.random.default_rng(0)
    for scale in (0.0, 1e-3, 3e-3, 1e-2):
        for _ in range(20):
            layer.train()(tn.Variable((draws.standard_normal((8, 1)) * scale).astype("float16")))
            assert layer.running_variance.array[0] >= 0.0
            assert np.isfinite(layer.eval()(np.ones((1, 1), "float16")).array).all()


def test_a_batch_of_another_dtype_leaves_the_dtype_of_the_running_statistics() -> None:
    layer = nn.BatchNorm(3)
    for x in (normal(4, 3).astype("float64"), normal(4, 3).astype("float16")):
        for batch in (x, tn.Variable(x)):
            with contextlib.suppress(TypeError):  # it may be refused, with no change
                layer(batch)
            assert layer.running_mean.dtype == np.float32
            assert layer.running_variance.dtype == np.float32
    nn.BatchNorm(3).load_state_dict(layer.state_dict())


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm(4), nn.LayerNorm(4), nn.RMSNorm(4), nn.GroupNorm(2, 4)], ids=repr
)
@pytest.mark.parametrize("training", [True, False])
def test_every_input_takes_the_dtype_of_the_parameters(layer: nn.Module, training: bool) -> None:
    layer.train(training)
    x = normal(3, 4)
    np.testing.assert_array_equal(layer(x.astype("float64")).array, layer(x).array)
    variable = tn.Variable(x.astype("float64"))
    y = layer(variable)
    np.testing.assert_array_equal(y.array, layer(x).array)
    (y * y).sum().backward()
    assert y.dtype == np.float32 and variable.grad.dtype == np.float64
    np.testing.assert_array_equal(layer(x.tolist()).array, layer(x).array)


def test_running_statistics_of_another_dtype_than_the_parameters_keep_it() -> None:
    layer = nn.BatchNorm(3)
    layer.running_mean.array = np.zeros(3, np.float16)
    layer(data(4, 3))
    assert layer.running_mean.dtype == np.float16
    np.testing.assert_allclose(layer.running_mean.array, 0.1 * normal(4, 3).mean(0), rtol=2e-3)


def test_a_variance_that_was_rounded_below_zero_counts_as_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rounded(x: tn.Variable, *parameters: Any) -> tuple[tn.Variable, ...]:
        return x, data(2), tn.Variable(np.array([-1e-3, 2.0], np.float32))

    monkeypatch.setattr(normalization, "batch_norm_with_statistics", rounded)
    layer = nn.BatchNorm(2, momentum=0.5)
    layer(data(4, 2))
    expected = [0.5, 0.5 + 0.5 * 2.0 * 4 / 3]
    np.testing.assert_allclose(layer.running_variance.array, expected, rtol=1e-6)


def test_sequential_has_a_length_and_layers() -> None:
    first, last = nn.Linear(2, 3), nn.Linear(3, 1)
    model = nn.Sequential(first, F.relu, last)
    assert len(model) == 3
    assert model[0] is first and model[-1] is last
    assert list(model) == [first, F.relu, last]
    part = model[:2]
    assert isinstance(part, nn.Sequential) and list(part) == [first, F.relu]
    with pytest.raises(IndexError):
        model[3]
    with pytest.raises(TypeError, match=r"Sequential: layer 0 .* list .*Sequential\(\*layers\)"):
        nn.Sequential([first, last])
    with pytest.raises(TypeError, match=r"layer 0 must be a Module or a function, got int 3\.$"):
        nn.Sequential(3)


def test_train_and_eval_reach_every_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5), nn.BatchNorm(2)))
    assert model.eval() is model
    assert [module.training for module in model.modules()] == [False] * 5
    assert model.train() is model
    assert all(module.training for module in model.modules())


def test_buffers_are_saved_and_moved_but_not_trained(tmp_path: Any) -> None:
    model = nn.Sequential(nn.BatchNorm(2), nn.Linear(2, 1))
    model(data(8, 2))
    names = [name for name, _ in model.named_buffers()]
    assert names == ["layers.0.running_mean", "layers.0.running_variance"]
    assert not any("running" in name for name, _ in model.named_parameters())
    nn.save(tmp_path / "model.npz", model)
    twin = nn.Sequential(nn.BatchNorm(2), nn.Linear(2, 1))
    twin.load_state_dict(nn.load(tmp_path / "model.npz"))
    for (_, a), (_, b) in zip(model.named_buffers(), twin.named_buffers(), strict=True):
        np.testing.assert_array_equal(a.array, b.array)
    twin.to_device("strict:device1")
    assert {str(b.device) for _, b in twin.named_buffers()} == {"strict:device1"}
    assert not twin.named_buffers()[0][1].requires_grad
    assert "10 parameters" not in repr(twin)
    assert "7 parameters" in repr(twin)


def test_dropout_draws_from_the_seeded_generator_and_rests_in_evaluation() -> None:
    layer = nn.Dropout(0.25)
    x = tn.Variable(np.ones((200, 50), np.float32))
    tn.seed(3)
    first = layer(x).array
    tn.seed(3)
    np.testing.assert_array_equal(layer(x).array, first)
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.75)}
    assert abs((first == 0).mean() - 0.25) < 0.02
    assert layer.eval()(x) is x
    own = nn.Dropout(0.5, generator=np.random.default_rng(1))
    twin = nn.Dropout(0.5, generator=np.random.default_rng(1))
    np.testing.assert_array_equal(own(x).array, twin(x).array)


def test_momentum_is_the_formula() -> None:
    p = nn.Parameter(np.array([1.0, 2.0]))
    optimizer = nn.SGD([p], lr=0.1, momentum=0.9)
    expected, v = np.array([1.0, 2.0]), 0.0
    for g in (np.array([1.0, -1.0]), np.array([0.5, 2.0]), np.array([0.0, 1.0])):
        p.grad = g
        optimizer.update()
        v = 0.9 * v + g
        expected = expected - 0.1 * v
    np.testing.assert_allclose(p.array, expected, rtol=1e-15)
    assert nn.SGD([p]).state_dict().keys() == {"0/count"}
    with pytest.raises(ValueError, match="SGD: momentum"):
        nn.SGD([p], momentum=1.0)


def test_momentum_may_be_changed() -> None:
    p, twin = (nn.Parameter(np.array([1.0, 2.0])) for _ in range(2))
    optimizer, reference = nn.SGD([p], lr=0.1), nn.SGD([twin], lr=0.1, momentum=0.9)
    optimizer.momentum = 0.9
    assert optimizer.state_dict().keys() == reference.state_dict().keys() == {"0/count", "0/v"}
    for g in ([1.0, -1.0], [0.5, 2.0]):
        p.grad, twin.grad = np.array(g), np.array(g)
        optimizer.update()
        reference.update()
        np.testing.assert_array_equal(p.array, twin.array)
    v = optimizer.state_dict()["0/v"]
    optimizer.momentum = np.float64(0.5)  # what is there stays
    assert type(optimizer.momentum) is float
    np.testing.assert_array_equal(optimizer.state_dict()["0/v"], v)
    optimizer.momentum = 0.0
    assert optimizer.state_dict().keys() == {"0/count"}
    before = p.array
    optimizer.update()
    np.testing.assert_allclose(p.array, before - 0.1 * np.array([0.5, 2.0]), rtol=1e-15)
    optimizer.momentum = 0.9
    optimizer.update()
    for wrong, error in ((1.0, ValueError), (-0.1, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="SGD: momentum must be"):
            optimizer.momentum = wrong  # type: ignore[assignment]
    assert optimizer.momentum == 0.9


def test_momentum_that_is_changed_follows_a_model_that_moved() -> None:
    layer = nn.Linear(2, 1)
    optimizer = nn.SGD(layer)
    layer.to_device("strict:device1")
    optimizer.momentum = 0.9
    F.sum(layer(tn.asarray([[1.0, 2.0]], device="strict:device1"))).backward()
    optimizer.update()
    optimizer.update()


def test_adamw_is_adam_with_decay_beside_it() -> None:
    p, twin = nn.Parameter(np.array([1.0, -2.0])), nn.Parameter(np.array([1.0, -2.0]))
    decayed, plain = nn.AdamW([p], lr=0.1, weight_decay=0.5), nn.Adam([twin], lr=0.1)
    p.grad = twin.grad = np.array([1.0, 3.0])
    before = p.array.copy()
    decayed.update()
    plain.update()
    np.testing.assert_allclose(p.array, twin.array - 0.1 * 0.5 * before, rtol=1e-14)
    with pytest.raises(ValueError, match="AdamW: weight_decay"):
        nn.AdamW([p], weight_decay=-1.0)


def test_clip_gradients_scales_all_together() -> None:
    a, b, c = (nn.Parameter(np.zeros(2)) for _ in range(3))
    a.grad, b.grad = np.array([3.0, 0.0]), np.array([0.0, 4.0])
    assert nn.clip_gradients([a, b, c], 10.0) == 5.0
    np.testing.assert_array_equal(a.grad, [3.0, 0.0])
    assert nn.clip_gradients([a, b, c], 1.0) == 5.0
    np.testing.assert_allclose(a.grad, [0.6, 0.0])
    np.testing.assert_allclose(b.grad, [0.0, 0.8])
    assert c.grad is None
    b.grad = np.array([math.inf, 0.0])
    with pytest.raises(ValueError, match="norm of the gradients is inf"):
        nn.clip_gradients([a, b], 1.0)
    np.testing.assert_allclose(a.grad, [0.6, 0.0])
    with pytest.raises(ValueError, match="max_norm"):
        nn.clip_gradients([a], 0.0)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float16", 1e3),
        ("float16", 1e-5),
        ("float32", 1e-30),
        ("float32", 1e30),
        ("float64", 1e-200),
        ("float64", 1e200),
    ],
)
def test_clip_gradients_neither_overflows_nor_underflows(dtype: str, size: float) -> None:
    a, b = (nn.Parameter(np.zeros(2, dtype)) for _ in range(2))
    a.grad, b.grad = np.array([3.0, 0.0]).astype(dtype), np.array([0.0, -4.0]).astype(dtype)
    a.grad, b.grad = a.grad * size, b.grad * size
    rtol = {"float16": 0.02, "float32": 1e-6, "float64": 1e-14}[dtype]
    assert nn.clip_gradients([a, b], size) == pytest.approx(5 * size, rel=rtol)
    assert a.grad.dtype == b.grad.dtype == dtype
    np.testing.assert_allclose(a.grad / size, [0.6, 0.0], rtol=rtol)
    np.testing.assert_allclose(b.grad / size, [0.0, -0.8], rtol=rtol)


def test_clip_gradients_counts_every_element_of_a_large_float16_gradient() -> None:
    p = nn.Parameter(np.zeros(90_000, np.float16))
    p.grad = np.full(90_000, 3e-3, np.float16)
    expected = 300 * float(np.float16(3e-3))
    assert nn.clip_gradients([p], 1e-3) == pytest.approx(expected, rel=1e-6)
    expected = 1e-3 / 300
    np.testing.assert_allclose(p.grad.astype(float), expected, rtol=0.02)
    p.grad = np.zeros(90_000, np.float16)
    p.grad[0] = 6e4
    nn.clip_gradients([p], 1e-3)  # the factor, 1e-3 / 6e4, is below the least of float16
    np.testing.assert_allclose(p.grad[0], 1e-3, rtol=1e-3)


def test_clip_gradients_takes_empty_zero_and_0d_gradients() -> None:
    shapes: list[tuple[int, ...]] = [(0,), (2,), ()]
    parameters = [nn.Parameter(np.zeros(shape, np.float32)) for shape in shapes]
    for p in parameters:
        p.grad = np.zeros(p.shape, np.float32)
    assert nn.clip_gradients(parameters, 1.0) == 0.0
    parameters[2].grad = np.full((), 2.0, np.float32)
    assert nn.clip_gradients(parameters, 1.0) == 2.0
    assert parameters[2].grad.shape == () and parameters[2].grad == 1.0
    parameters[1].grad = np.array([np.nan, 1.0], np.float32)
    with pytest.raises(ValueError, match="norm of the gradients is nan"):
        nn.clip_gradients(parameters, 1.0)


def test_clip_gradients_on_another_device() -> None:
    p = nn.Linear(2, 1, device="strict:device1").weight
    p.grad = tn.asarray([[3.0, 4.0]], device="strict:device1").array
    assert nn.clip_gradients([p], 1.0) == 5.0
    np.testing.assert_allclose(tn.to_host(p.grad), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("lecun_normal", 1 / 300),
        ("lecun_uniform", 1 / 300),
        ("he_normal", 2 / 300),
        ("he_uniform", 2 / 300),
        ("glorot_normal", 2 / (300 + 200 * 3)),
        ("glorot_uniform", 2 / (300 + 200 * 3)),
    ],
)
def test_an_initializer_has_its_variance(name: str, variance: float) -> None:
    tn.seed(0)
    array = getattr(nn.initializers, name)((200, 100, 3), dtype="float64")
    assert array.shape == (200, 100, 3)
    assert abs(array.mean()) < 3 * math.sqrt(variance / array.size)
    assert abs(array.var() / variance - 1) < 0.03
    with pytest.raises(ValueError, match=name):
        getattr(nn.initializers, name)((3,))


def test_ones_are_ones() -> None:
    np.testing.assert_array_equal(nn.initializers.ones((2, 3)), np.ones((2, 3), np.float32))


def test_the_penalty_of_the_job_is_a_second_order_loss() -> None:
    tn.seed(0)
    with tn.using_config(dtype="float64"):
        model = nn.Sequential(nn.Linear(64, 4), F.tanh, nn.Linear(4, 10))
    x = np.random.default_rng(0).random((3, 64))
    t = tn.Variable(np.array([1, 0, 7]))

    def loss(w: tn.Variable) -> tn.Variable:
        model.layers[0].weight = w
        with tn.force_backprop_mode():
            return gradient_penalty.penalized_cross_entropy(model, tn.Variable(x), t)

    check_backward(loss, model.layers[0].weight.array, None, eps=1e-5, rtol=1e-6)


def test_the_convolutional_job_takes_rows_of_pixels() -> None:
    tn.seed(0)
    model = digits_cnn.make_model()
    assert model(data(5, 64)).shape == (5, 10)
