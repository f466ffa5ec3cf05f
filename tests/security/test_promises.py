"""SECURITY.md: each promise names tests that exist, and the links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_each_promise_has_tests() -> None:
    rows = re.findall(r"^\| .+ \| .+ \| `([\w./]+\.py)` \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 8
    for name in rows:
        folder = ROOT if "/" in name else ROOT / "tests" / "security"
        assert "def test_" in (folder / name).read_text(encoding="utf-8"), name


def test_each_test_file_belongs_to_a_promise() -> None:
    files = {path.name for path in (ROOT / "tests" / "security").glob("test_*.py")}
    named = set(re.findall(r"`(?:tests/security/)?(test_\w+\.py)`", TEXT))
    assert files - {Path(__file__).name} <= named


def test_the_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([\w./-]+)\)", TEXT)
    assert links
    for link in links:
        assert (ROOT / link).is_file(), link
