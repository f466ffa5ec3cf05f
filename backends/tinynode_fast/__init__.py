"""The fast path: NumPy's arrays, with kernels for images, and with nets compiled to C.

Requirement: a program on NumPy becomes quicker by one line of config, without other changes. So
this backend uses NumPy's memory, and replaces only ``forward`` and the plans of nets. Hooks, type
checks, the graph and double backprop stay the same. A kernel computes and retains the same arrays
as the class's forward. For other inputs a kernel returns ``Fallback`` with a reason, and the
portable forward runs.
"""

from __future__ import annotations

import time
from typing import Any

import tinynode.net  # noqa: F401 - the package first: see late_imports
from tinynode.core.function_node import FunctionNode
from tinynode.devices import Arrays, Fallback, count_use, kernel_uses
from tinynode_fast.images import KERNELS, run_kernel
from tinynode_fast.native.build import compiler_status as compiler_status
from tinynode_fast.plan import FastPlan
from tinynode_numpy import add_at as add_at
from tinynode_numpy import capabilities as capabilities
from tinynode_numpy import devices as devices
from tinynode_numpy import from_host as from_host
from tinynode_numpy import index_of as index_of
from tinynode_numpy import lift as lift
from tinynode_numpy import namespace as namespace
from tinynode_numpy import owns as owns
from tinynode_numpy import synchronize as synchronize
from tinynode_numpy import to_host as to_host

name = "fast"
make_plan = FastPlan
base = "numpy"
"""The backend that owns the memory."""


def forward(node: Any, arrays: Arrays) -> Any:
    """Run the table's kernel, or ``forward_fast`` of the class, or the portable forward.

    Classes of tinynode do not override ``forward_fast``, and are no fallbacks without a kernel.
    """
    kind = type(node)
    kernel = KERNELS.get(kind)
    if kernel is None:
        if kind.__module__.startswith("tinynode."):
            return node.forward(arrays)
        if kind.forward_fast is FunctionNode.forward_fast:
            return Fallback("no kernel for this class")
    start = time.perf_counter()
    outputs = node.forward_fast(arrays) if kernel is None else run_kernel(node, arrays)
    if outputs is None and kernel is not None:
        return node.forward(arrays)
    if type(outputs) is tuple:
        title = "forward_fast" if kernel is None else kernel.__name__
        count_use(kernel_uses, (name, node.label, title), time.perf_counter() - start)
    return outputs
