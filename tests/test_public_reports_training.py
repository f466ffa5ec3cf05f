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


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda p: nn.SGD([p], 0.1),
    "SGD, momentum": lambda p: nn.SGD([p], 0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
    "Adam": lambda p: nn.Adam([p], 0.01),
    "AdamW": lambda p: nn.AdamW([p], 0.01),
    "NAdam": lambda p: nn.NAdam([p], 0.01),
    "RMSprop": lambda p: nn.RMSprop([p], 0.01),
    "RMSprop, all": lambda p: nn.RMSprop([p], 0.01, momentum=0.9, centered=True),
    "Adagrad": lambda p: nn.Adagrad([p], 0.01),
    "Lion": lambda p: nn.Lion([p], 0.01),
}
GRADIENTS = (0.0, 0.0, 1e-4, -3e-6, 300.0, 1.0)
"""Of an element: zeros, a square below the smallest float16, and a square above the largest."""


@pytest.mark.parametrize("way", ["eager", "compiled on numpy", "compiled on fast"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_steps_of_float32_in_float16(name: str, way: str) -> None:
    """eps and squares of gradients rounded to 0 in float16, and the parameter became NaN."""
    device = "fast" if way.endswith("fast") else "numpy"
    half, single = [
        nn.Parameter(np.asarray([1.0, -0.5, 0.0], dtype), device=device)
        for dtype in ("float16", "float32")
    ]
    ours, expected = OPTIMIZERS[name](half), OPTIMIZERS[name](single)

    def step(scale: Any) -> None:
        ours.cleargrads()
        F.sum(half * scale).backward()
        ours.update()

    run = step if way == "eager" else tn.compile(step)
    for gradient in GRADIENTS:
        rounded = np.float16(gradient)
        with tn.using_device(device):
            run(tn.asarray(np.full(3, rounded), device=device, requires_grad=False))
        single.grad = np.full(3, rounded, np.float32)
        expected.update()
        single.array = single.array.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(half.array, single.array.astype(np.float16))
    moments = {k: v.dtype for k, v in ours.state_dict().items() if not k.endswith("count")}
    assert set(moments.values()) <= {np.dtype("float32")}


def test_wide_moments_are_saved_loaded_and_checked() -> None:
    p = nn.Parameter(np.ones(2, np.float16))
    adam, other = nn.Adam([p], 0.01), nn.Adam([p], 0.01)
    p.grad = np.full(2, 1e-4, np.float16)
    adam.update()
    other.load_state_dict(adam.state_dict())
    assert {k: v.tolist() for k, v in other.state_dict().items()} == {
        k: v.tolist() for k, v in adam.state_dict().items()
    }
    p.grad = np.full(2, 1e-4, np.float16)
    other.update()
    p.array = np.ones(3, np.float16)
    p.grad = np.ones(3, np.float16)
    with pytest.raises(tn.errors.GraphError, match="has a m of shape"):
        other.update()


def test_a_rule_of_ones_own_has_moments_like_the_parameter() -> None:
    class Mine(nn.Optimizer):
        moment_names = ("v",)

        def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
            v = moments["v"] + grad
            return array - v, {"v": v}

    p = nn.Parameter(np.ones(2, np.float16))
    p.grad = np.ones(2, np.float16)
    Mine([p], 0.1).update()
    assert p.array.tolist() == [0.0, 0.0]


def test_nadam_s_steps_cost_the_same_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product over all steps is that of the step before, times one factor."""
    from tinynode.nn import updates

    asked = []
    mu = updates._nadam_mu
    monkeypatch.setattr(updates, "_products", {})
    monkeypatch.setattr(updates, "_nadam_mu", lambda *args: asked.append(args) or mu(*args))
    first = [updates.nadam_numbers(0.9, 0.004, t) for t in range(1, 200)]
    assert len(asked) == 199 * 3
    updates._products.clear()
    assert updates.nadam_numbers(0.9, 0.004, 199) == first[-1]
    assert updates.nadam_numbers(0.9, 0.004, 7) == first[6]
