"""How many rows of the operation table passed on a device, when the tests ran last.

The tests write the record to ``passed-rows.json`` in the cache folder. A reader of the list of
backends sees what was tried on this machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tinynode.configuration import cache_path
from tinynode.safe_files import read_file

KEYS = {"passed": int, "rows": int, "version": str, "day": str}
"""The parts of a record, with their types."""
LONGEST = 40
LARGEST_FILE = 100_000


def record_path() -> Path:
    """The file with the records of all devices.

    Raises:
        RuntimeError: there is no home folder.
    """
    return cache_path() / "passed-rows.json"


def records() -> dict[str, dict[str, Any]]:
    """The record of each device; empty if there is no file, or another program's."""
    try:
        found = json.loads(read_file(record_path(), LARGEST_FILE))
    except (OSError, RuntimeError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {device: one for device, one in found.items() if _is_record(one)}


def _is_record(one: Any) -> bool:
    if not isinstance(one, dict) or one.keys() != KEYS.keys():
        return False
    for key, kind in KEYS.items():
        is_of_kind = type(one[key]) is kind
        if not is_of_kind or not str(one[key]).isprintable() or len(str(one[key])) > LONGEST:
            return False
    return bool(0 <= one["passed"] <= one["rows"])


def status(device: str) -> list[str]:
    """The record of a device as a line; no line without a record."""
    one = records().get(device)
    if one is None:
        return []
    counts = f"{one['passed']:,} of {one['rows']:,} passed"
    return [f"{counts} on {one['day']}, version {one['version']}"]
