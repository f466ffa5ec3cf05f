"""Several ranks: on one process here, and on two and three by ``mpiexec``."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpi_program
import numpy as np
import pytest

import tinynode as tn
from tinynode import distributed
from tinynode.distributed.communicator import SIZE_VARIABLES
from tinynode.nn import schedules

ROOT = Path(__file__).resolve().parents[2]
HAS_MPI = importlib.util.find_spec("mpi4py") is not None
MPIEXEC = Path(sys.executable).parent / "mpiexec"
LAUNCHER = str(MPIEXEC) if MPIEXEC.exists() else shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(
    not HAS_MPI or LAUNCHER is None,
    reason="mpi4py and mpiexec are not installed: pip install 'tinynode[mpi]'",
)


def run_ranks(number: int, *command: str) -> subprocess.CompletedProcess[str]:
    """A Python program on several ranks."""
    paths = os.pathsep.join(str(ROOT / folder) for folder in (".", "backends", "tests/support"))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    full = [str(LAUNCHER), "-n", str(number), sys.executable, *command]
    return subprocess.run(
        full, capture_output=True, text=True, timeout=100, env=environment, check=False, cwd=ROOT
    )


@pytest.fixture(scope="module")
def _ranks_start() -> None:
    """Skip where the machine cannot start two ranks, as in a sandbox without sockets."""
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    try:
        done = run_ranks(2, "-c", program)
    except subprocess.TimeoutExpired:
        pytest.skip("mpiexec does not start two ranks on this machine: no answer in 100 s")
    if done.returncode:
        pytest.skip(f"mpiexec does not start two ranks on this machine: {done.stderr[-200:]}")


@pytest.mark.parametrize("device", ["numpy", "fast", "strict"])
def test_one_process(device: str) -> None:
    mpi_program.check_arrays(device)
    mpi_program.check_functions(device)
    mpi_program.check_unused_and_nan(device)


def test_training_on_one_process() -> None:
    mpi_program.check_training("numpy")
    mpi_program.check_frozen_parameters("numpy")


def test_trainer_on_one_process(tmp_path: Path) -> None:
    mpi_program.check_trainer(str(tmp_path))
    assert (tmp_path / "logs" / "rank0.log").read_text().count("epoch ") == 3


def test_collectives_in_nets_on_one_process() -> None:
    mpi_program.check_compiled_collectives("numpy")
    mpi_program.check_overlap()
    mpi_program.check_messages_in_step()
    mpi_program.check_loaders()


def test_misuse_of_the_optimizer() -> None:
    p = tn.nn.Parameter(np.ones(2))
    with pytest.raises(TypeError, match=r"must be an optimizer of tinynode\.nn"):
        distributed.DistributedOptimizer([p])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bucket_bytes must be at least 1"):
        distributed.DistributedOptimizer(tn.nn.SGD([p], lr=0.1), bucket_bytes=0)
    optimizer = distributed.DistributedOptimizer(tn.nn.SGD([p], lr=0.1))
    with pytest.raises(ValueError, match="weight must be a number"):
        optimizer.update(weight=-1.0)
    with pytest.raises(ValueError, match="weights of all ranks are 0"):
        optimizer.update(weight=0.0)
    with pytest.raises(tn.errors.GraphError, match="no gradient"):
        optimizer.update()
    p.grad = np.ones(2)
    optimizer.lr = 0.5
    optimizer.update()
    np.testing.assert_allclose(p.array, [0.5, 0.5])
    with pytest.raises(ValueError, match="weights of all ranks are 0"):
        distributed.all_metrics({"a": 1.0}, weight=0.0)


def test_errors_on_one_process() -> None:
    mpi_program.check_errors()
    assert distributed.world() is distributed.world()
    assert repr(distributed.world()) == "Communicator(rank 0 of 1)"


@needs_mpi
@pytest.mark.slow
@pytest.mark.usefixtures("_ranks_start")
@pytest.mark.parametrize("number", [2, 3])
def test_several_ranks(number: int) -> None:
    done = run_ranks(number, "tests/support/mpi_program.py")
    assert done.returncode == 0, done.stdout + done.stderr
    told = sorted(re.findall(r"rank \d of \d: fine", done.stdout))  # lines may run together
    assert told == [f"rank {rank} of {number}: fine" for rank in range(number)]


@needs_mpi
@pytest.mark.slow
@pytest.mark.usefixtures("_ranks_start")
def test_a_wrong_result_fails_on_every_rank() -> None:
    """The program's checks can fail: a backward without its collective is found."""
    program = (
        "import mpi_program\n"
        "from tinynode.distributed import functions\n"
        "functions.AllReduce.backward = lambda self, targets, gys: gys\n"
        "mpi_program.check_functions('numpy')\n"
    )
    done = run_ranks(2, "-c", program)
    assert done.returncode != 0 and "AssertionError" in done.stderr


def test_without_mpi4py_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed.communicator, "_world", None)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    monkeypatch.setenv(SIZE_VARIABLES[0], "2")
    with pytest.raises(ImportError, match=r"pip install 'tinynode\[mpi\]'"):
        distributed.world()


def test_a_child_process_of_a_rank_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SIZE_VARIABLES[0], "2")
    assert distributed.is_launched()
    monkeypatch.setenv("TINYNODE_RANK_PROCESS", "1")
    assert not distributed.is_launched()


def test_a_schedule_takes_the_distributed_optimizer() -> None:
    plain = tn.nn.SGD([tn.nn.Parameter(np.ones(2))], lr=0.5)
    optimizer = distributed.DistributedOptimizer(plain)
    schedule = schedules.StepSchedule(optimizer, 1)  # type: ignore[arg-type]
    schedule.step()
    assert optimizer.lr == plain.lr < 0.5
    assert list(optimizer.groups) == [plain]


def test_lbfgs_is_refused() -> None:
    with pytest.raises(TypeError, match="LBFGS computes the loss several times"):
        distributed.DistributedOptimizer(tn.nn.LBFGS([tn.nn.Parameter(np.ones(2))]))


def test_one_process_imports_no_mpi() -> None:
    program = (
        "import sys\nimport tinynode as tn\nfrom tinynode import distributed\n"
        "assert distributed.world().size == 1\nassert 'mpi4py' not in sys.modules\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in SIZE_VARIABLES}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=ROOT)


def test_the_device_of_an_array_stays() -> None:
    x: Any = tn.asarray(np.ones(3), device="fast", requires_grad=True)
    y = distributed.functions.allreduce(x)
    assert y.device is x.device
    y.grad = np.full(3, 2.0)
    y.backward()
    np.testing.assert_array_equal(x.grad, np.full(3, 2.0))


DIFFERING = """
import sys, numpy as np, tinynode as tn
from tinynode import distributed, nn
comm = distributed.world()
odd = comm.rank == comm.size - 1
models = {
    "shape": lambda: nn.Linear(4, 3 if odd else 2),
    "dtype": lambda: nn.Linear(4, 2, dtype="float64" if odd else "float32"),
    "name": lambda: nn.Linear(4, 2) if odd else nn.Sequential(nn.Linear(4, 2)),
    "number": lambda: nn.Sequential(*[nn.Linear(4, 4) for _ in range(3 if odd else 2)]),
}
model = models[sys.argv[1]]()
if sys.argv[2] == "broadcast":
    distributed.broadcast_parameters(model)
optimizer = distributed.DistributedOptimizer(nn.SGD(model, lr=0.1))
x = np.ones((5, 4), "float64" if sys.argv[1] == "dtype" and odd else "float32")
optimizer.cleargrads()
loss = tn.functions.sum(model(x))
if sys.argv[2] == "backward":
    optimizer.backward(loss)
else:
    loss.backward()
optimizer.update()
print("trained")
"""
DIFFERENCES = {
    "shape": r"weight of shape \(3, 4\) and float32 on rank {}, and weight of shape \(2, 4\)",
    "dtype": r"weight of shape \(2, 4\) and float64 on rank {}, and .* float32 on rank 0",
    "name": r"weight of shape .* on rank {}, and layers.0.weight of shape",
    "number": r"number 5 is layers.2.weight .* on rank {}, and missing \(there are 4\) on rank 0",
}
KINDS = [pytest.param(k, marks=[] if k == "name" else pytest.mark.slow) for k in DIFFERENCES]


@needs_mpi
@pytest.mark.usefixtures("_ranks_start")
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_with_different_parameters_are_refused(kind: str, ranks: int) -> None:
    for way in ("broadcast", "backward", "update"):
        done = run_ranks(ranks, "-c", DIFFERING, kind, way)
        assert done.returncode != 0, done.stderr
        assert "RankError" in done.stderr
        assert re.search(DIFFERENCES[kind].format(ranks - 1), done.stderr), done.stderr
        assert "trained" not in done.stdout


LEAVING = """
import os, sys, time, numpy as np
from tinynode import distributed
comm = distributed.world()
comm.barrier()
if comm.rank == 1:
    if sys.argv[1] == "child":  # ends alone, as the children of multiprocessing do
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    elif sys.argv[1] == "_exit":
        os._exit(int(sys.argv[2]))
    else:
        sys.exit(int(sys.argv[2]))
comm.barrier()
print("fine")
"""


@needs_mpi
@pytest.mark.usefixtures("_ranks_start")
@pytest.mark.parametrize("status", [0, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["_exit", pytest.param("exit", marks=pytest.mark.slow)])
def test_a_rank_that_leaves_early_ends_the_run(way: str, status: int) -> None:
    done = run_ranks(2, "-c", LEAVING, way, str(status))
    words = f"left by os._exit({status})" if way == "_exit" else "rank 1 has ended, and rank 0"
    assert done.returncode != 0
    assert words in done.stderr
    assert "fine" not in done.stdout


@needs_mpi
@pytest.mark.usefixtures("_ranks_start")
def test_a_child_process_of_a_rank_may_leave() -> None:
    done = run_ranks(2, "-c", LEAVING, "child")
    assert (done.returncode, done.stdout.count("fine")) == (0, 2), done.stderr
