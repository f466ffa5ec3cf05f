"""Schedules against PyTorch's over 100 steps; states in mid-run; groups; compiled steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn
from tinynode.errors import StateError, TraceError
from tinynode.nn import schedules

F = tn.functions


def optimizer(lr: float = 0.1) -> nn.SGD:
    return nn.SGD([nn.Parameter(np.ones(2))], lr=lr)


def torch_module() -> Any:
    torch = pytest.importorskip("torch")
    return torch.optim.lr_scheduler


def cosine_with_warmup(theirs: Any) -> Any:
    of = torch_module()
    parts = [
        of.LinearLR(theirs, start_factor=0.01, total_iters=10),
        of.CosineAnnealingLR(theirs, T_max=90, eta_min=0.001),
    ]
    return of.SequentialLR(theirs, parts, milestones=[10])


PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "step": (
        lambda o: schedules.StepSchedule(o, 7, gamma=0.9),
        lambda o: torch_module().StepLR(o, 7, gamma=0.9),
    ),
    "multi-step": (
        lambda o: schedules.MultiStepSchedule(o, [30, 3, 80], gamma=0.5),
        lambda o: torch_module().MultiStepLR(o, [30, 3, 80], gamma=0.5),
    ),
    "exponential": (
        lambda o: schedules.ExponentialSchedule(o, 0.97),
        lambda o: torch_module().ExponentialLR(o, 0.97),
    ),
    "linear": (
        lambda o: schedules.WarmupSchedule(o, 20),
        lambda o: torch_module().LinearLR(o, total_iters=20),
    ),
    "cosine": (
        lambda o: schedules.CosineSchedule(o, 100, min_lr=0.002),
        lambda o: torch_module().CosineAnnealingLR(o, 100, eta_min=0.002),
    ),
    "cosine with warm-up": (
        lambda o: schedules.CosineSchedule(o, 100, warmup=10, min_lr=0.001, start=0.01),
        cosine_with_warmup,
    ),
    "one-cycle": (
        lambda o: schedules.OneCycleSchedule(o, 0.5, 101),
        lambda o: torch_module().OneCycleLR(o, 0.5, total_steps=101, cycle_momentum=False),
    ),
    "function": (
        lambda o: schedules.FunctionSchedule(o, lambda t: 1 / (1 + t)),
        lambda o: torch_module().LambdaLR(o, lambda t: 1 / (1 + t)),
    ),
}


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
@pytest.mark.parametrize("name", PAIRS)
def test_a_schedule_agrees_with_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, make_theirs = PAIRS[name]
    ours = optimizer()
    theirs = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    schedule, their_schedule = make(ours), make_theirs(theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch wants an update before each step
        for t in range(100):
            assert ours.lr == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-9, abs=1e-15)
            assert ours.lr == schedule.lr_at(t)
            schedule.step()
            their_schedule.step()
    assert schedule.count == 100 and f"count=100, lr={ours.lr}" in repr(schedule)


@pytest.mark.slow  # PyTorch's optimizers take seconds to import
@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_plateau_agrees_with_pytorch(mode: str) -> None:
    torch = pytest.importorskip("torch")
    ours = optimizer()
    theirs = torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=0.1)
    options: dict[str, Any] = {"mode": mode, "factor": 0.5, "patience": 3, "min_lr": 0.01}
    schedule = schedules.PlateauSchedule(ours, cooldown=2, **options)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, cooldown=2, **options)
    sign = 1 if mode == "min" else -1
    metrics = 5 + sign * (
        np.exp(-np.arange(100) / 10) + 0.01 * np.random.default_rng(0).normal(size=100)
    )
    for metric in metrics:
        schedule.step(metric)
        other.step(metric)
        assert ours.lr == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-9)
    assert ours.lr == 0.01
    with pytest.raises(TypeError, match="expected a metric"):
        schedule.step()


@pytest.mark.parametrize("name", [*PAIRS, "plateau"])
def test_a_schedule_goes_on_from_its_state_bitwise(name: str) -> None:
    def make(o: Any) -> Any:
        return schedules.PlateauSchedule(o, patience=1) if name == "plateau" else PAIRS[name][0](o)

    def step(schedule: Any, t: int) -> None:
        schedule.step(*([math.cos(t)] if name == "plateau" else []))

    whole, first, second = [make(optimizer()) for _ in range(3)]
    for t in range(20):
        step(whole, t)
    for t in range(10):
        step(first, t)
    second.load_state_dict(first.state_dict())
    assert second.optimizer.lr == first.optimizer.lr
    for t in range(10, 20):
        step(second, t)
    assert second.optimizer.lr == whole.optimizer.lr
    for key, array in second.state_dict().items():
        np.testing.assert_array_equal(array, whole.state_dict()[key])
    with pytest.raises(StateError, match="the state lacks base_lr"):
        second.load_state_dict({})


def test_the_rates_of_groups_keep_their_ratio() -> None:
    p, q = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2))
    grouped = nn.SGD([{"params": [p], "lr": 0.05}, {"params": [q]}], lr=0.1)
    schedule = schedules.CosineSchedule(grouped, 10, warmup=2)
    rates = []
    for _ in range(10):
        rates.append([group.lr for group in grouped.groups])
        schedule.step()
    assert rates[0] == [0.0, 0.0] and rates[2] == [0.05, 0.1]
    assert all(one == pytest.approx(0.5 * other) for one, other in rates)


def test_a_schedule_stands_outside_of_a_compiled_step() -> None:
    p = nn.Parameter(np.ones(2))
    sgd = nn.SGD([p], lr=0.5)
    schedule = schedules.ExponentialSchedule(sgd, 0.5)

    def step() -> None:
        sgd.cleargrads()
        F.sum(p).backward()
        sgd.update()

    compiled = tn.compile(step)
    for _ in range(3):
        compiled()
        schedule.step()
    np.testing.assert_allclose(p.array, 1 - 0.5 - 0.25 - 0.125)
    with pytest.raises(TraceError, match=r"SGD.lr is set while a net is recorded"):
        tn.compile(schedule.step)()
    assert schedule.count == 3 and sgd.lr == 0.0625


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: schedules.StepSchedule(o, 0), "StepSchedule: step_size must be at least 1"),
        (lambda o: schedules.ExponentialSchedule(o, -1.0), "ExponentialSchedule: gamma must be"),
        (lambda o: schedules.CosineSchedule(o, 5, warmup=5), "CosineSchedule: steps must be at l"),
        (lambda o: schedules.OneCycleSchedule(o, 0.1, 1), "OneCycleSchedule: steps must be at le"),
        (lambda o: schedules.PlateauSchedule(o, mode="low"), 'mode must be "min" or "max", got'),
        (lambda o: schedules.FunctionSchedule(o, 3), "function must be a function of the number"),
        (lambda o: schedules.StepSchedule(0.1, 3), "StepSchedule: optimizer must be an Optimize"),
        (schedules.Schedule, "Schedule has no lr_at: define it"),
    ],
)
def test_wrong_settings_are_refused(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=message):
        make(optimizer())


def test_a_one_cycle_without_a_rise_falls() -> None:
    schedule = schedules.OneCycleSchedule(optimizer(), 0.5, 2, pct_start=0.3)
    rates = [schedule.lr_at(t) for t in range(3)]
    assert rates[0] > rates[1] == rates[2] == pytest.approx(0.5 / 25 / 1e4)
