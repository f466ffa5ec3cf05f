"""``import tinynode`` raises the collector's threshold, and leaves a program's own number."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tinynode import collector


@pytest.fixture(autouse=True)
def the_same_thresholds_afterwards() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "after"), [(700, 10_000), (2000, 10_000), (500, 500), (50_000, 50_000), (0, 0)]
)
def test_only_the_number_of_python_is_raised(before: int, after: int) -> None:
    others = gc.get_threshold()[1:]
    gc.set_threshold(before, *others)
    collector.raise_threshold()
    assert gc.get_threshold() == (after, *others)


def test_the_import_raises_it() -> None:
    assert gc.get_threshold()[0] not in collector.PYTHONS_OWN
