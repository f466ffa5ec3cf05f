"""``import tinynode`` raises the collector's threshold, and leaves a program's own number."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import collector


@pytest.fixture(autouse=True)
def the_same_thresholds_afterwards() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((700, 10, 10), (10_000, 10, 100)),
        ((2000, 10, 0), (10_000, 10, 0)),
        ((700, 10, 30), (10_000, 10, 30)),
        ((700, 5, 10), (10_000, 5, 100)),
        ((500, 10, 10), (500, 10, 10)),
        ((50_000, 10, 10), (50_000, 10, 10)),
        ((0, 10, 10), (0, 10, 10)),
    ],
)
def test_only_the_numbers_of_python_are_raised(before: Any, after: Any) -> None:
    gc.set_threshold(*before)
    collector.raise_thresholds()
    assert gc.get_threshold() == after


def test_the_import_raises_them() -> None:
    first, _, last = gc.get_threshold()
    assert first not in collector.PYTHONS_OWN and last != collector.PYTHONS_LAST


def test_deep_graphs_cause_few_full_visits() -> None:
    gc.set_threshold(700, 10, 10)
    collector.raise_thresholds()
    gc.collect()
    before = gc.get_stats()[2]["collections"]
    for _ in range(3):
        y = x = tn.Variable(np.ones(2))
        for _ in range(50_000):
            y = y + x
    assert gc.get_stats()[2]["collections"] - before <= 1
