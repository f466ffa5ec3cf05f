"""The command ``train``: trains a model, shows loss and accuracy, and saves the model.

Requirement: a newcomer's first command is a single line, can be stopped at any time without loss,
and gives the same numbers each time. A new job is a module such as ``digits``, and an entry in
``JOBS``.
"""

from __future__ import annotations

import argparse
import shlex
import time
from typing import Any

from tinynode import random
from tinynode.atomic_file import check_writable
from tinynode.commands import digits, digits_cnn, gradient_penalty
from tinynode.commands.command_line import (
    CommandError,
    Parser,
    count,
    positive_count,
    positive_number,
    show_help,
)
from tinynode.nn.display import PlainDisplay, make_display
from tinynode.nn.interrupt import Interrupt
from tinynode.commands.training import Job, Trainer
from tinynode.devices import Device, get_device, using_device
from tinynode.errors import DeviceError, StateError
from tinynode.nn.serializers import load, save

JOBS = (digits.JOB, digits_cnn.JOB, gradient_penalty.JOB)

RESUMED = """\
A saved file holds the parameters, their mean over the last steps, the optimizer's moments and step
counts, the learning rate, the batch size, the number of epochs, the position in the current epoch,
and the state of the random generator. A resumed run restores all of them: two runs of 5 epochs
give the same result as a run of 10 epochs. --lr and --batch-size set new values. The accuracy is
the accuracy of the mean parameters."""


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
    help_text = f"Adam's learning rate; default: {job.lr}, or as in the resumed run"
    add("--lr", metavar="X", type=positive_number, help=help_text)


def run(options: argparse.Namespace) -> int:
    """Run a job. Errors in the options show before training starts."""
    with Interrupt() as interrupt, using_device(_device(options.device)):
        _check_save(options.save)
        trainer = _make_trainer(options)
        try:
            accuracy = _train(trainer, options, interrupt)
        except BrokenPipeError:  # the table's reader is gone; the work is not lost
            _save(trainer, options.save)
            raise
        _save(trainer, options.save)
        if interrupt.requested:
            print(f"interrupted {_progress(trainer)}: saved to {options.save}", flush=True)
            print(f"go on with: {_rest_of(trainer, options)}", flush=True)
            return 130
    print(f"saved to {options.save}")
    print(f"held-out accuracy: {100 * accuracy:.1f} %", flush=True)
    return 0


def _device(name: str | None) -> Device:
    try:
        return get_device(name)
    except DeviceError as error:
        raise CommandError(f"--device: {error}" if name is not None else str(error)) from None


def _check_save(path: str) -> None:
    try:
        check_writable(path)
    except OSError as error:
        raise CommandError(f"--save {path}: {error.strerror}") from None


def _make_trainer(options: argparse.Namespace) -> Trainer:
    """A fresh run, or a resumed run."""
    random.seed(options.seed or 0)
    trainer = Trainer(options.job, options.compile)
    if options.resume is not None:
        _resume(trainer, options.resume)
    if options.lr is not None:
        trainer.optimizer.lr = options.lr
    if options.batch_size is not None:
        trainer.batch_size = options.batch_size
    return trainer


def _resume(trainer: Trainer, path: str) -> None:
    try:
        trainer.load_state_dict(load(path))
    except OSError as error:
        raise CommandError(f"--resume {path}: {error.strerror}") from None
    except StateError as error:
        raise CommandError(f"--resume {path}: {error}") from None


def _train(trainer: Trainer, options: argparse.Namespace, interrupt: Interrupt) -> float:
    """Train and write the table; returns the last accuracy."""
    last = options.last_epoch = trainer.epoch + options.epochs
    start = time.perf_counter()
    with make_display(options.epochs * trainer.size - trainer.position) as display:
        _introduce(display, trainer, options)

        def after_step(images: int) -> bool:
            display.advance(images)
            return not interrupt.requested

        while trainer.epoch < last and not interrupt.requested:
            before = trainer.epoch
            trainer.run_epoch(after_step)
            if trainer.epoch > before:
                accuracy = f"{100 * trainer.accuracy():.1f} %"
                display.line(f"{trainer.epoch:>5}  {trainer.loss:>8.4f}  {accuracy:>17}")
        display.line(f"trained for {time.perf_counter() - start:.1f} s")
    return trainer.accuracy()


def _introduce(display: PlainDisplay, trainer: Trainer, options: argparse.Namespace) -> None:
    weights = sum(p.size for p in trainer.model.parameters())
    display.line(
        f"{options.job.name}: {trainer.size} images to train on, "
        f"{trainer.held_out[1].shape[0]} held out; {weights} weights on {trainer.device}"
    )
    if options.resume is not None:
        display.line(f"resumed from {options.resume} {_progress(trainer)}")
        if options.seed is not None:
            display.line("--seed is not used: the random generator goes on as in the saved run")
    display.line("epoch      loss  held-out accuracy")


def _progress(trainer: Trainer) -> str:
    if trainer.position == 0:
        return f"after epoch {trainer.epoch}"
    return f"in epoch {trainer.epoch + 1}"


def _rest_of(trainer: Trainer, options: argparse.Namespace) -> str:
    """The command for the remaining epochs."""
    path = shlex.quote(options.save)
    left = f" --epochs {options.last_epoch - trainer.epoch} --save {path}"
    if options.compile:
        left += " --compile"
    if options.device is not None:
        left += f" --device {shlex.quote(options.device)}"
    return f"{options.parser.prog} --resume {path}{left}"


def _save(trainer: Trainer, path: str) -> None:
    try:
        save(path, trainer.state_dict())
    except OSError as error:
        raise CommandError(f"--save {path}: {error.strerror}", status=1) from None
