"""Checks that run on several ranks: ``mpiexec -n 2 python tests/mpi_program.py``.

Each rank knows the numbers of all ranks, from seeds. So each rank can check its results alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import distributed
from tinynode.distributed import functions

COMM = distributed.world()
RANKS = range(COMM.size)


def draws(rank: int, seed: int, shape: tuple[int, ...] = (2, 3), dtype: str = "float64") -> Any:
    return np.random.default_rng([rank, seed]).normal(size=shape).astype(dtype)


def variable(host: Any, device: str) -> tn.Variable:
    return tn.asarray(host, device=device, requires_grad=True)


def close(x: Any, expected: Any, dtype: str = "float64") -> None:
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    host = tn.to_host(x.array if isinstance(x, tn.Variable) else x)
    assert host.dtype == dtype, (host.dtype, dtype)
    np.testing.assert_allclose(host, expected, rtol=tolerance, atol=tolerance)


def check_arrays(device: str) -> None:
    """The methods of the communicator on arrays of a device."""
    target = tn.get_device(device)
    for dtype in ("float64", "float32", "float16", "int64"):
        if device == "strict" and dtype == "float16":
            continue
        every = [(10 * draws(r, 1)).astype(dtype) for r in RANKS]
        mine = target.from_host(every[COMM.rank].copy())
        total = tn.to_host(COMM.allreduce(mine))
        assert total.dtype == dtype
        np.testing.assert_allclose(total, sum(every), rtol=1e-2 if dtype == "float16" else 1e-6)
        np.testing.assert_array_equal(tn.to_host(COMM.allreduce(mine, "max")), np.max(every, 0))
        np.testing.assert_array_equal(tn.to_host(COMM.broadcast(mine)), every[0])
        for got, host in zip(COMM.allgather(mine), every, strict=True):
            np.testing.assert_array_equal(tn.to_host(got), host)
    uneven = [draws(r, 2, (r + 1, 2)) for r in RANKS]
    for got, host in zip(COMM.allgather(target.from_host(uneven[COMM.rank])), uneven, strict=True):
        np.testing.assert_array_equal(tn.to_host(got), host)
    given = [target.from_host(one) for one in uneven] if COMM.is_main else None
    np.testing.assert_array_equal(tn.to_host(COMM.scatter(given)), uneven[COMM.rank])
    mean = COMM.allreduce(target.from_host(draws(COMM.rank, 3)), "mean")
    np.testing.assert_allclose(tn.to_host(mean), np.mean([draws(r, 3) for r in RANKS], axis=0))


Rule = Callable[[list[Any]], list[Any]]


def sums(xs: list[Any]) -> list[Any]:
    return [sum(xs)] * COMM.size


def gathered(xs: list[Any]) -> list[Any]:
    return [np.stack(xs)] * COMM.size


def parts(gs: list[Any]) -> list[Any]:
    return [sum(g[r] for g in gs) for r in RANKS]


def of_root(xs: list[Any]) -> list[Any]:
    return [xs[0]] * COMM.size


def at_root(gs: list[Any]) -> list[Any]:
    return [sum(gs) if r == 0 else np.zeros_like(gs[0]) for r in RANKS]


ROWS: list[tuple[Any, Rule, Rule, bool]] = [
    (functions.allreduce, sums, sums, False),
    (functions.allgather, gathered, parts, True),
    (functions.broadcast, of_root, at_root, False),
]
"""A function, its values on all ranks, the adjoint, and whether the result has a new axis."""


def check_functions(device: str) -> None:
    """Values, gradients and second gradients of each row, against the formula."""
    for function, forward, adjoint, is_wide in ROWS:
        for dtype in ("float64", "float32"):
            xs = [draws(r, 4, dtype=dtype) for r in RANKS]
            shape = (COMM.size, 2, 3) if is_wide else (2, 3)
            gs = [draws(r, 5, shape, dtype) for r in RANKS]
            vs = [draws(r, 6, dtype=dtype) for r in RANKS]
            x, gy = variable(xs[COMM.rank], device), variable(gs[COMM.rank], device)
            y = function(x)
            close(y, forward(xs)[COMM.rank], dtype)
            (gx,) = tn.grad([y], [x], [gy], enable_double_backprop=True)
            close(gx, adjoint(gs)[COMM.rank], dtype)
            (ggy,) = tn.grad([gx], [gy], [variable(vs[COMM.rank], device)])
            close(ggy, forward(vs)[COMM.rank], dtype)


def check_pipeline(device: str) -> None:
    """Layers on two ranks: forward and backward through send and receive."""
    x, w = draws(0, 7), draws(1, 8)
    if COMM.rank == 0:
        start = variable(x, device)
        token = functions.send(tn.functions.sin(start), to=1)
        token.backward()
        close(start.grad_var, np.cos(x) * w * 2 * np.sin(x) * w)
    elif COMM.rank == 1:
        weights = variable(w, device)
        middle = functions.receive(0, device=device)
        close(middle, np.sin(x))
        loss = tn.functions.sum((middle * weights) ** 2)
        loss.backward()
        close(weights.grad_var, 2 * np.sin(x) ** 2 * w)
    COMM.barrier()


def check_errors() -> None:
    """Wrong arguments raise on every rank, and the communicator still works."""
    bad: list[tuple[Callable[[], Any], str]] = [
        (lambda: COMM.allreduce(np.ones(2), "median"), "operation must be one of"),
        (lambda: COMM.broadcast(np.ones(2), COMM.size), f"from 0 to {COMM.size - 1}"),
        (lambda: COMM.send(np.ones(2), COMM.rank), "this rank"),
        (lambda: COMM.allreduce([1.0, 2.0]), "allreduce"),
    ]
    for call, text in bad:
        try:
            call()
        except (ValueError, TypeError) as error:
            assert text in str(error), str(error)
        else:
            raise AssertionError(text)
    assert COMM.allgather_objects(COMM.rank) == list(RANKS)
    assert COMM.broadcast_object({"seed": COMM.rank}) == {"seed": 0}


def main() -> None:
    import strict_backend

    tn.register_backend(strict_backend)
    for device in ("numpy", "fast", "strict"):
        check_arrays(device)
        check_functions(device)
        if COMM.size > 1:
            check_pipeline(device)
    check_errors()
    print(f"rank {COMM.rank} of {COMM.size}: fine")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
