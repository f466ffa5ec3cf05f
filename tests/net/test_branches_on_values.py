"""A recorded function serves all values: a choice by the values of the recording would show.

A row of the op table is recorded with one kind of values, and runs with another kind: singular and
regular matrices, empty and full masks, ties, labels that all are ignored, negative numbers, zeros,
infinities. The values, and the first and second gradients, must be those of eager code.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import modes
import numpy as np
import pytest
from op_cases import CASES, Case
from op_cases.rows import x
from op_drivers import draw_inputs, draw_like, is_differentiable, make_inputs

import tinynode as tn
from tests.transforms.test_modes import OTHERS_OF_NETS
from tests.transforms.test_vmap_table import DRAWN
from tinynode.devices import is_floating
from tinynode.errors import TraceError

Change = Callable[[Any, Any], Any]
"""Another array in the place of an input; the second argument draws numbers."""


def of_numbers(change: Callable[[Any], Any]) -> Change:
    """A change of the floating inputs; labels and masks stay."""
    return lambda host, rng: change(host) if host.dtype.kind == "f" else host


def of_labels(label: Callable[[Any], Any], mask: bool) -> Change:
    """All integers are the same number, and all bools are the same."""

    def change(host: Any, rng: Any) -> Any:
        if host.dtype.kind == "b":
            return np.full_like(host, mask)
        is_label = host.dtype.kind in "iu" and host.size > 0
        return np.full_like(host, label(host)) if is_label else host

    return change


def first_is_zero(host: Any) -> Any:
    changed = host.copy()
    changed.reshape(-1)[:1] = 0
    return changed


def far_away(host: Any, rng: Any) -> Any:
    is_number = host.dtype.kind == "f"
    return rng.choice(modes.FAR, size=host.shape).astype(host.dtype) if is_number else host


NUMBERS: dict[str, Change] = {
    "drawn": of_numbers(lambda host: host),
    "zero": of_numbers(np.zeros_like),
    "ties": of_numbers(lambda host: np.full_like(host, 0.5)),
    "positive": of_numbers(lambda host: np.abs(host) + 0.25),
    "negative": of_numbers(lambda host: -np.abs(host) - 0.25),
    "with a zero": of_numbers(first_is_zero),
    "far": far_away,
}
"""The kinds of numbers. Matrices of zeros and of ties are singular."""
LABELS: dict[str, Change] = {
    "all ignored": of_labels(lambda host: -1 if host.dtype.kind == "i" else 0, False),
    "all first": of_labels(lambda host: host.min(), False),
    "all last": of_labels(lambda host: host.max(), True),
}
"""The kinds of labels and masks; -1 is the label that losses ignore."""
KINDS = NUMBERS | LABELS
SEED = 0


def hosts_of(case: Case, kind: str) -> list[Any]:
    """The inputs of a row, of a kind."""
    rng = np.random.default_rng(3)
    hosts = draw_inputs(case, case.dtypes[0], 1)
    for i, one in enumerate(case.inputs):
        is_number = is_differentiable(one, hosts[i]) and one.dtype is None
        if is_number or hosts[i].dtype.kind in "iub":
            hosts[i] = np.asarray(KINDS[kind](hosts[i], rng))
    return hosts


def question_of(case: Case, f: Any, targets: list[int], kept: list[int]) -> Any:
    """A function of the inputs, the gradients of the outputs, and directions: all derivatives."""

    def everything(xs: Any, us: Any, vs: Any) -> list[Any]:
        ys = f(*xs)
        if not targets or not kept or case.order < 1:
            return ys
        sources = [xs[i] for i in targets]
        outputs = [ys[i] for i in kept]
        is_twice = case.order > 1
        gxs = tn.grad(outputs, sources, us, enable_double_backprop=is_twice)
        found = [*ys, *[gx for gx in gxs if gx is not None]]
        if not is_twice:
            return found
        pairs = [(gx, v) for gx, v in zip(gxs, vs, strict=True) if gx is not None]
        pairs = [(gx, v) for gx, v in pairs if gx.requires_grad]
        if pairs:
            known, directions = zip(*pairs, strict=True)
            ggs = tn.grad(list(known), sources, list(directions))
            found += [gg for gg in ggs if gg is not None]
        return found

    return everything


def answers(run: Any, case: Case, kind: str, device: str, beside: Any) -> list[Any]:
    xs = make_inputs(case, hosts_of(case, kind), tn.get_device(device))
    return [tn.to_host(y.array) for y in run(xs, *beside)]


def pairs_of(case: Case) -> list[tuple[str, str]]:
    """The kinds of the recording and of the run, in an order drawn by the name of the row."""
    has_labels = any(host.dtype.kind in "iub" for host in draw_inputs(case, case.dtypes[0], 1))
    kinds = KINDS if has_labels else NUMBERS
    pairs = [(first, second) for first in kinds for second in kinds if first != second]
    random.Random(f"{case.id} {SEED}").shuffle(pairs)
    return pairs


def check_rows(cases: list[Case], device: str, most: int) -> int:
    """Check some pairs of kinds of each row; the number of compared pairs."""
    compared = 0
    for case in cases:
        for first, second in pairs_of(case)[:most]:
            try:
                compared += check(case, first, second, device)
            except Exception as error:
                error.add_note(f"row {case.id} on {device}: recorded {first}, run {second}")
                raise
    return compared


def check(case: Case, first: str, second: str, device: str) -> bool:
    """Record with the first kind, run with the second. False if eager code refuses the values."""
    f = modes.function_of(case)
    place = tn.get_device(device)
    try:
        xs = make_inputs(case, hosts_of(case, second), place)
        ys = f(*xs)
        targets = [i for i, x in enumerate(xs) if isinstance(x, tn.Variable) and x.requires_grad]
        kept = [i for i, y in enumerate(ys) if y.requires_grad and is_floating(y.raw)]
        beside = draw_like([ys[i] for i in kept], 1), draw_like([xs[i] for i in targets], 2)
        eager = question_of(case, f, targets, kept)
        compiled = tn.compile(eager)
        answers(eager, case, first, device, beside)
        expected = answers(eager, case, second, device, beside)
    except (ValueError, IndexError, RuntimeError, np.linalg.LinAlgError):
        return False
    try:
        for _ in range(2):  # the second call has a plan
            answers(compiled, case, first, device, beside)
    except TraceError:
        return False
    ours = answers(compiled, case, second, device, beside)
    tolerance = 1e-4 if case.single or "float64" not in case.dtypes[0] else 1e-9
    assert len(ours) == len(expected)
    for number, (a, b) in enumerate(zip(ours, expected, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {number}"
        np.testing.assert_allclose(a, b, tolerance, tolerance, err_msg=f"result {number}")
    return True


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ROWS = [case for case in CASES if case.id not in OTHERS_OF_NETS | DRAWN]


def firsts() -> list[Case]:
    """The first row of each operation."""
    found: dict[str, Case] = {}
    for case in ROWS:
        found.setdefault(case.operation, case)
    return list(found.values())


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_recorded_function_serves_other_values(device: str) -> None:
    cases = firsts()[:: 1 if device == "numpy" else 3]
    assert check_rows(cases, device, 1) > 0.4 * len(cases)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("part", range(3))
def test_each_operation_serves_other_values(part: int, device: str) -> None:
    cases = firsts()[part::3]
    assert check_rows(cases, device, 6) > 2 * len(cases)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("part", range(24))
def test_each_row_serves_other_values(part: int, device: str) -> None:
    cases = ROWS[part::24]
    assert check_rows(cases, device, 12) > 4 * len(cases)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("pair", [("drawn", "ties"), ("ties", "drawn"), ("drawn", "far")])
def test_a_determinant_of_ten_rows_serves_all_matrices(pair: Any, device: str) -> None:
    (case,) = [case for case in CASES if case.id == "det-large"]
    assert check(case, *pair, device)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_determinants_of_examples_serve_all_matrices(device: str) -> None:
    """Also inside of two vmaps, and with second derivatives."""

    def slope(matrices: Any) -> Any:
        each = tn.vmap(tn.vmap(tn.gradient(tn.functions.linalg.det)))
        return tn.gradient(lambda xs: tn.functions.sum(each(xs) ** 2))(matrices)

    regular = np.random.default_rng(0).normal(size=(2, 1, 10, 10))
    place = tn.get_device(device)
    compiled = tn.compile(slope)
    with tn.using_device(device):
        for matrices in (regular, regular, np.ones_like(regular), np.zeros_like(regular), regular):
            found, expected = [f(place.from_host(matrices)).array for f in (compiled, slope)]
            np.testing.assert_allclose(tn.to_host(found), tn.to_host(expected), 1e-9, 1e-9)


def test_a_branch_on_values_is_noticed() -> None:
    def larger(x: Any) -> Any:
        return x * 2.0 if tn.to_host(x.raw).sum() > 0 else x * 3.0

    case = Case("larger", "larger-of-two", larger, np.abs, (x(3),))
    with pytest.raises(AssertionError, match="result 0"):
        check(case, "positive", "negative", "numpy")
