"""The command ``train``: trains a model, shows loss and accuracy, and saves the model.

Requirement: a newcomer's first command is a single line, can be stopped at any time without loss,
and gives the same numbers each time. A new job is a module such as ``digits``, and an entry in
``JOBS``.
"""

from __future__ import annotations

import argparse
import functools
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tinynode import distributed, nn, random
from tinynode.atomic_file import check_writable
from tinynode.commands import digits, digits_cnn, gradient_penalty, pinn, tiny_gpt
from tinynode.commands.blas import one_thread
from tinynode.commands.command_line import (
    CommandError,
    Parser,
    count,
    positive_count,
    positive_number,
    show_help,
)
from tinynode.commands.job import Job, Parts
from tinynode.commands.ranks import start_ranks
from tinynode.devices import Device, get_device, using_device
from tinynode.errors import DeviceError, NaNError, StateError
from tinynode.nn.interrupt import Interrupt

JOBS = (digits.JOB, digits_cnn.JOB, gradient_penalty.JOB, tiny_gpt.JOB, pinn.JOB)

RESUMED = """\
A saved file holds the parameters, their mean over the last steps, the optimizer's moments and step
counts, the learning rate, the batch size, the number of epochs, the position in the current epoch,
and the state of the random generator. A resumed run restores all of them: two runs of 5 epochs
give the same result as a run of 10 epochs. --lr sets a new value, and so does --batch-size for a
run that was saved after an epoch. The measures are those of the mean parameters."""


def add_command(commands: Any) -> None:
    """Describe the command and the jobs to argparse."""
    summary = "train a model and save it"
    parser = commands.add_parser("train", help=summary, description=summary)
    parser.set_defaults(run=show_help, parser=parser)
    jobs = parser.add_subparsers(title="jobs", metavar="JOB")
    for job in JOBS:
        _add_job(jobs.add_parser(job.name, help=job.summary, description=job.summary), job)


def _add_job(parser: Parser, job: Job) -> None:
    parser.set_defaults(run=run, parser=parser, job=job)
    parser.epilog = RESUMED
    add = parser.add_argument
    add(
        "--save",
        metavar="PATH",
        default=f"{job.name}.npz",
        help="default: %(default)s in this folder",
    )
    add("--resume", metavar="PATH", help="go on from a file that an earlier run saved")
    add("--device", metavar="NAME", help="such as numpy; default: as configured")
    add("--seed", metavar="N", type=count, help="of all random numbers; default: 0")
    add("--epochs", metavar="N", type=count, default=job.epochs, help="default: %(default)s")
    help_text = f"default: {job.batch_size}, or as in the resumed run"
    add("--batch-size", metavar="N", type=positive_count, help=help_text)
    add("--compile", action="store_true", help="run the loss and its gradient as nets")
    help_text = "train on several processes by MPI; each has a part of each batch"
    add("--ranks", metavar="N", type=positive_count, default=1, help=help_text)
    help_text = "of a file for each rank; default: the saved file's name with .ranks"
    add("--rank-logs", metavar="FOLDER", help=help_text)
    help_text = "let --save replace a file that is no saved run of this job"
    add("--overwrite", action="store_true", help=help_text)
    help_text = f"Adam's learning rate; default: {job.lr}, or as in the resumed run"
    add("--lr", metavar="X", type=positive_number, help=help_text)


class JobTrainer(distributed.DistributedTrainer):
    """The trainer of a command.

    Attributes:
        options: the arguments of the command.
        examples: the number of examples to train on, and of held-out examples.
    """

    def __init__(self, options: argparse.Namespace, parts: Parts) -> None:
        logs = _rank_logs(options) if distributed.world().size > 1 else None
        super().__init__(
            **parts,
            compile=options.compile,
            checkpoint=options.save,
            overwrite=options.overwrite,
            rank_logs=logs,
        )
        self.examples = len(parts["train"].dataset), len(parts["validation"].dataset)
        self.options = options

    def how_to_go_on(self, epochs: int) -> str:
        """The command for the remaining epochs."""
        options = self.options
        path = shlex.quote(options.save)
        left = f" --epochs {epochs} --save {path}"
        if options.compile:
            left += " --compile"
        if options.device is not None:
            left += f" --device {shlex.quote(options.device)}"
        if self.communicator.size > 1:
            left += f" --ranks {self.communicator.size}"
        return f"{options.parser.prog} --resume {path}{left}"


def run(options: argparse.Namespace) -> int:
    """Run a job. Errors in the options show before training starts."""
    if options.ranks > 1:
        with using_device(_device(options.device)):
            _check_save(options.save)
        return start_ranks(options.ranks, _arguments(options), _rank_logs(options))
    comm = _world()
    try:
        return _run_job(options, comm)
    except CommonError as error:
        error.is_shown = comm.is_main
        raise


def _run_job(options: argparse.Namespace, comm: distributed.Communicator) -> int:
    with Interrupt() as interrupt, one_thread(), using_device(_device(options.device)):
        comm.on_main(_check_save, options.save)
        trainer = _make_trainer(options)
        if comm.is_main:
            _introduce(trainer, options)
        _train(trainer, options)
        if trainer.stopped == "interrupted" or trainer.agrees(interrupt.requested):
            return 130
        measured = trainer.evaluate()
        with trainer.averaged():
            result = options.job.result(trainer.model, measured)
    if comm.is_main:
        print(f"saved to {options.save}")
        print(result, flush=True)
    return 0


def _world() -> distributed.Communicator:
    """The ranks.

    Raises:
        CommandError: mpiexec started this process, and mpi4py is not installed.
    """
    try:
        return distributed.world()
    except ImportError as error:
        raise CommandError(str(error)) from None


def _arguments(options: argparse.Namespace) -> list[str]:
    """The arguments of the command for each rank: all but --ranks."""
    given = ["train", options.job.name]
    for name in ("save", "resume", "device", "seed", "epochs", "batch_size", "lr", "rank_logs"):
        value = getattr(options, name)
        if value is not None:
            given += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("compile", "overwrite"):
        if getattr(options, name):
            given.append(f"--{name}")
    return given


def _rank_logs(options: argparse.Namespace) -> Path:
    """The folder with a file for each rank."""
    return Path(options.rank_logs or Path(options.save).with_suffix(".ranks"))


def _device(name: str | None) -> Device:
    try:
        return get_device(name)
    except DeviceError as error:
        raise CommandError(f"--device: {error}" if name is not None else str(error)) from None


def _check_save(path: str) -> None:
    try:
        check_writable(path)
    except OSError as error:
        raise CommonError(f"--save {path}: {error.strerror}") from None


def _make_trainer(options: argparse.Namespace) -> JobTrainer:
    """A fresh run, or a resumed run."""
    random.seed(options.seed or 0)
    batch_size = options.batch_size
    if batch_size is None and options.resume is not None:
        batch_size = distributed.world().on_main(_saved_batch_size, options.resume)
    trainer = JobTrainer(options, options.job.parts(batch_size))
    if options.resume is not None:
        _read(options.resume, functools.partial(trainer.resume, options.resume))
    if options.lr is not None:
        trainer.optimizer.lr = options.lr
    return trainer


class _BatchSize:
    """Reads the batch size of a saved run."""

    def __init__(self) -> None:
        self.value: int | None = None

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.value = int(state["batch_size"])


def _saved_batch_size(path: str) -> int | None:
    """The batch size of a saved run: a loader in the middle of an epoch needs it."""
    found = _BatchSize()
    others = dict.fromkeys(("model", "optimizer", "average", "training"))
    _read(path, functools.partial(nn.load_checkpoint, path, **others, loader=found))
    return found.value


def _read(path: str, read: Callable[[], Any]) -> None:
    """Read a saved run; an error is that of the argument --resume."""
    try:
        read()
    except OSError as error:
        raise CommonError(f"--resume {path}: {error.strerror}") from None
    except StateError as error:
        raise CommonError(f"--resume {path}: {error}") from None


class CommonError(CommandError):
    """An error of all ranks alike: rank 0 shows the message."""


def _train(trainer: JobTrainer, options: argparse.Namespace) -> None:
    """Train, write the table, and save."""
    start = time.perf_counter()
    try:
        trainer.run(options.epochs)
        trainer.save(options.save)
    except BrokenPipeError:  # the table's reader is gone; the work is not lost
        trainer.save(options.save)
        raise
    except NaNError as error:
        raise CommonError(str(error), status=1) from None
    except FileExistsError as error:
        message = str(error).replace("overwrite=True", "--overwrite")
        raise CommonError(f"--save {options.save}: {message}") from None
    except OSError as error:
        raise CommonError(f"--save {options.save}: {error.strerror}", status=1) from None
    if trainer.stopped != "interrupted" and trainer.communicator.is_main:
        print(f"trained for {time.perf_counter() - start:.1f} s", flush=True)


def _introduce(trainer: JobTrainer, options: argparse.Namespace) -> None:
    weights = sum(p.size for p in trainer.model.parameters())
    print(
        f"{options.job.name}: {trainer.examples[0]} examples to train on, "
        f"{trainer.examples[1]} held out; {weights} weights on {get_device()}"
    )
    if options.resume is not None:
        print(f"resumed from {options.resume} {trainer.progress}")
        if options.seed is not None:
            print("--seed is not used: the random generator goes on as in the saved run")
