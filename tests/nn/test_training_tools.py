"""Accumulation, loss scaling, averages of weights, and clipping by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import GraphError, StateError

F = tn.functions
X = np.random.default_rng(0).normal(size=(8, 3))
T = np.random.default_rng(1).normal(size=(8, 1))


def model_of(dtype: str = "float64") -> nn.Module:
    with tn.using_config(dtype=dtype):
        tn.seed(0)
        return nn.Sequential(nn.Linear(3, 4), F.tanh, nn.Linear(4, 1))


# --- accumulation over micro-batches -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["eager", "compiled loss", "compiled step"])
def test_micro_batches_are_the_big_batch(kind: str) -> None:
    big, small = model_of(), model_of()
    one, other = nn.Adam(big, lr=0.1), nn.Adam(small, lr=0.1)

    def loss_of(x: Any, t: Any) -> Any:
        return F.mean_squared_error(small(x), t) / 4

    loss = tn.compile(loss_of) if kind == "compiled loss" else loss_of

    def step(parts: Any) -> None:
        other.cleargrads()
        for x, t in parts:
            loss(x, t).backward()
        other.update()

    run = tn.compile(step) if kind == "compiled step" else step
    data = [tn.asarray(host, requires_grad=False) for host in (X, T)]
    parts = [tuple(x[i : i + 2].detach() for x in data) for i in range(0, 8, 2)]
    for _ in range(3):
        one.cleargrads()
        F.mean_squared_error(big(data[0]), data[1]).backward()
        one.update()
        run(parts)
        for p, q in zip(big.parameters(), small.parameters(), strict=True):
            np.testing.assert_allclose(q.array, p.array, rtol=1e-9)


# --- clipping by value ---------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])
def test_clipping_by_value(device: str) -> None:
    with tn.using_device(device):
        p, q = [nn.Parameter(tn.asarray(np.zeros(3)).array) for _ in range(2)]
        p.grad = tn.asarray(np.asarray([-3.0, 0.5, np.nan])).array
        nn.clip_gradients_by_value([p, q], 1.0)
        np.testing.assert_array_equal(tn.to_host(p.grad), [-1.0, 0.5, np.nan])
        assert q.grad is None
    with pytest.raises(ValueError, match="clip_gradients_by_value: limit must be above 0"):
        nn.clip_gradients_by_value([p], 0.0)


# --- loss scaling --------------------------------------------------------------------------------


class Half(nn.Module):
    """Computes in float16, with a parameter of float32."""

    def __init__(self) -> None:
        self.w = nn.Parameter(np.ones(3, np.float32))

    def forward(self, x: Any) -> Any:
        return F.sum(x * F.astype(self.w, "float16"))


def test_a_scaled_loss_keeps_small_gradients() -> None:
    x = tn.asarray(np.full(3, 2e-4, np.float16), requires_grad=False)
    plain, scaled = Half(), Half()
    scaler, optimizer = nn.LossScaler(), nn.SGD(scaled, lr=1.0)
    (plain(x) * 1e-4).backward()  # 2e-8: below the least number of float16
    assert not plain.w.grad.any()
    scaler.scale(scaled(x) * 1e-4).backward()
    assert scaler.step(optimizer)
    scaler.update()
    assert scaled.w.grad == pytest.approx(2e-8, rel=0.01)
    np.testing.assert_allclose(scaled.w.array, 1 - scaled.w.grad)


def test_an_overflow_skips_the_update_and_halves_the_scale() -> None:
    p, q = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2))
    one, other = nn.Adam([p]), nn.SGD([q], lr=1.0)
    scaler = nn.LossScaler(init_scale=8.0, growth_interval=2)
    for number, bad in enumerate((np.inf, 1.0, 1.0, np.nan, 1.0)):
        before, state = p.array, one.state_dict()
        p.grad, q.grad = np.asarray([bad, 1.0]), np.full(2, scaler.factor)
        taken = [scaler.step(optimizer) for optimizer in (one, other)]
        scaler.update()
        is_bad = not np.isfinite(bad)
        assert taken == [not is_bad] * 2
        if is_bad:
            assert p.array is before and one.state_dict()["0/count"] == state["0/count"]
        assert scaler.factor == [4.0, 4.0, 8.0, 4.0, 4.0][number]
    np.testing.assert_allclose(q.array, 1 - 3.0)
    again = nn.LossScaler(growth_interval=2)
    again.load_state_dict(scaler.state_dict())
    assert (again.factor, again.growth_count) == (4.0, 1) and repr(
        again
    ) == "LossScaler(scale=4.0)"
    with pytest.raises(StateError, match="the state lacks"):
        again.load_state_dict({})


def test_unscaled_gradients_may_be_clipped() -> None:
    p = nn.Parameter(np.zeros(2))
    optimizer, scaler = nn.SGD([p], lr=1.0), nn.LossScaler(init_scale=4.0)
    scaler.scale(F.sum(p * tn.asarray([3.0, 4.0], dtype="float64"))).backward()
    scaler.unscale(optimizer)
    np.testing.assert_array_equal(p.grad, [3.0, 4.0])
    assert nn.clip_gradients([p], 1.0) == 5.0
    with pytest.raises(GraphError, match="are unscaled already"):
        scaler.unscale(optimizer)
    scaler.step(optimizer)
    np.testing.assert_allclose(p.array, [-0.6, -0.8])


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
def test_loss_scaling_agrees_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    scaler = nn.LossScaler(init_scale=16.0, growth_interval=3)
    theirs = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
    p, y = nn.Parameter(np.ones(1)), torch.ones(1, dtype=torch.float64, requires_grad=True)
    optimizer, other = nn.SGD([p], lr=0.1), torch.optim.SGD([y], lr=0.1)
    for number in range(12):
        factor = np.inf if number in (4, 5) else 1.0
        optimizer.zero_grad()
        other.zero_grad()
        scaler.scale(F.sum(p * p * factor)).backward()
        theirs.scale((y * y * factor).sum()).backward()
        scaler.step(optimizer)
        theirs.step(other)
        scaler.update()
        theirs.update()
        assert scaler.factor == theirs.get_scale()
        np.testing.assert_allclose(p.array, y.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init_scale": 0.0}, "init_scale"),
        ({"growth_factor": 1.0}, "growth_factor"),
        ({"backoff_factor": 1.0}, "backoff_factor"),
        ({"growth_interval": 0}, "growth_interval must be at least 1"),
    ],
)
def test_wrong_settings_of_a_scaler(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"LossScaler: {message}"):
        nn.LossScaler(**options)


# --- averages of weights -------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["numpy", "fast", "strict:device1"])
def test_an_average_is_the_formula(device: str) -> None:
    with tn.using_device(device):
        model = model_of()
        ema = nn.ExponentialMovingAverage(model, 0.9)
        wanted = model.state_dict()
        draw = np.random.default_rng(2)
        for _ in range(5):
            for p in model.parameters():
                p.array = p.device.from_host(draw.normal(size=p.shape))
            ema.update()
            state = model.state_dict()
            wanted = {key: 0.9 * wanted[key] + 0.1 * state[key] for key in wanted}
        own = model.state_dict()
        for p in model.parameters():
            p.grad = p.array
        with pytest.raises(KeyboardInterrupt), ema.average():
            for key, array in model.state_dict().items():
                np.testing.assert_allclose(array, wanted[key], rtol=1e-12)
            raise KeyboardInterrupt
        for key, array in model.state_dict().items():
            np.testing.assert_array_equal(array, own[key])
        assert all(p.grad is not None for p in model.parameters())
    assert repr(ema) == "ExponentialMovingAverage(4 parameters, rate=0.9)"


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
def test_an_average_agrees_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from torch.optim import swa_utils  # slow to import

    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    theirs = swa_utils.AveragedModel(layer, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.8))
    model = nn.Linear(2, 1)
    model.weight.array = layer.weight.detach().numpy().copy()
    model.bias.array = layer.bias.detach().numpy().copy()
    ema = nn.ExponentialMovingAverage(model, 0.8)
    theirs.update_parameters(layer)  # the first call copies
    for number in range(5):
        with torch.no_grad():
            layer.weight += number
        model.weight.array = layer.weight.detach().numpy().copy()
        ema.update()
        theirs.update_parameters(layer)
    with ema.average():
        np.testing.assert_allclose(model.weight.array, theirs.module.weight.detach().numpy())


def test_an_average_goes_on_from_its_state_bitwise_and_follows_its_model() -> None:
    model = model_of("float32")
    ema = nn.ExponentialMovingAverage(model, 0.9)
    for p in model.parameters():
        p.array = p.array + 1
    ema.update()
    again = nn.ExponentialMovingAverage(model, 0.9)
    again.load_state_dict(ema.state_dict())
    for p in model.parameters():
        p.array = p.array * 2
    ema.update()
    model.to_device("strict:device1")
    again.update()
    for key, array in again.state_dict().items():
        np.testing.assert_array_equal(array, ema.state_dict()[key])
    assert again.count == 2
    with pytest.raises(StateError, match="the state lacks count"):
        again.load_state_dict({})
    with pytest.raises(ValueError, match="ExponentialMovingAverage: rate must be"):
        nn.ExponentialMovingAverage(model, 1.0)
