"""The log of a training run: a row for each epoch, in a file or for TensorBoard.

Requirement: a resumed run leaves no row twice. So the first row of a resumed run writes the file
anew, with the earlier rows; later rows are appended. Rows with other names write the file anew
too. Rows of another run are kept.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import os
from collections.abc import Sequence
from typing import Any

from tinynode.atomic_file import append_to_file, check_writable, replace_file
from tinynode.errors import describe
from tinynode.nn.run_files import CURE
from tinynode.safe_files import checked_path, read_file

Row = dict[str, float]
"""The numbers of an epoch by name; ``epoch`` is the first."""
_POINTS = "tfevents"
"""A part of the name of each file with points that TensorBoard reads."""
RESUME = "To go on with that run, call trainer.resume(checkpoint) first."
WRITERS = ("tensorboardX", "torch.utils.tensorboard")
"""The modules with a ``SummaryWriter``."""


class FileLog:
    """A ``.csv`` file with a line of names, or a ``.jsonl`` file with one JSON object a line.

    A row that lacks a name has an empty cell in a ``.csv`` file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_csv = path.lower().endswith(".csv")
        self._names: list[str] | None = None
        """The names in the file's first line; None if the next row writes the file anew."""
        self._written = 0  # rows

    def begin(self, rows: Sequence[Row], *, overwrite: bool) -> None:
        """Check before the first step that the rows of the run can be written.

        Raises:
            FileExistsError: the file has rows of another run.
            OSError: the file cannot be written.
        """
        if self._names is None and not overwrite and os.path.isfile(self.path):
            self._refuse_other_rows(rows)
        check_writable(self.path)

    def _refuse_other_rows(self, rows: Sequence[Row]) -> None:
        """Refuse a file that does not begin with the rows of this run, so far as both go."""
        text = read_file(self.path).decode(errors="replace")
        names, found = self._split(text)
        expected = [self._text_of_row(row, names) for row in rows]
        shared = min(len(found), len(expected))
        is_own = shared > 0 and found[:shared] == expected[:shared]
        if is_own or not text:
            return
        hint = RESUME if not rows else "They differ from those of the checkpoint."
        raise FileExistsError(
            f"Trainer: log: the file {self.path!r} has rows of another run, and the trainer would "
            f"replace them. {CURE} {hint}"
        )

    def _split(self, text: str) -> tuple[list[str], list[str]]:
        """The names in the first row of a text, and the texts of the other rows."""
        if not self._is_csv:
            return [], text.splitlines(keepends=True)
        try:  # the name of a metric may have a line break, so a row is no line
            cells = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error:  # no log
            return [], [text]
        return (cells[0] if cells else []), [_csv_line(row) for row in cells[1:]]

    def write(self, rows: Sequence[Row]) -> None:
        """Write the last of all rows of the run, and the rows before it that an error left out."""
        names = list(dict.fromkeys(name for row in rows for name in row)) if self._is_csv else []
        is_next = names == self._names and self._written == len(rows) - 1
        if is_next and os.path.isfile(self.path):
            append_to_file(self.path, self._text_of_row(rows[-1], names).encode())
            self._written = len(rows)
            return
        head = _csv_line(names) if self._is_csv else ""
        lines = [self._text_of_row(row, names) for row in rows]
        replace_file(self.path, "".join([head, *lines]).encode())
        self._names, self._written = names, len(rows)

    def _text_of_row(self, row: Row, names: Sequence[str]) -> str:
        if self._is_csv:
            return _csv_line([row.get(name, "") for name in names])
        return json.dumps(_finite(row), allow_nan=False) + "\n"

    def start_again(self) -> None:
        """The next row writes the file anew: the run was resumed."""
        self._names = None


def _csv_line(cells: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _finite(row: Row) -> dict[str, float | None]:
    """The row with None, JSON's null, for NaN and infinity, which JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in row.items()}


class TensorBoardLog:
    """A folder of TensorBoard: a curve for each name. A resumed run removes the later points."""

    def __init__(self, folder: str) -> None:
        self.path = folder
        self._make = summary_writer()
        self._writer: Any = None

    def begin(self, rows: Sequence[Row], *, overwrite: bool) -> None:
        """Check before the first step that the folder can be written.

        Raises:
            FileExistsError: the folder has points of another run.
            OSError: the folder cannot be written.
        """
        os.makedirs(self.path, exist_ok=True)
        check_writable(os.path.join(self.path, _POINTS))
        if self._writer is not None or rows:  # this run's folder, or that of a resumed run
            return
        points = [entry.path for entry in os.scandir(self.path) if _POINTS in entry.name]
        if points and not overwrite:
            raise FileExistsError(
                f"Trainer: log: the folder {self.path!r} has points of another run. {CURE} "
                f"{RESUME}"
            )
        for path in points:
            os.unlink(path)

    def write(self, rows: Sequence[Row]) -> None:
        """Write the last of all rows of the run."""
        epoch = int(rows[-1]["epoch"])
        if self._writer is None:
            self._writer = self._make(self.path, purge_step=epoch)
        for name, value in rows[-1].items():
            if name != "epoch":
                self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def start_again(self) -> None:
        """The next row opens the folder anew: the run was resumed."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None


def make_log(path: str | os.PathLike[str]) -> FileLog | TensorBoardLog:
    """The log for a path: a ``.csv`` or ``.jsonl`` file, or a folder of TensorBoard.

    Raises:
        TypeError: the path is no path.
        ValueError: the path has another suffix.
        ImportError: no library that writes for TensorBoard is installed.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"Trainer: log must be a path, got {describe(path)}.")
    name = checked_path("Trainer: log", path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix in (".csv", ".jsonl"):
        return FileLog(name)
    if suffix[1:].isalpha() and not os.path.isdir(name):
        raise ValueError(
            f"Trainer: log must end in .csv or .jsonl, or be a folder of TensorBoard without a "
            f"suffix; got {name!r}."
        )
    return TensorBoardLog(name)


def summary_writer() -> Any:
    """The class ``SummaryWriter`` of an installed library.

    Raises:
        ImportError: there is none.
    """
    for name in WRITERS:
        try:
            return importlib.import_module(name).SummaryWriter
        except ImportError:  # torch's writer needs the package tensorboard
            continue
    raise ImportError(
        "Trainer: log names a folder of TensorBoard, and no library that writes one is installed. "
        "Install tensorboardX (pip install 'tinynode[tensorboard]'), or give log='run.csv' or "
        "log='run.jsonl'."
    )


def table_row(row: Row, *, is_first: bool) -> str:
    """The numbers of an epoch below their names; the names too for the first row."""
    widths = {name: max(len(name), 8) for name in row}
    line = "  ".join(f"{number(value):>{widths[name]}}" for name, value in row.items())
    names = "  ".join(f"{name:>{width}}" for name, width in widths.items())
    return f"{names}\n{line}" if is_first else line


def number(value: float) -> str:
    """Four digits after the point; an exponent for very small and very large numbers."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.4f}" if value == 0 or 1e-2 <= abs(value) < 1e5 else f"{value:.2e}"
