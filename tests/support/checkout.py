"""Tests of files that no wheel has, such as the planted bugs of the course.

In a checkout each of these tests runs; ``tests/repository/test_metadata.py`` asks for that. With
``python -m tools.versions --wheels`` the packages come from wheels, and there the tests are
skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tinynode_course

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "tutorials" / "course" / "tinynode_course"

IS_CHECKOUT = Path(tinynode_course.__file__).resolve().parent == COURSE
"""True if the packages are those of the tree."""

of_a_checkout = pytest.mark.skipif(
    not IS_CHECKOUT, reason="the test is of files that no wheel has; it runs in a checkout"
)
