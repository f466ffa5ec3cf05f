"""The command ``predict``: a saved model of ``train`` reads digits that it has not seen.

Requirement: a newcomer uses the file that ``train`` saved, with a single line. Files may come from
strangers: each is read whole, with a limit of size, and an error names the file and the cure.

A picture of a digit becomes 8 by 8 numbers as in the training data: ink is 1, paper is 0, and the
digit fills the square.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy

from tinynode import functions, nn
from tinynode.commands import digits, digits_cnn, gradient_penalty
from tinynode.commands.blas import one_thread
from tinynode.commands.command_line import CommandError, show_help
from tinynode.commands.digits import SIDE
from tinynode.commands.job import Job
from tinynode.devices import to_host
from tinynode.errors import StateError, short_text
from tinynode.nn.data_files import IMAGE_SUFFIXES, read_image
from tinynode.safe_files import read_file

JOBS = (digits.JOB, digits_cnn.JOB, gradient_penalty.JOB)
"""The jobs whose models read digits."""

SHOWN = 10
"""The held-out images that are read without a file."""

MOST_BYTES = 1 << 24
"""The bytes of the largest table."""

MOST_PIXELS = 50_000_000

INK = 0.25
"""The ink of a pixel that belongs to the digit."""


def add_command(commands: Any) -> None:
    """Describe the command and the jobs to argparse."""
    summary = "read digits by a saved model"
    parser = commands.add_parser("predict", help=summary, description=summary)
    parser.set_defaults(run=show_help, parser=parser)
    jobs = parser.add_subparsers(title="jobs", metavar="JOB")
    for job in JOBS:
        _add_job(jobs.add_parser(job.name, help=job.summary, description=summary), job)


def _add_job(parser: argparse.ArgumentParser, job: Job) -> None:
    parser.set_defaults(run=run, parser=parser, job=job)
    help_text = "the file that train saved; default: %(default)s in this folder"
    parser.add_argument("--model", metavar="PATH", default=f"{job.name}.npz", help=help_text)
    help_text = (
        "an image of a digit, or a .csv file with 64 numbers from 0 (paper) to 1 (ink) in each "
        f"line; without a file, {SHOWN} held-out images are read"
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help=help_text)


def run(options: argparse.Namespace) -> int:
    """Print the digit of each example, with its probability and the next digit."""
    trainer = _trained(options.job, options.model)
    if options.files:
        examples = [pair for file in options.files for pair in _examples(file)]
    else:
        examples = _held_out()
    names, images = zip(*examples, strict=True)
    batch = numpy.stack(images).astype(numpy.float32)
    with one_thread():
        scores = functions.softmax(trainer.predict([(batch,)]), axis=-1)
    for name, row in zip(names, to_host(scores.array), strict=True):
        print(f"{name}: {_in_words(row)}")
    return 0


def _trained(job: Job, path: str) -> nn.Trainer:
    """The job's trainer, with the saved parameters and their means.

    Raises:
        CommandError: The file is missing, damaged, or of another job.
    """
    trainer = nn.Trainer(**job.parts())
    others = dict.fromkeys(("optimizer", "loader", "training"))
    try:
        nn.load_checkpoint(path, model=trainer.model, average=trainer.average, **others)
    except FileNotFoundError:
        raise CommandError(
            f"--model {path}: there is no such file; python -m tinynode train {job.name} makes one"
        ) from None
    except OSError as error:
        raise CommandError(f"--model {path}: {error.strerror}") from None
    except StateError as error:
        raise CommandError(f"--model {path}: {error}") from None
    return trainer


def _held_out() -> list[tuple[str, Any]]:
    data = nn.datasets.load_digits()
    pairs = zip(data.held_out_labels[:SHOWN], data.held_out_images[:SHOWN], strict=True)
    return [(f"held-out {label}", image) for label, image in pairs]


def _in_words(probabilities: Any) -> str:
    """The two likeliest digits."""
    second, first = numpy.argsort(probabilities)[-2:]
    return (
        f"{first}, with {100 * probabilities[first]:.0f} %; "
        f"then {second}, with {100 * probabilities[second]:.0f} %"
    )


def _examples(file: str) -> list[tuple[str, Any]]:
    """The examples of a file: each with a name, and 64 numbers.

    Raises:
        CommandError: The file cannot be read, or is none of the kinds.
    """
    suffix = Path(file).suffix.lower()
    try:
        if suffix in IMAGE_SUFFIXES:
            return [(file, as_example(_pixels(file)).reshape(-1))]
        if suffix == ".csv":
            return table_rows(file, read_file(file, MOST_BYTES).decode())
    except UnicodeDecodeError as error:
        words = f"expected text in UTF-8, got other bytes at {error.start}"
        raise CommandError(f"{file}: {words}") from None
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or _without_names(error, file)}") from None
    except (ValueError, ImportError) as error:
        raise CommandError(f"{file}: {_without_names(error, file)}") from None
    kinds = ", ".join((".csv", *IMAGE_SUFFIXES))
    raise CommandError(f"{file}: expected a file whose name ends in {kinds}")


def _without_names(error: Exception, file: str) -> str:
    """The words of an error, without the reader's name and the file's."""
    return str(error).removeprefix("ImageFolder: ").removeprefix(f"{file} ")


def _pixels(file: str) -> Any:
    """The grey pixels of an image, from 0 to 1: (height, width)."""
    image = read_image(Path(file), "L", MOST_PIXELS)
    pixels = numpy.asarray(image, numpy.float32)
    return pixels if image.mode == "F" else pixels / 255


def as_example(pixels: Any) -> Any:
    """The 8 by 8 numbers of a picture: (height, width) -> (8, 8).

    The border is paper, whether dark or light. A picture of another size is cut to its ink, made
    square, and averaged.

    Raises:
        ValueError: The picture has no ink.
    """
    border = numpy.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ink = abs(pixels - numpy.median(border)).astype(numpy.float32)
    if ink.max() < INK:
        raise ValueError("expected a digit on paper of another brightness; there is no ink")
    if pixels.shape == (SIDE, SIDE):
        return ink
    ink = ink / ink.max()
    rows, columns = (numpy.flatnonzero((ink > INK).any(axis=axis)) for axis in (1, 0))
    digit = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    side = max(digit.shape)
    square = numpy.zeros((side, side), numpy.float32)
    top, left = ((side - length) // 2 for length in digit.shape)
    square[top : top + digit.shape[0], left : left + digit.shape[1]] = digit
    shares = _shares(side)
    return shares @ square @ shares.T


def _shares(side: int) -> Any:
    """The matrix of means: entry (i, j) is the share of pixel j in part i of 8 parts."""
    edges = numpy.arange(side + 1) * (SIDE / side)
    parts = numpy.arange(SIDE)[:, None]
    low, high = numpy.maximum(edges[:-1], parts), numpy.minimum(edges[1:], parts + 1)
    return numpy.maximum(high - low, 0.0).astype(numpy.float32)


def table_rows(file: str, text: str) -> list[tuple[str, Any]]:
    """The rows of a table, each with a name.

    Raises:
        ValueError: A line has not 64 numbers from 0 to 1, or there is no line.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            found.append((f"{file}, line {number}", _row(number, line)))
    if not found:
        raise ValueError(f"expected lines of {SIDE * SIDE} numbers, and there is no line")
    return found


def _row(number: int, line: str) -> Any:
    try:
        row = numpy.asarray([float(cell) for cell in line.split(",")])
    except ValueError:
        raise ValueError(
            f"line {number}: expected {SIDE * SIDE} numbers with commas between them, got "
            f"{short_text(line.strip())}"
        ) from None
    if row.size != SIDE * SIDE:
        raise ValueError(f"line {number}: expected {SIDE * SIDE} numbers, got {row.size}")
    if not (row.min() >= 0.0 and row.max() <= 1.0):
        raise ValueError(
            f"line {number}: expected numbers from 0 to 1, got {row.min():g} to {row.max():g}; "
            "divide by the largest possible number, such as 16 or 255"
        )
    return row
