"""Random programs have equal results and gradients on every backend, compiled, and in PyTorch.

``pytest tests/fuzz --programs 100000 --fuzz-seed 1 -n auto`` runs a night. A failure is shrunk,
and ends with the program as a script.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from typing import Any

import hypothesis
import pytest
from fuzz import oracles
from fuzz.generator import programs
from fuzz.programs import Program

CHUNK = 500
"""The most programs of one test: a long run shows progress, and spreads over processes."""
LEAST_CHUNKS = 12


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "chunk" in metafunc.fixturenames:
        wanted = metafunc.config.getoption("programs")
        metafunc.parametrize("chunk", range(max(LEAST_CHUNKS, -(-wanted // CHUNK))))


def settings(count: int) -> hypothesis.settings:
    phases = [hypothesis.Phase.generate, hypothesis.Phase.shrink]
    return hypothesis.settings(
        max_examples=count,
        phases=phases,
        suppress_health_check=list(hypothesis.HealthCheck),
        derandomize=False,
        report_multiple_bugs=False,
    )


@pytest.mark.parametrize("values", ["near", pytest.param("wide", marks=pytest.mark.slow)])
def test_programs(
    values: str, chunk: int, request: pytest.FixtureRequest, record_property: Any
) -> None:
    wanted, seed = (request.config.getoption(name) for name in ("programs", "fuzz_seed"))
    chosen = oracles.oracles_of(chunk)
    counts: Counter[str] = Counter()

    def check(program: Program) -> None:
        counts.update(oracles.check(program, chosen))

    given = hypothesis.given(programs(is_wide=values == "wide"))(check)
    limited = settings(max(1, wanted // max(LEAST_CHUNKS, -(-wanted // CHUNK))))(given)
    hypothesis.seed(1000 * seed + chunk)(limited)()
    idle = [name for name in chosen if not counts[name]]
    assert not idle, f"no program was compared with {idle}"
    record_property("fuzzing", dict(counts))


@hypothesis.settings(
    max_examples=10,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(program=programs())
def test_a_printed_program_runs(program: Program) -> None:
    """The script prints the results of the program."""
    known: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(program.script("fast"), known)
    assert len(known["found"]) == 3
    for ours, theirs in zip(known["expected"], oracles.reference(program), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert (one is None) == (other is None)
            assert one is None or (one.array == other).all() or (other != other).any()
