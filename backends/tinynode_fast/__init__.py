"""The fast path: NumPy's arrays, and kernels of its own for what NumPy leaves speed in.

Requirement: a program on NumPy becomes quicker by one line of config, and nothing else about it
changes. So this backend lies over NumPy's memory, and replaces only ``forward``: hooks, type
checks, the graph and double backprop are those of every backend. A kernel computes what the
class's forward does, and retains what that retains; where it does not serve, it says why by
``Fallback``, and the portable forward runs.
"""

from __future__ import annotations

import time
from typing import Any

import tinynode_numpy
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Fallback, count_use, kernel_uses
from tinynode_fast.blocks import keep_pages
from tinynode_fast.kernel import Kernel
from tinynode_fast.plan import make_plan as make_plan
from tinynode_fast.table import KERNELS, PLAIN
from tinynode_fast.updates import update_parameters as update_parameters
from tinynode_numpy import add_at as add_at
from tinynode_numpy import devices as devices
from tinynode_numpy import from_host as from_host
from tinynode_numpy import index_of as index_of
from tinynode_numpy import lift as lift
from tinynode_numpy import namespace as namespace
from tinynode_numpy import owns as owns
from tinynode_numpy import synchronize as synchronize
from tinynode_numpy import to_host as to_host

keep_pages()

name = "fast"
base = "numpy"
"""The backend whose memory this one lies over."""
capabilities = tinynode_numpy.capabilities | {"optimizer_update"}


def forward(node: Any, arrays: Arrays) -> Any:
    """By the table's kernel, by the class's ``forward_fast``, or as on NumPy.

    Only classes of tinynode have kernels, and none of those overrides ``forward_fast``.
    """
    kind = type(node)
    if kind in PLAIN:  # one call of NumPy: there is nothing to win, and counting would cost
        return node.forward(arrays)
    kernel = KERNELS.get(kind)
    if kernel is not None:
        return _by_kernel(kernel, node, arrays)
    if kind.forward_fast is FunctionNode.forward_fast:
        return Fallback("no kernel for this class")
    start = time.perf_counter()
    outputs = node.forward_fast(arrays)
    if type(outputs) is tuple:
        seconds = time.perf_counter() - start
        count_use(kernel_uses, (name, node.label, "forward_fast"), seconds)
    return outputs


def _by_kernel(kernel: Kernel, node: Any, arrays: Arrays) -> Any:
    """Run a kernel, and count it if it ran; or the portable forward where that is as quick."""
    if arrays[0].size < kernel.least:
        return node.forward(arrays)
    start = time.perf_counter()
    outputs = kernel.run(node, arrays)
    if outputs is None:
        return node.forward(arrays)
    if type(outputs) is tuple:
        seconds = time.perf_counter() - start
        count_use(kernel_uses, (name, node.label, kernel.name), seconds)
    return outputs
