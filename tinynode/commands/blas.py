"""The threads of BLAS, the library behind the products of NumPy.

Requirement: training is not slower on a busy machine. BLAS divides a product of 64 by 256 by 256
numbers among all cores. On a busy machine a thread waits for a core, and the others wait for the
thread. So ``train`` gives BLAS one thread, unless a variable of the environment says otherwise.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

VARIABLES = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
"""The variables that BLAS reads when NumPy is imported."""
INSTALL = "pip install 'tinynode[threads]'"


def one_thread() -> AbstractContextManager[Any]:
    """A block in which BLAS has one thread.

    The block changes nothing without threadpoolctl, or if a variable of ``VARIABLES`` is set.
    """
    is_chosen = any(os.environ.get(variable) for variable in VARIABLES)
    if is_chosen or find_spec("threadpoolctl") is None:
        return nullcontext()
    # a package of the extra "threads"
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits


def status() -> str:
    """The library and its threads, or how to see them."""
    if find_spec("threadpoolctl") is None:
        return f"unknown; to see and to limit them: {INSTALL}"
    # a package of the extra "threads"
    from threadpoolctl import threadpool_info

    texts = {
        f"{pool['num_threads']} in {pool['internal_api']} {pool['version']}": None
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return ", and ".join(texts) or "no BLAS is loaded"
