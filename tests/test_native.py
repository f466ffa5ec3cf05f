"""Nets as C: what the compiled functions give is what eager code gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import op_drivers
import pytest
from op_table import CASES
from test_compile_table import Way, check_operation

import tinynode as tn
from tinynode import functions as fn
from tinynode.functions import activation
from tinynode.net.operator import operator_of
from tinynode_fast import plan as plan_module
from tinynode_fast.native import build, formulas
from tinynode_fast.native.build import NotBuiltError
from tinynode_fast.plan import FastPlan, Native

try:
    build.version_of(build.compiler("auto"))
except NotBuiltError as error:
    pytest.skip(f"no C compiler: {error}", allow_module_level=True)

F = tn.get_device("fast")


@pytest.fixture(autouse=True)
def cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    folder = tmp_path_factory.getbasetemp() / "native-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("TINYNODE_CACHE", str(folder))
    with tn.using_config(compiler="auto"):
        yield folder


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plans are compiled at their first run; a reason against C is an error."""
    notes: list[str] = []
    monkeypatch.setattr(plan_module.build, "in_background", lambda work: work())
    monkeypatch.setattr(plan_module.build, "note", notes.append)
    return notes


def compiled_plan(node: Any, arrays: list[Any]) -> FastPlan:
    """The plan of a net of a single function, in C."""
    names = [f"x{i}" for i in range(len(arrays))]
    expected = node.forward(tuple(arrays))
    outputs = [f"y{i}" for i in range(len(expected))]
    operator = operator_of(node, names, outputs)
    forms = {
        n: (a.shape, a.dtype)
        for n, a in zip([*names, *outputs], [*arrays, *expected], strict=True)
    }
    base = FastPlan([operator], dict.fromkeys(names, F), outputs, forms)
    return FastPlan(*base.net, Native(base.packing, "auto"))


# --- every row of the table ----------------------------------------------------------------------

ROWS = op_drivers.by_operation(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("operation", ROWS)
def test_compiled_c_equals_eager(
    operation: str, monkeypatch: pytest.MonkeyPatch, at_once: list[str]
) -> None:
    check_operation(operation, Way("fast", "float64"), monkeypatch, 2)
    check_operation(operation, Way("fast", "float32"), monkeypatch, 2)
    assert at_once == []


# --- special values, sizes and layouts -----------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 1e-310, 3e38, -3e38]
SPECIAL += [
    88.8,
    -88.8,
    104.0,
    -104.0,
    1e-8,
    7.5,
    -7.5,
    0.99999,
    1.5,
    2.5,
    -2.5,
    1e6,
    700.0,
    1e300,
]
CANCELLING = {activation.TanhGELU, activation.TanhGELUGrad, activation.SiLUGrad}
"""Near their zeros, differences of numbers of about 1 lose the last digits."""
ZERO_OF_EITHER_SIGN = {fn.Maximum, fn.Minimum, fn.ReLUGrad}
KINDS = [kind for kind in formulas.FORMULAS if kind is not fn.Where]


def layouts_of(x: Any) -> list[Any]:
    """The same numbers in memory in several ways."""
    wide = np.zeros(2 * len(x), x.dtype)
    wide[::2] = x
    return [x, wide[::2], x[::-1].copy()[::-1]]


def close_in_ulp(actual: Any, expected: Any, ulp: int, kind: Any) -> None:
    if kind in ZERO_OF_EITHER_SIGN:
        np.testing.assert_array_equal(actual, expected)
        return
    if expected.dtype == bool or ulp == 0:
        np.testing.assert_array_equal(actual, expected)
        finite = ~np.isnan(expected)
        assert (np.signbit(actual) == np.signbit(expected))[finite].all()
        return
    tiny = np.finfo(expected.dtype).tiny
    eps = np.finfo(expected.dtype).eps
    least = 8.0 if kind in CANCELLING else tiny
    np.testing.assert_allclose(actual, expected, rtol=ulp * eps, atol=ulp * eps * least)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_formulas_on_special_values(kind: Any, dtype: str) -> None:
    made = formulas.FORMULAS[kind]
    rng = np.random.default_rng(1)
    ulp = 8 if made.functions else 0
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL, dtype)
        drawn = (rng.normal(size=1025) * 3).astype(dtype)
        for x in (special, drawn, *(drawn[:n] for n in (0, 1, 3, 7, 8, 9))):
            others = [x] if len(made.letters) == 1 else [x, np.roll(x, 3)]
            if len(made.letters) == 2 and len(x) == len(special):
                others = [np.repeat(x, len(x)), np.tile(x, len(x))]
            check_layouts(kind, others, ulp)


def check_layouts(kind: Any, arrays: list[Any], ulp: int) -> None:
    expected = kind().forward(tuple(arrays))
    plan = compiled_plan(kind(), arrays) if arrays[0].size else None
    if plan is None:
        return
    for layout in zip(*map(layouts_of, arrays), strict=True):
        for actual, wanted in zip(plan.run(layout), expected, strict=True):
            close_in_ulp(actual, wanted, ulp, kind)
