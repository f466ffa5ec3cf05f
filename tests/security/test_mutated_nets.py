"""Mutated nets end with a named error, or with the same values on every device and in C."""

from __future__ import annotations

import os

import mutated_nets
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of POSIX processes")


def assert_none_is_wrong(count: int, first: int, rows: int) -> None:
    report = mutated_nets.run(count, first, rows)
    assert report.nets == count
    assert report.findings == []
    assert count / 20 < report.with_values < count


@pytest.mark.slow
def test_some_mutated_nets() -> None:
    assert_none_is_wrong(300, 0, rows=1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [600, pytest.param(3000, marks=pytest.mark.long)])
def test_many_mutated_nets(number: int) -> None:
    """``python -m mutated_nets 30000`` takes more: see ``tests/support/mutated_nets.py``."""
    assert_none_is_wrong(number, 1000, rows=8)


def test_a_difference_is_found() -> None:
    import numpy as np

    same = mutated_nets.different({"y": np.ones(2)}, {"y": np.ones(2)})
    assert same == ""
    for other in (np.ones(3), np.ones(2, "float32"), np.asarray([1.0, 1.1])):
        assert mutated_nets.different({"y": np.ones(2)}, {"y": other}).startswith("y: ")


def test_a_raw_error_is_found() -> None:
    assert not mutated_nets.is_named(AttributeError("axes"))
    assert not mutated_nets.is_named(ValueError())
    assert mutated_nets.is_named(ValueError("too small"))
