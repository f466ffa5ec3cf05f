"""Data parallel training over MPI.

A program runs in several processes, the *ranks*. ``world()`` is the communicator of all ranks, and
of a single process where MPI did not start the program. So a script needs no ``if``.

    mpiexec -n 2 python script.py
"""

from tinynode.distributed import functions
from tinynode.distributed.communicator import Communicator, Pending, world
from tinynode.distributed.training import (
    DistributedOptimizer,
    all_metrics,
    broadcast_parameters,
    scatter_dataset,
)

__all__ = [
    "Communicator",
    "DistributedOptimizer",
    "Pending",
    "all_metrics",
    "broadcast_parameters",
    "functions",
    "scatter_dataset",
    "world",
]
