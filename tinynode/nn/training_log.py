"""The log of a training run: a row for each epoch, in a file or for TensorBoard.

Requirement: a resumed run leaves no row twice. So the first row of each run writes the file anew,
with the rows of earlier runs; later rows are appended.
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

from tinynode.atomic_file import replace_file
from tinynode.errors import describe
from tinynode.safe_files import checked_path

Row = dict[str, float]
"""The numbers of an epoch by name; ``epoch`` is the first."""
WRITERS = ("tensorboardX", "torch.utils.tensorboard")
"""The modules with a ``SummaryWriter``."""


class FileLog:
    """A ``.csv`` file with a line of names, or a ``.jsonl`` file with one JSON object a line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_csv = path.endswith(".csv")
        self._goes_on = False

    def write(self, rows: Sequence[Row]) -> None:
        """Write the last of all rows of the run."""
        if self._goes_on:
            with open(self.path, "a", encoding="utf-8", newline="") as file:
                file.write(self._text(rows[-1:]))
        else:
            names = self._line(list(rows[0])) if self._is_csv else ""
            replace_file(self.path, (names + self._text(rows)).encode())
            self._goes_on = True

    def _text(self, rows: Sequence[Row]) -> str:
        if self._is_csv:
            return "".join(self._line(list(row.values())) for row in rows)
        return "".join(json.dumps(_finite(row), allow_nan=False) + "\n" for row in rows)

    def _line(self, cells: list[Any]) -> str:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        return line.getvalue()

    def start_again(self) -> None:
        """The next row writes the file anew: the run was resumed."""
        self._goes_on = False


def _finite(row: Row) -> dict[str, float | None]:
    """The row with None, JSON's null, for NaN and infinity, which JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in row.items()}


class TensorBoardLog:
    """A folder of TensorBoard: a curve for each name. A resumed run removes the later points."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._make = summary_writer()
        self._writer: Any = None

    def write(self, rows: Sequence[Row]) -> None:
        """Write the last of all rows of the run."""
        epoch = int(rows[-1]["epoch"])
        if self._writer is None:
            self._writer = self._make(self.folder, purge_step=epoch)
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
        ImportError: no library that writes for TensorBoard is installed.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"Trainer: log must be a path, got {describe(path)}.")
    name = checked_path("Trainer: log", path)
    return FileLog(name) if name.endswith((".csv", ".jsonl")) else TensorBoardLog(name)


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
