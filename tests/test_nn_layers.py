"""Layers for networks, optimizers beyond the first two, and initializers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.commands import digits_cnn, gradient_penalty
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
    F.sum(y * y).backward()
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
    with pytest.raises(ValueError, match=r"Dropout: ratio must lie in 0 to below 1, got 1"):
        nn.Dropout(1.0)
    with pytest.raises(ValueError, match=r"positive size"):
        nn.Conv1d(1, 1, 0)


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


def test_adamw_is_adam_with_decay_beside_it() -> None:
    p, twin = nn.Parameter(np.array([1.0, -2.0])), nn.Parameter(np.array([1.0, -2.0]))
    decayed, plain = nn.AdamW([p], lr=0.1, decay=0.5), nn.Adam([twin], lr=0.1)
    p.grad = twin.grad = np.array([1.0, 3.0])
    before = p.array.copy()
    decayed.update()
    plain.update()
    np.testing.assert_allclose(p.array, twin.array - 0.1 * 0.5 * before, rtol=1e-14)
    with pytest.raises(ValueError, match="AdamW: decay"):
        nn.AdamW([p], decay=-1.0)


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
