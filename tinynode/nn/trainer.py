"""Trainer: a training loop with validation, checkpoints, a log, and a row for each epoch.

Requirement: a reader who steps through an epoch sees the loop of a textbook. A run, stopped after
any step and resumed, gives the same parameters as a run without a stop; on the CPU, to the last
bit. So a checkpoint holds all values used by the next step.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tinynode.configuration import using_config
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.errors import NaNError, StateError, describe, short_text
from tinynode.functions import concat
from tinynode.nn.checkpoints import check_checkpoint, load_checkpoint, save_checkpoint
from tinynode.nn.checks import RefusesKeywords, checked_size
from tinynode.nn.clipping import clip_gradients
from tinynode.nn.display import PlainDisplay, make_display
from tinynode.nn.early_stopping import EarlyStopping
from tinynode.nn.interrupt import Interrupt
from tinynode.nn.module import Module
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.run_files import naming, refuse_other_checkpoint
from tinynode.nn.schedules import PlateauSchedule
from tinynode.nn.state import State
from tinynode.nn.trainer_checks import (
    Batch,
    as_arguments,
    check_average,
    check_batches,
    check_class,
    check_direction,
    check_length,
    check_loss,
    check_metrics,
    check_monitor,
    check_paths,
    check_schedule,
    count_examples,
    refuse_data_set,
)
from tinynode.nn.training_log import Row, make_log, table_row
from tinynode.safe_files import listed

Metric: TypeAlias = Callable[..., Any]


class Batches(Protocol):
    """The batches of an epoch: a DataLoader, or a list of tuples."""

    def __len__(self) -> int:
        """The number of batches."""

    def __iter__(self) -> Iterator[Any]:
        """The batches in turn."""


class Trainer(RefusesKeywords):
    """Trains a model: ``run(epochs)`` goes over the batches, and prints a row for each epoch.

        trainer = nn.Trainer(model, loss, optimizer, loader, validation=held_out)
        history = trainer.run(10)

    Each step takes the next batch: clear the gradients, compute the loss, ``backward``,
    ``update``. After each epoch, the validation batches are measured in evaluation mode, without
    back-propagation.

    Args:
        model: the Module.
        loss: ``loss(model, *batch)`` gives the mean loss of a batch, a Variable of shape (). A
            batch that is no tuple is a single argument.
        optimizer: changes the model's parameters.
        train: the batches of an epoch: a ``DataLoader``, or a list of tuples. The length of the
            first array of a batch is the batch's number of examples.
        validation: the batches to measure after each epoch; None measures nothing.
        metrics: functions ``metric(model, *batch)`` by name; each gives the mean over a batch.
        schedule: sets the learning rate; ``schedule.step()`` is called after each update. A
            ``PlateauSchedule`` gets the number ``monitor`` after each epoch.
        average: the ``ExponentialMovingAverage`` of the parameters. Validation uses the average.
        clip: the largest norm of the gradients, as for ``clip_gradients``; None does not clip.
        accumulate: the number of batches for an update. The update uses the mean gradient.
        compile: run the loss and the gradient as nets, as ``tn.compile`` does.
        checkpoint: a file that is written after each epoch, at Ctrl-C and after early stopping.
            A file that is there must be the checkpoint of a model with the same parameters.
        log: a file for the rows, ``.csv`` or ``.jsonl``, or a folder for TensorBoard. Rows of
            another run are no rows of this one: the trainer refuses the file.
        overwrite: True replaces whatever is at ``checkpoint`` and ``log``.
        monitor: the name of the number that decides about early stopping. A smaller number is
            better, unless ``maximize``.
        patience: training stops after this number of epochs in a row without a better number.
            Then the model gets the best parameters. None never stops early.
        maximize: True if a larger number of ``monitor`` is better.

    Attributes:
        epoch: the number of complete epochs.
        position: the number of used batches of the current epoch.
        steps: the number of updates.
        history: a dict of numbers for each epoch.
        batch: the latest batch.
        stopped: ``"interrupted"`` after Ctrl-C, ``"early"`` after early stopping, else ``""``.

    Raises:
        TypeError: an argument has a wrong type.
        ValueError: ``monitor`` is no name of a number, or a number is out of range.
    """

    history: list[Row]
    batch: Batch
    _loss_sum = 0.0  # of the current epoch
    _examples = 0
    _is_first_row = True
    _checked_files: Any = (None, None)

    def __init__(
        self,
        model: Module,
        loss: Callable[..., Variable],
        optimizer: Optimizer,
        train: Batches,
        *,
        validation: Batches | None = None,
        metrics: Mapping[str, Metric] | None = None,
        schedule: Any = None,
        average: Any = None,
        clip: float | None = None,
        accumulate: int = 1,
        compile: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        log: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        monitor: str = "validation loss",
        patience: int | None = None,
        maximize: bool = False,
    ) -> None:
        self.model = model
        self.loss = compiled(loss) if as_flag("Trainer", "compile", compile) else loss
        self.optimizer = optimizer
        self.train = train
        self.validation = validation
        self.metrics = dict(metrics or {})
        self.schedule = schedule
        self.average = average
        self.clip = clip
        self.accumulate = checked_size("Trainer: accumulate", accumulate)
        self.checkpoint = checkpoint
        self.log = None if log is None else make_log(log)
        self.overwrite = as_flag("Trainer", "overwrite", overwrite)
        self.monitor = monitor
        maximize = as_flag("Trainer", "maximize", maximize)
        self.stopping = None if patience is None else EarlyStopping(monitor, patience, maximize)
        self.epoch, self.position, self.steps = 0, 0, 0
        self.stopped, self.history, self.batch = "", [], ()
        self._check(maximize)

    def run(self, epochs: int, *, quiet: bool = False) -> list[Row]:
        """Train for more epochs; an interrupted epoch counts as an epoch.

        Ctrl-C stops after the current step, writes the checkpoint, and says how to go on. A second
        Ctrl-C stops at once, with KeyboardInterrupt; the checkpoint is that of the latest epoch.

        After early stopping, the next call of ``run`` trains on from the best parameters. A
        trainer that resumes a run which had stopped early trains no epoch.

        After an error in a step, the next call of ``run`` begins with the batches of that step;
        after an error in the validation, with the validation.

        Args:
            epochs: the number of epochs, 0 or more.
            quiet: print nothing.

        Returns:
            ``history``: the rows of all epochs so far.

        Raises:
            NaNError: a loss is no finite number; the parameters are those before the step. After
                this and any other error, the next ``run`` goes on with the batch of the error.
            ValueError: there are no batches.
            FileExistsError: another file is at ``checkpoint`` or ``log``; nothing has changed.
            OSError: a file cannot be written.
        """
        last = self.epoch + checked_size("Trainer.run: epochs", epochs, 0)
        self._check_lengths()
        self._check_files()
        if self.stopped == "early" and self.stopping is not None:
            self.stopping.wait_again()
        self.stopped = ""
        total = epochs * len(self.train) - self.position
        with self._interrupt() as interrupt, make_display(total, quiet) as display:
            while self._may_go_on(interrupt) and self.epoch < last:
                if self._run_epoch(display, interrupt):
                    self._finish_epoch(display)
            self._end(display, last)
        return self.history

    def _interrupt(self) -> Interrupt:
        """Ctrl-C as a request; a trainer of several processes agrees on the request."""
        return Interrupt()

    def _run_epoch(self, display: PlainDisplay, interrupt: Interrupt) -> bool:
        """Finish the current epoch, or run a new one; returns True if the epoch is complete."""
        if self.position == len(self.train):  # the measurement failed
            return True
        used = self.position, self._loss_sum, self._examples
        place: dict[str, Any] = {}
        try:
            batches = self._batches()
            first = list(itertools.islice(batches, 1))
            place = self._place()  # in this epoch: a loader without batches left is in the next
            batches = itertools.chain(first, batches)
            while group := list(itertools.islice(batches, self.accumulate)):
                self._step(group)
                used = self.position, self._loss_sum, self._examples
                display.advance(len(group))
                if interrupt.requested and self.position < len(self.train):
                    self._pause()
                    return False
        except BaseException:
            self._go_back(place, *used)
            raise
        return True

    def _place(self) -> dict[str, Any]:
        """The state of the loader; empty for other batches."""
        return self.train.state_dict() if isinstance(self.train, HasState) else {}

    def _go_back(
        self, place: dict[str, Any], position: int, loss_sum: float, examples: int
    ) -> None:
        """After an error: the next run goes on with the batches of the step that failed."""
        self.position, self._loss_sum, self._examples = position, loss_sum, examples
        place = place or self._place()
        if isinstance(self.train, HasState) and "position" in place:
            self.train.load_state_dict({**place, "position": position})

    def _step(self, group: list[Batch]) -> None:
        """One update, against the gradient of the mean loss of a group of batches."""
        self.optimizer.cleargrads()
        for number, batch in enumerate(group, 1):
            loss = self._loss_of(batch)
            self._backward(loss / len(group) if len(group) > 1 else loss, number == len(group))
        self._update()
        if self.average is not None:
            self.average.update()
        if self.schedule is not None and not isinstance(self.schedule, PlateauSchedule):
            self.schedule.step()
        self.steps += 1

    def _backward(self, loss: Variable, is_last: bool) -> None:
        """The backward pass of a batch; ``is_last`` if the update comes next."""
        loss.backward()

    def _update(self) -> None:
        """Clip the gradients, and change the parameters."""
        if self.clip is not None:
            clip_gradients(self.model, self.clip)
        self.optimizer.update()

    def _loss_of(self, batch: Batch) -> Variable:
        """The loss of a batch, which counts for the mean loss of the epoch."""
        self.batch = batch = as_arguments(batch)
        loss = self.loss(self.model, *batch)
        if not isinstance(loss, Variable) or loss.size != 1:
            raise TypeError(
                "Trainer: loss must give a Variable of shape (), the mean loss of a batch, got "
                f"{describe(loss)}. Compute it with tinynode.functions, and F.mean over a batch."
            )
        self._note_loss(float(loss), count_examples(batch))
        return loss

    def _note_loss(self, value: float, examples: int) -> None:
        """Count the mean loss of a batch for that of the epoch; refuse NaN and infinity."""
        if not math.isfinite(value):
            raise NaNError(
                f"Trainer: the loss is {value} in epoch {self.epoch + 1}, batch "
                f"{self.position + 1}. The parameters are those before this step. Find the cause: "
                "tn.diagnose(trainer.loss(trainer.model, *trainer.batch)). A smaller lr may help."
            )
        self._loss_sum += value * examples
        self._examples += examples
        self.position += 1

    def _batches(self) -> Iterator[Batch]:
        """The batches that are left in the current epoch."""
        if hasattr(self.train, "load_state_dict"):  # it goes on at its own position
            return iter(self.train)
        return itertools.islice(iter(self.train), self.position, None)

    def _pause(self) -> None:
        """Stop in the middle of an epoch: the next run goes on at the next batch."""
        if isinstance(self.train, HasState):
            self.train.load_state_dict(self.train.state_dict())

    def _finish_epoch(self, display: PlainDisplay) -> None:
        """Measure, write the row of the epoch, and write the checkpoint."""
        row: Row = {"epoch": self.epoch + 1, "loss": self._loss_sum / max(self._examples, 1)}
        if self.validation is not None:
            measured = self.evaluate(self.validation)
            row |= {"validation loss": measured.pop("loss")} | measured
        if self.schedule is not None:
            row["lr"] = self.optimizer.lr
        if isinstance(self.schedule, PlateauSchedule):
            self.schedule.step(row[self.monitor])
        self.epoch += 1
        self._loss_sum, self._examples, self.position = 0.0, 0, 0
        self.history.append(row)
        if self.stopping is not None:
            self.stopping.note(row, self._measured_state())
        if self.log is not None:
            self.log.write(self.history)
        if self.checkpoint is not None:
            self.save(self.checkpoint)
        display.line(table_row(row, is_first=self._is_first_row))
        self._is_first_row = False

    def evaluate(self, batches: Batches | None = None) -> dict[str, float]:
        """The mean loss and the mean metrics of batches, in evaluation mode.

        No gradient is computed. The parameters are those of ``average``, if given. The batches are
        by default those of ``validation``. Without an example the means are NaN.
        """
        if batches is None:
            batches = self.validation
        if batches is None:
            raise ValueError("Trainer.evaluate: give batches: the trainer has no validation=...")
        refuse_data_set("Trainer.evaluate", "batches", batches)
        measures: dict[str, Metric] = {"loss": self.loss, **self.metrics}
        with self.averaged(), using_config(enable_backprop=False, train=False):
            sums, total = self._sums(measures, batches)
        return {name: value / total if total else math.nan for name, value in sums.items()}

    def predict(self, batches: Iterable[Any]) -> Variable:
        """The model's outputs for all batches, in evaluation mode: (examples, ...).

        No gradient is computed. The parameters are those of ``average``, if given.

        Args:
            batches: such as a ``DataLoader``. Of a batch that is a tuple, the first entry is the
                model's argument.

        Raises:
            ValueError: there are no batches.
        """
        refuse_data_set("Trainer.predict", "batches", batches)
        with self.averaged(), using_config(enable_backprop=False, train=False):
            outputs = [self.model(as_arguments(batch)[0]) for batch in batches]
        if not outputs:
            raise ValueError("Trainer.predict: there are no batches; give a DataLoader or a list.")
        return concat(outputs)

    def _sums(
        self, measures: Mapping[str, Metric], batches: Iterable[Any]
    ) -> tuple[dict[str, float], int]:
        """The sums of measures over all examples of batches, and the number of examples."""
        sums, total = dict.fromkeys(measures, 0.0), 0
        for batch in map(as_arguments, batches):
            examples = count_examples(batch)
            total += examples
            for name, measure in measures.items():
                sums[name] += float(measure(self.model, *batch)) * examples
        return sums, total

    def averaged(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which the model has the averaged parameters, if there is an average."""
        return contextlib.nullcontext() if self.average is None else self.average.average()

    def _measured_state(self) -> State:
        """The parameters and buffers that the validation measures."""
        with self.averaged():
            return self.model.state_dict()

    def _may_go_on(self, interrupt: Interrupt) -> bool:
        """False after Ctrl-C, and after early stopping; sets ``stopped``."""
        if interrupt.requested:
            self.stopped = "interrupted"
        elif self.stopping is not None and self.stopping.is_over():
            self.stopped = "early"
        return not self.stopped

    def _end(self, display: PlainDisplay, last: int) -> None:
        """Write the checkpoint after Ctrl-C, load the best parameters after early stopping."""
        if self.stopped == "early" and self.stopping is not None:
            which = "the latest parameters"
            if self.stopping.best_state:
                self.restore_best()
                which = "the parameters of it"
                if self.checkpoint is not None:
                    self.save(self.checkpoint)
            display.line(f"stopped early: {self.stopping}; the model has {which}")
        if self.stopped == "interrupted":
            saved = ""
            if self.checkpoint is not None:
                self.save(self.checkpoint)
                saved = f": saved to {os.fspath(self.checkpoint)}"
            display.line(f"interrupted {self.progress}{saved}")
            display.line(f"go on with: {self.how_to_go_on(last - self.epoch)}")

    def restore_best(self) -> None:
        """Give the model, and ``average``, the parameters with the best ``monitor``.

        Early stopping does so at its end. After a run of all epochs, the model has the latest
        parameters until this call.

        Raises:
            ValueError: the trainer has no ``patience``, or no epoch had a finite number.
        """
        if self.stopping is None or not self.stopping.best_state:
            raise ValueError(
                "Trainer.restore_best: there are no best parameters: give patience=..., and run "
                "an epoch whose monitored number is finite."
            )
        self.model.load_state_dict(self.stopping.best_state)
        if self.average is not None:
            self.average.start_again()

    @property
    def progress(self) -> str:
        """Where the training stands: ``after epoch 2``, or ``in epoch 3``."""
        return f"in epoch {self.epoch + 1}" if self.position else f"after epoch {self.epoch}"

    def how_to_go_on(self, epochs: int) -> str:
        """The code, or a command, for the remaining epochs."""
        if self.checkpoint is None:
            return f"trainer.run({epochs})"
        return f"trainer.resume({os.fspath(self.checkpoint)!r}); trainer.run({epochs})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that the next step uses, except the data, as ``save_checkpoint`` does.

        ``nn.load(path, part="model")`` gives the arrays of the model.

        Raises:
            StateError: a part has no state that a file can hold.
            OSError: the file cannot be written; an old file is still whole.
        """
        save_checkpoint(path, **self._parts())

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on where ``save`` wrote the file, also in the middle of an epoch.

        The trainer must have the same kinds of model, optimizer, data and other parts.

        Raises:
            FileNotFoundError: there is no such file.
            StateError: the file is of another training run; nothing changes.
        """
        load_checkpoint(path, **self._parts())
        if self.log is not None:
            self.log.start_again()

    def _parts(self) -> dict[str, Any]:
        """The objects with a state, by their names in the file."""
        parts = {
            "model": self.model,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "average": self.average,
            "loader": self.train if isinstance(self.train, HasState) else None,
            "stopping": self.stopping,
            "training": self,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def state_dict(self) -> dict[str, Any]:
        """The trainer's own numbers: ``save`` adds the states of the other parts."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "steps": self.steps,
            "loss_sum": self._loss_sum,
            "examples": self._examples,
            "history": [dict(row) for row in self.history],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called.

        Raises:
            StateError: a number is missing or outside the possible range; nothing changes.
        """
        if set(state) != set(self.state_dict()):
            raise StateError(f"Trainer.load_state_dict: the state has the names {listed(state)}.")
        limits = {"position": len(self.train)}
        for name in ("epoch", "position", "steps", "examples"):
            number = state[name]
            if type(number) is not int or not 0 <= number <= limits.get(name, number):
                raise StateError(
                    f"training: {name} cannot be {short_text(number)}: it is damaged."
                )
        if type(state["loss_sum"]) not in (int, float):
            raise StateError(
                f"training: loss_sum cannot be {describe(state['loss_sum'])}: it is damaged."
            )
        if not _are_rows(state["history"]) or len(state["history"]) != state["epoch"]:
            raise StateError(
                "training: history has not a row of numbers for each epoch: it is damaged."
            )
        self.epoch, self.position = state["epoch"], state["position"]
        self.steps, self._examples = state["steps"], state["examples"]
        self._loss_sum = float(state["loss_sum"])
        self.history = [dict(row) for row in state["history"]]
        self._is_first_row, self.stopped = True, ""

    def __repr__(self) -> str:
        name = type(self.model).__name__
        return f"Trainer({name}, {self.epoch} epochs of {len(self.train)} batches done)"

    def _check_files(self) -> None:
        """Refuse a checkpoint or a log that cannot be written, or has work of others."""
        files = (self.checkpoint, self.log)
        if files == self._checked_files:
            return
        if self.checkpoint is not None:
            with naming("checkpoint", self.checkpoint):
                if not self.overwrite:
                    refuse_other_checkpoint(self.checkpoint, self.model)
                check_checkpoint(self.checkpoint, **self._parts())
        if self.log is not None:
            with naming("log", self.log.path):
                self.log.begin(self.history, overwrite=self.overwrite)
        self._checked_files = files

    def _check_lengths(self) -> None:
        """Refuse an epoch without batches: no mean could be computed."""
        for argument, batches in (("train", self.train), ("validation", self.validation)):
            check_length(argument, batches)

    def _check(self, maximize: bool) -> None:
        """Refuse arguments of wrong types, unknown names, and parts that do not fit together."""
        check_class("model", self.model, Module)
        check_class("optimizer", self.optimizer, Optimizer)
        check_loss(self.loss)
        check_batches("train", self.train)
        check_batches("validation", self.validation)
        check_metrics(self.metrics, self.validation is not None)
        check_average(self.average, self.model)
        check_schedule(self.schedule, self.optimizer)
        is_watched = self.stopping is not None or isinstance(self.schedule, PlateauSchedule)
        if is_watched:
            check_monitor(self.monitor, self.metrics, self.validation is not None)
        check_direction(self.schedule, maximize, self.stopping is not None, self.monitor)
        check_paths(self.checkpoint, self.log)


@runtime_checkable
class HasState(Protocol):
    """A loader that can be saved, and goes on from its state."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from the state."""


def _are_rows(history: Any) -> bool:
    """True for a list of rows; a row has numbers by name."""
    return isinstance(history, list) and all(
        isinstance(row, dict) and all(isinstance(n, int | float) for n in row.values())
        for row in history
    )


def compiled(loss: Callable[..., Variable]) -> Callable[..., Variable]:
    """The loss as a compiled function."""
    from tinynode.net.compile import compile  # it imports modules of this package

    net: Callable[..., Variable] = compile(loss)
    return net
