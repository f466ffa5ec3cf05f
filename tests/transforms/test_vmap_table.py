"""Every row of the op table under vmap: values, gradients and second gradients."""

from __future__ import annotations

import gc
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case
from op_drivers import call, draw_inputs, make_inputs
from vmap_table import Row, assert_close, special_examples_of

import tinynode as tn
from tests.backends.test_other_backends import DEVIATIONS, EVERY_HOW_MANY, INSTALLED, load
from tinynode.devices import fallback_uses
from tinynode.errors import OperandError, TraceError, VmapError

MASKS = "each mask selects another number of elements, so SetItem has no shape for the values"
REFUSED = {
    **{
        f"set_item-{name}": MASKS
        for name in (
            *("mask", "mask-of-the-first-axis", "mask-of-the-first-axis-value-broadcasts"),
            *("slice-and-mask", "mask-v-without-grad", "mask-x-without-grad", "mask-strided"),
            *("mask-transposed", "mask-reversed"),
        )
    },
    "get_item-own-mask": "each example selects another number of elements",
    **{
        f"to_device-{name}": "a vmapped function cannot leave the batched device"
        for name in ("there", "there-and-back", "0-d", "zero-size", "integers")
    },
}
"""The rows that vmap refuses with a VmapError."""
DRAWN = {
    *(f"gumbel_softmax-{name}" for name in ("matrix", "axis-0", "hard", "hard-axis-0")),
    *(f"dropout-{name}" for name in ("matrix", "three-axes", "0-d", "transposed")),
    *("dropout-same-seed-twice", "dropout-mask-again"),
}
"""The rows that draw: vmap draws other numbers for each example, and the loop the same."""
ROUGH = {"det-singular-large": "the determinant is a rounding error beside a larger one"}
"""The rows whose derivatives depend on the other examples of a batch."""
BETWEEN = "index arrays with slices before and between have no rule"
RAGGED = "each mask selects another number of elements; the numbers of these examples agree"
LOOPED = {
    **{
        f"get_item-{name}": RAGGED
        for name in (
            *("mask", "mask-of-a-vector", "mask-of-the-first-axis", "mask-of-the-first-axes"),
            *("mask-of-nothing", "mask-of-everything", "mask-in-tuple", "mask-zero-size"),
            *("mask-and-slice", "slice-and-mask", "ellipsis-and-mask", "integer-and-mask"),
            *("mask-and-array", "raw-mask", "mask-of-integers", "mask-strided"),
            *("mask-transposed", "mask-reversed"),
        )
    },
    "set_item-mask-of-nothing": RAGGED,
    "set_item-mask-of-everything": RAGGED,
    "set_item-mask-value-0-d": RAGGED,
    "set_item-mask-value-one": RAGGED,
    "Positions-mask": RAGGED,
    "Positions-mask-of-the-first-axis": RAGGED,
    "get_item-none-between-arrays": BETWEEN,
    "set_item-none-between": BETWEEN,
    "set_item-none-ellipsis": BETWEEN,
}
"""The rows that run one example after another."""
FLAT = "the gradient is zero everywhere, so the net gives a result without a graph"
SHAPES = "a net has fixed shapes"
COMPILED = {
    **dict.fromkeys(LOOPED, SHAPES),
    "get_item-bool-list": SHAPES,
    "imag-real": FLAT,
    "LinearScan-one": FLAT,
    "conv2d-no-images": FLAT,
    "conv1d-no-signals": FLAT,
    "conv_transpose2d-no-images": FLAT,
    "conv3d-no-volumes": FLAT,
    "Standardize-three-outputs-axes-1-off-center": FLAT,
    "Standardize-three-outputs-axes-0-1-2-off-center": FLAT,
    "dropout-zero-size": "the row makes its generator inside, which a net refuses",
}
"""The rows that are not compared as nets."""


def shared_inputs(case: Case) -> list[frozenset[int]]:
    """Which inputs all examples share: none; all but the first; the first."""
    every = [frozenset[int]()]
    if len(case.inputs) > 1:
        every += [frozenset(range(1, len(case.inputs))), frozenset({0})]
    return every


def looped(case: Case, device: str, shared: frozenset[int]) -> bool:
    """Compare vmap with a loop; True if a function of the row fell back."""
    fallback_uses.clear()
    row = Row(case, device, shared)
    ours = row.by_vmap()
    found = any(name.startswith("vmap") for name, _, _ in fallback_uses)
    assert_close(ours, row.by_loop(), case)
    return found


def firsts() -> list[Case]:
    """The first row of each operation that vmap takes."""
    found: dict[str, Case] = {}
    for case in CASES:
        if case.id not in REFUSED and case.id not in DRAWN:
            found.setdefault(case.operation, case)
    return list(found.values())


def check_rows(cases: list[Case], device: str) -> set[str]:
    """Compare rows; gives the names of those that fell back."""
    fell_back = set()
    for case in cases:
        if case.id in REFUSED or case.id in DRAWN or case.id in ROUGH:
            continue
        if device.startswith("strict") and case.not_on_strict:
            continue
        for shared in shared_inputs(case):
            try:
                if looped(case, device, shared):
                    fell_back.add(case.id)
            except Exception as error:
                error.add_note(f"row {case.id} on {device}, shared inputs {sorted(shared)}")
                raise
    return fell_back


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_first_rows(device: str) -> None:
    check_rows(firsts(), device)


@pytest.mark.slow
@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.long) for start in (1, 2))]
)
def test_a_third_of_the_rows_on_another_device(start: int) -> None:
    assert check_rows(CASES[start::3], "strict:device1") <= set(LOOPED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "device", ["numpy", "fast", pytest.param("strict", marks=pytest.mark.long)]
)
def test_every_row_and_few_loops(device: str) -> None:
    fell_back = check_rows(CASES, device)
    if device == "numpy":
        assert fell_back == set(LOOPED)
    assert fell_back <= set(LOOPED)
    assert len(LOOPED) <= 0.02 * len(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", pytest.param("jax", marks=pytest.mark.long)])
def test_rows_on_other_libraries(library: str) -> None:
    if not INSTALLED[library]:
        pytest.skip(f"{library} is not installed")
    load(library)
    known = DEVIATIONS[library]
    every = EVERY_HOW_MANY[library]  # JAX compiles each function for each shape
    check_rows([case for case in CASES[::every] if case.id not in known], library)


@pytest.mark.parametrize("case", [c for c in CASES if c.id in REFUSED], ids=lambda c: c.id)
def test_refused_rows_say_so(case: Case) -> None:
    with pytest.raises(VmapError, match=r"vmap|vmapped"):
        Row(case, "numpy").by_vmap()


@pytest.mark.parametrize("case", [c for c in CASES if c.id in DRAWN], ids=lambda c: c.id)
def test_rows_that_draw_differ_by_example(case: Case) -> None:
    row = Row(case, "numpy")
    assert len(row.by_vmap()) == len(row.by_loop())


def compiled_cases(every: bool) -> list[Case]:
    without = {*REFUSED, *DRAWN, *ROUGH, *COMPILED}
    return [case for case in (CASES if every else firsts()) if case.id not in without]


def check_compiled(cases: list[Case]) -> None:
    gc.freeze()  # nets are full of cycles, and a search through what other tests left is slow
    try:
        for case in cases:
            row = Row(case, "numpy")
            by_loop = row.by_loop()
            assert_close(row.by_vmap(compiled=True), by_loop, case)
            assert_close(row.inside(), by_loop, case)
    except Exception as error:
        error.add_note(f"row {case.id}, compiled")
        raise
    finally:
        gc.unfreeze()


def test_first_rows_of_some_operations_compiled() -> None:
    check_compiled(compiled_cases(every=False)[::6])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_row_compiled(part: int) -> None:
    check_compiled(compiled_cases(every=True)[part::4])


KINKS = """
    abs clip elu erf erfc erfinv fmod gelu hard_silu leaky_relu log_sigmoid log_softmax logaddexp
    logsumexp max max_pool2d maximum minimum prelu relu selu sigmoid sigmoid_cross_entropy silu
    softmax softplus vector_norm
"""
"""The operations with a kink, a tie, or a forward that computes another function near 0."""


def check_special(cases: list[Case], device: str) -> int:
    """Compare rows at kinks, ties and ends of domains; gives the number of compared rows."""
    count = 0
    for case in cases:
        row = Row(case, device, draw=special_examples_of)
        with np.errstate(all="ignore"):
            try:
                by_loop = row.by_loop()
            except (ValueError, OperandError):  # the row takes other values
                continue
            count += 1
            ways = [row.by_vmap, partial(row.by_vmap, compiled=True), row.inside]
            for way in ways:
                try:
                    assert_close(way(), by_loop, case)
                except Exception as error:
                    error.add_note(f"row {case.id} on {device}, {way}")
                    raise
    return count


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_first_rows_at_kinks_and_ties(device: str) -> None:
    cases = [case for case in firsts() if case.operation in KINKS.split()]
    assert check_special(cases, device) == len(KINKS.split())


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.long) for i in (1, 2))])
def test_every_row_at_kinks_and_ties(part: int, device: str) -> None:
    cases = compiled_cases(every=True)[part::3]
    assert check_special(cases, device) > 0.9 * len(cases)


def single_function(case: Case, xs: list[Any]) -> Any:
    """The operator of the only function of a row; None for a row of several functions."""
    try:
        operators = tn.trace(lambda *given: call(case, list(given)), *xs).net.flattened()
    except TraceError:
        return None
    return operators[0] if len(operators) == 1 else None


def test_polynomials() -> None:
    """Along a line, the degree of ``is_polynomial`` is at most the number of inputs."""
    met = set()
    for case in firsts():
        hosts = draw_inputs(case, case.dtypes[0])
        xs = make_inputs(case, hosts, tn.get_device("numpy"))
        moving = [isinstance(x, tn.Variable) and x.requires_grad for x in xs]
        found = single_function(case, xs) if any(moving) and case.order else None
        if found is None or not found.node_class.is_polynomial:
            continue
        met.add(found.node_class.__name__)
        order = len(found.input_names) + 1
        ends = draw_inputs(case, case.dtypes[0], 1)
        total = 0.0
        for t in range(order + 1):
            at = [x + t * end if m else x for x, end, m in zip(hosts, ends, moving, strict=True)]
            ys = call(case, make_inputs(case, at, tn.get_device("numpy")))
            total = total + (-1) ** t * math.comb(order, t) * host_of_all(ys)
        np.testing.assert_allclose(total, 0.0, atol=1e-3, err_msg=case.id)
    assert {"Add", "Multiply", "Conv2d", "GetItem", "Einsum", "SumTo"} <= met
    assert len(met) > 30


def host_of_all(ys: Any) -> Any:
    """All elements of some Variables."""
    return np.concatenate([tn.to_host(y.array).ravel() for y in ys])


def test_tables_name_rows() -> None:
    known = {case.id for case in CASES}
    for table in (REFUSED, DRAWN, ROUGH, LOOPED, COMPILED):
        assert set(table) <= known


def test_a_planted_error_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails if a rule gives wrong axes."""
    from tinynode_batched import lifting

    def last_axis(axis: Any, axes: int) -> int:
        return axes

    monkeypatch.setattr(lifting, "shifted", last_axis)
    (case,) = [c for c in CASES if c.id == "sum-first-axis"]
    with pytest.raises((AssertionError, ValueError)):
        row = Row(case, "numpy")
        assert_close(row.by_vmap(), row.by_loop(), case)
