"""Data parallel training over MPI.

A program runs in several processes, the *ranks*. ``world()`` is the communicator of all ranks, and
of a single process where MPI did not start the program. So a script needs no ``if``.

    mpiexec -n 2 python script.py
"""

import tinynode.net  # noqa: F401 - the package first: see late_imports
from tinynode.distributed import functions
from tinynode.distributed.communicator import Communicator, is_launched, world
from tinynode.distributed.data import (
    Share,
    all_metrics,
    average_buffers,
    broadcast_parameters,
    scatter_batches,
    scatter_dataset,
)
from tinynode.distributed.layers import SyncBatchNorm, convert_batch_norm
from tinynode.distributed.nccl import gpu_of_rank
from tinynode.distributed.optimizer import DistributedOptimizer
from tinynode.distributed.trainer import DistributedTrainer
from tinynode.distributed.transport import Pending

__all__ = [
    "Communicator",
    "DistributedOptimizer",
    "DistributedTrainer",
    "Pending",
    "Share",
    "SyncBatchNorm",
    "all_metrics",
    "average_buffers",
    "broadcast_parameters",
    "convert_batch_norm",
    "functions",
    "gpu_of_rank",
    "is_launched",
    "scatter_batches",
    "scatter_dataset",
    "world",
]
__dir__ = __all__.copy  # for completion
