"""``python -m tinynode backends`` says how many rows of the operation table passed here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import row_counts

from tinynode.commands import passed_rows
from tinynode.commands.backends import describe_backend

RECORD = {"passed": 812, "rows": 1_812, "version": "2.4", "day": "2026-11-26"}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TINYNODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "passed-rows.json"


def test_the_list_of_backends_shows_the_record() -> None:
    assert not [line for line in describe_backend("numpy") if "rows" in line]
    row_counts.write_records({"numpy": RECORD})
    expected = "  rows of table:  812 of 1,812 passed on 2026-11-26, version 2.4"
    assert expected in list(describe_backend("numpy"))


def test_records_of_other_devices_stay() -> None:
    row_counts.write_records({"numpy": RECORD, "fast": RECORD})
    row_counts.write_records({"fast": RECORD | {"passed": 1}})
    found = passed_rows.records()
    assert found == {"numpy": RECORD, "fast": RECORD | {"passed": 1}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[" * 50_000,
        b"[1]",
        b'{"numpy": 3}',
        *[
            json.dumps({"numpy": RECORD | wrong}).encode()
            for wrong in (
                {"passed": "812"},
                {"passed": True},
                {"day": "\x1b[31m"},
                {"version": "1" * 41},
                {"more": 1},
            )
        ],
        b" " * (passed_rows.LARGEST_FILE + 1),
    ],
)
def test_a_damaged_file_is_no_record(content: bytes, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert passed_rows.status("numpy") == []
    row_counts.write_records({"numpy": RECORD})
    assert passed_rows.records() == {"numpy": RECORD}


def test_the_tests_write_the_sums_of_their_reports() -> None:
    def report(when: str, name: str, value: Any) -> Any:
        return SimpleNamespace(when=when, user_properties=[(name, value)])

    reports = [
        report("call", row_counts.PROPERTY, {"numpy": 3}),
        report("call", row_counts.PROPERTY, {"numpy": 4, "fast": 1}),
        report("teardown", row_counts.PROPERTY, {"numpy": 4}),
        report("call", "fuzzing", {"numpy": 9}),
    ]
    assert row_counts.write(reports) == {"numpy": 7, "fast": 1}
    assert {device: one["passed"] for device, one in passed_rows.records().items()} == {
        "numpy": 7,
        "fast": 1,
    }
