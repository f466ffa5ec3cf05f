"""Schedules: the learning rate as a function of the number of steps.

Requirement: a schedule is a formula of the count, so that a resumed run has the same rates to the
last bit. ``lr_at(t)`` gives the rate after t steps; ``step()`` counts, and sets ``optimizer.lr``.

    schedule = nn.schedules.CosineSchedule(optimizer, steps=1000, warmup=100)
    for x, t in batches:
        ...
        optimizer.update()
        schedule.step()

A schedule calls ``step()`` after each update, or after each epoch: the unit of ``steps`` is the
number of these calls. The base rate is ``optimizer.lr`` at the start. The rates of an optimizer's
groups keep their ratio to ``optimizer.lr``.

An optimizer has one schedule, and ``SequentialSchedule`` makes one of several. A later schedule of
an optimizer has the base rate of the earlier one, and the earlier one cannot step any more.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy

from tinynode.errors import describe
from tinynode.nn.checks import RefusesKeywords, checked_number, checked_size
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.state import State, checked_state, number_arrays

__all__ = [
    "CosineSchedule",
    "ExponentialSchedule",
    "FunctionSchedule",
    "MultiStepSchedule",
    "OneCycleSchedule",
    "PlateauSchedule",
    "Schedule",
    "SequentialSchedule",
    "StepSchedule",
    "WarmupSchedule",
]
__dir__ = __all__.copy  # for completion


@dataclasses.dataclass(eq=False)
class LrOwner:
    """The schedule that sets the rate of an optimizer; the optimizer holds it as ``lr_owner``.

    Attributes:
        name: the name of the schedule's class.
        base_lr: the optimizer's rate before the schedule.
        lr: the rate that the schedule set last.
    """

    name: str
    base_lr: float
    lr: float = math.nan


class Schedule(RefusesKeywords):
    """Base class. A subclass defines ``lr_at``.

    Args:
        optimizer: the optimizer whose ``lr`` is set, at once and at each ``step()``.

    Attributes:
        base_lr: the rate at the start.
        count: the number of calls of ``step``.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        optimizer = getattr(optimizer, "saved_part", optimizer)  # a DistributedOptimizer has one
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: optimizer must be an Optimizer, got "
                f"{describe(optimizer)}."
            )
        self.optimizer = optimizer
        self.base_lr = _base_lr(optimizer)
        self.count = 0
        self._owner = optimizer.lr_owner = LrOwner(type(self).__name__, self.base_lr)
        self._set_lr(self.lr_at(0))

    def lr_at(self, t: int) -> float:
        """The learning rate after ``t`` steps."""
        raise NotImplementedError(f"{type(self).__name__} has no lr_at: define it in the class.")

    def step(self) -> None:
        """Count, and set ``optimizer.lr``. Call it outside of compiled functions.

        A warning tells that ``optimizer.lr`` was set by hand since the last call: the schedule
        sets its own rate again. Set ``base_lr`` to change all rates of the schedule.

        Raises:
            ValueError: a later schedule sets the rate of this optimizer.
        """
        owner = self.optimizer.lr_owner
        if not self.is_in_charge():
            raise ValueError(
                f"{type(self).__name__}.step: a later {owner.name} sets the learning rate of this "
                "optimizer, and two schedules would set it in turn. Write schedule = "
                "SequentialSchedule([first, second], milestones=[100]), and schedule.step() alone."
            )
        self._note_lr_by_hand()
        self._set_lr(self.lr_at(self.count + 1))
        self.count += 1

    def is_in_charge(self) -> bool:
        """True unless a later schedule sets the rate of the optimizer."""
        return self.optimizer.lr_owner is self._owner

    def _note_lr_by_hand(self) -> None:
        """Warn if ``optimizer.lr`` is not the rate that this schedule set."""
        if self.optimizer.lr == self._owner.lr:
            return
        name = type(self).__name__
        warnings.warn(
            f"{name}.step: optimizer.lr was set to {self.optimizer.lr} by hand, and the schedule "
            f"sets {self.lr_at(self.count + 1)}. Set schedule.base_lr to change the rates.",
            UserWarning,
            stacklevel=3,
        )

    def _set_lr(self, lr: float) -> None:
        self.optimizer.lr = lr
        self._owner.lr = self.optimizer.lr

    def state_dict(self) -> State:
        """The count and the base rate."""
        return number_arrays(base_lr=self.base_lr, count=self.count)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called; sets ``optimizer.lr``.

        Raises:
            StateError: a name, a shape or a dtype differs; the schedule is unchanged.
        """
        caller = f"{type(self).__name__}.load_state_dict"
        checked = checked_state(caller, state, self.state_dict())
        self.base_lr = float(checked["base_lr"])
        self.count = int(checked["count"])
        self._set_lr(self.lr_at(self.count))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(count={self.count}, lr={self.optimizer.lr})"

    def _number(
        self, name: str, value: float, low: float = 0.0, high: float = math.inf, **options: bool
    ) -> float:
        return checked_number(f"{type(self).__name__}: {name}", value, low, high, **options)

    def _size(self, name: str, value: int, least: int = 1) -> int:
        return checked_size(f"{type(self).__name__}: {name}", value, least)


def _base_lr(optimizer: Optimizer) -> float:
    """The rate of an optimizer before an earlier schedule, if that rate still stands."""
    owner = optimizer.lr_owner
    has_rate_of_owner = owner is not None and optimizer.lr == owner.lr
    return owner.base_lr if has_rate_of_owner else optimizer.lr


class SequentialSchedule(Schedule):
    """One schedule after another: the next one begins at each milestone, at its own step 0.

        warmup = nn.schedules.WarmupSchedule(optimizer, 100)
        decay = nn.schedules.CosineSchedule(optimizer, 900)
        schedule = nn.schedules.SequentialSchedule([warmup, decay], milestones=[100])

    For m_i <= t < m_(i+1), with m_0 = 0:   lr_t = lr of schedule i after t - m_i steps.
    PyTorch: ``SequentialLR``.

    Args:
        schedules: at least one, all of one optimizer, and no ``PlateauSchedule``: its rate depends
            on a metric. Call ``step`` of the SequentialSchedule alone.
        milestones: increasing numbers of steps, one less than schedules.
    """

    def __init__(self, schedules: Sequence[Schedule], milestones: Sequence[int]) -> None:
        self.schedules: list[Schedule] = list(self._sequence("schedules", schedules))
        given = self._sequence("milestones", milestones)
        self.milestones = [self._size("milestones", one) for one in given]
        self._check()
        rates = [one.base_lr for one in self.schedules]
        super().__init__(self.schedules[0].optimizer)
        for one, rate in zip(self.schedules, rates, strict=True):  # they may differ
            one.base_lr = rate
        self._set_lr(self.lr_at(0))

    @property
    def base_lr(self) -> float:
        """The base rate of the schedules; a new base rate is that of each of them."""
        return self.schedules[0].base_lr

    @base_lr.setter
    def base_lr(self, rate: float) -> None:
        for one in self.schedules:
            one.base_lr = rate

    @staticmethod
    def _sequence(argument: str, given: Any) -> Any:
        if not isinstance(given, list | tuple):
            raise TypeError(
                f"SequentialSchedule: {argument} must be a list, got {describe(given)}. Write "
                "SequentialSchedule([first, second], milestones=[100])."
            )
        return given

    def _check(self) -> None:
        for one in self.schedules:
            if not isinstance(one, Schedule) or isinstance(one, PlateauSchedule):
                raise TypeError(
                    "SequentialSchedule: schedules must be schedules whose rate depends on the "
                    f"number of steps alone, got {describe(one)}."
                )
        optimizers = {id(one.optimizer) for one in self.schedules}
        if len(optimizers) != 1:
            raise ValueError(
                "SequentialSchedule: schedules must be one schedule or more of one optimizer, got "
                f"{len(self.schedules)} of {len(optimizers)} optimizers."
            )
        is_increasing = sorted(set(self.milestones)) == self.milestones
        if len(self.milestones) != len(self.schedules) - 1 or not is_increasing:
            raise ValueError(
                f"SequentialSchedule: milestones must be {len(self.schedules) - 1} increasing "
                f"numbers, one less than schedules, got {self.milestones}."
            )

    def lr_at(self, t: int) -> float:
        place = bisect.bisect_right(self.milestones, t)
        begin = self.milestones[place - 1] if place else 0
        return self.schedules[place].lr_at(t - begin)

    def state_dict(self) -> State:
        """The count, and the base rate of each schedule."""
        rates = [one.base_lr for one in self.schedules]
        return {**number_arrays(count=self.count), "base_lrs": numpy.asarray(rates)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        caller = "SequentialSchedule.load_state_dict"
        checked = checked_state(caller, state, self.state_dict())
        for one, rate in zip(self.schedules, checked["base_lrs"].tolist(), strict=True):
            one.base_lr = rate
        self.count = int(checked["count"])
        self._set_lr(self.lr_at(self.count))


class StepSchedule(Schedule):
    """lr_t = base_lr * gamma^floor(t / step_size). PyTorch: ``StepLR``."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        self.step_size = self._size("step_size", step_size)
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        return self.base_lr * self.gamma ** (t // self.step_size)


class MultiStepSchedule(Schedule):
    """lr_t = base_lr * gamma^(the number of milestones <= t). PyTorch: ``MultiStepLR``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1
    ) -> None:
        self.milestones = sorted(self._size("milestones", one, 0) for one in milestones)
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        return self.base_lr * self.gamma ** bisect.bisect_right(self.milestones, t)


class ExponentialSchedule(Schedule):
    """lr_t = base_lr * gamma^t. PyTorch: ``ExponentialLR``."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        return self.base_lr * self.gamma**t


class WarmupSchedule(Schedule):
    """A line from start * base_lr to base_lr in ``steps`` steps, then base_lr.

    lr_t = base_lr * (start + (1 - start) * min(t, steps) / steps). PyTorch: ``LinearLR``.
    """

    def __init__(self, optimizer: Optimizer, steps: int, start: float = 1 / 3) -> None:
        self.steps = self._size("steps", steps)
        self.start = self._number("start", start, 0.0, 1.0, with_high=True)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        return self.base_lr * (self.start + (1 - self.start) * min(t, self.steps) / self.steps)


class CosineSchedule(Schedule):
    """Half a cosine from base_lr down to min_lr, after a linear warm-up.

    For t < warmup:   lr_t = base_lr * (start + (1 - start) * t / warmup).
    Afterwards, with s = min(1, (t - warmup) / (steps - warmup)):

        lr_t = min_lr + (base_lr - min_lr) * (1 + cos(pi * s)) / 2

    PyTorch: ``CosineAnnealingLR`` after ``LinearLR``, up to the last step. PyTorch's rate rises
    again afterwards, and this one stays at min_lr.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.

    Args:
        optimizer: the optimizer.
        steps: the number of all steps, with the warm-up; more than ``warmup``.
        warmup: the number of steps of the warm-up.
        min_lr: the last rate, at most base_lr.
        start: the first factor of the warm-up.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        steps: int,
        warmup: int = 0,
        min_lr: float = 0.0,
        start: float = 0.0,
    ) -> None:
        self.warmup = self._size("warmup", warmup, 0)
        self.steps = self._size("steps", steps, self.warmup + 1)
        self.min_lr = self._number("min_lr", min_lr)
        self.start = self._number("start", start, 0.0, 1.0, with_high=True)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        if t < self.warmup:
            return self.base_lr * (self.start + (1 - self.start) * t / self.warmup)
        share = min(1.0, (t - self.warmup) / (self.steps - self.warmup))
        return _between(self.base_lr, self.min_lr, share)


def _between(first: float, last: float, share: float) -> float:
    """Half a cosine from ``first`` at share 0 to ``last`` at share 1."""
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


class OneCycleSchedule(Schedule):
    """Up from max_lr / div_factor to max_lr, then down to almost 0; both are half cosines.

    The rise takes the first ``pct_start`` of the steps. The last rate is
    max_lr / div_factor / final_div_factor. PyTorch: ``OneCycleLR`` without ``cycle_momentum``:
    the momentum does not change.

    Source: Smith and Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large
    Learning Rates, 2018.

    Args:
        optimizer: the optimizer.
        max_lr: the largest rate.
        steps: the number of all steps, at least 2.
        pct_start: the share of the rise, above 0 and less than 1.
        div_factor: the largest rate divided by the first, at least 1.
        final_div_factor: the first rate divided by the last, at least 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        self.max_lr = self._number("max_lr", max_lr)
        self.steps = self._size("steps", steps, 2)
        self.pct_start = self._number("pct_start", pct_start, 0.0, 1.0)
        self.div_factor = self._number("div_factor", div_factor, 1.0)
        self.final_div_factor = self._number("final_div_factor", final_div_factor, 1.0)
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        first = self.max_lr / self.div_factor
        top, end = self.pct_start * self.steps - 1, self.steps - 1
        t = min(t, end)
        if top > 0 and t <= top:
            return _between(first, self.max_lr, t / top)
        return _between(self.max_lr, first / self.final_div_factor, (t - top) / (end - top))


class FunctionSchedule(Schedule):
    """lr_t = base_lr * function(t), with a function of the user. PyTorch: ``LambdaLR``.

    Args:
        optimizer: the optimizer.
        function: takes the number of steps, and returns a factor, at least 0.
    """

    def __init__(self, optimizer: Optimizer, function: Callable[[int], float]) -> None:
        if not callable(function):
            raise TypeError(
                "FunctionSchedule: function must be a function of the number of steps, got "
                f"{describe(function)}."
            )
        self.function = function
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        return self.base_lr * self.function(t)


class PlateauSchedule(Schedule):
    """Multiply the rate by ``factor`` when a metric stops to improve.

    A metric is better if it is below best * (1 - threshold), or with ``mode="max"`` above
    best * (1 + threshold). After more than ``patience`` calls without a better metric, the rate
    falls, to min_lr at least. The next ``cooldown`` calls do not count. The rate falls from
    ``optimizer.lr``, which may be set by hand.

    PyTorch: ``ReduceLROnPlateau``, with ``threshold_mode="rel"``.

    Args:
        optimizer: the optimizer.
        mode: "min" for a loss, "max" for an accuracy.
        factor: the factor of the rate, less than 1.
        patience: the number of calls without a better metric that change nothing.
        threshold: the least relative improvement.
        cooldown: the number of calls after a change that do not count.
        min_lr: the least rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f'PlateauSchedule: mode must be "min" or "max", got {mode!r}.')
        self.mode = mode
        self.factor = self._number("factor", factor, 0.0, 1.0)
        self.patience = self._size("patience", patience, 0)
        self.threshold = self._number("threshold", threshold)
        self.cooldown = self._size("cooldown", cooldown, 0)
        self.min_lr = self._number("min_lr", min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.bad_count = 0
        self.cooldown_left = 0
        self.lr = optimizer.lr
        super().__init__(optimizer)

    def lr_at(self, t: int) -> float:
        """The present rate: the rate depends on the metrics, not on ``t``."""
        return self.lr

    def _note_lr_by_hand(self) -> None:
        """Nothing: ``step`` takes the rate that was set by hand."""

    def step(self, metric: float | None = None) -> None:
        """Count, and set ``optimizer.lr``.

        Args:
            metric: the loss or the accuracy of the epoch.

        Raises:
            TypeError: the metric is missing, or is no number.
        """
        if metric is None:
            raise TypeError("PlateauSchedule.step: expected a metric: write step(held_out_loss).")
        value = float(metric)
        self.lr = self.optimizer.lr
        if self._is_better(value):
            self.best, self.bad_count = value, 0
        else:
            self.bad_count += 1
        if self.cooldown_left:
            self.cooldown_left -= 1
            self.bad_count = 0
        if self.bad_count > self.patience:
            self.lr = min(self.lr, max(self.lr * self.factor, self.min_lr))
            self.cooldown_left, self.bad_count = self.cooldown, 0
        super().step()

    def _is_better(self, value: float) -> bool:
        if self.mode == "min":
            return value < self.best * (1 - self.threshold)
        return value > self.best * (1 + self.threshold)

    def state_dict(self) -> State:
        """The count, the rate, the best metric and the other counts."""
        counts = number_arrays(bad_count=self.bad_count, cooldown_left=self.cooldown_left)
        return {**super().state_dict(), **number_arrays(best=self.best, lr=self.lr), **counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        checked = checked_state("PlateauSchedule.load_state_dict", state, self.state_dict())
        self.best, self.lr = float(checked["best"]), float(checked["lr"])
        self.bad_count = int(checked["bad_count"])
        self.cooldown_left = int(checked["cooldown_left"])
        super().load_state_dict(checked)
