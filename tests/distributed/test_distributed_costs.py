"""The alpha-beta model against message counts, the page against the model, and the benchmark."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.distributed.test_distributed import _ranks_start, needs_mpi
from tools.benchmarks import collective_model as model

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "distributed-costs.md"
NETWORK = model.Network("test", 3.0, 0.5)
_ = _ranks_start  # a fixture


def ring_rounds(p: int) -> Iterator[list[tuple[int, int, int, bool]]]:
    """The messages of a ring allreduce, round by round: from, to, chunk, and if it is added."""
    for step in range(p - 1):
        yield [(r, (r + 1) % p, (r - step) % p, True) for r in range(p)]
    for step in range(p - 1):
        yield [(r, (r + 1) % p, (r + 1 - step) % p, False) for r in range(p)]


@pytest.mark.parametrize("p", [2, 3, 4, 8])
def test_the_formula_of_a_ring_counts_messages(p: int) -> None:
    """A simulated ring gives the sums on all ranks, in the counted steps and bytes."""
    data = np.random.default_rng(p).normal(size=(p, p, 5))  # ranks, chunks, elements
    total, seconds, sent = data.sum(axis=0), 0.0, 0
    chunk_bytes = data[0, 0].nbytes
    for messages in ring_rounds(p):
        copies = {(source, chunk): data[source, chunk].copy() for source, _, chunk, _ in messages}
        for source, target, chunk, is_added in messages:
            old = data[target, chunk] if is_added else 0.0
            data[target, chunk] = old + copies[source, chunk]
        seconds += NETWORK.alpha + chunk_bytes * NETWORK.beta
        sent += chunk_bytes
    np.testing.assert_allclose(data, np.broadcast_to(total, data.shape))
    n = total.nbytes
    assert model.ring(p, n, NETWORK) == pytest.approx(seconds)
    assert model.ring_bytes(p, n) == pytest.approx(sent)


@pytest.mark.parametrize("p", [2, 4, 8, 16])
def test_the_formula_of_doubling_counts_messages(p: int) -> None:
    data = np.random.default_rng(p).normal(size=(p, 7))
    total, seconds, distance = data.sum(axis=0), 0.0, 1
    while distance < p:
        data = data + data[[r ^ distance for r in range(p)]]
        seconds += NETWORK.alpha + total.nbytes * NETWORK.beta
        distance *= 2
    np.testing.assert_allclose(data, np.broadcast_to(total, data.shape))
    assert model.doubling(p, total.nbytes, NETWORK) == pytest.approx(seconds)
    assert model.tree(p, total.nbytes, NETWORK) == pytest.approx(2 * seconds)


def test_numbers_worked_by_hand() -> None:
    assert [model.levels(p) for p in (1, 2, 3, 4, 5, 1024)] == [0, 1, 2, 2, 3, 10]
    assert model.ring(4, 100.0, NETWORK) == 6 * 3.0 + 150 * 0.5
    assert model.doubling(4, 100.0, NETWORK) == 2 * (3.0 + 50.0)
    assert model.best(4, 100.0, NETWORK) == (93.0, "ring")
    assert model.best(4, 1.0, NETWORK) == (7.0, "doubling")
    assert model.speedup(4, 100.0, 372.0, NETWORK) == 372.0 / (93.0 + 93.0)
    # 2 ranks: 50 + 3.5 seconds; 4: 25 + 7; 8: 12.5 + 10.5; 16: 6.25 + 14; 32: 3.125 + 17.5
    assert model.stops_paying(1.0, 100.0, NETWORK) == 16
    assert model.stops_paying(1.0, 1.0, NETWORK) == 1


def test_a_fit_finds_alpha_and_beta() -> None:
    sizes = [8.0, 1e3, 1e5, 1e7]
    alpha, beta = model.fit(sizes, [4e-6 + 2e-10 * n for n in sizes])
    assert alpha == pytest.approx(4e-6) and beta == pytest.approx(2e-10)


def test_the_tables_of_the_page_are_those_of_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = re.findall(r"python -m tools\.benchmarks\.collective_model (--bytes.*)", text)
    assert len(commands) == 2
    for command in commands:
        model.main(command.split())
        assert capsys.readouterr().out.strip() in text, command


def test_the_hidden_share_of_the_page() -> None:
    """The share and the speedup of the page follow from the times beside."""
    lines = re.findall(r"^\| [a-z ]+, (?:64|256) +\|.*\|$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) == 12
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        compute, _, after, overlapped = map(float, cells[2:6])
        if cells[6] != "-":
            share = 100 * (after - overlapped) / (after - compute)
            assert float(cells[6].rstrip(" %")) == pytest.approx(share, abs=6)


@needs_mpi
@pytest.mark.slow
@pytest.mark.usefixtures("_ranks_start")
def test_the_benchmark_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.benchmarks.distributed", "--rounds=2", "--ranks=1,2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "| digits perceptron, 64" in done.stdout
    assert "allreduce on 2 ranks of this machine: alpha" in done.stdout
