"""The record of the rows that passed on each device, for ``python -m tinynode backends``.

A test of rows tells the numbers of an operation by ``tell``. At the end of a run, each device for
which rows ran has a record. The tests of each file write a device's whole table, or a sample.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from op_cases import CASES

from tinynode.atomic_file import replace_file
from tinynode.commands import passed_rows
from tinynode.commands.backends import version_of
from tinynode.devices import get_backend

PROPERTY = "rows of the table"


def tell(record_property: Callable[[str, Any], None], device: str, passed: int) -> None:
    """The rows of an operation passed on a device."""
    record_property(PROPERTY, {device: passed})


def write(reports: Iterable[Any]) -> Counter[str]:
    """Write the records, from the reports of the tests; the number of rows by device."""
    counts: Counter[str] = Counter()
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == PROPERTY and report.when == "call":
                counts.update(value)
    if counts:
        day = datetime.date.today().isoformat()
        made = {
            device: {
                "passed": passed,
                "rows": len(CASES),
                "version": version_of(get_backend(device)),
                "day": day,
            }
            for device, passed in counts.items()
        }
        with contextlib.suppress(OSError, RuntimeError):  # without a folder there is no record
            write_records(made)
    return counts


def write_records(new: dict[str, dict[str, Any]]) -> None:
    """Write the records of devices; the records of other devices stay.

    Raises:
        OSError: the file cannot be written.
    """
    path = passed_rows.record_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = json.dumps(passed_rows.records() | new, indent=1, sort_keys=True)
    replace_file(path, f"{content}\n".encode())
