"""DistributedTrainer: ``nn.Trainer`` on several ranks.

Requirement: a script for a single process runs on any number of ranks, and ends at the same
parameters, up to rounding. So each rank makes each batch, and computes the loss of its own part.
The gradient of the batch's mean loss is the sum over the ranks.

Rank 0 alone writes the table, the checkpoint and the log. All ranks stop after the same step.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy

from tinynode import random
from tinynode.core.variable import Variable
from tinynode.distributed.communicator import Communicator, checked_communicator
from tinynode.distributed.data import (
    average_buffers,
    broadcast_parameters,
    share_of,
    share_order,
)
from tinynode.distributed.optimizer import DistributedOptimizer
from tinynode.errors import OperandError
from tinynode.nn.interrupt import Interrupt
from tinynode.nn.module import Module
from tinynode.nn.optimizers import Optimizer
from tinynode.nn.trainer import Batches, Metric, Trainer
from tinynode.nn.trainer_checks import Batch, as_arguments
from tinynode.nn.training_log import Row
from tinynode.safe_files import read_file


class DistributedTrainer(Trainer):
    """Trains a model on several ranks; on a single rank the same as ``nn.Trainer``.

        trainer = distributed.DistributedTrainer(model, loss, nn.Adam(model), loader)
        trainer.run(10)

    Each rank has the parameters of rank 0. A batch of ``train`` is the batch of all ranks
    together. Each rank computes on a part, as ``scatter_batches`` gives. A batch should have at
    least as many examples as there are ranks.

    Args:
        model: as for ``nn.Trainer``, as are ``loss``, ``train`` and the other arguments.
        loss: the mean loss over the examples of a batch.
        optimizer: an optimizer of ``tinynode.nn``. The trainer makes a ``DistributedOptimizer``.
        train: the batches of all ranks: the same data on each rank. A loader gets rank 0's seed.
        communicator: by default the communicator of all ranks.
        rank_logs: a folder. Each rank appends lines to the file ``rank0.log``, ``rank1.log`` ...
            there: times, bytes and the loss of the rank in each epoch.
        options: the other arguments of ``nn.Trainer``.

    Attributes:
        distributed: the ``DistributedOptimizer``.
        communicator: the ranks.

    Raises:
        OperandError: ``optimizer`` is a DistributedOptimizer.
    """

    def __init__(
        self,
        model: Module,
        loss: Callable[..., Variable],
        optimizer: Optimizer,
        train: Batches,
        *,
        communicator: Communicator | None = None,
        rank_logs: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(optimizer, DistributedOptimizer):
            raise OperandError(
                "DistributedTrainer: optimizer is a DistributedOptimizer, and the trainer makes "
                f"that itself. Give {optimizer.optimizer!r}."
            )
        self.communicator = checked_communicator("DistributedTrainer", communicator)
        if not self.communicator.is_main:
            options["log"] = None
        super().__init__(model, loss, optimizer, train, **options)
        self.distributed = DistributedOptimizer(
            optimizer, self.communicator, operation="sum", clip=self.clip
        )
        self._asked = AgreedInterrupt()
        self._rank_log = None
        if rank_logs is not None:
            self._rank_log = RankLog(Path(rank_logs), self.communicator)
        if self.communicator.size > 1:
            broadcast_parameters(model, communicator=self.communicator)
            for loader in (self.train, self.validation):
                share_order(loader, self.communicator)
            self._own_random_numbers()

    def run(self, epochs: int, *, quiet: bool = False) -> list[Row]:
        """Train for more epochs, as ``nn.Trainer.run``; rank 0 alone prints.

        After Ctrl-C on any rank, all ranks stop after the same step.

        Raises:
            NaNError: the loss of a batch is no finite number; raised on every rank.
        """
        return super().run(epochs, quiet=quiet or not self.communicator.is_main)

    def agrees(self, request: bool) -> bool:
        """True on every rank if the request is True on some rank."""
        if self.communicator.size == 1:
            return request
        told = self.communicator.allreduce(numpy.asarray(float(request)), "max")
        return bool(told)

    # --- a step ------------------------------------------------------------------------------

    def _interrupt(self) -> Interrupt:
        if self.communicator.size == 1:
            return super()._interrupt()
        self._asked = AgreedInterrupt()
        return self._asked

    def _loss_of(self, batch: Batch) -> Variable:
        """The part of this rank in the mean loss of the batch."""
        if self.communicator.size == 1:
            return super()._loss_of(batch)
        share = share_of(batch, self.communicator)
        self.batch = as_arguments(share.batch)
        loss = self.loss(self.model, *self.batch)
        part = share.examples / share.total
        value = float(loss) * part if share.examples else 0.0
        if self._rank_log is not None:
            self._rank_log.note(float(loss) * share.examples, share.examples)
        told = numpy.asarray([value, self._asked.own])
        total, asked = self.communicator.allreduce(told).tolist()
        self._asked.requested = asked > 0
        self._note_loss(total, share.total)
        return loss * part

    def _backward(self, loss: Variable, is_last: bool) -> None:
        if is_last:
            self.distributed.backward(loss)
        else:
            loss.backward()

    def _update(self) -> None:
        self.distributed.update()

    # --- an epoch ----------------------------------------------------------------------------

    def _finish_epoch(self, display: Any) -> None:
        average_buffers(self.model, self.communicator)
        if self._rank_log is not None:
            self._rank_log.write(self.epoch + 1, self.distributed)
        super()._finish_epoch(display)

    def _sums(
        self, measures: Mapping[str, Metric], batches: Iterable[Any]
    ) -> tuple[dict[str, float], int]:
        """The sums over the batches of all ranks: each rank measures every ``size``-th batch."""
        comm = self.communicator
        own = itertools.islice(batches, comm.rank, None, comm.size)
        sums, total = super()._sums(measures, own)
        every = comm.allgather_objects((sums, total))
        names = list(measures)
        joined = {name: math.fsum(own[name] for own, _ in every) for name in names}
        return joined, sum(count for _, count in every)

    # --- files -------------------------------------------------------------------------------

    def _check_files(self) -> None:
        self.communicator.on_main(super()._check_files)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file on rank 0; an error is raised on every rank.

        Raises:
            StateError: a part has no state that a file can hold.
            OSError: the file cannot be written; an old file is still whole.
        """
        self.communicator.on_main(super().save, path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on where ``save`` wrote the file, also with another number of ranks.

        Rank 0 reads the file for all ranks.

        Raises:
            FileNotFoundError: rank 0 has no such file.
            StateError: the file is of another training run; nothing changes.
        """
        if self.communicator.size == 1:
            super().resume(path)
            return
        content = self.communicator.on_main(_content, path)
        if self.communicator.is_main:
            super().resume(path)
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, Path(path).name)
            copy.write_bytes(content)
            super().resume(copy)
        self._own_random_numbers()

    def _own_random_numbers(self) -> None:
        """Other random numbers on each rank but 0, such as those of dropout."""
        if not self.communicator.is_main:
            start = int(random.get_generator().integers(1 << 32))
            random.seed(start + self.communicator.rank)


class AgreedInterrupt(Interrupt):
    """Ctrl-C as a request on which all ranks agree.

    Attributes:
        own: True if this rank got a Ctrl-C.
        requested: True if some rank had got a Ctrl-C at the latest step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.own = False

    def __enter__(self) -> AgreedInterrupt:
        super().__enter__()
        self.own, self.requested = self.requested, False
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.own = True


class RankLog:
    """The file of a rank: a line for each epoch."""

    def __init__(self, folder: Path, communicator: Communicator) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"rank{communicator.rank}.log"
        self._begin = time.perf_counter()
        self._loss, self._examples, self._sent, self._waited = 0.0, 0, 0, 0.0
        self._append(f"rank {communicator.rank} of {communicator.size}, process {os.getpid()}")

    def note(self, loss_sum: float, examples: int) -> None:
        """Count a batch: the sum of the losses of the rank's examples."""
        self._examples += examples
        if examples:
            self._loss += loss_sum

    def write(self, epoch: int, optimizer: DistributedOptimizer) -> None:
        """Write the line of an epoch."""
        now = time.perf_counter()
        mean = self._loss / max(self._examples, 1)
        waited, sent = optimizer.waited - self._waited, optimizer.sent - self._sent
        self._append(
            f"epoch {epoch}: {self._examples} examples, loss {mean:.4f}, "
            f"{now - self._begin:.2f} s, of which {waited:.2f} s waiting; {sent} bytes sent"
        )
        self._begin, self._loss, self._examples = now, 0.0, 0
        self._sent, self._waited = optimizer.sent, optimizer.waited

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _content(path: str | os.PathLike[str]) -> bytes:
    return read_file(path)
