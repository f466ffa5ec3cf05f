"""Compiled functions agree with eager functions at each of several calls."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from fuzz import calls
from fuzz.calls import Session

CHUNKS = 4


def run(count: int, seed: int, shares: bool = False) -> int:
    """Check a number of sessions; the number of calls."""
    compared = 0

    def check(session: Session) -> None:
        nonlocal compared
        compared += calls.check(session)

    limited = hypothesis.settings(
        max_examples=count,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
        derandomize=False,
        report_multiple_bugs=False,
    )(hypothesis.given(calls.sessions(shares))(check))
    hypothesis.seed(seed)(limited)()
    return compared


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_sessions(chunk: int, request: pytest.FixtureRequest, record_property: Any) -> None:
    wanted, seed = (request.config.getoption(name) for name in ("programs", "fuzz_seed"))
    compared = run(max(1, wanted // (8 * CHUNKS)), 1000 * seed + chunk)
    assert compared
    record_property("fuzzing", {"calls of compiled functions": compared})


def test_sessions_in_which_a_parameter_shares_its_array(request: pytest.FixtureRequest) -> None:
    wanted, seed = (request.config.getoption(name) for name in ("programs", "fuzz_seed"))
    assert run(max(1, wanted // 40), seed, shares=True)
