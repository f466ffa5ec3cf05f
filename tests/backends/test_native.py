"""Nets as C: what the compiled functions give is what eager code gives."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import op_drivers
import pytest
from c_compiler import missing_compiler
from fast_kernels import set_limits, two_threads, use_two_threads
from op_cases import CASES

import tinynode as tn
from tests.net.test_compile_table import Way, check_operation
from tinynode import functions as fn
from tinynode.functions import activation, cross_entropies, pooling, special
from tinynode.functions.image_windows import Windows
from tinynode.net.operator import operator_of
from tinynode_fast import plan as plan_module
from tinynode_fast.native import build, calls, formulas
from tinynode_fast.native.cache import NotBuiltError
from tinynode_fast.native.nests import Nest
from tinynode_fast.plan import CallPlan, FastPlan

if missing_compiler():
    pytest.skip(missing_compiler(), allow_module_level=True)

F = tn.get_device("fast")


pytestmark = pytest.mark.usefixtures("native_cache")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plans are compiled at their first run; a reason against C is an error."""
    notes: list[str] = []
    monkeypatch.setattr(plan_module.build, "in_background", lambda work, seconds: work())
    monkeypatch.setattr(plan_module.build, "note", notes.append)
    return notes


def compiled_plan(node: Any, arrays: list[Any]) -> CallPlan:
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
    return CallPlan(base.net, base.layout, build.library)


# --- every row of the table ----------------------------------------------------------------------

ROWS = op_drivers.by_operation(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.long)])
@pytest.mark.parametrize("operation", ROWS)
def test_compiled_c_equals_eager(
    operation: str, dtype: str, monkeypatch: pytest.MonkeyPatch, at_once: list[str]
) -> None:
    check_operation(operation, Way("fast", dtype), monkeypatch, 2)
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
CANCELLING = {activation.GELU, activation.GELUGrad, activation.SiLUGrad}
CANCELLING |= {activation.TanhGELU, activation.TanhGELUGrad, fn.LogAddExp}
CANCELLING |= {cross_entropies.SigmoidError}
"""Near their zeros, differences of numbers of about 1 lose the last digits."""
ROUGH = {special.Erfc}
"""The portable forward has an error of about 50 units in the last place."""
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
    least = 16.0 if kind in CANCELLING else tiny
    np.testing.assert_allclose(actual, expected, rtol=ulp * eps, atol=ulp * eps * least)


SHARE = [pytest.param(kind, marks=[] if i % 3 == 0 else pytest.mark.slow, id=kind.__name__)
         for i, kind in enumerate(KINDS)]  # fmt: skip
"""The default tests check every third formula."""


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SHARE)
def test_formulas_on_special_values(kind: Any, dtype: str) -> None:
    made = formulas.FORMULAS[kind]
    rng = np.random.default_rng(1)
    ulp = 8 if formulas.functions_in(made.text) else 0
    ulp = 64 if kind in ROUGH else ulp
    with np.errstate(all="ignore"):
        limits = np.array(SPECIAL, dtype)
        drawn = (rng.normal(size=1025) * 3).astype(dtype)
        for x in (limits, drawn, *(drawn[:n] for n in (0, 1, 3, 7, 8, 9))):
            others = [x, np.roll(x, 3), np.roll(x, 5)][: len(made.letters)]
            if len(made.letters) == 2 and len(x) == len(limits):
                others = [np.repeat(x, len(x)), np.tile(x, len(x))]
            check_layouts(kind, others, ulp)


def check_layouts(kind: Any, arrays: list[Any], ulp: int) -> None:
    expected = kind().forward(tuple(arrays))
    plan = compiled_plan(kind(), arrays) if arrays[0].size else None
    if plan is None:
        return
    for layout in zip(*map(layouts_of, arrays), strict=True):
        for actual, wanted in zip(plan.run(layout, None), expected, strict=True):
            close_in_ulp(actual, wanted, ulp, kind)


@pytest.mark.parametrize(
    "shape",
    [(1, 7), (5, 1025), (2, 3, 9)]
    + [pytest.param(shape, marks=pytest.mark.slow) for shape in ((1, 1), (9, 1), (3, 8))],
)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_rows_and_reductions(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, g = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    last = len(shape) - 1
    nodes = [activation.Softmax(last), activation.LogSoftmax(last), fn.Max((last,), False)]
    nodes += [fn.Sum((0,), True), fn.Sum((last,), False), fn.Mean((0, last), False)]
    nodes += [fn.Sum(tuple(range(last + 1)), False), fn.Max((0,), True), activation.Softmax(0)]
    nodes += [fn.Standardize((last,), 1e-5, center) for center in (True, False)]
    cases = [(node, [x]) for node in nodes]
    r = np.abs(x).sum(axis=last, keepdims=True)
    cases += [(fn.StandardizeGrad((last,), center), [g, x, r]) for center in (True, False)]
    for node, arrays in cases:
        with np.errstate(all="ignore"):
            expected = node.forward(tuple(arrays))
        tolerance = 2e-5 if dtype == "float32" else 1e-12
        for _ in range(2):
            for y, wanted in zip(
                compiled_plan(node, arrays).run(tuple(arrays), None), expected, strict=True
            ):
                np.testing.assert_allclose(y, wanted, rtol=tolerance, atol=tolerance)


def test_a_long_sum_in_single_precision_stays_exact_enough() -> None:
    x = np.full(1 << 22, 0.1, "float32")
    (y,) = compiled_plan(fn.Sum((0,), False), [x]).run((x,), None)
    assert abs(float(y) / (0.1 * (1 << 22)) - 1) < 1e-6


LONG_SUMS = {
    "rows": ((100_003, 3), (0,)),
    "few-rows": ((128, 5), (0,)),
    "long-rows": ((300, 9000), (0,)),
    "inner-rows": ((3, 50_000, 2), (1,)),
    "rows-and-elements": ((20_000, 3, 5), (0, 2)),
    "two-loops-of-rows": ((300, 2, 400, 3), (0, 2)),
    "inner-loops": ((200, 2, 3, 4), (0,)),
    "elements": ((2, 300_000), (1,)),
    "all": ((600_007,), (0,)),
    "each-short": ((60, 2, 50, 2, 40), (0, 2, 4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LONG_SUMS)
def test_the_error_of_a_long_sum_does_not_grow(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, axes = LONG_SUMS[name]
    x = np.full(shape, 0.1, dtype)
    count = math.prod(shape[i] for i in axes)
    expected = math.fsum([float(x.flat[0])] * count)
    for threads in (1, 2):
        if threads == 2:
            use_two_threads(monkeypatch)
            set_limits(monkeypatch, threaded=1)
        for node, divisor in ((fn.Sum(axes, False), 1), (fn.Mean(axes, False), count)):
            (y,) = compiled_plan(node, [x]).run((x,), None)
            eps = float(np.finfo(dtype).eps)
            np.testing.assert_allclose(y.astype("float64"), expected / divisor, rtol=16 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_error_of_many_rows_at_one_place_does_not_grow(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.full((100_000, 3), 0.1, dtype)
    places = np.arange(len(x)) % 5
    places[::2] = 2
    expected = np.bincount(places, minlength=7)[:, None] * x[:1].astype("float64")
    for threads in (1, 2):
        if threads == 2:
            use_two_threads(monkeypatch)
            set_limits(monkeypatch, threaded=1)
        (y,) = compiled_plan(fn.AddAt(7), [x, places]).run((x, places), None)
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(y.astype("float64"), expected, rtol=4 * eps)


def test_a_long_sum_of_infinities_is_infinite_and_not_nan() -> None:
    for dtype in ("float32", "float64"):
        x = np.ones((4000, 5), dtype)
        x[70, 0], x[3999, 1], x[3, 2] = np.inf, -np.inf, np.nan
        x[7, 3], x[2000, 3] = np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            for axes in ((0,), (0, 1)):
                (y,) = compiled_plan(fn.Sum(axes, False), [x]).run((x,), None)
                np.testing.assert_array_equal(y, x.sum(axes))


def test_long_sums_of_several_steps_in_one_nest() -> None:
    """A softmax of rows, and sums of the results: of rows, of elements and of all."""
    x = np.random.default_rng(5).normal(size=(1000, 700))
    function = tn.compile(both_sums)
    expected = both_sums(tn.asarray(x, device="fast"))
    for _ in range(3):
        found = function(tn.asarray(x, device="fast"))
        build.wait()
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(tn.to_host(y), tn.to_host(wanted), rtol=1e-13)


def both_sums(x: Any) -> Any:
    y = fn.softmax(x, axis=1)
    return fn.sum(y * y, axis=0), fn.sum(y, axis=1), fn.sum(y * x)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_softmax_and_max_of_rows_that_are_not_finite(bad: float) -> None:
    x = np.random.default_rng(3).normal(size=(6, 9)).astype("float32")
    x[1, 4], x[2] = bad, bad
    for node in (activation.Softmax(1), activation.LogSoftmax(1), fn.Max((1,), False)):
        with np.errstate(all="ignore"):
            (expected,) = node.forward((x,))
            (y,) = compiled_plan(node, [x]).run((x,), None)
        np.testing.assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [0.0, -300.0, 1e9, 1e10, -1e20])
@pytest.mark.parametrize("low", [-80.0, -100.0, -700.0, -1e9, -np.inf])
def test_softmax_of_rows_with_a_mask(low: float, shift: float, dtype: str) -> None:
    x = np.random.default_rng(4).normal(size=(5, 17))
    x[1, 3:9], x[2], x[3, 0] = low, low, low
    x[4, 5] = np.nan
    x = (x + shift).astype(dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    for node in (activation.Softmax(1), activation.LogSoftmax(1)):
        with np.errstate(all="ignore"):
            (expected,) = node.forward((x,))
            (y,) = compiled_plan(node, [x]).run((x,), None)
        np.testing.assert_allclose(y, expected, rtol=8 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_numbers_far_apart(dtype: str) -> None:
    least, most = np.finfo(dtype).min, np.finfo(dtype).max
    rows = [[1e10, 0, 1, 2], [-1e10, -2e10, -3e10, -4e10], [1e30, 0, 1e9, -1e30]]
    rows += [[-np.inf, least, -np.inf, least], [most, 0, least, 1], [1e9, 0, 0, -1e9]]
    x = np.asarray(rows, dtype)
    for node in (activation.Softmax(1), activation.LogSoftmax(1)):
        with np.errstate(all="ignore"):
            (expected,) = node.forward((x,))
            (y,) = compiled_plan(node, [x]).run((x,), None)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-25)


@pytest.mark.parametrize("size", [(6, 8), (7, 5)])
@pytest.mark.parametrize("channels_first", [True, False])
def test_pooling(size: tuple[int, int], channels_first: bool) -> None:
    windows = Windows((2, 2), (2, 2), (0, 0), (1, 1))
    x = np.random.default_rng(6).integers(0, 3, (2, 3, *size)).astype("float32")
    x[0, 0, 0, 1], x[0, 0, 1, 0], x[1, 2, 1, 1], x[1, 0] = np.nan, np.nan, -np.inf, -np.inf
    if not channels_first:
        x = x.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    node = pooling.MaxPool2d(windows)
    best, winners = node.forward((x,))
    for y, wanted in zip(compiled_plan(node, [x]).run((x,), None), (best, winners), strict=True):
        np.testing.assert_array_equal(y, wanted)
    gy = np.random.default_rng(7).normal(size=best.shape).astype("float32")
    grad = pooling.MaxPool2dGrad(windows, size)
    (expected,) = grad.forward((gy, winners))
    base = compiled_plan(grad, [gy, winners]) if size == (6, 8) else None
    if base is not None:  # other windows do not tile the image
        np.testing.assert_array_equal(base.run((gy, winners), None)[0], expected)


def test_threads_share_a_loop_and_its_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, threaded=2)
    monkeypatch.setattr(calls, "thread_count", two_threads)
    x = np.random.default_rng(4).normal(size=(7, 5))
    for node in (fn.Sum((0,), True), fn.Sum((0, 1), True), fn.Max((0,), True), fn.Exp()):
        (expected,) = node.forward((x,))
        np.testing.assert_allclose(
            compiled_plan(node, [x]).run((x,), None)[0], expected, rtol=1e-13
        )


def test_a_label_that_is_no_class_is_an_error_of_the_function(at_once: list[str]) -> None:
    @tn.compile
    def loss(x: tn.Variable, labels: tn.Variable) -> tn.Variable:
        return fn.softmax_cross_entropy(x, labels)

    x = np.random.default_rng(5).normal(size=(4, 3)).astype("float32")
    with tn.using_device("fast"):
        for labels in ([0, 1, 2, 0], [0, -1, 2, 0], [-1, -1, -1, -1]):
            expected = fn.softmax_cross_entropy(tn.asarray(x), tn.asarray(labels))
            for _ in range(3):
                found = loss(tn.asarray(x), tn.asarray(labels))
            np.testing.assert_allclose(found.array, expected.array, rtol=1e-6)
        for _ in range(2):
            with pytest.raises(ValueError, match="labels must lie in 0 to 2"):
                loss(tn.asarray(x), tn.asarray([0, 1, 3, 0]))
        loss(tn.asarray(x), tn.asarray([0, 1, 2, 0]))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_labels_of_two_losses_are_checked_for_each(reduction: str, at_once: list[str]) -> None:
    """The second loss has fewer classes."""

    def loss(x: tn.Variable, labels: tn.Variable) -> tn.Variable:
        few = fn.softmax_cross_entropy(x[:, :3], labels, reduction=reduction, ignore_label=1)
        return fn.softmax_cross_entropy(x, labels, reduction=reduction) + few

    compiled = tn.compile(loss)
    x = np.random.default_rng(5).normal(size=(4, 5))
    with tn.using_device("fast"):
        for _ in range(3):
            expected, found = (
                f(tn.asarray(x), tn.asarray([0, 1, 2, 0])) for f in (loss, compiled)
            )
            np.testing.assert_allclose(found.array, expected.array, rtol=1e-12)
        with pytest.raises(ValueError, match="labels must lie in 0 to 2"):
            compiled(tn.asarray(x), tn.asarray([0, 1, 3, 0]))
    assert at_once == []


# --- a wrong emitter is caught -------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "wrong"), [(fn.Add, "x - y"), (fn.Maximum, "x > y ? x : y")])
def test_a_wrong_formula_is_caught(kind: Any, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        formulas.FORMULAS, kind, formulas.ElementFormula("wrong", ("x", "y"), wrong)
    )
    with pytest.raises(AssertionError):
        test_formulas_on_special_values(kind, "float64")


# --- nests of one form ---------------------------------------------------------------------------


def pairs(function: Any) -> Any:
    """The function of two Variables, in a single net."""

    def both(x: tn.Variable, y: tn.Variable) -> Any:
        return function(x), function(y)

    return both


def c_functions(compiled: Any, *arguments: tn.Variable) -> int:
    """The number of C functions of a net without its gradient."""
    (_, _, plan), *_ = compiled.described_plans(*arguments)
    source: str = plan.c_source()
    return source.count("(void **p, ")


def chain(x: tn.Variable) -> tn.Variable:
    return fn.tanh(x) * 0.5 + x


def of_rows(x: tn.Variable) -> tn.Variable:
    return fn.softmax(x, axis=-1) - x


def of_columns(x: tn.Variable) -> tn.Variable:
    return fn.sum(x * x, axis=0) * 1.0


FORMS: list[Any] = [
    # function, the shapes of both arguments, the number of C functions
    (chain, (3, 5), (7, 2), 1),
    (chain, (4,), (6, 3), 1),
    (chain, (4,), (), 2),
    (of_rows, (4, 3), (6, 3), 1),
    (of_rows, (4, 3), (4, 5), 2),
    (of_rows, (3,), (5,), 2),
    (of_columns, (4, 3), (5, 3), 2),
    (of_columns, (4, 3), (4, 5), 3),
]


@pytest.mark.parametrize(("function", "first", "second", "count"), FORMS)
def test_nests_of_one_form_share_a_function(
    function: Any, first: Any, second: Any, count: int, at_once: list[str]
) -> None:
    draws = np.random.default_rng(3)
    with tn.using_device("fast"):
        x, y = [tn.asarray(draws.normal(size=shape)) for shape in (first, second)]
        compiled = tn.compile(pairs(function))
        for _ in range(3):
            for found, given in zip(compiled(x, y), (x, y), strict=True):
                np.testing.assert_allclose(found.array, function(given).array, rtol=1e-12)
        assert c_functions(compiled, x, y) == count
    assert at_once == []


def test_nests_of_two_dtypes_or_layouts_have_two_functions(at_once: list[str]) -> None:
    draw = np.random.default_rng(3).normal
    with tn.using_device("fast"):
        single = tn.asarray(draw(size=(4, 6)).astype("float32"))
        double = tn.asarray(draw(size=(3, 5)))
        mixed = tn.compile(pairs(chain))
        x, row = tn.asarray(draw(size=(4, 5))), tn.asarray(draw(size=(1, 5)))
        y, column = tn.asarray(draw(size=(2, 5))), tn.asarray(draw(size=(2, 1)))
        added = tn.compile(lambda x, b, y, c: (x + b, y + c))
        for _ in range(3):
            for found, given in zip(mixed(single, double), (single, double), strict=True):
                np.testing.assert_allclose(found.array, chain(given).array, rtol=1e-6)
            first, second = added(x, row, y, column)
            np.testing.assert_array_equal(first.array, x.array + row.array)
            np.testing.assert_array_equal(second.array, y.array + column.array)
        assert c_functions(mixed, single, double) == 2
        assert c_functions(added, x, row, y, column) == 2
    assert at_once == []


def test_the_c_of_a_shared_function_says_so(at_once: list[str]) -> None:
    with tn.using_device("fast"):
        compiled = tn.compile(pairs(chain))
        text = compiled.explain(tn.asarray(np.ones((2, 3))), tn.asarray(np.ones((3, 4))))
    assert "// for 2 nests, with the names of the first" in text


# --- the builder ---------------------------------------------------------------------------------

SOURCE = "int one(void **p, long start, long stop) { return 1; }\n"


def test_a_library_is_compiled_once(native_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCE + "// once\n"
    assert build.library(source).one(None, 0, 0) == 1
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr(build, "_compile", None)  # not called again
    assert build.library(source).one(None, 0, 0) == 1


def test_another_version_of_the_compiler_makes_another_library(tmp_path: Path) -> None:
    wrapper = tmp_path / "own-cc"
    found = []
    for comment in ("version 1", "version 12"):
        wrapper.write_text(f'#!/bin/sh\n# {comment}\nexec {build.compiler("auto")} "$@"\n')
        wrapper.chmod(0o700)
        found.append(build.library(SOURCE + "// versions\n", str(wrapper)))
        assert build.library(SOURCE + "// versions\n", str(wrapper)) is found[-1]
    assert found[0]._name != found[1]._name


def test_a_library_is_found_but_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCE + f"// found {os.urandom(8).hex()}\n"
    with pytest.raises(NotBuiltError, match="not compiled yet"):
        build.library(source, compiles=False)
    assert build.library(source).one(None, 0, 0) == 1
    monkeypatch.setattr(build, "_loaded", {})
    with build._lock:  # the compiler is busy
        assert build.library(source, compiles=False).one(None, 0, 0) == 1


def test_a_large_net_takes_its_library_from_the_cache_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def f(x: tn.Variable) -> tn.Variable:
        return fn.tanh(x) * 0.25 + x

    x = np.random.default_rng(0).normal(size=(1100, 1000))
    with tn.using_device("fast"):
        expected = f(tn.asarray(x)).array
        tn.compile(f)(tn.asarray(x))
        build.wait()  # the library is in the cache
        monkeypatch.setattr(build, "in_background", None)  # not called again
        compiled = tn.compile(f)
        for _ in range(2):
            np.testing.assert_allclose(compiled(tn.asarray(x)).array, expected, rtol=1e-6)
            plan = compiled.recordings[0].program._plans[False]
            assert plan.native is not None and plan.plain == []


def test_a_large_net_waits_for_no_other_library(
    monkeypatch: pytest.MonkeyPatch, at_once: list[str]
) -> None:
    monkeypatch.setattr(build, "_compile", None)
    x = np.random.default_rng(0).normal(size=(1100, 1000))
    with tn.using_device("fast"):
        compiled = tn.compile(lambda x: fn.exp(-x * 0.125) + 3.0)
        for _ in range(2):
            np.testing.assert_allclose(compiled(tn.asarray(x)).array, np.exp(-x / 8) + 3)
    assert at_once == ["TypeError: 'NoneType' object is not callable"]  # noted once, not twice


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [("none", "is 'none'"), ("no-such-cc", "no program 'no-such-cc'"), ("false", "false failed")],
)
def test_without_a_compiler_numpy_goes_on(compiler: str, reason: str, at_once: list[str]) -> None:
    with tn.using_config(compiler=compiler), pytest.raises(NotBuiltError, match=reason):
        build.library(SOURCE + "// no compiler\n")

    @tn.compile
    def f(x: tn.Variable) -> tn.Variable:
        return fn.exp(x) * x

    with tn.using_config(compiler=compiler), tn.using_device("fast"):
        for _ in range(3):
            y = f(tn.asarray([1.0, 2.0]))
    np.testing.assert_allclose(y.array, np.exp([1, 2]) * [1, 2], rtol=1e-6)
    assert bool(at_once) == (compiler != "none")


def test_a_cache_that_cannot_be_written_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TINYNODE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(NotBuiltError, match="the cache's folder cannot be made"):
        build.library(SOURCE + "// no folder\n")


def test_a_failure_stands_in_the_tables() -> None:
    build.note("a reason of a test")
    assert "a reason of a test" in tn.show.fallbacks()
    assert "a reason of a test" in list(build.compiler_status())
    build._reasons.discard("a reason of a test")


def test_two_processes_build_the_same_library(tmp_path: Path) -> None:
    code = (
        "from tinynode_fast.native import build\n"
        "source = 'int two(void **p, long a, long b) { return 2; }'\n"
        "print(build.library(source).two(None, 0, 0))"
    )
    environment = {**os.environ, "TINYNODE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["2", "2"]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_background_thread_hands_the_plan_over() -> None:
    @tn.compile
    def f(x: tn.Variable) -> tn.Variable:
        return fn.tanh(x) + x

    with tn.using_device("fast"):
        x = tn.asarray([0.5, 1.5])
        for _ in range(3):
            f(x)
        build.wait()
        np.testing.assert_allclose(f(x).array, np.tanh(x.array) + x.array, rtol=1e-6)
        text = f.explain(x)
        build.wait()
    assert "as C, in use:" in text and "tanhf(x)" in text
    with tn.using_device("fast"), tn.using_config(compiler="none"):
        text = tn.compile(lambda x: fn.tanh(x)).explain(x)
        assert "as C, not in use:" in text and "tanhf(x)" in text
        text = tn.compile(lambda x: fn.cumulative_sum(x)).explain(x)
        assert "no operator becomes C" in text
    with tn.using_device("fast"):
        f = tn.compile(lambda x: fn.cumulative_sum(x))
        for _ in range(3):
            f(x)
            build.wait()
        assert "as C, not in use:" in f.explain(x)
    build.wait()
    assert not [thread for thread in threading.enumerate() if "build" in thread.name]


def test_errors_of_floating_point_are_raised_by_numpy(at_once: list[str]) -> None:
    @tn.compile
    def f(x: tn.Variable) -> tn.Variable:
        return fn.log(x) * 2.0

    with tn.using_device("fast"):
        for value in (1.0, 2.0, 3.0):
            f(tn.asarray([value]))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            f(tn.asarray([0.0]))


def test_neighbouring_calls_are_one_call(at_once: list[str]) -> None:
    """Values of two shapes are nests of their own, and the product parts the calls."""

    def function(x: Any, y: Any) -> Any:
        a, b = fn.exp(x), fn.sin(y)
        return fn.tanh(a @ x), a * 2.0, fn.cos(b) + y

    draws = np.random.default_rng(3)
    arrays = [draws.normal(size=shape) for shape in ((3, 3), (2, 4))]
    with tn.using_device("fast"):
        x, y = map(tn.asarray, arrays)
        compiled = tn.compile(function)
        for _ in range(3):
            for found, expected in zip(compiled(x, y), function(x, y), strict=True):
                np.testing.assert_allclose(found.array, expected.array, rtol=1e-12)
        ((_, _, plan),) = [one for one in compiled.described_plans(x, y) if one[2] is not None][:1]
    (native,) = plan.native
    names = [step.function.__name__ for step in native.first]
    assert "call_in_order" in names and "matrix_product" in names
    assert len(native.first) < len(native.steps)
    groups = [len(call.kept) for call in native.kept]
    assert sum(groups) - len(groups) == len(native.steps) - len(native.first)
    assert at_once == []


def test_nests_take_what_the_op_table_has_rules_for() -> None:
    x = np.ones((3, 4))
    plan = compiled_plan(fn.Exp(), [x])
    assert [step.function.__name__ for step in plan.steps] == ["exp_0"]
    assert isinstance(plan.bound[0].nest, Nest)


@pytest.mark.slow
def test_no_memory_error_and_no_undefined_behaviour(tmp_path: Path) -> None:
    """The tests of special values run on code with the checks of gcc's sanitizers."""
    compiler = build.compiler("auto")
    found = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(found).is_absolute() or not Path(found).exists():
        pytest.skip("the compiler has no libasan")
    program = (
        "import sys, pytest\n"
        "from tinynode_fast.native import build\n"
        "checks = '-fsanitize=address,undefined', '-fno-sanitize-recover=undefined', '-g'\n"
        "build.FLAGS = (*build.FLAGS, *checks)\n"
        "chosen = '(special_values and not GELU) or rows or label or threads'\n"
        "sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', '-k', chosen, "
        f"{__file__!r}]))"
    )
    environment = {
        **os.environ,
        "LD_PRELOAD": found,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
