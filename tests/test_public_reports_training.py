"""Situations of training, data and layers in which users of other libraries met wrong results.

Each test is one situation, in its own words and numbers. ``test_public_reports.py`` has those of
gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn

F = tn.functions


def test_nearest_interpolation_takes_the_exact_place_for_all_sizes() -> None:
    """49 / 98 is not 0.5 of a rounded quotient: a place before the right one was taken."""
    wrong = []
    for n in (*range(1, 20), 30, 49, 80, 98, 196, 224):
        x = tn.asarray(np.arange(n, dtype=np.float32).reshape(1, 1, n))
        for o in (*range(1, 20), 22, 26, 49, 80, 98, 103, 196, 206, 214, 245):
            found = tn.to_host(F.interpolate(x, size=o)).ravel()
            if found.tolist() != [i * n // o for i in range(o)]:
                wrong.append((n, o))
    assert wrong == []


@pytest.mark.parametrize("scale", [49, 98, 103, 107.0, 0.25])
def test_nearest_interpolation_by_a_scale_repeats_each_place_so_often(scale: float) -> None:
    x = tn.asarray(np.arange(8, dtype=np.float32).reshape(1, 1, 8))
    found = tn.to_host(F.interpolate(x, scale=scale)).ravel()
    assert found.tolist() == [int(i / scale + 1e-9) for i in range(int(8 * scale))]


def test_a_mask_chooses_the_samples_of_a_subset() -> None:
    """[True, False, True] are no indexes 1, 0, 1."""
    subset = nn.Subset(list("abc"), np.array([True, False, True]))
    assert [subset[i] for i in range(len(subset))] == ["a", "c"]
    assert len(nn.Subset(list("abc"), [False] * 3)) == 0
    assert len(nn.Subset(list("abc"), [])) == 0


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([True, False], "3 bools, one for each sample; got bool of shape"),
        ([0.0, 1.0], "integers along one axis"),
        ([[0, 1]], "integers along one axis"),
        ([0, 3], "no sample 3: give indexes from -3 to 2"),
        ([-4], "no sample -4"),
        (np.array([2**63], np.uint64), "no sample 9223372036854775808"),
    ],
)
def test_indexes_of_no_sample_are_refused_when_the_subset_is_made(
    indexes: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        nn.Subset(list("abc"), indexes)


@pytest.mark.parametrize("indexes", [range(2), (0, -1), np.array([2, 0], np.uint8)])
def test_integers_of_each_kind_are_indexes(indexes: Any) -> None:
    subset = nn.Subset(nn.ArrayDataset(np.arange(3)), indexes)
    expected = [np.arange(3)[i] for i in indexes]
    assert [int(subset[i][0]) for i in range(2)] == expected
