"""The op table in pairs of modes: compiled, vmapped, recomputed, by reverse and forward mode.

A *program* is a question about a row, with a wrapper inside and one around; see
``support/modes.py``. There are 265 programs for each row at each of five points. The default test
runs one for each operation, the slow tests run some thousands, and the long tests 16 for each row
at each point. The programs are drawn by the name of the row; another ``SEED`` draws others.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator

import modes
import numpy as np
import pytest
from op_cases import CASES, Case

from tests.transforms.test_vmap_table import BETWEEN, COMPILED, DRAWN, LOOPED, REFUSED, ROUGH
from tinynode.transforms import batching, labelled

LEFT_OUT = {*REFUSED, *DRAWN, *ROUGH} | {name for name, why in LOOPED.items() if why != BETWEEN}
"""The rows that another test of vmap or of compile names, with the reason."""
OTHERS_OF_NETS = {"get_item-bool-list", "dropout-zero-size"}
INFINITE = "sums of infinities of both signs are NaN, or a part is left out, by the order"
CHOOSES = "a determinant is differentiated in another way if a matrix of the batch is singular"
NOT_FAR: dict[str, str] = {
    "LinearScan": INFINITE,
    "StandardizeGrad": INFINITE,
    "conv_transpose1d": INFINITE,
    "einsum": INFINITE,
    "sigmoid_cross_entropy": INFINITE,
    "Cofactors": CHOOSES,
    "CofactorsGrad": CHOOSES,
    "det": CHOOSES,
}
"""The operations that are not compared beside infinities and NaN."""
SEED = 0
PROGRAMS = [
    (question, inner, outer)
    for question in modes.QUESTIONS
    for inner in modes.WRAPPERS
    for outer in modes.AROUND
    if (inner, outer) != ("eager", "eager")
]


def rows() -> list[Case]:
    """The rows that every mode takes."""
    return [case for case in CASES if case.id not in LEFT_OUT | OTHERS_OF_NETS]


def firsts() -> list[Case]:
    """The first row of each operation."""
    found: dict[str, Case] = {}
    for case in rows():
        found.setdefault(case.operation, case)
    return list(found.values())


def at_points(cases: list[Case], points: list[str]) -> Iterator[tuple[Case, str]]:
    for case in cases:
        for point in points:
            if point != "far" or case.operation not in NOT_FAR:
                yield case, point


def check(pairs: list[tuple[Case, str]], device: str, count: int) -> int:
    """Run some programs of each row at a point; gives the number of compared programs."""
    compared = 0
    gc.freeze()  # nets are full of cycles, and a search through what other tests left is slow
    try:
        for case, point in pairs:
            generator = random.Random(f"{case.id} {point} {device} {SEED}")
            chosen = generator.sample(PROGRAMS, count)
            compared += check_row(case, point, device, chosen)
    finally:
        gc.unfreeze()
    return compared


def check_row(case: Case, point: str, device: str, programs: list[tuple[str, str, str]]) -> int:
    """Run programs of a row at a point, where eager code takes the values."""
    compared = 0
    with np.errstate(all="ignore"):
        for question, inner, outer in programs:
            try:
                row = modes.row_at(case, point, device)
                if not modes.is_asked(row, question):
                    continue
                expected = modes.answers(row, question)
            except (ValueError, IndexError, np.linalg.LinAlgError):  # not for the row
                continue
            compared += 1
            try:
                ours = modes.answers(row, question, inner, outer)
                modes.assert_agree(ours, expected, row, question)
            except Exception as error:
                program = f"{outer}({question}({inner}))"
                error.add_note(f"row {case.id} at {point} on {device}: {program}")
                raise
    return compared


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_each_operation_in_a_mode(device: str) -> None:
    points = list(modes.POINTS)
    cases = firsts()[:: 1 if device == "numpy" else 3]
    pairs = [(case, random.Random(case.id).choice(points)) for case in cases]
    chosen = [pair for pair in pairs if pair in list(at_points([pair[0]], points))]
    assert check(chosen, device, 1) > 0.7 * len(cases)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("part", [1, *(pytest.param(i, marks=pytest.mark.long) for i in (0, 2))])
def test_each_operation_at_each_point(part: int, device: str) -> None:
    pairs = list(at_points(firsts()[part::3], list(modes.POINTS)))
    assert check(pairs, device, 3) > len(pairs)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("part", range(24))
def test_each_row_in_many_modes(part: int, device: str) -> None:
    pairs = list(at_points(rows()[part::24], list(modes.POINTS)))
    assert check(pairs, device, 8) > len(pairs)


def test_tables_name_operations_and_rows() -> None:
    assert set(NOT_FAR) <= {case.operation for case in CASES}
    assert set(COMPILED) >= OTHERS_OF_NETS
    assert len(rows()) > 0.97 * len(CASES)


def first_row(operation: str) -> Case:
    return next(case for case in CASES if case.operation == operation)


def test_a_lost_backward_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails where a net differentiates the functions of a forward."""
    monkeypatch.setattr(batching.LibraryOfVariables, "is_elementwise", lambda *_: False)
    program = ("reverse", "compile(vmap)", "eager")
    assert check_row(first_row("sigmoid"), "zero", "numpy", [program]) == 1
    monkeypatch.setattr(batching, "is_exact", lambda *_: True)
    with pytest.raises(AssertionError, match="result 0"):
        check_row(first_row("sigmoid"), "zero", "numpy", [program])


def test_a_gradient_that_counts_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "RULES", {})  # so that RowWeights is an operator of all examples
    monkeypatch.setattr(batching, "of_each_example", lambda results, _: results)
    with pytest.raises(AssertionError, match="result"):
        program = ("reverse", "shared vmap", "compile")
        check_row(first_row("RowWeights"), "ends", "numpy", [program])
