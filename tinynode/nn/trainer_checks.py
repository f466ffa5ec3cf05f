"""The arguments of ``Trainer``: what fits together, and the arrays of a batch.

Requirement: a mistake in the arguments is an error before the first step, with the code to write.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from tinynode.core.variable import Variable
from tinynode.devices import is_array
from tinynode.errors import describe
from tinynode.nn.averages import ExponentialMovingAverage
from tinynode.nn.data import Dataset
from tinynode.nn.module import Module
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.schedules import PlateauSchedule, Schedule
from tinynode.safe_files import checked_path

Batch: TypeAlias = tuple[Any, ...]


def check_class(argument: str, value: Any, wanted: type) -> None:
    """Refuse an object of another class.

    Raises:
        TypeError: the value is none of the class.
    """
    if not isinstance(value, wanted):
        raise TypeError(
            f"Trainer: {argument} must be of the class {wanted.__name__}, got "
            f"{describe(value)}. The order is Trainer(model, loss, optimizer, train)."
        )


def check_loss(loss: Any) -> None:
    """Refuse what cannot be called with a model and a batch.

    Raises:
        TypeError: the loss is no function, or is one of ``tinynode.functions``.
    """
    if not callable(loss):
        raise TypeError(
            f"Trainer: loss must be a function loss(model, *batch), got {describe(loss)}."
        )
    name = getattr(loss, "__name__", "")
    if getattr(loss, "__module__", "").startswith("tinynode.functions"):
        raise TypeError(
            f"Trainer: loss is called with the model and a batch, and {name} takes no model. "
            f"Write loss=lambda model, x, t: F.{name}(model(x), t)."
        )


def check_average(average: Any, model: Module) -> None:
    """Refuse an average of another model.

    Raises:
        TypeError: the average has no means.
        ValueError: it has the means of another model.
    """
    require_method("average", average, "average", "average=nn.ExponentialMovingAverage(model)")
    if not isinstance(average, ExponentialMovingAverage):
        return
    own = {id(p) for p in model.parameters()}
    if not {id(p) for p in average.parameters()} <= own:
        raise ValueError(
            f"Trainer: average has the means of another model, got {average!r}. Make it with the "
            "trainer's model: nn.ExponentialMovingAverage(model)."
        )


def check_paths(checkpoint: Any, log: Any) -> None:
    """Refuse a checkpoint without a path, or with the path of the log.

    Raises:
        TypeError: the checkpoint is no path.
        ValueError: both have one path.
    """
    if checkpoint is None:
        return
    path = checked_path("Trainer: checkpoint", checkpoint)
    if log is not None and os.path.realpath(path) == os.path.realpath(log.path):
        raise ValueError(
            f"Trainer: checkpoint and log must be two files, got {path!r} for both. Write "
            "checkpoint='run.npz', log='run.csv'."
        )


def check_schedule(schedule: Any, optimizer: Optimizer) -> None:
    """Refuse a schedule of another optimizer, and a replaced one.

    Raises:
        TypeError: the schedule has no ``step``.
        ValueError: it is one of another optimizer, or a later schedule took its place.
    """
    cure = "schedule=nn.schedules.SequentialSchedule([first, second], milestones=[100])"
    require_method("schedule", schedule, "step", cure)
    name = type(schedule).__name__
    if getattr(schedule, "optimizer", optimizer) is not optimizer:
        raise ValueError(
            f"Trainer: schedule sets the learning rate of another optimizer, got {name}. Make it "
            f"with the trainer's optimizer: {name}(optimizer, ...)."
        )
    owner = optimizer.lr_owner
    if isinstance(schedule, Schedule) and not schedule.is_in_charge():
        raise ValueError(
            f"Trainer: schedule is a {name}, and a later {owner.name} sets the learning rate of "
            f"the optimizer. Give the later one, or {cure}."
        )


def check_direction(schedule: Any, maximize: bool, is_stopping: bool, monitor: str) -> None:
    """Refuse a PlateauSchedule in the other direction than early stopping.

    Raises:
        ValueError: ``mode`` and ``maximize`` contradict each other.
    """
    if not isinstance(schedule, PlateauSchedule):
        return
    is_max = schedule.mode == "max"
    is_told = maximize or is_stopping
    if is_told and is_max != maximize:
        raise ValueError(
            f"Trainer: schedule is a PlateauSchedule with mode {schedule.mode!r}, and maximize is "
            f"{maximize}: {monitor!r} cannot be better in both directions. Give "
            f"mode={'max' if maximize else 'min'!r}, or maximize={is_max}."
        )


def check_batches(argument: str, batches: Any) -> None:
    """Refuse an argument without batches, or without ``len``; None is no argument.

    Raises:
        TypeError: the argument is a data set, one batch, or an iterator.
    """
    refuse_data_set("Trainer", argument, batches)
    if batches is not None and not hasattr(batches, "__len__"):
        raise TypeError(
            f"Trainer: {argument} must be batches with len(), such as a DataLoader or a list of "
            f"tuples, got {describe(batches)}."
        )


def check_length(argument: str, batches: Any) -> None:
    """Refuse an epoch without batches.

    Raises:
        ValueError: there are no batches.
    """
    if batches is not None and not len(batches):
        raise ValueError(
            f"Trainer.run: {argument} has no batches: {describe(batches)}. With drop_last=True, a "
            "DataLoader needs batch_size samples or more."
        )


def check_metrics(metrics: Mapping[str, Any], has_validation: bool) -> None:
    """Refuse metrics that cannot be called or measured, or have the name of another number.

    Raises:
        TypeError: a metric is no function.
        ValueError: there is no validation, or a name is taken.
    """
    if metrics and not has_validation:
        raise ValueError("Trainer: metrics are measured on validation=..., which is missing.")
    for name, metric in metrics.items():
        if not callable(metric):
            raise TypeError(
                f"Trainer: metric {name!r} must be a function metric(model, *batch), got "
                f"{describe(metric)}. It may return nn.metrics.accuracy(model(x), y)."
            )
    taken = {"epoch", "loss", "validation loss", "lr"} & set(metrics)
    if taken:
        raise ValueError(f"Trainer: {min(taken)!r} is taken; give the metric another name.")


def check_monitor(monitor: str, metrics: Mapping[str, Any], has_validation: bool) -> None:
    """Refuse the name of no number.

    Raises:
        ValueError: no number of a row has the name.
    """
    names = ["loss"]
    if has_validation:
        names += ["validation loss", *metrics]
    if monitor not in names:
        raise ValueError(
            f"Trainer: monitor must be one of {', '.join(map(repr, names))}, got {monitor!r}."
        )


def require_method(argument: str, part: Any, method: str, cure: str) -> None:
    """Refuse a part of a trainer that is a class, or has not the method; None is no part.

    Raises:
        TypeError: the part is of another kind; the message shows the code ``cure``.
    """
    if part is not None and (isinstance(part, type) or not hasattr(part, method)):
        raise TypeError(
            f"Trainer: {argument} must be an object with {method}(), got {describe(part)}. Write "
            f"{cure}."
        )


def refuse_data_set(title: str, argument: str, batches: Any) -> None:
    """Refuse what has samples, or is one batch, in the place of batches.

    Raises:
        TypeError: ``batches`` is a data set, an array, a Variable, or a tuple of arrays.
    """
    is_one_batch = isinstance(batches, tuple) and bool(batches) and all(map(_is_array, batches))
    if isinstance(batches, Dataset) or is_one_batch or _is_array(batches):
        raise TypeError(
            f"{title}: {argument} must be batches, got {describe(batches)}. Write "
            f"{argument}=nn.DataLoader(data, batch_size=32), or [batch]."
        )


def _is_array(value: Any) -> bool:
    return isinstance(value, Variable) or is_array(value)


def as_arguments(batch: Any) -> Batch:
    """The arguments of a loss after the model: a tuple or a list; any other batch is one."""
    is_several = isinstance(batch, tuple | list) and not _are_texts(batch)
    return tuple(batch) if is_several else (batch,)


def count_examples(batch: Batch) -> int:
    """The length of the first array or list of texts of a batch; 1 for an array without axes.

    Raises:
        TypeError: the batch has neither.
    """
    waiting: list[Any] = [batch]
    while waiting:
        first = waiting.pop(0)
        if _are_texts(first):
            return len(first)
        if isinstance(first, Mapping):
            waiting[:0] = first.values()
        elif isinstance(first, tuple | list):
            waiting[:0] = first
        elif hasattr(first, "shape"):
            return int(first.shape[0]) if first.shape else 1
    raise TypeError(
        f"Trainer: a batch must have an array or a list of texts, to count its examples; got "
        f"{describe(batch)}."
    )


def _are_texts(value: Any) -> bool:
    """True for a list of texts, as a DataLoader makes of samples that are texts."""
    is_full_list = isinstance(value, list) and bool(value)
    return is_full_list and all(isinstance(one, str | bytes) for one in value)
